"""One graph's trouble is its own: whatever goes wrong with it, it waits, says so, and keeps nobody else waiting."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from openai_server import believed
from spooled import entry, hand_over

from omg.config import Config, Llm, Observation
from omg.errors import Locked
from omg.graph.graph import Graph
from omg.graph.state import flock
from omg.inject.decide import Prompt, preview, slice_for
from omg.llm.replies import ModelQuestion, ModelReply
from omg.memory import Memory
from omg.openclaw.graph_checks import check_graph
from omg.tools.removing import Codes
from omg.tools.tools import call_tool
from omg.worker.registry import GRAPHS_KEPT
from omg.worker.status import home_status, status_text

OWNER, PEER = "agent:main:main", "agent:main:telegram:direct:7"


class World:
    """A home with a clock that stands, and a model that notes who asks it."""

    def __init__(self, folder: Path) -> None:
        self.now, self.asked, self.said = datetime(2026, 3, 2, 9, tzinfo=UTC), list[str](), 0
        config = Config(
            home=folder,
            observation=Observation(buffer_tokens="turn"),
            llm=Llm(attempts=1, backoff_s=0),
            time={"zone": "UTC"},
        )
        self.home = Memory(config, gateway=self.answer, clock=lambda: self.now, embed=None)

    def answer(self, question: ModelQuestion) -> ModelReply:
        if answer := believed(question):
            return answer
        self.asked.append("peer" if "peer" in question.user else "owner")
        edit = {"op": "create", "type": "fact", "title": f"Lamp {len(self.asked)}", "priority": "medium"}
        edit |= {"description": f"The lamp is green, said {len(self.asked)}.", "sources": ["m1"]}
        return ModelReply(json.dumps({"edits": [edit]}), "scripted", 10, 10)

    def say(self, session: str, text: str, name: str = "") -> Path:
        self.said += 1
        at = int(self.now.timestamp() * 1000) + self.said
        file = hand_over(self.home.folder, entry(f"e{self.said}", text, at), session=session)
        return file.rename(file.with_name(name)) if name else file

    def both(self) -> None:
        self.say(OWNER, "I bought a lamp.")
        self.say(PEER, "I am a peer with a lamp.")
        self.home.take_in()

    def graph(self, session: str = OWNER) -> Graph:
        who = self.home.registry.identity_of(session)
        assert who is not None
        return self.home.registry.opened(who)

    def restart(self) -> None:
        config = self.home.config
        self.home.close()
        self.home = Memory(config, gateway=self.answer, clock=lambda: self.now, embed=None)


@pytest.fixture
def world(home: Path) -> Iterator[World]:
    world = World(home)
    world.both()
    world.home.work()
    world.asked.clear()
    yield world
    world.home.close()


def symlinked(world: World) -> None:
    page = world.graph().vault.root / "mocs" / "moc-facts.md"
    page.rename(page.with_suffix(".kept"))
    page.symlink_to(page.with_suffix(".kept"))


def unreadable(world: World) -> None:
    page = world.graph().vault.root / "mocs" / "moc-facts.md"
    page.unlink()
    page.mkdir()


def no_receipts(world: World) -> None:
    shutil.rmtree(world.graph().folder / "receipts")
    (world.graph().folder / "receipts").write_text("in the way")


def no_state(world: World) -> None:
    (world.graph().folder / "state.json").unlink()
    (world.graph().folder / "state.json").mkdir()


def no_index(world: World) -> None:
    for file in world.graph().folder.glob("index.db*"):
        file.unlink()
    (world.graph().folder / "index.db").mkdir()


def no_vault(world: World) -> None:
    world.graph().vault.root.rename(world.graph().folder / "unmounted")


@pytest.mark.parametrize("break_", [symlinked, unreadable, no_receipts, no_state, no_index, no_vault])
def test_the_error_of_one_graph_is_reported_and_stops_no_other_graph(
    world: World, break_: Callable[[World], None]
) -> None:
    world.both()
    pending = [p.name for p in world.graph().pending()]
    break_(world)
    for _ in range(5):  # ticks
        world.home.work()
        world.say(PEER, "I am a peer with yet another lamp.")
    assert world.asked.count("owner") <= 1
    assert world.asked.count("peer") >= 4
    assert [p.name for p in world.graph().pending()] == pending
    failed = [e for e in events(world) if e["event"] == "observation_failed"]
    assert len(failed) == 1 and failed[0]["graph"] == OWNER
    (mine,) = [g for g in home_status(world.home.worker)["graphs"] if g["identity"] == OWNER]
    assert mine.get("error") or (mine["failures"] and mine["waiting_because"])
    world.now += timedelta(seconds=31)
    world.home.work()
    assert len([e for e in events(world) if e["event"] == "observation_failed"]) == 2
    world.now += timedelta(seconds=31)  # the second pause is longer
    world.home.work()
    assert len([e for e in events(world) if e["event"] == "observation_failed"]) == 2


def events(world: World) -> list[dict[str, object]]:
    return [json.loads(line) for line in (world.home.folder / "events.jsonl").read_text().splitlines()]


# --- the spool


@pytest.mark.parametrize(
    "name", ["5.json", "000001772442000000-a.b.json", "notes.json", f"{10**20}-x.json", "ä.json"]
)
def test_a_drop_with_any_file_name_is_taken_in(world: World, name: str) -> None:
    file = world.say(OWNER, "I bought a second lamp.", name)
    world.say(PEER, "I am a peer.")
    world.home.work()
    assert not file.exists()
    assert sorted(world.asked) == ["owner", "peer"]
    assert len(world.graph().index.messages([f"e{n}" for n in range(9)])) == 2


def test_a_file_that_is_no_drop_is_set_aside_and_does_not_stop_the_intake(world: World) -> None:
    spool = world.home.folder / "spool"
    (spool / "5.json").mkdir()
    (spool / "nowhere.json").symlink_to(spool / "gone")
    (spool / "6.json").write_bytes(b"\xff\xfe")
    world.say(PEER, "I am a peer.")
    world.home.work()
    assert world.asked == ["peer"]
    assert sorted(p.name for p in (spool / "bad").glob("*.json")) == ["5.json", "6.json"]


# --- searching


# --- descriptors


def test_a_graph_in_use_stays_open_even_if_many_others_are_opened(world: World) -> None:
    graph = world.graph()
    graph.note(lambda state: setattr(state, "epoch", 99))
    for n in range(2 * GRAPHS_KEPT):
        world.graph(f"agent:main:telegram:direct:{100 + n}")
    assert graph not in world.home.registry.kept()
    assert world.graph() is graph
    assert preview(graph, "lamp?", OWNER, world.now, world.home.config).tokens
    for n in range(2 * GRAPHS_KEPT):
        world.graph(f"agent:main:telegram:direct:{100 + n}")
    del graph  # and what was noted of it is on disk once nobody has it any more
    assert world.graph().state().epoch == 99


def test_opening_a_graph_does_not_wait_until_another_graph_is_closed(world: World) -> None:
    world.graph().note(lambda state: setattr(state, "epoch", 99))
    opened = threading.Event()

    def open_many() -> None:
        for n in range(GRAPHS_KEPT):
            world.graph(f"agent:main:telegram:direct:{100 + n}")
        opened.set()

    with flock(
        world.graph().folder / "state.lock", "the state"
    ):  # the owner's is closed once nobody holds this
        threading.Thread(target=open_many).start()
        assert opened.wait(20)


def test_a_locked_graph_is_tried_again_at_the_next_tick(world: World) -> None:
    world.both()
    with world.graph().lock():
        world.home.work()
        with pytest.raises(Locked):
            (
                world.home.graph(world.graph(PEER).identity),
                Memory(world.home.config, embed=None).graph(world.graph().identity, wait_s=0),
            )
    world.home.work()
    assert world.graph().pending() == [] and world.graph().state().failures == 0


# --- damage


def settled(world: World) -> Graph:
    world.restart()
    return world.home.graph(world.graph().identity)


def told(world: World) -> str:
    return "\n".join(f.line() for f in check_graph(world.home, world.graph()))


@pytest.mark.parametrize(
    "damage",
    [
        "[]",
        "5",
        '"x"',
        "{",
        '{"sessions": []}',
        '{"sessions": {"a": 5}}',
        '{"sessions": {"a": {"served": []}}}',
        '{"uses": {"a": 5}, "failures": "x"}',
        '{"failures": 1e308, "failed_ms": NaN}',
        '{"observed_ms": 99999999999999999999}',
    ],
)
def test_a_state_of_a_wrong_shape_is_set_aside_and_reported(world: World, damage: str) -> None:
    (world.graph().folder / "state.json").write_text(damage)
    graph = settled(world)
    world.both()
    world.home.work()
    assert world.asked.count("owner") == 1
    if damage != '{"uses": {"a": 5}, "failures": "x"}':
        assert (graph.folder / "damaged" / "state.json").read_text() == damage
    assert "state.json" in told(world) and "set aside as" in told(world)
    home_status(world.home.worker)


def test_a_damaged_index_is_rebuilt_and_the_doctor_and_status_say_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    file, before = world.graph().index.file, [e.path for e in world.graph().index.entries()]
    world.home.close()
    file.write_bytes(b"no database" * 500)
    graph = settled(world)
    assert [r.levelname for r in caplog.records if "made again" in r.getMessage()] == ["WARNING"]
    assert [e.path for e in graph.index.entries()] == before
    assert "the index was made again" in told(world) and "nothing is lost" in told(world)
    assert "  index     made again" in status_text(home_status(world.home.worker), UTC)
    graph.index.rebuild(graph.vault, graph.folder / "archive")  # asked for
    assert "made again" not in told(world)


def test_a_damaged_tombstone_is_set_aside_and_the_others_still_work(world: World) -> None:
    world.graph().tombstones.add(["e77"])
    file = world.graph().folder / "tombstones.jsonl"
    whole = file.read_bytes()
    file.write_bytes(b"[]\n\xff\xfe\n" + whole + b'{"node": 5, "sources": []}\n{"sources": 3}\n')
    graph = settled(world)
    assert graph.tombstones.messages(["e77", "e78"]) == {"e77"}
    assert file.read_bytes() == whole
    assert (graph.folder / "damaged" / "tombstones.jsonl").read_bytes().startswith(b"[]\n\xff\xfe\n")
    assert "4 lines cannot be read" in told(world)


def test_a_truncated_receipt_is_set_aside_and_its_turns_are_observed_again(world: World) -> None:
    world.both()
    receipts = world.graph().folder / "receipts"
    closed = next(receipts.glob("*.json"))
    closed.write_bytes(closed.read_bytes()[:100])
    (receipts / "20260302T090000-x.open.json").write_text('{"id": "2026')
    world.home.work()
    assert world.graph().pending() == []
    assert sorted(world.asked) == ["owner", "peer"]
    said = told(world)
    assert "its turns are observed again" in said and "cannot be undone" in said


def test_a_truncated_turn_file_is_set_aside_and_the_other_turns_are_observed(world: World) -> None:
    world.both()
    world.say(OWNER, "I bought one more lamp.")
    world.home.take_in()
    first = world.graph().pending()[0].file
    first.write_bytes(first.read_bytes()[:50])
    world.home.work()
    assert world.asked.count("owner") == 1
    assert world.graph().pending() == []
    assert (world.graph().folder / "damaged" / first.name).stat().st_size == 50
    assert first.name in told(world)


def test_a_slice_shows_nothing_that_is_not_written_yet(world: World) -> None:
    state = world.graph().state()
    before = {key: own.last_ms for key, own in state.sessions.items()}
    world.both()
    symlinked(world)
    held = world.graph().state()
    at = held.sessions[OWNER].at_ms
    world.home.work()  # it fails at the commit
    assert held.sessions[OWNER].at_ms == at
    assert before.keys() <= held.sessions.keys()


def test_two_processes_that_start_a_new_events_file_lose_no_event(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from omg.worker.events import event_of, read_events, write_event

    home.mkdir(parents=True, exist_ok=True)
    (home / "events.jsonl").write_text("".join(f'{{"event": "old{n}"}}\n' for n in range(300_000)))
    now = datetime(2026, 3, 2, tzinfo=UTC)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: write_event(home, event_of(f"new{n}", now, {})), range(64)))
    names = {e["event"] for e in read_events(home)}
    assert {"old0", "old299999", *(f"new{n}" for n in range(64))} <= names


# --- times that are none


TIMES = [
    "1e308",
    "NaN",
    "Infinity",
    "-5",
    "253402300800000",
    '"9999-12-31T23:59:59Z"',
    "true",
    "[]",
    "1" * 30,
]


@pytest.mark.parametrize("at", TIMES)
def test_a_message_with_an_impossible_time_is_remembered_and_delays_no_other(world: World, at: str) -> None:
    file = world.say(OWNER, "I bought a second lamp.")
    file.write_text(re.sub(r'"timestamp": \d+', f'"timestamp": {at}', file.read_text()))
    world.home.work()
    assert world.asked == ["owner"]
    assert world.graph().pending() == []
    context = {
        "sessionKey": OWNER,
        "userMessage": {"id": "u1", "text": "the lamp is red", "timestamp": json.loads(at)},
    }
    body = {"name": "omg_remember", "params": {"text": "The lamp is red."}, "context": context}
    assert "Remembered as" in call_tool(world.home.intake, body, Codes())["text"]


@pytest.mark.parametrize(
    "at", ["1.0e+308", ".nan", ".inf", "253402300800000", "-99999999999999999", "9999-12-31"]
)
def test_a_note_with_an_impossible_time_is_found_and_keeps_its_text(world: World, at: str) -> None:
    graph = world.graph()
    source = f"sources: [{{sessionKey: a, kind: message, id: e1, timestamp: {at}}}]"
    text = f"---\ntype: fact\ndescription: A weird boat\nevent: 9999-12-31\n{source}\n---\n\nA boat.\n"
    (graph.vault.root / "nodes/fact/weird.md").write_text(text)
    world.home.refresh(graph)
    for query in ("boat", "what is on 31 December 9999?", "the boat in year 1"):
        slice_for(graph, Prompt(query, OWNER), world.now, world.home.config)
    assert next(h.entry.path for h in graph.index.search("boat", now=world.now)) == "nodes/fact/weird"
    assert (graph.vault.root / "nodes/fact/weird.md").read_text() == text
