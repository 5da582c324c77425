#!/usr/bin/env python3
"""
Plays random lives of a memory (tests/lives.py), seed after seed, until --steps steps are done, and checks the
invariants.

    python bench/fuzz.py [--steps 20000] [--life 100] [--seed 10000]

Prints each broken invariant with its seed and the steps before it. Exit code 1 if one broke.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lives


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--steps", type=int, default=20_000)
    args.add_argument("--life", type=int, default=100, help="steps of one life")
    args.add_argument(
        "--seed",
        type=int,
        default=10_000,
        help="the first seed; tests/test_fuzz.py plays the seeds below 500",
    )
    given = args.parse_args()
    logging.disable(logging.CRITICAL)  # failures are scripted here
    os.fsync = lambda fd: None  # type: ignore[assignment]  # only the process is killed, not the machine
    started, lived, seed, broken = time.monotonic(), 0, given.seed, 0
    with tempfile.TemporaryDirectory() as folder:
        begin = lives.template(Path(folder) / "begin")
        while lived < given.steps:
            try:
                lives.live(seed, Path(folder), begin, given.life)
            except lives.Broken as e:
                broken += 1
                print(e, flush=True)
            lived, seed = lived + given.life, seed + 1
    print(
        f"{lived:,} steps in {seed - given.seed} lives, {broken} broken, {time.monotonic() - started:.0f} s"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
