"""Old conversations through the real spool into real graphs."""

import json
from datetime import UTC
from pathlib import Path

import pytest
from shell import omg_here
from spooled import entry, hand_over

import omg
from omg.config import AgentObservation, Config, Identities, Observation
from omg.importers import import_drops, read_drops
from omg.memory import Memory
from omg.openclaw.doctor import check_apart
from omg.worker.status import home_status, status_text

# the owner's sessions; the group has a memory of its own
SAMPLE = sorted((Path(omg.__file__).parent / "sample").glob("*[!p].jsonl"))
NOON = 1_772_712_000_000


@pytest.fixture
def home(tmp_path):
    home = Memory(Config(home=tmp_path / "home"), embed=None)
    yield home
    home.close()


def pending(home):
    return [m for p in home.find().pending() for m in p.turn().messages]


def test_a_conversation_comes_in_once_however_often_it_is_imported(home):
    told = []
    first = import_drops(home.intake, read_drops(SAMPLE), progress=told.append)
    assert first["messages"] == first["new"] == len(pending(home))
    assert first["sessions"] == len(SAMPLE)
    assert first["skipped"] == []
    assert sum(told) == sum(path.stat().st_size for path in SAMPLE)
    again = import_drops(home.intake, read_drops(SAMPLE[::-1]))
    assert (again["messages"], again["new"]) == (first["messages"], 0)
    assert len(pending(home)) == first["new"]
    assert not list((home.folder / "spool").glob("*.json"))


def test_pending_turns_are_in_the_order_in_which_they_were_said(home):
    import_drops(home.intake, read_drops(SAMPLE[::-1]))
    times = [m.timestamp for m in pending(home)]
    assert times == sorted(times)


def test_a_dry_run_counts_and_leaves_no_trace(home):
    before = sorted(home.folder.rglob("*"))
    dry = import_drops(home.intake, read_drops(SAMPLE * 2), dry_run=True)
    assert sorted(home.folder.rglob("*")) == before
    real = import_drops(home.intake, read_drops(SAMPLE))
    assert dry["new"] == real["new"]
    assert import_drops(home.intake, read_drops(SAMPLE), dry_run=True)["new"] == 0


def test_messages_that_the_hooks_took_in_are_not_imported_again(home, tmp_path):
    talk = [
        {"type": "session", "version": 4, "id": "s-1", "timestamp": "2026-03-05T12:00:00.000Z"},
        *(
            {
                "type": "message",
                "id": f"m{i}",
                "message": {"role": "user", "content": f"hi {i}", "timestamp": NOON + i},
            }
            for i in range(3)
        ),
    ]
    path = tmp_path / "s-1.jsonl"
    path.write_text("".join(json.dumps(e) + "\n" for e in talk))
    (drop,) = read_drops([path])
    hand_over(home.folder, *drop["entries"][:2], session=drop["sessionKey"])
    home.take_in()
    assert import_drops(home.intake, read_drops([path]))["new"] == 1
    assert sorted(m.text for m in pending(home)) == ["hi 0", "hi 1", "hi 2"]


@pytest.mark.parametrize("at", [1e308, -5, "x", None])
def test_a_message_without_a_time_gets_the_time_of_its_drop(home, at):
    hand_over(home.folder, entry("m1", "I moved to Oslo.", at), at_ms=NOON)
    home.take_in()
    assert [m.timestamp for m in pending(home)] == [NOON]


OWN, THEIRS = {"senderIsOwner": True, "senderId": "cli"}, {"senderIsOwner": False, "senderId": "7"}
# as OpenClaw has them of a phone that was paired with limited access, and of `openclaw gateway call chat.send`
PHONE = {"senderId": "gateway-owner", "senderIdentity": {"type": "profile", "id": "gateway-owner"}}
UNNAMED = {"transport": {"clients": [{"id": "cli", "mode": "cli"}]}}
ROOM, MAIN = "agent:main:lounge", "agent:main:main"


def said_in(home, *people, session=ROOM, at=NOON):
    """A drop without a channel, a line for each of *people*; returns who has what was said."""
    lines = [
        entry(f"{session}{at}{n}", f"line {n}", at + n, __openclaw=meta) for n, meta in enumerate(people)
    ]
    hand_over(home.folder, *lines, session=session, agentId=session.split(":")[1])
    home.take_in()
    files = {who.key: home.graph(who).pending() for who in home.registry.identities()}
    return {key for key, pending in files.items() if any(p.at_ms == at for p in pending)}


@pytest.mark.parametrize(
    "people, whose",
    [
        ([OWN, OWN], MAIN),
        ([OWN, THEIRS], ROOM),
        ([THEIRS, OWN], ROOM),
        ([OWN, {}], ROOM),
        ([{}], ROOM),
        ([OWN, PHONE], MAIN),
        ([PHONE, UNNAMED], ROOM),
        ([{"senderIsOwner": "false"}], ROOM),
        ([{"senderIsOwner": "true"}], ROOM),
        ([{"senderIsOwner": 1}], ROOM),
    ],
)
def test_a_room_belongs_to_the_owner_only_if_the_gateway_says_so_for_every_line(home, people, whose):
    assert said_in(home, *people) == {whose}


@pytest.mark.parametrize("reason", ["unanswered", "compaction"])
def test_a_chat_with_only_omg_commands_starts_no_memory(home, reason):
    said = entry("e0", "/omg status", NOON, __openclaw=OWN)
    told = entry("e1", "1 note is remembered.", NOON, "assistant", model="gateway-injected")
    hand_over(home.folder, said, told, session=ROOM, reason=reason)
    assert home.take_in() == 0
    assert home.registry.identities() == []
    assert not list((home.folder / "spool").glob("*.json"))


def test_a_drop_without_a_channel_belongs_to_the_owner_if_its_program_is_linked_to_them(home):
    assert said_in(home, UNNAMED) == {ROOM}
    links = home.config.model_copy(update={"identity": Identities(links={"owner": ["webchat:cli"]})})
    home.registry.config = links
    assert said_in(home, UNNAMED, at=NOON + 10) == {MAIN}


@pytest.fixture
def openclaw(home, monkeypatch):
    """An OpenClaw that the home belongs to."""
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(home.folder.parent))
    (home.folder.parent / "openclaw.json").write_text("{}")


def test_status_and_doctor_say_why_a_chat_does_not_share_the_owners_memory(home, openclaw):
    said_in(home, OWN, session=MAIN)
    said_in(home, UNNAMED, at=NOON + 10)
    assert {who.key: bool(home.registry.why_apart(who)) for who in home.registry.identities()} == {
        MAIN: False,
        ROOM: True,
    }
    assert "\n  apart     the gateway did not say" in status_text(home_status(home.worker), UTC)
    (found,) = check_apart(home)
    assert (found.level, found.where) == ("warn", ROOM)
    assert f"omg identity move {ROOM} {MAIN}" in found.mend


def test_the_doctor_names_the_command_that_joins_a_chat_to_the_owners_memory(home, openclaw, monkeypatch):
    monkeypatch.setenv("OMG_HOME", str(home.folder))
    said_in(home, OWN, session=MAIN)
    said_in(home, UNNAMED, at=NOON + 10)
    assert omg_here("identity", "join", "owner", "webchat:cli").returncode == 0
    (found,) = check_apart(home)
    assert omg_here(*found.mend.split("`")[1].split()[1:]).returncode == 0
    assert MAIN in (left := omg_here("identity", "list").stdout) and ROOM not in left


def test_without_a_gateway_no_chat_is_reported_as_apart_from_the_owners_memory(home):
    said_in(home, UNNAMED)
    assert not any(map(home.registry.why_apart, home.registry.identities()))
    assert list(check_apart(home)) == []


def test_a_preview_says_why_nothing_is_given(home, openclaw):
    def why(session):
        given, note = home.explain("Which tea do I prefer?", session=session)
        assert (given.tokens > 0) is not note.startswith("nothing is given")
        return note

    assert why(MAIN) == f"nothing is given: no notes of {MAIN} yet"
    home.capture([{"role": "user", "content": "I prefer green tea."}])
    assert why(MAIN).endswith("yet, 1 turn to be observed")
    home.observe()
    assert why(MAIN) == ""
    assert "nobody has spoken in agent:main:dashboard:x yet" in why("agent:main:dashboard:x")
    assert why("agent:main:telegram:direct:7").endswith("no notes of agent:main:telegram:direct:7 yet")
    said_in(home, UNNAMED)
    assert why(ROOM).endswith("; the gateway did not say that only the owner speaks in this chat")


def test_a_drop_of_an_agent_for_which_omg_is_off_is_reported_and_not_kept(home):
    off = home.config.observation.model_copy(update={"agents": {"work": AgentObservation(enabled=False)}})
    home.registry.config = home.config.model_copy(update={"observation": off})
    assert said_in(home, OWN, session="agent:work:main") == set()
    assert said_in(home, OWN, at=NOON + 10) == {MAIN}
    assert not list((home.folder / "spool").glob("*.json"))
    told = [json.loads(line) for line in (home.folder / "events.jsonl").read_text().splitlines()]
    assert [(e["event"], e["session"]) for e in told] == [
        ("not_taken_in", "agent:work:main"),
        ("taken_in", ROOM),
    ]
    assert told[0]["because"] == "[observation.agents.work] enabled = false"
    refused = import_drops(home.intake, read_drops(SAMPLE))
    assert refused["new"] > 0 and refused["skipped"] == []
    whole = home.config.model_copy(update={"observation": Observation(enabled=False)})
    home.registry.config = whole
    refused = import_drops(home.intake, read_drops(SAMPLE))
    assert (refused["new"], len(refused["skipped"])) == (0, len(SAMPLE))
    assert all(
        why.endswith("OMG is switched off, [observation] enabled = false") for why in refused["skipped"]
    )


def test_a_room_where_another_person_spoke_is_never_the_owners_again(home):
    assert said_in(home, OWN) == {MAIN}
    assert home.registry.identity_of(ROOM).key == MAIN
    assert said_in(home, OWN, THEIRS, at=NOON + 10) == {ROOM}
    assert home.registry.identity_of(ROOM).key == ROOM
    assert said_in(home, OWN, at=NOON + 20) == {ROOM}
    assert home.registry.identity_of(ROOM, owner=True).key == ROOM


def test_a_speaker_who_is_not_the_owner_is_not_given_the_owners_memory(home):
    said_in(home, OWN)
    assert home.registry.identity_of(ROOM, owner=False).key == ROOM
    assert home.registry.identity_of("agent:main:main", owner=False).key == MAIN  # its form says whose it is


@pytest.mark.parametrize("key", [f"{MAIN} ", f" {MAIN}", f"{MAIN}\n", "agent:main:telegram:direct:7 "])
def test_a_key_that_resembles_another_shares_no_memory_with_it(home, key):
    said_in(home, OWN, session=key.strip())
    (mine,) = said_in(home, OWN, session=key, at=NOON + 10)
    assert mine not in (MAIN, key.strip())
