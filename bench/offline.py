#!/usr/bin/env python3
"""
How much of what LoCoMo's own observers noted the offline Observer keeps, through the real path.

    python bench/offline.py --data locomo10.json [--show CONVERSATION]

Every session is observed without a model (pending → observe → receipt → vault → index). An observation of the
data set counts as covered if a note cites its message and has half of its words that say something, in title,
description or body. The ceiling is the same count for the messages themselves: what no extract can exceed without
paraphrasing. Then the data set's questions are asked of the vault, as bench/locomo.py does at its graph level.

`--show` prints a conversation's notes, for reading: a share of words says nothing about junk.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from locomo import Conversation, Score, measure, read

from omg.config.sections import Config
from omg.graph.graph import Graph
from omg.identity import Identity
from omg.index.index import Index
from omg.message.turn import Message, Turn
from omg.node.note import Node
from omg.observe.question import Observer
from omg.observe.run import observe_batch
from omg.offline.likeness import content_stems
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
    """The conversation's vault, observed session by session."""
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
            citing[source.id].append(content_stems(f"{note.title} {note.description} {note.body}"))
    for observations in conversation.observations.values():
        for text, about in observations:
            tally.observations += 1
            tally.covered += any(enough(text, words) for id in about for words in citing[id])
            tally.ceiling += any(enough(text, whole(said[id])) for id in about if id in said)


def enough(text: str, words: frozenset[str]) -> bool:
    wanted = content_stems(text)
    return len(wanted & words) >= HALF * len(wanted)


def whole(message: Message) -> frozenset[str]:
    return content_stems(f"{message.sender} {message.text}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--show", metavar="CONVERSATION", help="print this conversation's notes, such as conv-26"
    )
    args = parser.parse_args()
    total, scores, seconds = Tally(), defaultdict(Score), 0.0
    for conversation in read(args.data):
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
            graph.index.close()
        finally:
            shutil.rmtree(home)
    print(
        f"{total.messages} messages → {total.notes} notes {dict(total.types)}, {seconds / total.messages * 1e3:.1f} ms of CPU a message, all in all"
    )
    print(
        f"observations covered {total.covered / total.observations:.3f}, ceiling {total.ceiling / total.observations:.3f} (n={total.observations})"
    )
    print(f"messages cited by a note {total.cited / total.messages:.3f}")
    for name, score in scores.items():
        f = score.figures()
        print(
            f"{name:28} r@5 {f['r@5']:.3f}  r@10 {f['r@10']:.3f}  hit@5 {f['hit@5']:.3f}  hit@10 {f['hit@10']:.3f}  n={f['n']}"
        )


if __name__ == "__main__":
    main()
