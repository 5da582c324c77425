#!/usr/bin/env python3
"""
Measures how long a prompt waits for its memory: over the daemon's socket, one connection for each prompt, as with the
gateway's plugin.

    python bench/inject.py [--notes 10000] [--messages 50000] [--prompts 300] [--embedder static|none|auto] [--json]

    transport   POST /health: what the socket and the process cost by themselves
    first       the first prompt after the daemon's start
    inject_cpu  CPU of the daemon for one prompt, while it also watches the vault
    inject      POST /inject: prompts made of the vault's words, in one session and then in many sessions

The words of vault and archive follow Zipf's law: common words are in every note and message, names in a few. A note
comes from two messages of the archive; one message in four is a reply of the assistant's.
Figures of an idle machine are in LOG.md.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO))

from omg.client import ask_daemon
from omg.config import load_config
from omg.embed import load_embedder as embedder
from omg.graph.graph import Graph
from omg.memory import Memory
from omg.message.turn import Message, message_to_json
from omg.node.note import Node, Source, render_node

OWNER = "agent:main:main"
TYPES = ("preference", "project", "decision", "fact", "episode")
SYLLABLES = "ba be bi bo da de do fa fe ga ge ka ke ko la le li lo ma me mi mo na ne no pa pe ra re ro sa se ta te to va ve".split()


def words(n: int, chance: random.Random) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < n:
        made["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))] = None
    return list(made)


def plant(home: Memory, notes: int, messages: int, chance: random.Random) -> list[str]:
    """Fill the owner's vault, archive and index; returns sentences to ask with."""
    graph = home.graph(home.registry.identity_of(OWNER))  # type: ignore[arg-type]
    vocabulary = words(8_000, chance)
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    said = plant_archive(graph, messages, vocabulary, weights, chance)
    paths: list[str] = []
    asked: list[str] = []
    for n in range(notes):
        kind = TYPES[n % len(TYPES)]
        text = [" ".join(chance.choices(vocabulary, weights, k=14)) for _ in range(3)]
        path = f"nodes/{kind}/{n:05d}-{text[0].split()[0]}"
        links = chance.sample(paths, min(len(paths), 2))
        day = dt.date(2026, 1, 1) + dt.timedelta(days=n % 300)
        node = Node(
            path, f"omg/{path[6:]}", text[0], kind, loop="open" if n % 400 == 0 else None, created=day, updated=day,
            identity=OWNER, scope="dm", origin="user", sources=tuple(Source(*source) for source in chance.sample(said, 2)) if said else (),
            links=(f"mocs/moc-{kind}s", *links), body=f"# {text[1][:40]}\n\n{text[1]}. {text[2]}.",
        )  # fmt: skip
        data = render_node(node).encode()
        file = graph.vault.file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        graph.vault.remember(path, data)
        paths.append(path)
        if n % 7 == 0:
            asked.append(f"what about {' '.join(chance.sample(text[1].split(), 5))}?")
    graph.index.archive(graph.folder / "archive")
    home.refresh(graph)
    while graph.index.embed(4096):
        pass
    return asked


def plant_archive(
    graph: Graph, messages: int, vocabulary: list[str], weights: list[float], chance: random.Random
) -> list[tuple[str, str, int]]:
    """Archive talks of twenty messages each, over 300 days. Return session, id and time of each message."""
    said, lines = [], []
    for n in range(messages):
        session, at_ms = (
            f"{OWNER}:thread:talk-{n // 20}",
            1_770_000_000_000 + n * (300 * 86_400_000 // messages),
        )
        reply = n % 4 == 3
        text = " ".join(
            chance.choices(vocabulary, weights, k=chance.randint(*((300, 1000) if reply else (20, 120))))
        )
        text = ". ".join(text[at : at + 80] for at in range(0, len(text), 80))
        message = Message(f"m{n}", "assistant" if reply else "user", f"{text}.", at_ms)
        lines.append(message_to_json(message, session))
        said.append((session, message.id, at_ms))
    (graph.folder / "archive" / "2026-01.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return said


@contextlib.contextmanager
def serving(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "OMG_HOME": str(home), "PYTHONPATH": str(REPO)}
    process = subprocess.Popen([sys.executable, "-m", "omg.cli", "serve"], env=env, stdin=subprocess.DEVNULL)
    try:
        while ask_daemon(home, "/health", {}, timeout_s=5) is None:
            assert process.poll() is None, "the daemon ended"
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(20)


def timed(ask: Callable[[], Any]) -> float:
    began = time.perf_counter()
    ask()
    return (time.perf_counter() - began) * 1000


def told(ms: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(ms, n=100)
    return {"p50_ms": round(cuts[49], 2), "p95_ms": round(cuts[94], 2), "max_ms": round(max(ms), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--json", action="store_true", help="the last line is all figures as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / "omg"
        folder.mkdir()
        (folder / "omg.toml").write_text(
            f'[observation]\nmodel = "offline"\n[embedding]\nmodel = "{args.embedder}"\n'
        )
        began = time.perf_counter()
        home = Memory(load_config(folder, {}), embed=embedder(args.embedder))
        prompts = plant(home, args.notes, args.messages, random.Random(1))
        home.close()
        print(
            f"{args.notes} notes and {args.messages} messages made, indexed and embedded in {time.perf_counter() - began:.1f} s"
        )
        figures = measure(folder, prompts, args.prompts)
    for name, value in figures.items():
        print(f"{name:18} {value}")
    if args.json:
        print(
            json.dumps({"notes": args.notes, "messages": args.messages, "embedder": args.embedder, **figures})
        )


def worked(pid: int) -> float:
    """Return the CPU seconds that the process used, which other load hardly changes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_idle(pid: int) -> None:
    """Wait until the process used less than .1 s of CPU in 2 s, at most 10 minutes."""
    for _ in range(300):
        before = worked(pid)
        time.sleep(2)
        if worked(pid) - before < 0.1:
            return


def measure(home: Path, prompts: list[str], n: int) -> dict[str, Any]:
    def inject(i: int, session: str) -> Callable[[], Any]:
        body = {"sessionKey": session, "trigger": "user", "prompt": prompts[i % len(prompts)]}
        return lambda: ask_daemon(home, "/inject", body)

    with serving(home) as process:
        wait_until_idle(
            process.pid
        )  # after its start the daemon reads the vault and searches the archive for secrets
        first = timed(inject(0, OWNER))
        transport = [timed(lambda: ask_daemon(home, "/health", {})) for _ in range(n)]
        before = worked(process.pid)
        same = [timed(inject(i, OWNER)) for i in range(1, n + 1)]
        cpu = (worked(process.pid) - before) / n * 1000
        # A session's first prompt renders its `system` part.
        many = [timed(inject(i, f"agent:main:main:thread:{i}")) for i in range(n // 5)]
        status = Path(f"/proc/{process.pid}/status")
        rss = next(
            int(x.split()[1]) // 1024 for x in status.read_text().splitlines() if x.startswith("VmRSS")
        )
    return {
        "transport": told(transport),
        "first_ms": round(first, 1),
        "inject": told(same),
        "inject_cpu_ms": round(cpu, 1),
        "inject_new_session": told(many),
        "rss_mb": rss,
    }


if __name__ == "__main__":
    main()
