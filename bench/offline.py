#!/usr/bin/env python3
"""
Measures how many of LoCoMo's own observations the offline Observer notes, through OMG's real path.

    python bench/offline.py [--data locomo10.json] [--show CONVERSATION] [--links 50] [--json]

Every session is observed without a model (pending → observe → receipt → vault → index). An observation of the
data set counts as covered if a note cites the observation's message and has half of the observation's words, stop words
aside, in title, description or body. The ceiling is the same count with whole messages for notes: quotations cannot exceed
it. Then the data set's questions are asked of the vault, as bench/locomo.py does at its graph level.

Then a night without a model runs over each vault, and notes with a link to another note are counted, also in the vault of
the demo's conversation. Without --data only the demo's conversation is read. Maps do not count.

`--show` prints a conversation's notes, and `--links N` prints N links drawn at random, for a person to read: shares of
words do not show which notes are junk.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from locomo import Conversation, Score, measure, read

from omg.config import Config
from omg.demo import DEMO_SESSION, SAMPLE_FOLDER, demo_config
from omg.graph.graph import Graph
from omg.identity import Identity
from omg.importers import import_drops, read_drops
from omg.index.index import Index
from omg.memory import Memory
from omg.message.turn import Message, Turn
from omg.node.note import Node
from omg.observe.question import Observer
from omg.observe.run import observe_batch
from omg.reflect.run import reflect_graph
from omg.text.words import told_words
from omg.vault.vault import Vault

HALF = 0.5


@dataclass
class Tally:
    observations: int = 0
    covered: int = 0
    ceiling: int = 0
    messages: int = 0
    notes: int = 0
    cited: int = 0  # messages that some note cites
    types: Counter[str] = field(default_factory=Counter)


def remembered(conversation: Conversation, home: Path) -> Graph:
    """Observe the conversation session by session, and return what the vault holds."""
    vault = Vault(home / "vault", home / "written.jsonl")
    graph = Graph(Identity("agent:main:main", "dm", "main"), home, vault, Index(home / "index.db"))
    graph.index.sync(vault)
    for n, (session, messages) in enumerate(conversation.sessions.items()):
        name = f"{messages[0].timestamp}-{n:04d}"
        graph.put(name, Turn(session, session, "main", "turn", "", "", "", tuple(messages)))
        observe_batch(graph, graph.pending(), Observer(), Config(home=home))
    return graph


def notes_of(graph: Graph) -> list[Node]:
    return [graph.vault.read(e.path) for e in graph.index.entries(status=None) if e.path.startswith("nodes/")]


def count(conversation: Conversation, notes: list[Node], tally: Tally) -> None:
    said = {m.id: m for _, m in conversation.messages}
    tally.messages += len(said)
    tally.notes += len(notes)
    tally.types.update(n.type for n in notes)
    tally.cited += len({s.id for n in notes for s in n.sources})
    citing = defaultdict(list)
    for note in notes:
        for source in note.sources:
            citing[source.id].append(told_words(f"{note.title} {note.description} {note.body}"))
    for observations in conversation.observations.values():
        for text, about in observations:
            tally.observations += 1
            tally.covered += any(enough(text, words) for id in about for words in citing[id])
            tally.ceiling += any(enough(text, whole(said[id])) for id in about if id in said)


def enough(text: str, words: frozenset[str]) -> bool:
    wanted = told_words(text)
    return len(wanted & words) >= HALF * len(wanted)


def whole(message: Message) -> frozenset[str]:
    return told_words(f"{message.sender} {message.text}")


@dataclass
class Linked:
    """Of active notes, how many have a link to another note."""

    notes: int = 0
    in_prose: int = 0  # in the body
    at_all: int = 0  # in the body, or among the properties
    joined: int = 0  # at_all, and the notes that they link to

    def shares(self) -> dict[str, float]:
        counts = asdict(self)
        return {name: round(n / self.notes, 3) for name, n in counts.items() if name != "notes"}


def read_sample(folder: Path) -> tuple[Memory, Graph]:
    """Observe the demo's conversation without a model."""
    memory = Memory(demo_config(folder))
    import_drops(memory.intake, read_drops(sorted(SAMPLE_FOLDER.glob("*.jsonl")), None))
    memory.work(force=True)
    return memory, memory.find(DEMO_SESSION)


def after_a_night(graph: Graph) -> list[Node]:
    notes = notes_of(graph)
    last = max(s.timestamp for n in notes for s in n.sources)
    night = datetime.fromtimestamp(last / 1000, UTC) + timedelta(days=1)
    reflect_graph(graph, Observer(), Config(home=graph.folder), night)
    return notes_of(graph)


def count_links(graph: Graph, notes: list[Node], linked: Linked) -> list[str]:
    """Count the *notes* that have a link. Return the links as text to read."""
    active = {n.path: n for n in notes if n.status == "active"}
    joined, lines = set(), []
    for note in active.values():
        prose = {graph.index.resolve(link) for link in note.wikilinks}
        found = {p for p in (*prose, *map(graph.index.resolve, note.links)) if p in active and p != note.path}
        linked.in_prose += bool(found & prose)
        linked.at_all += bool(found)
        joined |= found | ({note.path} if found else set())
        for path in sorted(map(str, found)):
            where = "prose" if path in prose else "properties"
            lines.append(
                f"{note.title}: {note.body}\n    {where} → {active[path].title}: {active[path].body}"
            )
    linked.notes += len(active)
    linked.joined += len(joined)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--show", metavar="CONVERSATION", help="print this conversation's notes, such as conv-26"
    )
    parser.add_argument("--links", type=int, default=0, help="how many links to print")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    total, scores, seconds = Tally(), defaultdict(Score), 0.0
    linked, lines = {}, []
    with tempfile.TemporaryDirectory() as folder:
        memory, graph = read_sample(Path(folder))
        linked["the demo"] = Linked()
        lines += count_links(graph, after_a_night(graph), linked["the demo"])
        memory.close()
    for conversation in read(args.data) if args.data else ():
        if args.show not in (None, conversation.id):
            continue
        home = Path(tempfile.mkdtemp(prefix="offline-"))
        try:
            began = time.process_time()
            graph = remembered(conversation, home)
            seconds += time.process_time() - began
            notes = notes_of(graph)
            count(conversation, notes, total)
            measure(conversation, graph.index, scores, "graph")
            for note in notes if args.show else ():
                print(f"[{note.type}, {note.priority}] {note.title} — {note.description} ({note.event})")
            linked[conversation.id] = Linked()
            lines += count_links(graph, after_a_night(graph), linked[conversation.id])
            graph.index.close()
        finally:
            shutil.rmtree(home)
    print(*random.Random(1).sample(lines, min(args.links, len(lines))), sep="\n")
    figures = {
        "linked": {name: {"notes": n.notes, **n.shares()} for name, n in linked.items()},
        "scores": {name: score.figures() for name, score in scores.items()},
    }
    if args.data:
        figures["kept"] = asdict(total) | {
            "types": dict(total.types),
            "cpu_ms_a_message": round(seconds / total.messages * 1e3, 1),
        }
    print(json.dumps(figures, indent=1)) if args.json else print_figures(figures)


def print_figures(figures: dict[str, Any]) -> None:
    for name, n in figures["linked"].items():
        print(
            f"{name:10} {n['notes']} notes, linked to another in prose {n['in_prose']:.3f}, at all {n['at_all']:.3f}, "
            f"or linked from one {n['joined']:.3f}"
        )
    if kept := figures.get("kept"):
        print(
            f"{kept['messages']} messages → {kept['notes']} notes {kept['types']}, "
            f"{kept['cpu_ms_a_message']} ms of CPU a message, all in all"
        )
        n = kept["observations"]
        print(f"observations covered {kept['covered'] / n:.3f}, ceiling {kept['ceiling'] / n:.3f} (n={n})")
        print(f"messages cited by a note {kept['cited'] / kept['messages']:.3f}")
    for name, f in figures["scores"].items():
        print(
            f"{name:28} r@5 {f['r@5']:.3f}  r@10 {f['r@10']:.3f}  hit@5 {f['hit@5']:.3f}  hit@10 {f['hit@10']:.3f}  n={f['n']}"
        )


if __name__ == "__main__":
    main()
