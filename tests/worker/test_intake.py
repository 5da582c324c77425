"""Long drops are read in another process: the same turns, and nothing lost whatever becomes of it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omg.config import Config
from omg.errors import OmgError
from omg.memory import Memory
from omg.openclaw.graph_checks import check_home
from omg.worker.intake import LONG_BYTES, BadDrop, DropReader, read_file
from tests.test_daemon import eventually

NOON = 1_772_712_000_000
LONG = "I moved to Oslo, and my key is sk-proj-" + "a1B2" * 12 + ".\n" + "la " * LONG_BYTES


@pytest.fixture(scope="module")
def reader() -> Iterator[DropReader]:
    one = DropReader(apart=True)
    yield one
    one.close()


@pytest.fixture
def memory(tmp_path: Path, reader: DropReader) -> Iterator[Memory]:
    with Memory(Config(home=tmp_path / "home"), embed=None) as opened:
        opened.intake.reader = reader
        yield opened


def spooled(folder: Path, *messages: dict[str, Any], n: int = 0, **more: Any) -> Path:
    entries = [{"entryId": f"m{n}-{i}", "message": message} for i, message in enumerate(messages)]
    value = {"v": 1, "reason": "turn", "sessionKey": "agent:main:main", "entries": entries, **more}
    file = folder / f"{NOON + n:015d}-{n}.json"
    file.write_text(json.dumps(value))
    return file


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": NOON}


def waiting(memory: Memory) -> list[str]:
    return [m.text[:17] for p in memory.find().pending() for m in p.turn().messages]


def pid_of(reader: DropReader) -> int:
    assert reader._child is not None and reader._child.running is not None
    return reader._child.running.process.pid


def asked(reader: DropReader) -> bool:
    """Whether a question lies in the pipe to the process."""
    assert reader._child is not None and reader._child.running is not None
    assert reader._child.running.process.stdin is not None
    unread = fcntl.ioctl(reader._child.running.process.stdin, termios.FIONREAD, b"\0" * 4)
    return int.from_bytes(unread, sys.byteorder) > 0


def killed_while_it_reads(memory: Memory, reader: DropReader, file: Path) -> None:
    """The process stands still, is given *file* to read, and dies."""
    reader.read(spooled(memory.folder, said(LONG), n=9), ())  # it is up
    pid = pid_of(reader)
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    taking = threading.Thread(target=memory.take_in)
    taking.start()
    eventually(lambda: asked(reader), 20)
    os.kill(pid, signal.SIGKILL)
    taking.join(20)
    assert not taking.is_alive()


def test_reading_a_drop_in_another_process_gives_the_same_turns_as_in_this_process(
    tmp_path: Path, reader: DropReader
) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "write", "arguments": {"path": "memory/omg/inbox/a.md"}}
    file = spooled(
        tmp_path,
        said(LONG + " \ud83d 漢字 😀 \u2028 \0"),
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}, call]},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "write", "content": "ok"},
        {"role": "user", "content": ["what is no text"], "timestamp": "never"},
    )
    turn, writes = reader.read(file, ())
    assert pid_of(reader) != os.getpid()
    assert (turn, writes) == read_file(file, ())
    assert turn.messages[0].redacted == 1 and writes


def test_a_short_drop_starts_no_process(tmp_path: Path) -> None:
    fresh = DropReader(apart=True)
    assert fresh.read(spooled(tmp_path, said("I moved to Oslo.")), ())[0].messages
    assert fresh._child is not None and fresh._child.running is None


def test_a_drop_whose_reader_is_killed_stays_in_the_spool_and_is_taken_once(
    memory: Memory, reader: DropReader
) -> None:
    file = spooled(memory.folder / "spool", said(LONG))
    killed_while_it_reads(memory, reader, file)
    assert file.exists() and not memory.find().pending()
    assert memory.take_in() == 1
    assert waiting(memory) == ["I moved to Oslo, "] and not file.exists()
    assert memory.take_in() == 0


def test_the_doctor_reports_a_drop_that_was_set_aside_after_crashing_its_reader_twice(
    memory: Memory, reader: DropReader
) -> None:
    file = spooled(memory.folder / "spool", said(LONG))
    raw = file.read_bytes()
    killed_while_it_reads(memory, reader, file)
    spooled(memory.folder / "spool", said("I moved to Rome.\n"), n=1)
    killed_while_it_reads(memory, reader, file)
    assert not file.exists() and waiting(memory) == ["I moved to Rome."]
    bad = memory.folder / "spool" / "bad"
    assert (bad / file.name).read_bytes() == raw
    assert "ended 2 times" in (bad / f"{file.stem}.txt").read_text()
    assert [f for f in check_home(memory) if f.level == "warn" and "1 drop could not be read" in f.what]


def test_an_unreadable_long_drop_is_set_aside_without_its_secrets(memory: Memory) -> None:
    file = spooled(memory.folder / "spool", said(LONG), sessionKey=" ")
    memory.take_in()
    kept = (memory.folder / "spool" / "bad" / file.name).read_text()
    assert "I moved to Oslo" in kept and "a1B2a1B2" not in kept


def test_a_drop_stays_in_the_spool_when_omg_stops(tmp_path: Path) -> None:
    stopping = DropReader(apart=True)
    file = spooled(tmp_path, said(LONG))
    stopping.close()
    with pytest.raises(OmgError, match="stopping") as raised:
        stopping.read(file, ())
    assert not isinstance(raised.value, BadDrop) and file.exists()


def test_a_long_drop_is_read_in_this_process_if_no_other_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omg.worker.intake.READING_CHILD", ("false",))
    with contextlib.closing(DropReader(apart=True)) as fresh:
        turn, _ = fresh.read(spooled(tmp_path, said(LONG)), ())
    assert turn.messages[0].text.startswith("I moved to Oslo")
