#!/usr/bin/env python3
"""
Puts a daemon under the load of many people, each with a session and a memory, over the daemon's socket.

    python bench/load.py [--sessions 100] [--minutes 10] [--embedder auto|static|none] [--connections 500] [--json]

Each session asks for its memory every few seconds, says something now and then, which the rules observe, and searches now
and then. Meanwhile the daemon's memory, descriptors and threads are measured. Then --connections connections ask at the
same moment: each must be answered or refused within ten seconds.

    inject      ms that each prompt waited; `failed` counts prompts without an answer within ten seconds
    rss_mb, descriptors, threads     of the daemon: after a tenth of the time, the maximum, at the end
    burst       how many connections were answered, refused or left hanging; `after_ms` is the wait of the next prompt.
                The daemon is measured again when the burst's threads have ended, at most ten seconds later

Figures of an idle machine are in LOG.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO))

from omg.client import ask_daemon, socket_of
from omg.errors import OmgError

HUNG_S = 10.0
THINGS = (
    "tea trains lamps paper maps boats ink bread bikes plants coffee letters rain garden chess soup".split()
)
WAYS = "green short early quiet small old warm new long plain dark cheap".split()


@dataclass(slots=True)
class Talk:
    """One person's session. The person's name is in all that the person says."""

    name: str
    home: Path
    chance: random.Random
    waits: list[float] = field(default_factory=list)  # seconds
    failed: Counter[str] = field(default_factory=Counter)
    said: int = 0

    @property
    def session(self) -> str:
        return f"agent:main:telegram:direct:{self.name}"

    def ask(self, path: str, **body: Any) -> dict[str, Any]:
        try:
            return ask_daemon(self.home, path, body, HUNG_S) or {}
        except OmgError as e:
            self.failed[str(e)[:60]] += 1
            return {}

    def prompt(self) -> dict[str, Any]:
        began = time.perf_counter()
        text = f"What do I like about {self.chance.choice(THINGS)} and {self.chance.choice(THINGS)}?"
        given = self.ask("/inject", sessionKey=self.session, prompt=text, trigger="user")
        self.waits.append(time.perf_counter() - began)
        return given

    def say(self) -> None:
        self.said += 1
        text = f"I prefer {self.chance.choice(WAYS)} {self.chance.choice(THINGS)}, number {self.said} of {self.name}."
        now = time.time_ns()
        message = {"role": "user", "content": text, "timestamp": now // 1_000_000}
        entry = {"entryId": f"{self.name}-{self.said}", "message": message}
        drop = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": self.session, "entries": [entry]}
        name = f"{now // 1_000_000:015d}-{self.name}-{self.said}"
        scratch = self.home / "spool" / f".{name}"
        scratch.write_text(json.dumps(drop))
        scratch.replace(self.home / "spool" / f"{name}.json")

    def search(self) -> None:
        params = {"query": self.chance.choice(THINGS)}
        self.ask("/tool", name="omg_search", params=params, context={"sessionKey": self.session})

    def go_on(self, until: float, pause_s: float) -> None:
        while time.monotonic() < until:
            self.prompt()
            if self.chance.random() < 0.25:
                self.say()
            if self.chance.random() < 0.1:
                self.search()
            time.sleep(min(self.chance.uniform(0.5, 1.5) * pause_s, max(0.0, until - time.monotonic())))


def burden(pid: int) -> dict[str, int]:
    """Return the memory in MB, open descriptors and threads of the process *pid*."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
    )
    return {
        "rss_mb": int(status["VmRSS"].split()[0]) // 1024,
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(status["Threads"]),
    }


def burst(home: Path, connections: int, session: str) -> dict[str, int]:
    """Open *connections* connections, then ask on all at once. Return how many were answered, refused, or hung."""
    request = json.dumps({"sessionKey": session, "prompt": "What do I like about tea?", "trigger": "user"})
    head = (
        f"POST /inject HTTP/1.1\r\nhost: omg\r\nconnection: close\r\ncontent-length: {len(request)}\r\n\r\n"
    )
    ends: Counter[str] = Counter()
    gate = threading.Barrier(connections)

    def one() -> None:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(HUNG_S)
            try:
                gate.wait()
                line.connect(str(socket_of(home)))
                line.sendall((head + request).encode())
                answer = line.recv(100)
                ends["answered" if b" 200 " in answer[:20] else "refused"] += 1
            except TimeoutError:
                ends["hung"] += 1
            except OSError:
                ends["refused"] += 1

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(ends)


def measure(
    home: Path, *, sessions: int, seconds: float, embedder: str, connections: int, pause_s: float = 8.0
) -> dict[str, Any]:
    """Start a daemon in *home*, put it under load, and stop it."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / "omg.toml").write_text(
        f'[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n[embedding]\nmodel = "{embedder}"\n'
    )
    env = {**os.environ, "OMG_HOME": str(home)}
    daemon = subprocess.Popen([sys.executable, "-m", "omg.cli", "serve"], env=env, cwd=REPO)
    try:
        talks = [Talk(f"p{n:03}", home, random.Random(n)) for n in range(sessions)]
        wait_for(lambda: daemon.poll() is None and (home / "spool").is_dir() and up(home), 60, "the daemon")
        for talk in talks:
            talk.say()
        wait_for(lambda: noted(home, talks), 300, "everybody's first note")
        for talk in talks:
            talk.waits.clear()
            talk.failed.clear()
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=talk.go_on, args=(until, pause_s)) for talk in talks]
        for thread in threads:
            thread.start()
        looks = []
        while (left := until - time.monotonic()) > 0:
            looks.append(burden(daemon.pid))
            time.sleep(min(left, seconds / 100))
        for thread in threads:
            thread.join()
        waits = sorted(wait for talk in talks for wait in talk.waits)
        failed = sum((talk.failed for talk in talks), Counter())
        told = burst(home, connections, talks[0].session) if connections else {}
        began = time.perf_counter()
        talks[0].prompt()
        after_ms = round((time.perf_counter() - began) * 1000)
        ended = time.monotonic() + HUNG_S  # the burst's threads take a moment to end
        most = max(look["threads"] for look in looks)
        while burden(daemon.pid)["threads"] > most and time.monotonic() < ended:
            time.sleep(0.05)
        looks.append(burden(daemon.pid))
        return {
            "inject": {
                "prompts": len(waits),
                "p50_ms": round(statistics.median(waits) * 1000, 1),
                "p99_ms": round(waits[int(len(waits) * 0.99)] * 1000, 1),
                "max_ms": round(waits[-1] * 1000, 1),
                "failed": dict(failed),
            },
            **{
                what: {
                    "early": looks[len(looks) // 10][what],
                    "most": max(look[what] for look in looks),
                    "late": round(
                        statistics.median(look[what] for look in looks[-len(looks) // 10 - 2 : -1])
                    ),
                    "after_burst": looks[-1][what],
                }
                for what in looks[-1]
            },
            "burst": {**told, "after_ms": after_ms},
        }
    finally:
        daemon.terminate()
        daemon.wait(30)


def up(home: Path) -> bool:
    try:
        return ask_daemon(home, "/health", {}, HUNG_S) is not None
    except OmgError:
        return False


def noted(home: Path, talks: list[Talk]) -> bool:
    """Whether each person has a note. A prompt asked before would fix its session's `system` without the note."""
    return len({file.parents[2] for file in home.glob("graphs/*/vault/nodes/*/*.md")}) == len(talks)


def wait_for(truth: Any, within_s: float, what: str) -> None:
    until = time.monotonic() + within_s
    while not truth():
        if time.monotonic() > until:
            raise SystemExit(f"{what}: not there after {within_s:.0f} s")
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Many people at once.")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        measured = measure(
            Path(folder) / "omg",
            sessions=args.sessions,
            seconds=args.minutes * 60,
            embedder=args.embedder,
            connections=args.connections,
        )
    if args.json:
        print(json.dumps(measured))
    else:
        for name, figures in measured.items():
            print(f"{name:12}", "  ".join(f"{key} {value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
