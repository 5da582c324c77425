#!/usr/bin/env python3
"""
Judges what a model makes of the situations in tests/corpora/situations.jsonl: do the notes say afterwards what they
must?

    python bench/situations.py --out DIR… [--observe MODEL] [--nights end] [--judge MODEL] [--api-base URL] [--only ID…] [--json]

Each situation is a home of its own, which begins with the situation's known notes; its sessions are captured and observed.
The judge sees the notes and the sentences that must or must not be true of the notes, but not which model wrote the notes:
`--stage judge` with the folders of several runs asks about all runs in one shuffled row. A situation counts 1 if all
its sentences are met, .5 if at least half of them are, else 0.

Each item is kept as a file in --out, so a killed run continues when started again. PYTHONPATH may name another
checkout, to measure its omg.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# At the end: PYTHONPATH may name the checkout of another omg, to be measured with this bench.
sys.path += [str(ROOT), str(ROOT / "tests")]

from questions.files import in_parallel, read, write
from questions.judge import points_in, shuffled
from questions.model import Model, Spent, ask, connections, json_in
from questions.vaults import Observing, commit, opened, reflect

from omg import Memory
from omg.graph.graph import Graph
from omg.identity import identity_of_session
from omg.journal import commit_receipt, new_receipt
from omg.memory import MAIN
from omg.node.note import Source
from omg.plan.drafts import Plan
from omg.plan.edits import Edit

SITUATIONS = ROOT / "tests" / "corpora" / "situations.jsonl"
# Of a note's properties
SHOWN = "type status standing event loop priority origin supersedes superseded_by links tags aliases".split()
JUDGE = """\
You are given what became of a conversation in a person's vault of notes, and numbered sentences that say how the vault
must be. Judge each by the notes alone: 1 if it is so, 0.5 if part of it is, 0 if it is not. Words need not be the same.
Reply with one JSON object and nothing else: {"points": [one number a sentence], "why": "what is missing, or empty"}"""


def main() -> None:
    args = arguments()
    rows = [json.loads(line) for line in args.corpus.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if not args.only or row["id"] in args.only]
    troubles: list[str] = []
    if args.stage in ("observe", "all"):
        for out in args.out:
            how = Observing(out / "vaults", args.observe, args.api_base, args.nights)
            troubles += in_parallel(
                lambda row, h=how, o=out: play(row, h, o), rows, args.parallel, "observed"
            )
    if args.stage in ("judge", "all"):
        model, cases = Model(args.judge, args.api_base), [(out, row) for out in args.out for row in rows]
        with connections():
            troubles += in_parallel(
                lambda case: judge(*case, model), shuffled(cases, args.seed), args.parallel, "judged"
            )
    report = {str(out): scores(out, rows) for out in args.out}
    for out, found in report.items():
        print(f"{out}: {found['sum']:g} of {found['judged']} judged, {found['notes']} notes, {found['omg']}")
        print(*(f"    {id} {score:g}" for id, score in found["less"].items()), sep="\n")
    if args.json:
        print(json.dumps({"situations": report, "troubles": troubles}))
    sys.exit(bool(troubles))


# --- playing


def play(row: Mapping[str, Any], how: Observing, out: Path) -> None:
    """Write the known notes, observe the situation session by session, and write the notes afterwards to *out*."""
    if read(file := out / "notes" / f"{row['id']}.json"):
        return
    if (home := how.home(row["id"])).exists():
        raise RuntimeError(f"{home} is left from an interrupted run; remove this folder")
    now = [at(row["sessions"][0][0]["at"])]
    with opened(row["id"], how, lambda: now[0]) as memory:
        graph = memory.graph(identity_of_session(MAIN))
        know(graph, row["known"])
        for session in row["sessions"]:
            now[0] = at(session[-1]["at"]) + timedelta(hours=1)
            memory.capture(map(entry, session), session=MAIN)
            if not row["together"] or session is row["sessions"][-1]:
                observe(memory)
        if how.nights == "end":
            now[0] += timedelta(hours=12)
            reflect(memory)
        write(file, {"omg": commit(), "notes": notes_of(graph)})


def know(graph: Graph, known: Sequence[Mapping[str, Any]]) -> None:
    """Write *known* as notes of the person's, each from a message of the note's day."""
    plan = Plan(graph, date.min)
    for n, note in enumerate(known):
        said = at(note["said"])
        values = {key: note[key] or "" for key in ("title", "description", "type", "body")}
        values |= {key: note[key] for key in ("event", "loop")} | {"origin": "user", "day": said.date()}
        values |= {key: True for key in {"standing"} & {f.name for f in fields(Edit)} if note.get(key)}
        source = Source(MAIN, f"before-{n}", int(said.timestamp() * 1000))
        linked = tuple(d.node.path for d in plan.drafts.values() if d.node.title in note.get("links", ()))
        plan.apply(Edit("create", **values, links=linked, sources=(source,)))
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", datetime.now(UTC), plan.changes()))


def observe(memory: Memory) -> None:
    if why := "; ".join(waiting["why"] for waiting in memory.observe()["waiting"]):
        raise RuntimeError(why)


def entry(said: Mapping[str, Any]) -> dict[str, Any]:
    calls = [{"id": f"{said['id']}-{n}", **call} for n, call in enumerate(said["calls"])]
    name = said["tool"] if said["role"] == "tool" else said["sender"]
    return {
        "role": said["role"],
        "content": said["text"],
        "timestamp": at(said["at"]),
        "id": said["id"],
        **({"name": name} if name else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def notes_of(graph: Graph) -> list[str]:
    """Return each note as title, non-empty properties and text, and then the page Now."""
    texts = []
    for path in sorted(path for path in graph.vault.paths() if path.startswith("nodes/")):
        node = graph.vault.read(path)
        values = {key: value for key in SHOWN if (value := getattr(node, key, None))}
        lines = [f"{key}: {', '.join(v) if isinstance(v, tuple | list) else v}" for key, v in values.items()]
        texts.append(
            "\n".join([f"## {node.title}", *lines, f"description: {node.description}", "", node.body])
        )
    return [*texts, f"## Now\n\n{graph.vault.read('now').body}"]


# --- judging


def judge(out: Path, row: Mapping[str, Any], model: Model) -> None:
    made, file = read(out / "notes" / f"{row['id']}.json"), out / "judged" / f"{row['id']}.json"
    if made is None:
        raise RuntimeError(f"{row['id']}: not observed into {out}; run --stage observe first")
    if read(file):
        return
    sentences = [*row["must"], *(f"Not so: {text}" for text in row["must_not"])]
    asked = "\n".join(f"{n}. {text}" for n, text in enumerate(sentences, 1))
    notes = "\n\n".join(made["notes"]) or "(none)"
    user = f"What it is about: {row['about']}\n\n# Sentences\n\n{asked}\n\n# The notes\n\n{notes}"
    messages = [{"role": "system", "content": JUDGE}, {"role": "user", "content": user}]
    said = json_in(ask(model, messages, Spent()).text)
    if (points := points_in(said.get("points"), len(sentences))) is None:
        raise RuntimeError(f"{row['id']}: no judgement in the judge's reply")
    write(file, {"points": points, "why": str(said.get("why") or ""), "sentences": sentences})


def scores(out: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    judged = {
        row["id"]: made["points"] for row in rows if (made := read(out / "judged" / f"{row['id']}.json"))
    }
    made = [made for row in rows if (made := read(out / "notes" / f"{row['id']}.json"))]
    by_id = {id: score(points) for id, points in judged.items()}
    return {
        "omg": " ".join(sorted({m["omg"] for m in made})),
        "judged": len(judged),
        "sum": sum(by_id.values()),
        "notes": sum(len(m["notes"]) - 1 for m in made),
        "less": {id: value for id, value in by_id.items() if value < 1},
    }


def score(points: Sequence[float]) -> float:
    return 1.0 if min(points) == 1 else 0.5 if sum(points) >= 0.5 * len(points) else 0.0


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        nargs="+",
        required=True,
        help="the folder that keeps everything; several folders for --stage judge",
    )
    add("--stage", choices=("observe", "judge", "report", "all"), default="all")
    add("--corpus", type=Path, default=SITUATIONS)
    add("--only", nargs="+", default=[], metavar="ID")
    add("--observe", default="offline", metavar="MODEL")
    add("--nights", choices=("none", "end"), default="none", help="`end`: one night after the last session")
    add("--judge", default="openai/strong", metavar="MODEL")
    add("--api-base", default="", help="a server for both models")
    add("--seed", type=int, default=1)
    add("--parallel", type=int, default=8)
    add("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
