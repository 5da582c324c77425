#!/usr/bin/env python3
"""
Measures many people on one machine: a turn of each at the same moment, a slow model, and prompts meanwhile.

    python bench/many.py [--people 200] [--model-s 5] [--check-s 0] [--parallel 16] [--hang 3] [--turns 1]
                         [--imported 0] [--night] [--embedder static] [--json]

Each person has a few notes. Then everybody says something, `--turns` times. A real daemon asks a scripted OpenAI-compatible
server on loopback to observe these turns. The server answers after --model-s seconds, a check after --check-s seconds, and
never for --hang people. `--imported N` gives one person N old turns, too. `--night` lets the daemon reflect on every graph
afterwards. All the while ten prompts a second ask for memory. `--parallel 0` leaves the key out of omg.toml.

    observed    seconds until the last answered person's last turn was observed; the least possible; the most calls at
                once, as the server saw them; all calls
    night       the same for `POST /reflect`, over the people whom the server answers
    inject      ms that each prompt waited meanwhile
    burden      rss_mb of the daemon and of its child, descriptors and threads: early, maximum, late
    cpu_s       of the daemon and its child, from the first turn to the last
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "tests")]

from openai_server import Hang, OpenAIServer, Request, borne_out

from bench.load import Talk, burden, up, wait_for
from omg.client import ask_daemon
from omg.config import Config, Embedding, Observation
from omg.memory import Memory

PROMPTS_PER_S = 10
LONGEST_S = 3_600.0  # at most for a run
HELD = "{thing} is kept on shelf {n} of the blue cabinet, says {name}."
THINGS = (
    "The spare key",
    "My passport",
    "The garden lamp",
    "My old camera",
    "The bread knife",
    "My tax file",
)


@dataclass(slots=True)
class Served:
    """What the server counted, shared between its process and this one."""

    base: str
    calls: Any
    most: Any


def play(
    people: int,
    model_s: float,
    check_s: float,
    hang: int,
    calls: Any,
    most: Any,
    under_way: Any,
    ready: Any,
    over: Any,
) -> None:
    """Serve the scripted model in a process of its own, until *over* is set."""
    hung = {person(n) for n in range(people - hang, people)}

    def reply(request: Request) -> Any:
        if hung & set(re.findall(r"\bp\d{3,}\b", request.user)):
            return Hang()
        with under_way.get_lock():
            under_way.value += 1
            calls.value += 1
            most.value = max(most.value, under_way.value)
        time.sleep(model_s)
        with under_way.get_lock():
            under_way.value -= 1
        shown = re.findall(r"^(m\d+) \S+ user: (.*)$", request.user, re.M)
        return {
            "edits": [
                {
                    "op": "create",
                    "type": "fact",
                    "title": text[:40],
                    "description": text,
                    "priority": "medium",
                    "sources": [handle],
                }
                for handle, text in shown
            ],
            "groups": [],
        }

    def check(request: Request) -> Any:
        time.sleep(check_s)
        return borne_out(request.user)

    with OpenAIServer() as server:
        server.always(reply)
        server.check = check
        ready.send(server.base)
        over.wait()


@contextmanager
def model(people: int, model_s: float, check_s: float, hang: int) -> Iterator[Served]:
    fresh = multiprocessing.get_context("spawn")
    calls, most, under_way = (fresh.Value("i", 0) for _ in range(3))
    told, ready = fresh.Pipe(duplex=False)
    over = fresh.Event()
    process = fresh.Process(
        target=play, args=(people, model_s, check_s, hang, calls, most, under_way, ready, over)
    )
    process.start()
    try:
        yield Served(told.recv(), calls, most)
    finally:
        over.set()
        process.join(10)
        process.kill()


def person(n: int) -> str:
    return f"p{n:03}"


def furnish(home: Path, talks: list[Talk]) -> None:
    """Write everybody's first notes by rules."""
    config = Config(home=home, observation=Observation(model="offline"), embedding=Embedding(model="none"))
    with Memory(config) as memory:
        for talk in talks:
            now = time.time_ns() // 1_000_000
            said = [
                {
                    "role": "user",
                    "content": HELD.format(thing=thing, n=n, name=talk.name),
                    "timestamp": now + n,
                }
                for n, thing in enumerate(THINGS)
            ]
            memory.capture(said, session=talk.session)
        memory.work(force=True)


def import_turns(home: Path, talk: Talk, turns: int) -> None:
    """Put *turns* turns of last year into the spool, each of some 500 tokens."""
    then = time.time_ns() // 1_000_000 - 400 * 86_400_000
    for n in range(turns):
        at = then + n * 3_600_000
        text = f"Number {n}: {talk.name} went to see the house. " + "It was large and it had a garden. " * 60
        entry = {"entryId": f"i{n}", "message": {"role": "user", "content": text, "timestamp": at}}
        session = f"{talk.session}:thread:{n // 20}"
        drop = {"v": 1, "reason": "import", "agentId": "main", "sessionKey": session, "entries": [entry]}
        (home / "spool" / f"{at:015d}-i{n}.json").write_text(json.dumps(drop))


def observed_turns(home: Path) -> dict[str, int]:
    """Return identity → number of messages observed since the daemon started."""
    found: dict[str, int] = {}
    for file in (home / "events.1.jsonl", home / "events.jsonl"):
        for line in file.read_bytes().splitlines() if file.exists() else ():
            if b'"observation_end"' in line:
                event = json.loads(line)
                found[event["graph"]] = found.get(event["graph"], 0) + event["messages"]
    return found


def children_of(pid: int) -> list[int]:
    """The processes that *pid* started. A thread of *pid* that ends meanwhile is passed over."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, file.read_text().split())
    return found


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Looks:
    """Measures the daemon's memory and how long prompts wait, until the block ends."""

    def __init__(self, daemon: int, talks: list[Talk], pause_s: float = 1 / PROMPTS_PER_S) -> None:
        self.daemon, self.talks, self.pause_s = daemon, talks, pause_s
        self.seen: list[dict[str, int]] = []
        self.cpu: dict[str, float] = {}
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._look), threading.Thread(target=self._prompt)]

    def _look(self) -> None:
        began = cpu_s(self.daemon)
        while True:
            held = burden(self.daemon)
            for child in children_of(self.daemon):
                try:
                    held["child_mb"] = held.get("child_mb", 0) + burden(child)["rss_mb"]
                    self.cpu[f"child {child}"] = cpu_s(child)
                except OSError:
                    continue  # it has just ended
            self.seen.append(held)
            self.cpu["daemon"] = cpu_s(self.daemon) - began
            if self._over.wait(0.5):
                return

    def _prompt(self) -> None:
        chance = random.Random(7)
        while not self._over.wait(self.pause_s):
            chance.choice(self.talks).prompt()

    def __enter__(self) -> Looks:
        for talk in self.talks:
            talk.waits.clear()
            talk.failed.clear()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def told(self) -> dict[str, Any]:
        waits = sorted(1000 * wait for talk in self.talks for wait in talk.waits) or [0.0]
        early, late = self.seen[len(self.seen) // 5], self.seen[-1]
        return {
            "inject": {
                "prompts": len(waits),
                "p50_ms": round(waits[len(waits) // 2], 1),
                "p95_ms": round(waits[int(len(waits) * 0.95)], 1),
                "p99_ms": round(waits[int(len(waits) * 0.99)], 1),
                "max_ms": round(waits[-1], 1),
                "failed": sum(talk.failed.total() for talk in self.talks),
            },
            "burden": {
                what: [early.get(what, 0), max(s.get(what, 0) for s in self.seen), late.get(what, 0)]
                for what in ("rss_mb", "child_mb", "descriptors", "threads")
            },
            "total_mb": max(s["rss_mb"] + s.get("child_mb", 0) for s in self.seen),
            "cpu_s": {
                "daemon": round(self.cpu.get("daemon", 0), 1),
                "child": round(sum(s for of, s in self.cpu.items() if of != "daemon"), 1),
            },
        }


def timed(looks: Looks, server: Served, work: Callable[[], None], least_s: float) -> dict[str, Any]:
    server.calls.value = server.most.value = 0
    began = time.monotonic()
    with looks:
        work()
        took = time.monotonic() - began
    figures = {"seconds": round(took, 1), "least_s": round(least_s, 1)}
    return figures | {"at_once": server.most.value, "calls": server.calls.value} | looks.told()


def measure(
    home: Path,
    *,
    people: int,
    model_s: float,
    check_s: float,
    parallel: int,
    hang: int = 0,
    turns: int = 1,
    imported: int = 0,
    night: bool = False,
    embedder: str = "static",
) -> dict[str, Any]:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    talks = [Talk(person(n), home, random.Random(n)) for n in range(people)]
    furnish(home, talks)
    (home / "events.jsonl").unlink(missing_ok=True)
    answered = talks[: people - hang]
    at_once = max(1, min(parallel, len(answered)))
    with model(people, model_s, check_s, hang) as server:
        key = f"parallel = {parallel}\n" if parallel else ""
        (home / "omg.toml").write_text(
            f'[observation]\nmodel = "openai/scripted"\nbuffer_tokens = "turn"\n{key}'
            f'[llm]\napi_base = "{server.base}"\ncontext_window = 64000\n[embedding]\nmodel = "{embedder}"\n'
        )
        env = {**os.environ, "OMG_HOME": str(home)}
        daemon = subprocess.Popen([sys.executable, "-m", "omg.cli", "serve"], env=env, cwd=REPO)
        try:
            wait_for(lambda: daemon.poll() is None and up(home), 60, "the daemon")
            for talk in talks:
                talk.prompt()
            if imported:
                import_turns(home, talks[0], imported)
                wait_for(lambda: server.calls.value > at_once // 2, 120, "the import")

            def say() -> None:
                for n in range(1, turns + 1):
                    for talk in talks:
                        talk.say()
                    wait_for(
                        lambda n=n: everybody(home, answered[bool(imported) :], n), LONGEST_S, "the last turn"
                    )

            least = turns * math.ceil(len(answered) / at_once) * (model_s + check_s)
            measured = {"observed": timed(Looks(daemon.pid, talks), server, say, least)}
            if night:
                measured["night"] = timed(
                    Looks(daemon.pid, talks),
                    server,
                    lambda: reflect(home, hang),
                    math.ceil(len(answered) / at_once) * model_s,
                )
            return measured
        finally:
            daemon.terminate()
            daemon.wait(30)


def everybody(home: Path, talks: list[Talk], turns: int) -> bool:
    done = observed_turns(home)
    return all(done.get(talk.session, 0) >= turns for talk in talks)


def reflect(home: Path, hang: int) -> None:
    """Reflect on every graph. With *hang*, wait only for the graphs of the people who are answered."""
    file = home / "events.jsonl"
    graphs = len(list((home / "graphs").iterdir()))

    def done() -> bool:
        return file.read_bytes().count(b'"reflection_end"') >= graphs - hang

    told: list[Any] = []
    thread = threading.Thread(
        target=lambda: told.append(ask_daemon(home, "/reflect", {}, LONGEST_S)), daemon=True
    )
    thread.start()
    wait_for(done, LONGEST_S, "the night")
    if not hang:
        thread.join()
        assert told and len(told[0]["graphs"]) == graphs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--model-s", type=float, default=5.0)
    parser.add_argument("--check-s", type=float, default=0.0)
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--hang", type=int, default=0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--imported", type=int, default=0)
    parser.add_argument("--night", action="store_true")
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--json", action="store_true")
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    with tempfile.TemporaryDirectory(prefix="many-") as folder:
        measured = measure(Path(folder) / "omg", **given)
    if as_json:
        print(json.dumps(measured))
        return
    for name, figures in measured.items():
        for what, value in figures.items():
            print(f"{name:10} {what:12} {value}")


if __name__ == "__main__":
    main()
