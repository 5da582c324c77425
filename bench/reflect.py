"""
Measures what a night costs, on a vault of N notes after 0, 10 and 100 changed notes, and how many planted
contradictions, repetitions and open loops past their day a night finds.

    python bench/reflect.py [--notes 1000 10000] [--pairs 50] [--json]

The model is scripted: its calls and tokens are counted, and it takes no time. CPU seconds are those of this process for
refresh and cycle; "command" is a whole process `omg reflect`, imports included.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from openai_server import believing  # from the tests
from planted import NOW, Planted, Scripted, graph_of, home_at, note, plant, put

from omg.graph.graph import Graph
from omg.memory import Memory
from omg.node.note import Node
from omg.observe.question import Observer
from omg.reflect.run import Cycle, reflect_graph

TYPES = ("fact",) * 5 + ("episode",) * 3 + ("preference", "decision", "project")
PEOPLE = ("Ines", "Tomas", "Alma", "Bruno", "Clara", "Duarte")


def vocabulary(rnd: random.Random) -> list[list[str]]:
    """Forty subjects of sixty words each, from real English."""
    from wordfreq import top_n_list

    words = [w for w in top_n_list("en", 12_000)[800:] if w.isalpha() and w.isascii() and len(w) > 3]
    return [rnd.sample(words, 60) for _ in range(40)]


def nodes(
    count: int, subjects: list[list[str]], rnd: random.Random, start: int = 0, days: int = 800
) -> list[Node]:
    """Make *count* notes dated within *days* days before NOW, numbered from *start*."""
    found = []
    for n in range(start, start + count):
        subject = subjects[rnd.randrange(len(subjects))]
        kind, words = rnd.choice(TYPES), rnd.sample(subject[:30], 2) + rnd.sample(subject, 5)
        day = NOW.date() - dt.timedelta(rnd.randrange(days))
        line = (
            f"{rnd.choice(PEOPLE)} {words[0]} the {words[1]} {words[2]} with {words[3]} and {words[4]} {n}."
        )
        body = f"{line} It was about {words[5]} and {words[6]}."
        path = f"nodes/{kind}/{words[1]}-{words[2]}-{n}"
        more: dict[str, Any] = {"event": str(day)} if kind == "episode" else {}
        if rnd.random() < 0.2:
            more["priority"] = "low"
        found.append(note(path, line, day, tags=(subject[0],), body=body, **more))
    return found


def night(home: Memory, graph: Graph, when: dt.datetime, observer: Observer) -> tuple[float, float, Cycle]:
    """Reflect once. Return CPU and wall seconds, with the refresh."""
    cpu, wall = time.process_time(), time.perf_counter()
    home.refresh(graph)
    cycle = reflect_graph(graph, observer, home.config, when)
    return time.process_time() - cpu, time.perf_counter() - wall, cycle


def command(home: Memory) -> float:
    """Run `omg reflect` offline as cron does, and return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "OMG_HOME": str(home.folder), "PYTHONPATH": str(ROOT), "OMG_TIME_ZONE": "UTC"}
    subprocess.run(
        [sys.executable, "-m", "omg.cli", "reflect"], env=env, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(count: int) -> list[dict[str, Any]]:
    rnd = random.Random(11)
    subjects, rows = vocabulary(rnd), []

    def row(what: str, cpu: float, wall: float, cycle: Cycle) -> None:
        files = len(cycle.receipt.changes) if cycle.receipt else 0
        rows.append(
            {
                "notes": count,
                "after": what,
                "cpu_s": round(cpu, 2),
                "wall_s": round(wall, 2),
                "calls": cycle.calls,
                "tokens": cycle.tokens,
                "files": files,
                "did": cycle.headline,
            }
        )
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        home = home_at(Path(folder))
        graph = graph_of(home)
        put(graph, *nodes(count, subjects, rnd))
        home.refresh(graph)
        offline, model = Observer(), Observer(believing(Scripted()), "scripted", 128_000)
        row("first night, offline", *night(home, graph, NOW, offline))
        row("0, offline", *night(home, graph, NOW + dt.timedelta(hours=1), offline))
        row("first night with a model", *night(home, graph, NOW + dt.timedelta(hours=2), model))
        for n, changed in enumerate((0, 10, 100)):
            put(graph, *nodes(changed, subjects, rnd, start=count + 1000 * n, days=3))
            row(str(changed), *night(home, graph, NOW + dt.timedelta(days=1 + n), model))
        home.close()
        cpu = command(home)  # the first run notices the new day
        cpu = command(home)
        rows.append({"notes": count, "after": "0, whole command, offline", "cpu_s": round(cpu, 2)})
    return rows


def found(graph: Graph, planted: Planted) -> str:
    """Say how much of what was planted the night has mended."""

    def gone(pairs: list[tuple[str, str]]) -> int:
        return sum(any(graph.vault.read(p).status != "active" for p in pair) for pair in pairs)

    loops = sum(graph.vault.read(p).loop == "done" for p in planted.loops)
    return (
        f"{gone(planted.contradictions)} of {len(planted.contradictions)} contradictions, "
        f"{gone(planted.repeats)} of {len(planted.repeats)} repetitions, {loops} of {len(planted.loops)} loops"
    )


def measure_planted(pairs: int) -> dict[str, Any]:
    """Reflect once on a vault with *pairs* planted pairs of each kind, and print what was found."""
    with tempfile.TemporaryDirectory() as folder:
        home = home_at(Path(folder))
        graph = graph_of(home)
        planted = plant(graph, pairs=pairs, loops=pairs // 2)
        model = Scripted()
        cpu, wall, cycle = night(home, graph, NOW, Observer(model and believing(model), "scripted", 128_000))
        weeks = sum("# Length" in q.user for q in model.history)
        row = {
            "notes": len(graph.index.entries()),
            "after": "all, with planted finds",
            "cpu_s": round(cpu, 2),
            "wall_s": round(wall, 2),
            "calls": cycle.calls - weeks,
            "tokens": sum(
                (len(q.system) + len(q.user)) // 4 for q in model.history if "# Length" not in q.user
            ),
            "files": len(cycle.receipt.changes) if cycle.receipt else 0,
            "did": f"found {found(graph, planted)}; without {weeks} calls for weeks and months",
        }
        home.close()
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument(
        "--pairs", type=int, default=50, help="how many pairs of each kind to plant; 0: measure only the cost"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row for count in options.notes for row in measure(count)]
    rows += [measure_planted(options.pairs)] if options.pairs else []
    if options.json:
        return print(json.dumps(rows, indent=1))
    print("| notes | changed | CPU s | wall s | calls | tokens | files | what it did |")
    print("|---|---|---|---|---|---|---|---|")
    for r in rows:
        print(
            f"| {r['notes']:,} | {r['after']} | {r['cpu_s']} | {r.get('wall_s', '')} | {r.get('calls', '')} | {r.get('tokens', '')} | {r.get('files', '')} | {r.get('did', '')} |"
        )


if __name__ == "__main__":
    main()
