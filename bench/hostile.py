#!/usr/bin/env python3
"""
Measures how long prompts wait while somebody sends hostile text: megabytes of one shape, over the daemon's socket.

    python bench/hostile.py [--seconds 60] [--kb 1000] [--waiting 2] [--people 8] [--json]

Each of the --people has a few notes and asks for their memory, one prompt after the other with a pause. First nobody
else speaks (`idle`). Then at least --waiting drops of --kb each lie in the spool, of every shape in
tests/corpora/stalls.py (`hostile`): half of the drops in the askers' own sessions, half in strangers'. Last come the
same prompts with an empty spool (`after`).

    idle, hostile, after     ms that each prompt waited; `failed` counts prompts without an answer within ten seconds
    taken       drops that were taken in, and drops that were left

Figures of an idle machine are in LOG.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import cycle
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "tests")]

from corpora.stalls import shapes

from bench.load import Talk, noted, up, wait_for


def drop_text(home: Path, session: str, n: int, text: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    message = {"role": "user", "content": text, "timestamp": now_ms}
    entry = {"entryId": f"hostile-{n}", "message": message}
    value = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": session, "entries": [entry]}
    scratch = home / "spool" / f".{n}"
    scratch.write_text(json.dumps(value))
    scratch.replace(home / "spool" / f"{now_ms:015d}-hostile-{n}.json")


def keep_dropping(home: Path, talks: list[Talk], size: int, waiting: int, stop: threading.Event) -> int:
    """Keep at least *waiting* drops in the spool until *stop*. Return how many drops were made."""
    made = 0
    texts = [text for _, text in shapes(size)]
    random.Random(5).shuffle(texts)
    for text in cycle(texts):
        while not stop.is_set() and len(list((home / "spool").glob("[!.]*hostile*.json"))) >= waiting:
            stop.wait(0.02)
        if stop.is_set():
            return made
        stranger = f"agent:main:telegram:group:h{made % 5}"
        drop_text(home, stranger if made % 2 else talks[made // 2 % len(talks)].session, made, text)
        made += 1
    return made


def prompts(talks: list[Talk], seconds: float, pause_s: float) -> dict[str, Any]:
    """Send prompts of all *talks* at once. Return how long each waited, in ms."""
    until = time.monotonic() + seconds

    def ask(talk: Talk) -> None:
        talk.waits.clear()
        talk.failed.clear()
        while time.monotonic() < until:
            talk.prompt()
            time.sleep(talk.chance.uniform(0.5, 1.5) * pause_s)

    threads = [threading.Thread(target=ask, args=(talk,)) for talk in talks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waits = sorted(wait * 1000 for talk in talks for wait in talk.waits)
    return {
        "prompts": len(waits),
        "p50_ms": round(statistics.median(waits), 1),
        "p95_ms": round(waits[int(len(waits) * 0.95)], 1),
        "p99_ms": round(waits[int(len(waits) * 0.99)], 1),
        "max_ms": round(waits[-1], 1),
        "failed": sum(talk.failed.total() for talk in talks),
    }


def measure(
    home: Path, *, seconds: float, kb: int = 1000, waiting: int = 2, people: int = 8, pause_s: float = 1.0
) -> dict[str, Any]:
    """Start a daemon in *home*, ask it with and without hostile drops, and stop it."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "omg.toml").write_text(
        '[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n[embedding]\nmodel = "static"\n'
    )
    env = {**os.environ, "OMG_HOME": str(home)}
    daemon = subprocess.Popen([sys.executable, "-m", "omg.cli", "serve"], env=env, cwd=REPO)
    try:
        talks = [Talk(f"p{n:03}", home, random.Random(n)) for n in range(people)]
        wait_for(lambda: daemon.poll() is None and (home / "spool").is_dir() and up(home), 60, "the daemon")
        for talk in talks:
            for _ in range(4):
                talk.say()
        wait_for(lambda: noted(home, talks), 300, "everybody's first note")
        idle = prompts(talks, seconds / 3, pause_s)
        stop = threading.Event()
        made: list[int] = []
        dropping = threading.Thread(
            target=lambda: made.append(keep_dropping(home, talks, kb * 1000, waiting, stop))
        )
        dropping.start()
        hostile = prompts(talks, seconds, pause_s)
        stop.set()
        dropping.join()
        left = len(list((home / "spool").glob("[!.]*.json")))
        wait_for(lambda: not list((home / "spool").glob("[!.]*.json")), 300, "an empty spool")
        return {
            "idle": idle,
            "hostile": hostile,
            "after": prompts(talks, seconds / 3, pause_s),
            "taken": {
                "drops": made[0] - left,
                "left": left,
                "a_second": round((made[0] - left) / seconds, 2),
            },
        }
    finally:
        daemon.terminate()
        daemon.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a prompt waits while somebody sends megabytes.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kb", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=2)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        measured = measure(
            Path(folder) / "omg", seconds=args.seconds, kb=args.kb, waiting=args.waiting, people=args.people
        )
    if args.json:
        print(json.dumps(measured))
    else:
        for name, figures in measured.items():
            print(f"{name:8}", "  ".join(f"{key} {value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
