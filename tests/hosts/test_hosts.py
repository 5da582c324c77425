"""Other assistants without their clients: the hook, whose memory a folder has, transcripts, limits, installing."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from omg.config import Config, Observation
from omg.hosts.hook import DEADLINE_S, HOSTS, MARKS
from omg.hosts.install import our_command, plugin_folder, trusted_hash, unreviewed_hooks
from omg.hosts.serve import READERS, Capture, HostAnswers, whole_turns
from omg.hosts.sessions import (
    HostSessions,
    common_directory,
    heartbeats,
    join_project,
    new_session,
    project_of,
)
from omg.memory import MAIN, Memory
from omg.message.drop import clean_entries

REPOSITORY = Path(__file__).parents[2]
PYTHON = [sys.executable, "-EP"]


def run_hook(
    home: Path, host: str, event: str, payload: object, *, raw: bytes | None = None
) -> tuple[int, str, str]:
    done = subprocess.run(
        [*PYTHON, "-m", "omg.cli", "hook", host, event, str(home)],
        input=raw if raw is not None else json.dumps(payload).encode(),
        capture_output=True,
        timeout=20,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def installed(home: Path, host: str = "claude-code", **more: Any) -> None:
    setting = {"identity": MAIN, "only": "", "config": str(home.parent / "client"), "at": 0, **more}
    (home / "hosts.json").write_text(json.dumps({host: setting}))


def git(*args: str, cwd: Path) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *named, *args], cwd=cwd, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git("init", "-q", cwd=folder)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=folder)
    return folder


# --- the hook


@contextmanager
def answering(home: Path, reply: bytes, after_s: float = 0.0) -> Iterator[None]:
    """A daemon that says *reply* to everything, late by *after_s*."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "omg.sock"))
        server.listen(10)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65536)
                        time.sleep(after_s)
                        with suppress(OSError):
                            connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


PAYLOAD = {
    "session_id": "s1",
    "cwd": "/",
    "prompt": "hello",
    "source": "startup",
    "transcript_path": "/nowhere",
}
TEXT = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"


@pytest.mark.parametrize(
    "reply", [b"", b"nonsense\r\n\r\n", TEXT % (5, b'{"te'), b"HTTP/1.1 500 x\r\ncontent-length: 2\r\n\r\n{}"]
)
def test_a_hook_prints_nothing_and_exits_0_if_the_daemon_answers_badly(home: Path, reply: bytes) -> None:
    with answering(home, reply):
        assert run_hook(home, "claude-code", "UserPromptSubmit", PAYLOAD) == (0, "", "")


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"session_id": 7}', b"\xff\xfe", b"{" * 100_000])
def test_a_hook_prints_nothing_and_exits_0_if_its_input_is_bad(home: Path, raw: bytes) -> None:
    for event in ("Stop", "Nothing"):
        assert run_hook(home, "claude-code", event, None, raw=raw) == (0, "", "")


def test_a_hook_prints_one_json_object_in_the_form_of_the_client(home: Path) -> None:
    body = b'{"text": "what is remembered"}'
    with answering(home, TEXT % (len(body), body)):
        code, out, err = run_hook(home, "claude-code", "UserPromptSubmit", PAYLOAD)
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "what is remembered"}
    }


def test_a_hook_ends_within_its_deadline_while_the_daemon_hangs(home: Path) -> None:
    bare = least([*PYTHON, "-c", "pass"])
    allowed = bare + DEADLINE_S + 0.03  # to end a process takes a moment, too
    for event in ("Stop", "UserPromptSubmit"):
        with answering(home, b"", after_s=1):
            took = least([*PYTHON, "-m", "omg.cli", "hook", "claude-code", event, str(home)], below=allowed)
        (home / "omg.sock").unlink()
        assert took < allowed


def least(command: list[str], below: float = 0.0) -> float:
    """The shortest of five runs, in seconds, or of as many as one *below* needs; the machine has other work."""
    times = []
    while len(times) < (1 if below else 5) or (min(times) > below and len(times) < 40):
        began = time.perf_counter()
        subprocess.run(command, input=json.dumps(PAYLOAD).encode(), check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


def test_a_hook_imports_only_the_standard_library() -> None:
    names = "{m.partition('.')[0] for m in sys.modules} - sys.stdlib_module_names - {'omg', '__main__', '__mp_main__'}"
    code = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); sys.argv = ['omg', 'hook']"
    code += f"; import omg.cli, omg.hosts.hook; omg.hosts.hook.home_of([]); print({names})"
    out = subprocess.run([*PYTHON, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_a_cursor_file_contains_the_path_of_the_transcript_and_none_of_its_words(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("x" * 70)
    payload = {**PAYLOAD, "transcript_path": str(file), "last_assistant_message": "secret words"}
    assert run_hook(home, "claude-code", "Stop", payload) == (0, "", "")
    (mark,) = (home / "spool" / MARKS).glob("*.json")
    assert mark.stat().st_mode & 0o077 == 0
    kept = json.loads(mark.read_text())
    assert kept.pop("at_ms") > 0
    named = {"host": "claude-code", "session": "s1", "transcript": str(file), "cwd": "/"}
    assert kept == {"event": "turn", "size": 70, **named}


# --- whose memory


def test_all_folders_and_worktrees_of_a_repository_are_one_project(home: Path, tmp_path: Path) -> None:
    main = repository(tmp_path / "harbour")
    (main / "deep" / "down").mkdir(parents=True)
    git("worktree", "add", "-q", str(tmp_path / "beside"), cwd=main)
    keys = {project_of(home, MAIN, at) for at in (main, main / "deep" / "down", tmp_path / "beside")}
    assert len(keys) == 1
    (key,) = keys
    assert key and key.startswith(f"{MAIN}:project:") and key.endswith("-harbour")
    assert project_of(home, MAIN, tmp_path) is None
    assert project_of(home, MAIN, repository(tmp_path / "other" / "harbour")) != key


def test_a_download_cannot_claim_the_memory_of_another_repository(home: Path, tmp_path: Path) -> None:
    mine = repository(tmp_path / "mine")
    git("remote", "add", "origin", "https://example.com/mine.git", cwd=mine)
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=mine)
    listed = next((mine / ".git" / "worktrees").iterdir())
    key = project_of(home, MAIN, mine)
    claims = {
        "gitdir": lambda at: (at / ".git").write_text(f"gitdir: {mine / '.git'}\n"),
        "worktree": lambda at: (at / ".git").write_text(f"gitdir: {listed}\n"),
        "link": lambda at: (at / ".git").symlink_to(mine / ".git"),
        "commondir": lambda at: (
            (at / ".git").mkdir(),
            (at / ".git" / "commondir").write_text(f"{mine / '.git'}\n"),
        ),
        "remote": lambda at: (
            git("init", "-q", cwd=at),
            git("remote", "add", "origin", "https://example.com/mine.git", cwd=at),
        ),
        "nonsense": lambda at: (at / ".git").write_bytes(b"\xff\x00gitdir:"),
    }
    for name, claim in claims.items():
        at = tmp_path / name
        at.mkdir()
        claim(at)
        found = project_of(home, MAIN, at)
        assert found is not None and found != key, name


def test_finding_the_project_of_a_hostile_repository_runs_nothing_of_it(tmp_path: Path) -> None:
    at, trap = repository(tmp_path / "hostile"), tmp_path / "ran"
    git("config", "core.fsmonitor", f"touch {trap}", cwd=at)
    git("config", "core.hooksPath", ".hooks", cwd=at)
    assert common_directory(at) == at / ".git"
    assert not trap.exists()


def test_another_checkout_joins_a_project_only_by_an_explicit_join(home: Path, tmp_path: Path) -> None:
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    assert project_of(home, MAIN, one) != project_of(home, MAIN, two)
    assert join_project(home, MAIN, two, one) == project_of(home, MAIN, one) == project_of(home, MAIN, two)


def test_two_projects_and_two_people_have_four_memories(home: Path, tmp_path: Path) -> None:
    one, two = repository(tmp_path / "one"), repository(tmp_path / "incognito-cron")
    keys = {project_of(home, who, at) for who in (MAIN, "agent:main:alice") for at in (one, two)}
    assert len(keys) == 4
    with Memory(Config(home=home), embed=None) as memory:
        whose = [memory.registry.identity_of(f"{key}:thread:codex-1") for key in keys]
    assert {who.key for who in whose if who} == keys


def test_a_session_with_the_option_only_project_does_not_touch_the_persons_memory(
    home: Path, tmp_path: Path
) -> None:
    installed(home, only="project")
    at = repository(tmp_path / "job")
    found = new_session(home, "claude-code", "s", str(at))
    assert found and found.person is None and found.project
    outside = new_session(home, "claude-code", "s", str(tmp_path))
    assert outside and outside.writes is None
    assert new_session(home, "codex", "s", str(at)) is None  # not installed


# --- transcripts


def row(kind: str, text: object, uuid: str, **more: Any) -> dict[str, Any]:
    at = more.pop("timestamp", "2026-03-05T10:00:00.000Z")
    return {"type": kind, "uuid": uuid, "timestamp": at, "message": {"role": kind, "content": text}, **more}


CLAUDE_ROWS = [
    {"type": "queue-operation", "operation": "enqueue", "content": "one"},
    row("user", "one", "u1", promptSource="sdk"),
    row("assistant", [{"type": "thinking", "thinking": "hm"}], "a0"),
    row("assistant", [{"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "/x", "content": "y" * 999}}], "a1"),
    row("user", [{"type": "tool_result", "content": "of a file"}], "r1", toolUseResult={"stdout": "x"}, promptSource="sdk"),
    row("assistant", [{"type": "text", "text": "first"}], "a2"),
    {"type": "attachment", "uuid": "h", "attachment": {"type": "hook_additional_context", "content": ["injected"]}},
    row("user", "This session is being continued", "c1", isCompactSummary=True, promptSource="sdk"),
    row("user", "<local-command-caveat>", "m1", isMeta=True),
    row("user", "<command-name>/compact</command-name>", "k1"),
    row("user", "do it", "s1", promptSource="scheduled_trigger"),
    row("user", "from a webhook", "s2", promptSource="typed", origin={"kind": "task-notification"}),
    row("user", "for the sub-agent", "b1", promptSource="sdk", isSidechain=True),
    row("assistant", [{"type": "text", "text": "of the sub-agent"}], "b2", isSidechain=True),
    row("assistant", [{"type": "text", "text": "No response requested."}], "y1"),
    row("user", "two", "u2", origin={"kind": "human"}),
]  # fmt: skip
CLAUDE_ROWS[-2]["message"]["model"] = "<synthetic>"


def test_from_claude_codes_transcript_only_what_was_typed_and_answered_is_kept(
    tmp_path: Path,
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in CLAUDE_ROWS) + '{"type":"user","uuid":"half')
    rows = list(READERS["claude-code"](file, "s", 0))
    entries = [r.entry for r in rows if r.entry]
    assert [e["entryId"] for e in entries] == ["u1", "a1", "a2", "u2"]
    (call,) = entries[1]["message"]["content"]
    assert (call["name"], len(call["input"]["content"])) == ("write", 300)
    assert rows[-1].end < file.stat().st_size  # the half line waits
    begins = [r.start for r in rows if r.begins]
    assert whole_turns(iter(rows), begins[1])[-1].start < begins[1]
    assert whole_turns(iter(rows), begins[1] + 1) == rows


def test_a_late_line_is_kept_and_a_row_that_is_read_twice_is_kept_once(home: Path, tmp_path: Path) -> None:
    installed(home)
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in CLAUDE_ROWS[:3]))
    with Memory(Config(home=home), embed=None) as memory:
        capture = Capture(home, HostSessions(home))

        def stop() -> list[str]:
            run_hook(
                home, "claude-code", "Stop", {**PAYLOAD, "cwd": str(tmp_path), "transcript_path": str(file)}
            )
            with file.open("a") as more:  # the last line comes after the hook
                more.write(json.dumps(CLAUDE_ROWS[5]) + "\n")
            assert (wait := capture.take_in()) and wait <= 1
            time.sleep(1.05)
            assert capture.take_in() is None and not capture.marks()
            memory.take_in()
            turns = [p.turn() for p in memory.find(MAIN).pending()]
            return [m.text for turn in turns for m in turn.messages]

        assert stop() == ["one", "first"]
        assert stop() == ["one", "first"]  # the same row once more is the same message


def test_a_damaged_mark_of_a_hook_is_logged_and_removed(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installed(home)
    capture = Capture(home, HostSessions(home))
    file = capture.spool / MARKS / "1.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b'{"host": "claude-co')
    assert capture.take_in() is None and not capture.marks()
    assert "mark of a hook is damaged" in caplog.text


@pytest.mark.parametrize(("enough", "at_once"), [(3, True), (3_000, False)])
def test_the_end_of_a_session_makes_its_observation_urgent_only_if_enough_is_pending(
    home: Path, tmp_path: Path, enough: int, at_once: bool
) -> None:
    installed(home)
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in (*CLAUDE_ROWS[:3], CLAUDE_ROWS[5])))
    observation = Observation(model="openai/none", quiet_tokens=enough)
    with Memory(Config(home=home, observation=observation), embed=None) as memory:
        capture = Capture(home, HostSessions(home))

        def pressed_after(event: str) -> bool:
            about = {**PAYLOAD, "cwd": str(tmp_path), "transcript_path": str(file)}
            run_hook(home, "claude-code", event, about)
            time.sleep(1.05)
            assert capture.take_in() is None
            memory.take_in()
            return bool(memory.find(MAIN).state().urgent_ms)

        assert not pressed_after("Stop")
        assert pressed_after("SessionEnd") == at_once  # nothing more was said meanwhile


def codex(kind: str, ordinal: int, **payload: Any) -> dict[str, Any]:
    about = {"turn_id": payload.pop("turn", "t1"), "content_item_kinds": payload.pop("kinds", [])}
    payload["internal_chat_message_metadata_passthrough"] = about
    return {"timestamp": "2026-03-05T10:00:00.000Z", "ordinal": ordinal, "type": kind, "payload": payload}


def codex_text(ordinal: int, role: str, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
    return codex(
        "response_item", ordinal, type="message", role=role, id=f"m{ordinal}", content=content, **more
    )


def test_from_codexs_transcript_only_what_was_typed_and_answered_is_kept(tmp_path: Path) -> None:
    rows = [
        {"type": "session_meta", "payload": {"id": "s", "thread_source": "user"}},
        codex_text(1, "developer", "injected", kinds=["hooks.additional_context"]),
        codex_text(2, "user", "# AGENTS.md instructions", kinds=["generic.agents_md"]),
        codex_text(3, "user", "one", kinds=["user.text"]),
        codex("event_msg", 4, type="item_completed", item={"type": "UserMessage"}),
        codex("response_item", 5, type="function_call", id="f5", name="exec_command", arguments='{"cmd": "ls"}', call_id="c"),
        codex("response_item", 6, type="function_call_output", id="o6", output="of a file", call_id="c"),
        codex_text(7, "assistant", "first"),
        codex_text(8, "assistant", "<summary>they talked</summary>"),
        codex("compacted", 9, message="…", replacement_history=["<summary>they talked</summary>"]),
        codex_text(10, "assistant", "of a turn that nobody began", turn="t2"),
        codex_text(11, "user", "<turn_aborted>", turn="t3", kinds=["generic.turn_aborted"]),
    ]  # fmt: skip
    file = tmp_path / "rollout.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    whole = list(READERS["codex"](file, "s", 0))
    assert [r.entry["entryId"] for r in whole if r.entry] == ["m3", "f5", "m7"]
    question = next(r for r in whole if r.begins)
    rest = READERS["codex"](file, "s", question.end)  # a turn in two readings loses nothing
    assert [r.entry["entryId"] for r in rest if r.entry] == ["f5", "m7"]
    rows[0]["payload"]["thread_source"] = "subagent"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert not any(r.entry for r in READERS["codex"](file, "s", 0))


def test_an_answer_is_kept_even_if_the_text_after_a_compaction_quotes_it(
    tmp_path: Path,
) -> None:
    asked = codex_text(1, "user", "answer with: done. Nothing else", kinds=["user.text"])
    summary = codex_text(5, "user", "Here is the summary:\n<summary>they talked</summary>")["payload"]
    history = [asked["payload"], summary]
    rows = [
        {"type": "session_meta", "payload": {"id": "s", "thread_source": "user"}},
        asked,
        codex_text(2, "assistant", "done"),
        codex_text(
            3, "assistant", "<summary>they talked</summary>", turn="t2"
        ),  # of a turn that nobody began
        codex("compacted", 4, message=summary["content"][0]["text"], replacement_history=history),
    ]
    file = tmp_path / "rollout.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert [r.entry["entryId"] for r in READERS["codex"](file, "s", 0) if r.entry] == ["m1", "m2"]


def test_from_opencodes_database_only_what_was_typed_and_answered_is_kept_and_a_fork_adds_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "opencode.db"
    user, answer = {"role": "user", "time": {"created": 5}}, {"role": "assistant", "time": {"created": 6}}
    said: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
        ("m1", user, [{"type": "text", "text": "one"}, {"type": "text", "text": "injected", "synthetic": True}]),
        ("m2", answer, [{"type": "tool", "tool": "bash", "callID": "c", "state": {"input": {"command": "ls"}, "output": "of a file"}}]),
        ("m3", answer, [{"type": "text", "text": "first"}]),
        ("m4", user, [{"type": "compaction", "auto": False}]),
        ("m5", {**answer, "summary": True, "mode": "compaction"}, [{"type": "text", "text": "they talked"}]),
    ]  # fmt: skip
    with closing(sqlite3.connect(file)) as db:
        db.execute("create table session (id, parent_id)")
        db.execute("create table message (id, session_id, time_created, data)")
        db.execute("create table part (id, message_id, data)")
        for session, parent, mark in (("s", None, ""), ("fork", None, "f"), ("child", "s", "x")):
            db.execute("insert into session values (?, ?)", (session, parent))
            for n, (id, message, parts) in enumerate(said):
                db.execute(
                    "insert into message values (?, ?, ?, ?)", (mark + id, session, n, json.dumps(message))
                )
                for m, part in enumerate(parts):
                    db.execute(
                        "insert into part values (?, ?, ?)", (f"{mark}{id}{m}", mark + id, json.dumps(part))
                    )
        db.commit()
    entries = [r.entry for r in READERS["opencode"](file, "s", 0) if r.entry]
    assert [e["entryId"] for e in entries] == ["m1", "m2", "m3"]
    assert [part["text"] for part in entries[0]["message"]["content"]] == ["one"]
    assert [n for n, r in enumerate(READERS["opencode"](file, "s", 0)) if r.cut] == [3]
    assert not list(READERS["opencode"](file, "child", 0))
    forked = [r.entry for r in READERS["opencode"](file, "fork", 0) if r.entry]
    assert len(clean_entries([*entries, *forked])) == 3


def test_from_gemini_clis_transcript_only_what_was_typed_and_answered_is_kept(
    tmp_path: Path,
) -> None:
    at = "2026-03-05T10:00:00.000Z"
    typed = [{"text": "one"}, {"text": "<hook_context>injected</hook_context>"}]
    call = {
        "id": "c",
        "name": "list_directory",
        "args": {"dir_path": "."},
        "result": [{"functionResponse": {}}],
    }
    rows: list[dict[str, Any]] = [
        {"sessionId": "s", "kind": "main"},
        {"$set": {"messages": [{"id": "old", "type": "user", "content": "old"}]}},
        {"id": "g1", "timestamp": at, "type": "user", "content": typed, "displayContent": [{"text": "one"}]},
        {"id": "g2", "timestamp": at, "type": "gemini", "content": ""},
        {"id": "g2", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [call]},
        {"id": "g3", "timestamp": at, "type": "user", "content": [{"functionResponse": {"response": "of a file"}}]},
        {"id": "g4", "timestamp": at, "type": "gemini", "content": "first"},
        {"id": "g5", "timestamp": at, "type": "info", "content": "Request cancelled."},
        {"id": "g6", "timestamp": at, "type": "user", "content": typed},
    ]  # fmt: skip
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    entries = [r.entry for r in READERS["gemini"](file, "s", 0) if r.entry]
    assert [e["entryId"] for e in entries] == ["g1", "g2", "g4", "g6"]
    assert entries[3]["message"]["content"] == [{"type": "text", "text": "one"}]
    assert not any(r.cut for r in READERS["gemini"](file, "s", 0))
    for ids, cut in ((("old", "g1", "g6"), False), (("old", "n1", "n2"), True), (("old", "n1", "n2"), False)):
        start = file.stat().st_size
        with file.open("a") as more:  # a resume, a compaction, a resume after it
            more.write(json.dumps({"$set": {"messages": [{"id": id} for id in ids]}}) + "\n")
        assert [r.cut for r in READERS["gemini"](file, "s", start)] == [cut]


def test_hooks_that_the_person_has_not_trusted_in_codex_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = HOSTS["codex"]
    monkeypatch.setenv("CODEX_HOME", str(home.parent))
    assert unreviewed_hooks(host, home) == [*host.events]
    trusted = [trusted_hash(host, event, home) for event in host.events]
    (home.parent / "config.toml").write_text("\n".join(trusted[1:]))
    assert unreviewed_hooks(host, home) == ["SessionStart"]
    assert unreviewed_hooks(HOSTS["claude-code"], home) == []


# --- what is given


def full_home(home: Path, keys: list[str], memory: Memory) -> None:
    for key in keys:
        words = "crane pier winch buoy mast keel hull rope sail deck".split() * 12
        texts = [f"I prefer the {w} of quay {n} painted in colour number {n}." for n, w in enumerate(words)]
        said = [
            {"role": "user", "content": t, "timestamp": 1_772_000_000_000 + n} for n, t in enumerate(texts)
        ]
        memory.capture(said, session=key)
    memory.observe()


def test_a_hooks_text_stays_within_the_clients_limit_and_says_whose_memory_it_is(
    home: Path, tmp_path: Path
) -> None:
    installed(home)
    at = repository(tmp_path / "quay")
    project = project_of(home, MAIN, at)
    assert project
    with Memory(Config(home=home), embed=None) as memory:
        full_home(home, [MAIN, project], memory)
        serving = HostAnswers(memory)
        where = {"host": "claude-code", "session": "s1", "cwd": str(at), "transcript": ""}

        def started(source: str, **more: str) -> dict[str, Any]:
            return serving.answer({**where, "event": "start", "source": source, **more})

        def prompted(prompt: str) -> str:
            return str(serving.answer({**where, "event": "prompt", "prompt": prompt})["text"])

        start = started("startup")["text"]
        prompt = prompted("Which colour has the crane of quay 10?")
        for text in (start, prompt):
            assert 500 < len(text) <= HOSTS["claude-code"].limit_chars
            assert "What is remembered of the person" in text and "this project (quay)" in text
        assert "omg_search" not in start
        assert prompted("Which colour has the crane of quay 10?") == ""  # all of it is in the context
        assert started("resume")["text"] == ""
        assert started("compact")["text"] == start
        serving.lost(started("clear"))
        assert "What is remembered of this user" in prompted(
            "hello"
        )  # what was lost comes with the next prompt
        elsewhere = started("startup", session="s2", cwd=str(tmp_path))["text"]
        assert "this project" not in elsewhere


def test_a_new_session_is_told_which_client_captures_nothing(home: Path, tmp_path: Path) -> None:
    installed(home, at=int(time.time() * 1000) - 90_000_000)
    transcripts = home.parent / "client" / "projects" / "-x"
    transcripts.mkdir(parents=True)
    (transcripts / "s.jsonl").write_text("{}\n")
    (beat,) = heartbeats(home)
    assert beat.silent and beat.kept_ms == 0
    with Memory(Config(home=home), embed=None) as memory:
        serving = HostAnswers(memory)
        serving.keep_up()
        body = {"host": "claude-code", "session": "s1", "cwd": str(tmp_path), "event": "start"}
        assert "Claude Code is used, but OMG has kept nothing of it" in serving.answer(body)["text"]


# --- installing


def test_the_generated_plugin_folders_are_up_to_date() -> None:
    for host in HOSTS.values():
        root = REPOSITORY / "hooks" / host.name
        files = plugin_folder(host, ["omg"])
        if os.environ.get("UPDATE_DOCS"):
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
        found = {p.relative_to(root).as_posix(): p.read_text("utf-8") for p in root.rglob("*") if p.is_file()}
        assert found == files, (
            f"hooks/{host.name} is behind omg/hosts/: UPDATE_DOCS=1 pytest tests/hosts/test_hosts.py"
        )


def test_an_installed_hook_imports_nothing_from_the_folder_that_it_runs_in(
    home: Path, tmp_path: Path
) -> None:
    hostile = tmp_path / "hostile"
    (hostile / "omg").mkdir(parents=True)
    (hostile / "omg" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    env = {**os.environ, "PYTHONPATH": str(hostile)}
    command = [*our_command(), "hook", "claude-code", "Stop", str(home)]
    done = subprocess.run(
        command, cwd=hostile, env=env, input=json.dumps(PAYLOAD), text=True, capture_output=True, timeout=20
    )
    assert done.returncode == 0 and not (tmp_path / "ran").exists()
    assert list((home / "spool" / MARKS).glob("*.json"))
