#!/usr/bin/env python3
"""
Lists the files of omg/ through which one turn passes, from its file in the spool to the memory for the next prompt,
with rules.

    python bench/turn.py [--functions]

A file counts if one of its functions is called while the turn is taken in, observed and answered; what is only imported, and
what opening the home calls, does not. A change of file is a call from a function in one file to a function in another. The turn
says one preference; the home has observed another turn before, so nothing is done for the first time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from spooled import entry, hand_over

from omg import Memory
from omg.config import load_config
from omg.daemon import inject_answer

PACKAGE = str(ROOT / "omg") + "/"
calls: Counter[str] = Counter()  # "file function"
changes = 0


def count(frame: FrameType, event: str, _: Any) -> None:
    global changes
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name == "<module>":
        return
    calls[f"{code.co_filename.removeprefix(PACKAGE)} {code.co_qualname}"] += 1
    above = frame.f_back
    while above and not above.f_code.co_filename.startswith(PACKAGE):
        above = above.f_back
    changes += above is None or above.f_code.co_filename != code.co_filename


def pass_turn(memory: Memory, number: int, text: str) -> None:
    at_ms = int(datetime.now(UTC).timestamp() * 1000) - 60_000 + number
    hand_over(
        memory.folder, entry(f"u{number}", text, at_ms), entry(f"a{number}", "Noted.", at_ms + 1, "assistant")
    )
    memory.work(force=True)
    asked = {"sessionKey": "agent:main:main", "trigger": "user", "prompt": "Which tea do I like?"}
    assert inject_answer(memory, asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--functions", action="store_true", help="name the functions of each file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Memory(load_config(Path(home), {}), embed=None) as memory:
        pass_turn(memory, 1, "I prefer short answers.")
        threading.setprofile(count)
        sys.setprofile(count)
        pass_turn(memory, 2, "I like green tea better than coffee.")
        sys.setprofile(None)
        threading.setprofile(None)
    files: Counter[str] = Counter()
    for name, times in calls.items():
        files[name.split()[0]] += times
    for file, times in sorted(files.items()):
        names = [name.split()[1] for name in calls if name.split()[0] == file]
        print(f"{times:6} {file:28}" + (" ".join(names) if args.functions else f"{len(names)} functions"))
    print(f"{len(files)} files, {changes} changes of file, {sum(calls.values())} calls")


if __name__ == "__main__":
    main()
