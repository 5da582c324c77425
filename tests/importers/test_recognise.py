import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from omg.cli.conversations import import_summary
from omg.config import Config
from omg.errors import BadInput, ConfigError, NotFound
from omg.identity import identity_of_session
from omg.importers import import_drops, read_drops
from omg.importers.drops import drop_name, said_epoch_ms
from omg.importers.openclaw import openclaw_state_drops
from omg.memory import Memory
from omg.message.drop import read_drop

NOON = 1_772_712_000_000  # 2026-03-05 12:00 UTC
OWNER = {"senderIsOwner": True}
OWNERS = "agent:main:main:thread:import-s-1"  # a session of its own, in the owner's memory
BOB = {"senderIsOwner": False, "senderId": "222", "transport": {"channel": "telegram"}}


def event(id, role, content, meta=None, at=NOON, **fields):
    message = {"role": role, "content": content, "timestamp": at, **fields} | (
        {"__openclaw": meta} if meta else {}
    )
    return {"type": "message", "id": id, "timestamp": "2026-03-05T12:00:01.000Z", "message": message}


TALK = [
    {"type": "session", "version": 4, "id": "s-1", "timestamp": "2026-03-05T11:59:00.000Z", "cwd": "/w"},
    {"type": "model_change", "provider": "mock", "modelId": "m"},
    event("m1", "user", "hello", OWNER, idempotencyKey="k1"),
    event("m2", "assistant", [{"type": "text", "text": "hi"}]),
    {"type": "compaction", "id": "c", "summary": "## Decisions", "tokensBefore": 9},
    {"type": "reset", "id": "8eecaf78", "reason": "new"},
    event("m3", "user", "again", OWNER, at=NOON + 86_400_000),
]


def jsonl(path: Path, objects, packed=False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(o if isinstance(o, str) else json.dumps(o) + "\n" for o in objects).encode()
    path.write_bytes(zstandard.compress(data) if packed else data)
    return path


def turns(drops):
    return [read_drop(json.dumps(drop).encode()) for drop in drops]


def words(drops):
    return [m.text for turn in turns(drops) for m in turn.messages]


# --- OpenClaw's JSONL


@pytest.mark.parametrize("packed", [False, True])
def test_a_transcript_keeps_its_entry_ids_and_its_session(tmp_path, packed):
    drops = read_drops([jsonl(tmp_path / "s-1.jsonl", TALK, packed)])
    (turn,) = turns(drops)
    assert (turn.session, turn.session_id, turn.agent, turn.workspace) == (
        "agent:main:main:thread:import-s-1",
        "s-1",
        "main",
        "/w",
    )
    assert turn.reason == "import"
    assert [(m.id, m.role, m.text, m.timestamp) for m in turn.messages] == [
        ("m1", "user", "hello", NOON),
        ("m2", "assistant", "hi", NOON),
        ("m3", "user", "again", NOON + 86_400_000),
    ]
    assert drops.reading.done == drops.reading.total == (tmp_path / "s-1.jsonl").stat().st_size
    assert drops.reading.skipped == []


def test_the_content_of_a_file_shows_its_format_and_its_folder_shows_the_agent(tmp_path):
    path = (
        tmp_path / "agents" / "work" / "sessions" / "s-1.jsonl.deleted.2026-03-06T00-00-00.000Z.71105537.zst"
    )
    (turn,) = turns(read_drops([jsonl(path, TALK, packed=True)]))
    assert (turn.session, turn.agent) == ("agent:work:main:thread:import-s-1", "work")


def test_the_session_key_is_taken_from_the_sessions_json_beside_a_transcript(tmp_path):
    folder = tmp_path / "agents" / "main" / "sessions"
    path = jsonl(folder / "s-1.jsonl", [TALK[0], event("m1", "user", "hi", BOB)])
    (folder / "sessions.json").write_text('{"agent:main:telegram:group:-5": {"sessionId": "s-1"}, "x": 3}')
    assert [t.session for t in turns(read_drops([path]))] == ["agent:main:telegram:group:-5"]


@pytest.mark.parametrize(
    "people, key",
    [
        ([OWNER, OWNER], OWNERS),
        ([None, None], OWNERS),  # older than sender data
        ([OWNER | {"senderId": "9", "transport": {"channel": "telegram"}}], OWNERS),
        # a direct chat, or a group in which he alone spoke: it cannot be told
        ([BOB], "agent:main:session:s-1"),
        ([OWNER, BOB], "agent:main:session:s-1"),
    ],
)
def test_a_transcript_without_a_session_key_belongs_to_the_owner_unless_others_speak(tmp_path, people, key):
    events = [TALK[0], *(event(f"m{i}", "user", f"hi {i}", meta) for i, meta in enumerate(people))]
    assert {t.session for t in turns(read_drops([jsonl(tmp_path / "s-1.jsonl", events)]))} == {key}
    assert (identity_of_session(key).key == "agent:main:main") == (key == OWNERS)


@pytest.mark.parametrize(
    "prompt",
    [
        event("m1", "user", "[cron:1 x] go", provenance={"kind": "internal_system", "sourceTool": "cron"}),
        event("m1", "user", "[Subagent Context] You are running as a subagent", {"senderIsOwner": False}),
        event("m1", "user", [{"type": "text", "text": "[OpenClaw heartbeat poll]"}]),
    ],
)
def test_a_transcript_in_which_no_person_speaks_is_skipped_and_reported(tmp_path, prompt):
    path = jsonl(tmp_path / "s-1.jsonl", [TALK[0], prompt, event("m2", "assistant", "done")])
    drops = read_drops([path])
    assert list(drops) == []
    assert drops.reading.skipped == [f"{path}: no person speaks in it"]
    assert drops.reading.done == drops.reading.total


def test_an_unreadable_line_is_reported_and_all_other_lines_are_read(tmp_path):
    bad = [
        "{broken\n",
        '"text"\n',
        "\n",
        '{"no": "type"}\n',
        '{"type": "message"}\n',
        '{"type": "message", "id": "x',
    ]
    path = jsonl(tmp_path / "s-1.jsonl", [*TALK[:3], *bad[:-1], *TALK[3:], bad[-1]])
    drops = read_drops([path])
    assert words(drops) == ["hello", "hi", "again"]
    where = [s.removeprefix(f"{path}:").split(":")[0] for s in drops.reading.skipped]
    assert where == ["4", "5", "7", "8", "13"]


def test_only_messages_since_the_given_day_are_read(tmp_path, state):
    path = jsonl(tmp_path / "s-1.jsonl", TALK)
    assert words(openclaw_state_drops(state, since=datetime(2026, 3, 6, tzinfo=UTC))) == ["again"]
    assert words(read_drops([path], datetime(2026, 3, 6, tzinfo=UTC))) == ["again"]
    assert words(read_drops([path], datetime(2026, 4, 1, tzinfo=UTC))) == []


# --- plain JSONL


def test_plain_lines_with_the_same_session_become_one_conversation(tmp_path):
    lines = [
        {
            "role": "user",
            "content": "a",
            "timestamp": "2026-03-05T12:00:00Z",
            "speaker": "Ann",
            "session": "one",
        },
        {"role": "assistant", "content": "b", "timestamp": NOON / 1000, "session": "one", "id": "D1:2"},
        {"role": "system", "content": "be nice", "timestamp": NOON},
        {"role": "human", "content": [{"type": "text", "text": "c"}], "timestamp": NOON, "session": "two"},
        {"role": "user", "content": "d", "timestamp": NOON, "session": "agent:work:telegram:direct:9"},
    ]
    drops = read_drops([jsonl(tmp_path / "chat.jsonl", lines)])
    found = [
        (t.session, t.session_id, [(m.role, m.text, m.sender) for m in t.messages]) for t in turns(drops)
    ]
    assert found == [
        ("agent:main:main:thread:import-one", "one", [("user", "a", "Ann"), ("assistant", "b", "")]),
        ("agent:main:main:thread:import-two", "two", [("user", "c", "")]),
        ("agent:work:telegram:direct:9", "agent:work:telegram:direct:9", [("user", "d", "")]),
    ]
    assert drops.reading.skipped == []


def test_plain_tool_calls_stay_with_their_results(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "exec", "arguments": '{"command":"ls"}'}}
    lines = [
        {"role": "assistant", "content": None, "timestamp": NOON, "tool_calls": [call]},
        {"role": "tool", "content": "a.txt", "timestamp": NOON, "tool_call_id": "c1", "name": "exec"},
    ]
    (turn,) = turns(read_drops([jsonl(tmp_path / "chat.jsonl", lines)]))
    assert [(m.role, m.text, m.tool) for m in turn.messages] == [
        ("assistant", "", ""),
        ("tool", "a.txt", "exec"),
    ]
    assert turn.messages[0].calls[0].arguments == '{"command":"ls"}'


def test_plain_lines_get_stable_and_distinct_ids(tmp_path):
    lines = [{"role": "user", "content": "ok", "timestamp": NOON + i // 2} for i in range(6)]
    path = jsonl(tmp_path / "chat.jsonl", [*lines, {**lines[0], "id": 1}])
    ids = [e["entryId"] for drop in read_drops([path]) for e in drop["entries"]]
    assert ids == [e["entryId"] for drop in read_drops([path]) for e in drop["entries"]]
    assert len(set(ids)) == 7
    assert ids[-1].startswith("1-")


def test_a_jsonl_line_is_skipped_and_reported_if_its_role_its_content_or_its_time_is_invalid(tmp_path):
    good = {"role": "user", "content": "a", "timestamp": NOON}
    bad = [{**good, "timestamp": t} for t in (None, "soon", True, -1, [], "9" * 20)]
    path = jsonl(tmp_path / "chat.jsonl", [good, *bad, {**good, "role": "ghost"}, {**good, "content": 7}])
    drops = read_drops([path])
    assert words(drops) == ["a"]
    assert [s.split(":")[1] for s in drops.reading.skipped] == ["2", "3", "4", "5", "6", "7", "8", "9"]
    assert all("needs a role, a content and a timestamp" in s for s in drops.reading.skipped)


@pytest.mark.parametrize(
    "value, ms",
    [
        ("2026-03-05T12:00:00Z", NOON),
        ("2026-03-05T13:00:00+01:00", NOON),
        ("2026-03-05 12:00", NOON),
        ("2026-03-05", NOON - 43_200_000),
        (NOON, NOON),
        (NOON / 1000, NOON),
        (str(NOON // 1000), NOON),
        (float("nan"), None),
        ("", None),
    ],
)
def test_a_time_is_iso_text_seconds_or_milliseconds(value, ms):
    assert said_epoch_ms(value) == ms


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"# notes\n", b"[1, 2]", b'{"a": 1}\n', b"\x89PNG", b"\x28\xb5\x2f\xfdxx"]
)
def test_a_file_of_an_unknown_form_is_refused_with_the_forms_that_are_known(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(BadInput, match=r"x: .*(conversation|zstd)"):
        read_drops([tmp_path / "x"])


def test_a_missing_file_a_folder_or_another_programs_database_is_refused_with_the_accepted_forms(tmp_path):
    db = sqlite3.connect(tmp_path / "x.sqlite")
    db.execute("CREATE TABLE notes (text)")
    db.close()
    for path, says in (
        (tmp_path / "gone.jsonl", "what can be imported"),
        (tmp_path, "what can be imported"),
        (tmp_path / "x.sqlite", "no transcript_events"),
    ):
        with pytest.raises(BadInput, match=says):
            read_drops([path])


def test_nothing_is_read_if_one_of_the_files_has_an_unknown_form(tmp_path):
    good = jsonl(tmp_path / "a.jsonl", TALK)
    (tmp_path / "b").write_text("notes")
    with pytest.raises(BadInput, match="b: not a conversation"):
        read_drops([good, tmp_path / "b"])


def test_the_intact_part_of_a_damaged_archive_is_read_and_the_file_is_named(tmp_path):
    chance = random.Random(7)  # what repeats is one block of the archive, and is lost with it
    events = [event(f"m{i}", "user", f"{i} {chance.randbytes(400).hex()}") for i in range(900)]
    path = jsonl(tmp_path / "s-1.jsonl.zst", [TALK[0], *events], packed=True)
    path.write_bytes(path.read_bytes()[:-200] + b"\0" * 200)
    drops = read_drops([path])
    assert 0 < len(words(drops)) < 900
    assert str(path) in drops.reading.skipped[0]


def test_a_packed_transcript_needs_the_zstd_extra_and_a_plain_transcript_does_not(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)  # as where it is not installed
    plain = jsonl(tmp_path / "s-1.jsonl", TALK)
    packed = jsonl(tmp_path / "s-2.jsonl.zst", TALK, packed=True)
    assert words(read_drops([plain]))
    with pytest.raises(ConfigError, match=r"s-2\.jsonl\.zst is packed with zstd.*pip install .*\[zstd\]"):
        words(read_drops([packed]))


# --- the live database

SCHEMA = """
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL,
  created_at INTEGER NOT NULL, hook_external_content_source TEXT) STRICT;
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
  created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq)) STRICT;
PRAGMA user_version = 23;
"""


def store(path: Path, sessions, version=23) -> sqlite3.Connection:
    """An agent database with those columns of the gateway's that are read; long rows packed as it packs them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(SCHEMA)
    db.execute(f"PRAGMA user_version = {version}")
    for n, (key, source, events) in enumerate(sessions):
        db.execute("INSERT INTO session_windows VALUES (?, ?, ?, ?)", (f"s{n}", key, NOON + n, source))
        for seq, e in enumerate(events):
            text = e if isinstance(e, str) else json.dumps(e)
            packed = zstandard.compress(text.encode()) if len(text) > 300 else None
            at = e["message"]["timestamp"] + 50 if isinstance(e, dict) and "message" in e else NOON
            row = (f"s{n}", seq, None if packed else text, at, packed, len(text.encode()) if packed else None)
            db.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", row)
    db.commit()
    return db


@pytest.fixture
def state(tmp_path):
    """A state folder whose gateway is running: the database is open and its log not folded."""
    long = event("b2", "assistant", [{"type": "text", "text": "long " * 300}])
    db = store(
        tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite",
        [
            ("agent:main:main", None, TALK),
            (
                "agent:main:telegram:direct:222",
                None,
                [event("b1", "user", "hi, I am bob", BOB), long, "{broken"],
            ),
            ("agent:main:cron:1:run:2", None, [event("c1", "user", "go")]),
            ("agent:main:subagent:7", None, [event("d1", "user", "task")]),
            ("agent:main:mail", "gmail", [event("e1", "user", "you have won")]),
        ],
    )
    jsonl(
        tmp_path / "agents/main/sessions/old.jsonl.deleted.1.zst",
        [event("o1", "user", "from the archive")],
        True,
    )
    (tmp_path / "agents" / "empty").mkdir()
    yield tmp_path
    db.close()


def test_all_sessions_with_people_are_read_while_the_gateway_runs(state):
    assert (state / "agents/main/agent/openclaw-agent.sqlite-wal").stat().st_size > 0
    drops = openclaw_state_drops(state)
    found = [(t.session, t.session_id, [m.id for m in t.messages]) for t in turns(drops)]
    assert found == [
        ("agent:main:main", "s0", ["m1", "m2", "m3"]),
        ("agent:main:telegram:direct:222", "s1", ["b1", "b2"]),
        ("agent:main:main:thread:import-old", "old", ["o1"]),
    ]
    (skipped,) = drops.reading.skipped
    assert "session s1, row 2" in skipped
    assert drops.reading.done == drops.reading.total


def test_reading_a_database_and_a_writing_gateway_do_not_wait_for_each_other(state):
    gateway = sqlite3.connect(
        state / "agents/main/agent/openclaw-agent.sqlite", timeout=0, isolation_level=None
    )
    gateway.execute("BEGIN IMMEDIATE")
    gateway.execute("INSERT INTO transcript_events VALUES ('s0', 99, '{}', 1, NULL, NULL)")
    drops = iter(openclaw_state_drops(state))
    assert next(drops)["sessionId"] == "s0"
    gateway.execute("COMMIT")
    # not busy: no reader in its way
    assert gateway.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    assert [d["sessionId"] for d in drops] == ["s1", "old"]
    gateway.close()


def test_the_database_is_left_byte_for_byte_as_it_was(state):
    folder = state / "agents/main/agent"
    before = {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith("-shm")}
    list(openclaw_state_drops(state))
    assert {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith("-shm")} == before


def test_a_database_of_another_version_is_refused_with_both_versions(tmp_path):
    path = tmp_path / "agents/main/agent/openclaw-agent.sqlite"
    store(path, [], version=24).close()
    with pytest.raises(BadInput, match="version 24, but this OMG reads only version 23"):
        openclaw_state_drops(tmp_path)
    with pytest.raises(BadInput, match="version 24"):
        read_drops([path])


def test_the_errors_for_a_wrong_state_folder_and_an_unknown_agent_name_the_cause(state, tmp_path_factory):
    with pytest.raises(BadInput, match="no agents/ in it"):
        openclaw_state_drops(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(NotFound, match=r"'ghost' .* empty, main"):
        openclaw_state_drops(state, agent="ghost")
    assert list(openclaw_state_drops(state, agent="empty")) == []


# --- drops


def test_a_long_conversation_is_cut_where_a_person_begins_to_speak(tmp_path):
    talk = [
        event(f"m{i}", "user" if i % 3 == 0 else "assistant", "word " * 500, at=NOON + i) for i in range(60)
    ]
    drops = list(read_drops([jsonl(tmp_path / "s.jsonl", talk)]))
    assert len(drops) > 5
    assert all(d["entries"][0]["message"]["role"] == "user" for d in drops)
    assert len({drop_name(d) for d in drops}) == len(drops)
    assert [drop_name(d) for d in read_drops([tmp_path / "s.jsonl"])] == [drop_name(d) for d in drops]


# --- files as people have them


def plain(*texts):
    return [{"role": "user", "content": text, "timestamp": NOON + n} for n, text in enumerate(texts)]


def test_plain_lines_with_a_field_named_type_are_still_read(tmp_path):
    path = jsonl(tmp_path / "chat.jsonl", [{"type": "message", **line} for line in plain("a", "b")])
    drops = read_drops([path])
    assert words(drops) == ["a", "b"] and drops.reading.skipped == []


def test_lines_above_a_conversation_are_reported_and_the_rest_is_read(tmp_path):
    path = jsonl(tmp_path / "chat.jsonl", plain("a"))
    path.write_text("exported by Chat 3000\n" + '{"exported": "2026-03-05"}\n' + path.read_text())
    drops = read_drops([path])
    assert words(drops) == ["a"]
    assert [s.split(":")[1] for s in drops.reading.skipped] == ["1", "2"]


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(x) + "\r\n" for x in plain("a", "b")), encoding="utf-8-sig")
    drops = read_drops([path])
    assert words(drops) == ["a", "b"] and drops.reading.skipped == []


def test_a_line_that_is_not_utf_8_is_skipped_and_reported_with_the_remedy(tmp_path):
    lines = [json.dumps(x, ensure_ascii=False) + "\n" for x in plain("Berlin", "Köln", "Bonn")]
    path = tmp_path / "chat.jsonl"
    path.write_bytes("".join(lines).encode("cp1252"))
    drops = read_drops([path])
    assert words(drops) == ["Berlin", "Bonn"]
    (skipped,) = drops.reading.skipped
    assert skipped.startswith(f"{path}:2: is not UTF-8; convert") and "iconv" in skipped
    path.write_bytes("".join(lines).encode())
    assert words(read_drops([path])) == ["Berlin", "Köln", "Bonn"]


def test_a_line_from_a_session_without_a_memory_is_skipped_and_reported(tmp_path):
    path = jsonl(
        tmp_path / "chat.jsonl", [{**plain("a")[0], "session": "agent:main:subagent:7"}, *plain("b")]
    )
    drops = read_drops([path])
    assert words(drops) == ["b"] and "no memory takes it in" in drops.reading.skipped[0]


def test_an_import_counts_what_it_left_out_and_what_it_could_not_read(tmp_path, home):
    lines = [
        *plain("I prefer tea.", ""),
        {**plain("be good")[0], "role": "system"},
        {"role": "user", "content": "when?"},
    ]
    with contextlib.closing(Memory(Config(home=home), embed=None)) as omg:
        found = import_drops(omg.intake, read_drops([jsonl(tmp_path / "chat.jsonl", lines)]))
    assert (found["messages"], found["new"], found["left_out"], len(found["skipped"])) == (1, 1, 2, 1)
    notes = {"/notes": 1}
    assert import_summary({**found, "observed": 1, "notes": notes}, "came in").splitlines() == [
        "1 message: 1 new one came in, 1 observed",
        "1 new note in /notes",
        "2 left out: 1 instructions to a model, 1 empty messages or messages of the gateway itself",
        "1 skipped: needs a role, a content and a timestamp (ISO, s, ms)",
    ]


def test_an_import_that_is_stopped_says_so_and_the_next_one_loses_and_doubles_nothing(tmp_path, home):
    (home / "omg.toml").write_text('[observation]\nmodel = "offline"\n[embedding]\nmodel = "none"\n')
    said = [f"I keep {n} goats and {n} geese in pen {n}, beside the barn." for n in range(200)]
    lines = [{**line, "session": f"s{n // 20}"} for n, line in enumerate(plain(*said))]
    run = "import signal; from omg.cli import main; signal.signal(signal.SIGINT, signal.default_int_handler); main()"
    command = [sys.executable, "-c", run, "import", str(jsonl(tmp_path / "chat.jsonl", lines))]

    def archived() -> list[str]:
        files = home.glob("graphs/*/archive/*.jsonl")
        return [json.loads(line)["text"] for file in files for line in file.read_text().splitlines()]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
        until = time.monotonic() + 60
        while not archived() and time.monotonic() < until:
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
        told = first.communicate(timeout=60)[1]
    assert first.returncode == 130
    assert "what came in is kept; run the same command to import the rest" in told
    assert 0 < len(archived()) < len(said)
    again = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "200 messages: 0 new ones came in" in again.stdout
    assert sorted(archived()) == sorted(said)


def test_only_packed_rows_of_a_database_need_the_zstd_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)  # as where it is not installed
    for name, text in (("short", "I like tea."), ("long", "tea " * 200)):
        place = tmp_path / name / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
        store(place, [("agent:main:main", None, [event("m1", "user", text)])]).close()
    assert words(openclaw_state_drops(tmp_path / "short")) == ["I like tea."]
    with pytest.raises(ConfigError, match=r"\[zstd\]"):
        words(openclaw_state_drops(tmp_path / "long"))
