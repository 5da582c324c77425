"""
Reads a drop as a Turn and the files it shows were written; a long drop is read in a process of its own.

    DropReader.read ─ a short drop ─▶ read_file
                    └ a long one ── a JSON line ──▶ serve_reader → read_file ── a JSON line ──▶ a Turn

A megabyte takes seconds of regular expressions, each of which holds the interpreter, while the daemon has to answer
prompts. The process only reads the drop, so killing it at any moment loses nothing. A drop that ends the process twice
is set aside as bad.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from ..errors import BadInput, OmgError, error_text
from ..inbox import parsed_writes, writes_line
from ..llm.child import Child, serve_parent
from ..message.drop import Writes, read_drop, writes_of
from ..message.turn import Turn, turn_from_json, turn_to_json
from ..secrets import redact

log = logging.getLogger(__name__)

LONG_BYTES = 32_000  # a shorter drop is read in 10 to 20 ms, which a prompt can wait
DEATHS = 2  # deaths of the process on one drop: the first death may have another cause
LINES_KEPT = 1_000  # that are logged while one drop is read
LONGEST_S, S_PER_MB = 60.0, 20.0  # a megabyte took at most 1.5 s of CPU; the machine may be busy
# -P: modules in the working folder are not imported. The path makes the child import this very package.
READING_CHILD = (
    sys.executable,
    "-P",
    "-c",
    "import sys; sys.path.insert(0, sys.argv[1]); from omg.worker.reader import serve_reader; serve_reader()",
    str(Path(__file__).parents[2]),
)

Read = tuple[Turn, list[Writes]]


class BadDrop(BadInput):
    """A drop cannot be used. *text*: its text without secrets; None: keep the file as it is."""

    def __init__(self, why: str, text: str | None = None) -> None:
        super().__init__(why)
        self.text = text


class DropReader:
    """*apart*: read long drops in another process, as a daemon must."""

    def __init__(self, *, apart: bool = False) -> None:
        self._child = Child(command=READING_CHILD) if apart else None
        self._deaths: Counter[str] = Counter()

    def read(self, file: Path, asked: Collection[str]) -> Read:
        """Read a drop. Raises BadDrop; OmgError if it may be readable later; OSError, such as FileNotFoundError."""
        look = file.stat()
        if self._child is None or not stat.S_ISREG(look.st_mode) or look.st_size < LONG_BYTES:
            return read_file(file, asked)
        question = {"file": str(file), "asked": [*asked]}
        answer = self._child.call(question, LONGEST_S + S_PER_MB * look.st_size / 1e6)
        for line in answer.get("logged", ()):
            log.warning("%s", line)
        if "turn" in answer:
            del self._deaths[file.name]
            return turn_from_json(answer["turn"]), [*parsed_writes(answer["writes"])]
        if "bad" in answer:
            raise BadDrop(answer["bad"], answer["text"])
        if "failed" in answer:
            raise OmgError(answer["failed"])
        if not answer.get("started", True):  # for example after an upgrade while this daemon runs
            log.warning("%s: read here: %s", file.name, answer["why"])
            return read_file(file, asked)
        if not answer["again"]:
            raise OmgError(answer["why"])
        file.stat()  # raises FileNotFoundError if another process has taken it
        self._deaths[file.name] += 1
        if self._deaths[file.name] < DEATHS:
            raise OmgError(f"{answer['why']}; it is read again")
        del self._deaths[file.name]
        raise BadDrop(f"reading it ended a process {DEATHS} times: {answer['why']}; it is kept as it came")

    def close(self) -> None:
        if self._child is not None:
            self._child.close()


def read_file(file: Path, asked: Collection[str]) -> Read:
    """What is in the drop *file*. A message without a time gets that of the drop. Raises BadDrop, OSError."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise BadDrop("not a regular file")
    data = file.read_bytes()
    try:
        turn = read_drop(data, asked)
    except BadInput as e:
        raise BadDrop(str(e), redact(data.decode("utf-8", "replace"))[0]) from e
    came_ms = dropped_ms(file)
    messages = tuple(m if m.timestamp else replace(m, timestamp=came_ms) for m in turn.messages)
    return replace(turn, messages=messages), writes_of(json.loads(data)["entries"])


def dropped_ms(file: Path) -> int:
    """When a drop was made, in ms: by its name `<ms>-…`, else by its file's time."""
    head = file.name.partition("-")[0]
    return int(head) if re.fullmatch(r"[0-9]{13,15}", head) else int(file.stat().st_mtime * 1000)


# ---- the child's end


def serve_reader() -> None:
    os.nice(5)  # prompts have priority
    kept = BufferingHandler(LINES_KEPT)
    kept.setLevel(logging.WARNING)
    logging.getLogger().addHandler(kept)

    def logged() -> list[str]:
        """The log lines since the last call, for the parent's log."""
        lines = [record.getMessage() for record in kept.buffer]
        kept.flush()
        return lines

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        try:
            turn, shown = read_file(Path(question["file"]), question["asked"])
        except BadDrop as e:
            return {"bad": str(e), "text": e.text}
        except Exception as e:
            return {"failed": error_text(e), "logged": logged()}
        return {
            "turn": turn_to_json(turn),
            "writes": "\n".join(map(writes_line, shown)),
            "logged": logged(),
        }

    serve_parent(float(sys.argv[-1]), answer)
