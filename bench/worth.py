#!/usr/bin/env python3
"""
Estimates how many notes of a vault a person would keep: a model reads notes drawn at random, each with its messages.

    python bench/worth.py [HOME…] [--notes 100] [--reader MODEL] [--out DIR] [--api-base URL] [--seed N] [--json]

HOME is an `OMG_HOME` (in a run of qa.py: a folder below `vaults/`); without HOME, the rules observe the shipped sample.
From each home --notes active notes are drawn, of all its vaults. Without --reader the notes are printed, for a person to
read. A note is not worth keeping if it is trivial, outdated, a list of the assistant's, wrong, a twin of another drawn
note, or not about the person. Shares have 95 % intervals. Each note's result is kept as a file in --out, so a killed run
continues when started again.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# At the end: PYTHONPATH may name the checkout of another omg, to be measured with this bench.
sys.path += [str(ROOT), str(Path(__file__).resolve().parent)]

from questions.files import file_name, in_parallel, read, write
from questions.model import Model, Spent, ask, connections, json_in
from questions.report import interval

from omg.config import load_config
from omg.demo import run_demo
from omg.graph.graph import Graph
from omg.memory import Memory

REASONS = ("trivial", "no longer so", "the assistant's list", "wrong", "a twin", "not about them")
SHOWN = "type standing event loop created updated".split()
MESSAGE_CHARS = 1_500  # characters shown of each message
PROMPT = f"""\
A person has a vault of notes about their life and work, made from what they said to an assistant. You are shown one of
the notes, the messages that it cites, and the titles of other notes. Imagine you are the person the note is about, and
open the vault months later: would you keep this note, or delete it? Keep what says something true of you, your people,
your plans, likes, decisions and projects that you may want to look up. Delete what is {", ".join(REASONS)}.
Reply with one JSON object and nothing else: {{"keep": true or false, "why": "{'", "'.join(REASONS)}" or empty}}"""


def main() -> None:
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        homes = args.homes or [sample_home(Path(folder))]
        drawn = {str(home): draw(home, args.notes, args.seed) for home in homes}
    if not args.reader:
        for home, notes in drawn.items():
            print(f"# {home}: {len(notes)} notes\n", *(shown(note, ()) + "\n" for note in notes), sep="\n")
        report, troubles = {home: {"drawn": len(notes)} for home, notes in drawn.items()}, []
    else:
        out, model = args.out, Model(args.reader, args.api_base)
        cases = [(note, out, notes, model) for notes in drawn.values() for note in notes]
        random.Random(args.seed).shuffle(cases)
        with connections():
            troubles = in_parallel(lambda case: judge(*case), cases, args.parallel, "read")
        report = {home: figures(out, notes, args.seed) for home, notes in drawn.items()}
        for home, found in report.items():
            print(f"{home}: {found}")
    if args.json:
        print(json.dumps({"worth": report, "troubles": troubles}))
    sys.exit(bool(troubles))


def sample_home(folder: Path) -> Path:
    with redirect_stdout(io.StringIO()):
        run_demo(folder, offline=True)
    return folder / "home"


def draw(home: Path, n: int, seed: int) -> list[dict[str, Any]]:
    """Draw *n* active notes from all vaults of *home*, each with the messages that it cites."""
    with Memory(load_config(home, {}), embed=None) as memory:
        notes = [note for graph in memory.registry.graphs() for note in notes_of(graph, home)]
    return random.Random(seed).sample(notes, min(n, len(notes)))


def notes_of(graph: Graph, home: Path) -> list[dict[str, Any]]:
    notes = []
    for path in sorted(path for path in graph.vault.paths() if path.startswith("nodes/")):
        node = graph.vault.read(path)
        if node.status == "active":
            said = graph.index.messages([source.id for source in node.sources])
            head = {key: str(value) for key in SHOWN if (value := getattr(node, key, None))}
            notes.append(
                {
                    "id": file_name(f"{home} {graph.identity.key} {path}"),
                    "title": node.title,
                    "head": head,
                    "description": node.description,
                    "body": node.body.strip(),
                    "messages": [f"{m.role}: {m.text[:MESSAGE_CHARS]}" for m in said],
                }
            )
    return notes


def shown(note: dict[str, Any], others: Sequence[str]) -> str:
    head = ", ".join(f"{key} {value}" for key, value in note["head"].items())
    parts = [f"## {note['title']}", head, note["description"]]
    parts += [note["body"]] if note["body"] not in ("", note["description"]) else []
    parts += ["", "Messages:", *note["messages"]]
    return "\n".join([*parts, *(["", "Other notes:", *others] if others else [])])


def judge(note: dict[str, Any], out: Path, notes: Sequence[dict[str, Any]], model: Model) -> None:
    file = out / f"{note['id']}.json"
    if read(file):
        return
    others = [f"- {other['title']}: {other['description'][:200]}" for other in notes if other is not note]
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": shown(note, others)}]
    said = json_in(ask(model, messages, Spent()).text)
    why = str(said.get("why") or "")
    if not isinstance(said.get("keep"), bool) or (not said["keep"] and why not in REASONS):
        raise RuntimeError(f"{note['id']}: the reply says neither to keep it nor why not")
    write(file, {"keep": said["keep"], "why": "" if said["keep"] else why, "note": note})


def figures(out: Path, notes: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    made = [found for note in notes if (found := read(out / f"{note['id']}.json"))]
    if not made:
        return {"drawn": len(notes), "read": 0}
    values = [float(found["keep"]) for found in made]
    low, high = interval(values, seed)
    why = Counter(found["why"] for found in made if not found["keep"])
    return {
        "drawn": len(notes),
        "read": len(made),
        "kept": round(sum(values) / len(values), 3),
        "interval": [round(low, 3), round(high, 3)],
        "why not": {reason: round(n / len(made), 3) for reason, n in why.most_common()},
    }


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("homes", type=Path, nargs="*", metavar="HOME")
    add("--notes", type=int, default=100, help="of each home")
    add("--reader", default="", metavar="MODEL")
    add("--out", type=Path, default=Path("worth"), help="what the reader said is kept here")
    add("--api-base", default="", help="a server for the reader")
    add("--seed", type=int, default=1)
    add("--parallel", type=int, default=8)
    add("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
