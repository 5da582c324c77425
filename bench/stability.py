#!/usr/bin/env python3
"""
Measures how often the text `system`, which each prompt of a session gets, changes during the sample conversation.

    python bench/stability.py [--observer offline] [--embedder static] [--json]

Each prompt gets its memory at the time when it was said. Then its turn is taken in, and observed if due; at the end of each
rest (`quiet_after`) the clock ticks as the daemon's would. A prompt is *warm* if the provider's cache still has the
session's last prompt (less than `activate_after_idle` ago): only then does a change of `system` cost anything. The hook's
wait is the time to build the memory and to save the state.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import omg
from omg.config import Config, Observation, Time
from omg.embed import load_embedder
from omg.graph.state import write_private
from omg.importers import read_drops
from omg.inject.decide import hook_result
from omg.memory import Memory
from omg.message.drop import clean_entries
from omg.node.note import TYPES
from omg.text.tokens import count_tokens
from omg.worker.events import read_events

Turn = tuple[str, str, list[Any]]  # session, prompt, entries


def turns() -> list[Turn]:
    """Return every turn of the sample: a person's message, and all up to the next message of a person."""
    sample = sorted((Path(omg.__file__).parent / "sample").glob("*.jsonl"))
    found: list[Turn] = []
    for drop in read_drops(sample, None):
        for entry in drop["entries"]:
            said = [m for m in clean_entries([entry]) if m.role == "user"]
            if said:
                found.append((drop["sessionKey"], said[0].text, [entry]))
            elif found and found[-1][0] == drop["sessionKey"]:
                found[-1][2].append(entry)
    return sorted(found, key=lambda turn: at(turn[2][0]))


def at(entry: Any) -> datetime:
    return datetime.fromtimestamp(entry["message"]["timestamp"] / 1000, UTC)


def replay(home: Memory, clock: list[datetime], options: Observation, most: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    before: dict[str, tuple[str, datetime]] = {}
    raw = 0
    for n, (session, prompt, entries) in enumerate(turns()[:most]):
        rest = clock[0] + timedelta(seconds=float(options.quiet_after or 0) + 1)
        if n and at(entries[0]) > rest:
            clock[0] = rest
            home.work()
        clock[0] = at(entries[0])
        who = home.registry.identity_of(session)
        assert who is not None
        graph = home.graph(who)
        started = time.perf_counter()
        given = hook_result(graph, {"sessionKey": session, "prompt": prompt}, clock[0], home.config)
        waited = (time.perf_counter() - started) * 1000
        system = given.get("appendSystemContext", "")
        last, then = before.get(session, ("", datetime.min.replace(tzinfo=UTC)))
        warm = (clock[0] - then).total_seconds() < float(options.activate_after_idle or 1e9)
        tokens = count_tokens(system) + count_tokens(given.get("prependContext", ""))
        rows.append({"same": system == last, "warm": warm, "tokens": tokens, "raw": raw, "ms": waited})
        before[session] = (system, clock[0])
        drop = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": session, "entries": entries}
        raw += sum(m.tokens for m in clean_entries(entries))
        clock[0] = max(clock[0], at(entries[-1]))
        name = f"{round(clock[0].timestamp() * 1000):015d}-{n}.json"
        write_private(home.folder / "spool" / name, json.dumps(drop))
        home.work()
        graph.index.embed()
    return figures(rows, home, raw)


def figures(rows: list[dict[str, Any]], home: Memory, raw: int) -> dict[str, Any]:
    first, warm = rows[0], [r for r in rows[1:] if r["warm"]]
    graph = home.find()
    notes = [graph.vault.read(e.path) for e in graph.index.entries(status=None) if e.type in TYPES]
    note_tokens = sum(count_tokens(f"{n.description} {n.body}") for n in notes)
    ends = [e for e in read_events(home.folder) if e["event"] == "observation_end"]
    times = sorted(r["ms"] for r in rows)
    tokens = [r["tokens"] for r in rows if r is not first]
    return {
        "prompts": len(rows),
        "same_all": round(sum(r["same"] for r in rows[1:]) / len(rows[1:]), 3),
        "warm": len(warm),
        "same_warm": round(sum(r["same"] for r in warm) / len(warm), 3),
        "tokens_mean": round(sum(tokens) / len(tokens)),
        "tokens_max": max(tokens),
        "raw_tokens": raw,
        "last_slice_to_raw": round(raw / max(1, rows[-1]["tokens"]), 1),
        "notes": len(notes),
        "note_tokens": note_tokens,
        "compression": round(raw / max(1, note_tokens), 1),
        "observations": len(ends),
        "activations": 1 + sum(not r["same"] for r in rows[1:]),
        "hook_ms_p50": round(times[len(times) // 2], 1),
        "hook_ms_p95": round(times[int(len(times) * 0.95)], 1),
        "hook_ms_max": round(times[-1], 1),
    }


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--observer", default="offline")
    args.add_argument("--embedder", default="static")
    args.add_argument("--turns", type=int, default=10_000, help="how many of the sample's turns, at most")
    args.add_argument("--json", action="store_true")
    given = args.parse_args()
    options = Observation(model=given.observer)
    clock = [datetime(2026, 2, 1, tzinfo=UTC)]
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        config = Config(home=Path(folder), observation=options, time=Time(zone="Europe/Berlin"))
        home = Memory(config, embed=load_embedder(given.embedder), clock=lambda: clock[0])
        found = replay(home, clock, options, given.turns)
        home.close()
    print(json.dumps(found) if given.json else "\n".join(f"{k:18} {v}" for k, v in found.items()))


if __name__ == "__main__":
    main()
