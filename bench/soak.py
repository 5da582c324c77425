#!/usr/bin/env python3
"""
Simulates a long time in a short one: many people's turns through OMG's real path, to see which files and costs grow.

    python bench/soak.py [--turns 5000] [--identities 50] [--in-turn 0] [--json]

Each identity has a turn a day: its prompt gets its slice (the memory for one prompt), and the rules observe what was said
when the conversation rests. Each tenth of the way prints bytes by kind of file, descriptors, and the CPU of a prompt. The
index grows with archive and notes. `written` has a line for each write and each use of a note, and is shortened once it has
1,000 lines more than there are notes; logs begin anew at 5 MB. A day passes for the files' times, too. `--in-turn N`: then
N identities get a prompt each, one after the other.

One JSON object on the last line with --json. `kept`: bytes of receipts and the rest at the end, divided by those half
way.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from omg.config import Config, Observation, Time
from omg.embed import load_embedder
from omg.graph.state import write_private
from omg.inject.decide import Prompt, slice_for
from omg.memory import Memory

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
DAY_S = 86_400
THINGS = "lamp kayak garden invoice train piano recipe bicycle garage novel".split()
WAYS = (
    "I prefer the {} in the morning, number {}.",
    "We decided to move the {} because of shelf {}.",
    "I bought a {} for {} euros.",
    "My sister likes the {} of house {}.",
    "I will repair the {} with part {}.",
)


def key(n: int) -> str:
    return f"agent:main:telegram:direct:{n}"


def said(person: int, day: int) -> str:
    return WAYS[(person + day) % len(WAYS)].format(
        THINGS[(person * 3 + day) % len(THINGS)], person * 100 + day
    )


def live(home: Memory, clock: list[datetime], turns: int, identities: int) -> list[dict[str, Any]]:
    """Simulate *turns* turns of *identities* people. Return a row for each tenth of the way."""
    rows: list[dict[str, Any]] = []
    days, waits = max(1, turns // identities), list[float]()
    for day in range(days):
        clock[0] = START + timedelta(days=day)
        for person in range(identities):
            waits.append(prompt(home, person, f"What of the {THINGS[day % len(THINGS)]}?", clock[0]))
            drop(home, person, day, clock[0])
        home.take_in()
        clock[0] += timedelta(hours=1)  # the conversations rest
        home.work()
        for graph in home.registry.graphs():
            home.refresh(graph)  # as the daemon's tick
        pass_a_day(home.folder)
        if (day + 1) * 10 // days > day * 10 // days:
            rows.append(row(home, (day + 1) * identities, waits))
            waits = []
    return rows


def prompt(home: Memory, person: int, text: str, now: datetime) -> float:
    """Return the CPU ms that a prompt takes. Wall time would depend on the machine's other load."""
    who = home.registry.identity_of(key(person), channel="telegram", sender=str(person))
    assert who is not None
    graph = home.graph(who)
    started = time.thread_time()
    slice_for(graph, Prompt(text, key(person)), now, home.config)
    return (time.thread_time() - started) * 1000


def drop(home: Memory, person: int, day: int, now: datetime) -> None:
    at = round(now.timestamp() * 1000)
    messages = [("user", said(person, day)), ("assistant", "Noted.")]
    entries = [
        {"entryId": f"{person}-{day}-{n}", "message": {"role": role, "content": text, "timestamp": at + n}}
        for n, (role, text) in enumerate(messages)
    ]
    body = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": key(person), "entries": entries}
    body |= {"channel": "telegram", "senderId": str(person)}
    write_private(home.folder / "spool" / f"{at:015d}-{person}.json", json.dumps(body))


def pass_a_day(home: Path) -> None:
    for file in home.glob("graphs/*/receipts/*.json"):
        then = file.stat().st_mtime - DAY_S
        os.utime(file, (then, then))


def row(home: Memory, turns: int, waits: list[float]) -> dict[str, Any]:
    sizes = dict.fromkeys(("archive", "notes", "index", "receipts", "written", "logs", "rest"), 0)
    for file in home.folder.rglob("*"):
        if file.is_file():
            sizes[kind(file.relative_to(home.folder))] += file.stat().st_size
    waits = sorted(waits)
    return {
        "turns": turns,
        **{f"{name}_kb": round(size / 1000) for name, size in sizes.items()},
        "descriptors": descriptors(),
        "prompt_cpu_ms_p50": round(median(waits), 2),
        "prompt_cpu_ms_p95": round(waits[int(len(waits) * 0.95)], 2),
    }


def kind(file: Path) -> str:
    below = file.parts[2:]  # graphs/<graph>/…
    if below[:1] in (("archive",), ("vault",)):
        return "archive" if below[0] == "archive" else "notes"
    if below[:1] == ("receipts",):
        return "receipts"
    names = {"index.db": "index", "written.": "written", "uses.": "written", "events": "logs"}
    return next((kind for name, kind in names.items() if file.name.startswith(name)), "rest")


def in_turn(home: Memory, identities: int) -> list[dict[str, Any]]:
    """Serve a prompt to one stranger after the other. Return the open descriptors at each tenth of the way."""
    rows, waits = [], list[float]()
    for n in range(identities):
        waits.append(prompt(home, 1_000_000 + n, "What do you know of me?", home.clock()))
        if (n + 1) * 10 // identities > n * 10 // identities:
            wait = round(median(waits), 2)
            rows.append({"identities": n + 1, "descriptors": descriptors(), "prompt_cpu_ms_p50": wait})
            waits = []
    return rows


def descriptors() -> int | None:
    """Return the number of open files of this process; None if the system does not tell."""
    here = Path("/proc/self/fd")
    return sum(1 for _ in here.iterdir()) if here.is_dir() else None


def beyond(row: dict[str, Any]) -> int:
    return int(row["receipts_kb"] + row["rest_kb"])


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--turns", type=int, default=5_000)
    args.add_argument("--identities", type=int, default=50)
    args.add_argument("--in-turn", type=int, default=0, metavar="N")
    args.add_argument("--json", action="store_true", help="one JSON object on the last line")
    given = args.parse_args()
    logging.disable(logging.INFO)
    clock = [START]
    with tempfile.TemporaryDirectory() as folder:
        options = Observation(model="offline")
        config = Config(home=Path(folder), observation=options, time=Time(zone="UTC"))
        home = Memory(config, embed=load_embedder("none"), clock=lambda: clock[0])
        rows = live(home, clock, given.turns, given.identities)
        strangers = in_turn(home, given.in_turn)
        home.close()
    for found in (*rows, *strangers):
        print("  ".join(f"{name} {value}" for name, value in found.items()))
    half, last = rows[(len(rows) - 1) // 2], rows[-1]
    if given.json:
        kept = round(beyond(last) / max(1, beyond(half)), 2)
        print(json.dumps({"rows": rows, "strangers": strangers, "kept": kept}))


if __name__ == "__main__":
    main()
