#!/usr/bin/env python3
"""
Measures how much of the evidence for LoCoMo's questions a search finds, with OMG's own vault, index and search.

    python bench/locomo.py --data locomo10.json --embedder none|static|minilm [--level turn|graph] [--json]

    turn    each message is a note. Measures search by words, by meaning and by neighbouring messages
    graph   notes from the data set's own `observation` lists, written by a scripted Observer through the real
            path (pending → observe → receipt → vault → index); a note reaches the messages in its `sources`

The data set (https://github.com/snap-research/locomo, CC BY-NC) is not part of this repository. Recall is the share of
a question's evidence among the first k notes; a hit is any evidence among them. Adversarial questions (category 5) have
no evidence and are left out. A plain FTS5 table over the same texts is measured in the same run.

At graph level no observation cites some of the evidence. So three counts are given: over all questions; over questions
with evidence that some note cites; and with the messages that `omg show` prints beside a source.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from omg.config import Config
from omg.embed import Embedder, load_embedder, static
from omg.graph.graph import Graph
from omg.identity import Identity
from omg.index.index import Index
from omg.index.search import How
from omg.index.store import terms_of
from omg.llm.replies import ModelQuestion, ModelReply
from omg.message.turn import Message, Turn, message_to_json
from omg.node.note import Node, Source, render_node
from omg.observe.question import Observer
from omg.observe.run import observe_batch
from omg.vault.vault import Vault

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
SHOWN = 1  # messages that `omg show` prints on each side of a source
LINKS = 4  # how many of the notes shown the scripted Observer links a new note to


# --- the data set


@dataclass(frozen=True)
class Asked:
    text: str
    evidence: frozenset[str]
    category: int


@dataclass(frozen=True)
class Conversation:
    id: str
    sessions: dict[str, list[Message]]
    observations: dict[str, list[tuple[str, list[str]]]]  # session → (text, ids of the messages it is about)
    questions: list[Asked]

    @property
    def messages(self) -> list[tuple[str, Message]]:
        return [(session, m) for session, messages in self.sessions.items() for m in messages]


def read(file: Path) -> Iterator[Conversation]:
    for raw in json.loads(file.read_text(encoding="utf-8")):
        talk, sessions, observations = raw["conversation"], {}, {}
        for n in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key)):
            began = datetime.strptime(talk[f"session_{n}_date_time"], "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            )
            sessions[f"session_{n}"] = [
                message(t, began + timedelta(minutes=i)) for i, t in enumerate(talk[f"session_{n}"])
            ]
            lists = raw["observation"].get(f"session_{n}_observation", {})
            observations[f"session_{n}"] = [
                (text, ids(about)) for who in lists.values() for text, about in who
            ]
        there = {m.id for messages in sessions.values() for m in messages}
        questions = [
            Asked(q["question"], found, q["category"])
            for q in raw["qa"]
            if q["category"] in CATEGORIES and (found := frozenset(ids(q.get("evidence", []))) & there)
        ]
        yield Conversation(raw["sample_id"], sessions, observations, questions)


def ids(value: Any) -> list[str]:
    """Return the message ids in a list or a text of the data set ("D8:6; D9:17")."""
    return re.findall(r"D\d+:\d+", json.dumps(value))


def message(turn: dict[str, Any], at: datetime) -> Message:
    text = turn["text"] + (f" [shares image: {turn['blip_caption']}]" if turn.get("blip_caption") else "")
    return Message(turn["dia_id"], "user", text, round(at.timestamp() * 1000), sender=turn["speaker"])


# --- two ways to a vault


def turn_level(conversation: Conversation, home: Path, embedder: Embedder | None) -> Index:
    """Make a vault with a note for each message, and an archive of the messages."""
    for folder in ("vault/nodes/episode", "archive"):
        (home / folder).mkdir(parents=True)
    lines = [message_to_json(m, session) for session, m in conversation.messages]
    (home / "archive/all.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for session, m in conversation.messages:
        path = f"nodes/episode/{m.id.replace(':', '-').lower()}"
        text = f"{m.sender}: {m.text}"
        day = datetime.fromtimestamp(m.timestamp / 1000, UTC).date()
        source = Source(session, m.id, m.timestamp)
        node = Node(
            path,
            f"omg/{path[6:]}",
            " ".join(text.split()),
            "episode",
            created=day,
            sources=(source,),
            body=f"# {m.sender}\n\n{text}",
        )
        (home / "vault" / f"{path}.md").write_text(render_node(node), encoding="utf-8")
    index = Index(home / "index.db", embedder)
    index.archive(home / "archive")
    index.sync(Vault(home / "vault"))
    return index


def graph_level(conversation: Conversation, home: Path, embedder: Embedder | None, judge: Embedder) -> Index:
    """
    Make a vault of the observations, as an Observer would write them session by session, linked to the notes shown.
    """
    index = Index(home / "index.db", embedder)
    vault = Vault(home / "vault", home / "written.jsonl")
    graph = Graph(Identity("agent:main:main", "dm", "main"), home, vault, index)
    index.sync(vault)
    for n, (session, messages) in enumerate(conversation.sessions.items()):
        name = f"{messages[0].timestamp}-{n:04d}"
        graph.put(name, Turn(session, session, "main", "turn", "", "", "", tuple(messages)))
        observer = Observer(scripted(conversation.observations[session], messages, judge), "scripted")
        observe_batch(graph, graph.pending(), observer, Config(home=home))
    return index


def scripted(
    observations: list[tuple[str, list[str]]], messages: list[Message], judge: Embedder
) -> Callable[[ModelQuestion], ModelReply]:
    """
    Return an Observer that writes the observations of the data set.

    The Observer links each new note to the LINKS most similar of the notes shown, as a model would. *judge* embeds the
    notes.
    """
    handles = {m.id: f"m{n}" for n, m in enumerate(messages, 1)}

    def ask(question: ModelQuestion) -> ModelReply:
        if question.purpose == "check":
            claims = json.loads(question.user)["claims"]
            return ModelReply(json.dumps({"verdicts": dict.fromkeys(claims, "supported")}), "scripted", 0, 0)
        shown = re.findall(r"^(n\d+) \[[^\]]*\] (.*)$", question.user, re.M)
        near = (
            judge([text for text, _ in observations]) @ judge([line for _, line in shown]).T
            if shown and observations
            else None
        )
        edits = []
        for i, (text, about) in enumerate(observations):
            best = [] if near is None else sorted(range(len(shown)), key=lambda j: -near[i][j])[:LINKS]
            links = [shown[j][0] for j in best]
            cited = [handles[id] for id in about if id in handles]
            edits.append(
                {
                    "op": "create",
                    "type": "fact",
                    "title": title(text),
                    "description": text,
                    "priority": "medium",
                    "links": links,
                    "sources": cited,
                }
            )
        return ModelReply(json.dumps({"edits": edits}), "scripted", 0, 0, 0.0)

    return ask


def title(text: str) -> str:
    """Return the first six words that are no stop words, as the name of a note's file."""
    return " ".join([term.shown for term in terms_of(text) if " " not in term.match][:6])


# --- measuring


@dataclass
class Score:
    # category, r@5, r@10, hit@5, hit@10
    rows: list[tuple[int, float, float, float, float]] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)

    def add(self, asked: Asked, found: Sequence[frozenset[str]]) -> None:
        def recall(k: int) -> float:
            return len(asked.evidence & frozenset().union(*found[:k])) / len(asked.evidence)

        five, ten = recall(5), recall(10)
        self.rows.append((asked.category, five, ten, float(five > 0), float(ten > 0)))

    def figures(self, category: int | None = None) -> dict[str, float]:
        rows = [row[1:] for row in self.rows if category in (None, row[0])]
        means = (
            [round(sum(column) / len(rows), 4) for column in zip(*rows, strict=True)] if rows else [0.0] * 4
        )
        return {**dict(zip(("r@5", "r@10", "hit@5", "hit@10"), means, strict=True)), "n": len(rows)}

    def all(self) -> dict[str, Any]:
        out: dict[str, Any] = {**self.figures(), **{name: self.figures(n) for n, name in CATEGORIES.items()}}
        if self.ms:
            times = sorted(self.ms)
            out |= {
                "p50_ms": round(times[len(times) // 2], 2),
                "p95_ms": round(times[int(len(times) * 0.95)], 2),
            }
        return out


class Plain:
    """The baseline: an FTS5 table of the texts, asked for any word of the question, ranked by plain bm25."""

    def __init__(self, texts: Sequence[tuple[str, frozenset[str]]], stop_words: bool) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create virtual table plain using fts5(text, tokenize='porter unicode61')")
        self.db.executemany("insert into plain values (?)", [(text,) for text, _ in texts])
        self.reach, self.stop_words = [reach for _, reach in texts], stop_words

    def search(self, text: str, k: int) -> list[frozenset[str]]:
        words = (
            [f'"{w}"' for w in re.findall(r"\w+", text)]
            if self.stop_words
            else [t.match for t in terms_of(text)]
        )
        if not words:
            return []
        rows = self.db.execute(
            "select rowid from plain where plain match ? order by bm25(plain) limit ?",
            (" OR ".join(words), k),
        )
        return [self.reach[rowid - 1] for (rowid,) in rows]


def measure(conversation: Conversation, index: Index, scores: dict[str, Score], level: str) -> None:
    now = datetime.fromtimestamp(conversation.messages[-1][1].timestamp / 1000, UTC) + timedelta(days=1)
    order = {session: [m.id for m in messages] for session, messages in conversation.sessions.items()}
    entries = index.entries()
    reach = {e.path: frozenset(s.id for s in index.sources(e.path)) for e in entries}
    cited = frozenset().union(*reach.values())
    beside = {path: frozenset(id for m in ids for id in neighbours(order, m)) for path, ids in reach.items()}
    texts = [(e.description, reach[e.path]) for e in entries if reach[e.path]]
    plain, plain_stop = Plain(texts, True), Plain(texts, False)
    for asked in conversation.questions:
        scores["FTS5, plain"].add(asked, plain.search(asked.text, 10))
        scores["FTS5, no stop words"].add(asked, plain_stop.search(asked.text, 10))
        for walk in (True, False):
            name = "omg" if walk else "omg, no walk"
            began = time.perf_counter()
            found = [hit.entry.path for hit in index.search(asked.text, 10, now=now, how=How(walk=walk))]
            scores[name].ms.append((time.perf_counter() - began) * 1e3)
            scores[name].add(asked, [reach[path] for path in found])
            if level == "graph":
                if asked.evidence & cited:
                    scores[f"{name}, evidence cited"].add(asked, [reach[path] for path in found])
                scores[f"{name}, with neighbours"].add(asked, [beside[path] for path in found])


def neighbours(order: dict[str, list[str]], id: str) -> list[str]:
    for ids_ in order.values():
        if id in ids_:
            at = ids_.index(id)
            return ids_[max(0, at - SHOWN) : at + SHOWN + 1]
    return [id]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", choices=("none", "static", "minilm"), default="none")
    parser.add_argument("--level", choices=("turn", "graph"), default="turn")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    args = parser.parse_args()
    embedder = load_embedder(args.embedder)
    judge = static()
    scores: dict[str, Score] = defaultdict(Score)
    each: dict[str, float] = {}
    notes, began = 0, time.process_time()
    for conversation in read(args.data):
        home = Path(tempfile.mkdtemp(prefix="locomo-"))
        try:
            index = (
                turn_level(conversation, home, embedder)
                if args.level == "turn"
                else graph_level(conversation, home, embedder, judge)
            )
            while index.embed():
                pass
            before = len(scores["omg"].rows)
            measure(conversation, index, scores, args.level)
            rows = scores["omg"].rows[before:]
            each[conversation.id] = round(sum(row[2] for row in rows) / len(rows), 4)
            notes += len(index.entries())
            index.close()
        finally:
            shutil.rmtree(home)
    print(
        f"LoCoMo, {args.level} level, embedder {args.embedder}: {notes} notes, {time.process_time() - began:.0f} s of CPU"
    )
    print(f"{'':32}  r@5   r@10  hit@5 hit@10 | r@10 (hit@10) " + ", ".join(CATEGORIES.values()))
    for name, score in scores.items():
        f = score.figures()
        parts = [f"{c['r@10']:.3f} ({c['hit@10']:.2f})" for c in map(score.figures, CATEGORIES)]
        print(
            f"{name:32} {f['r@5']:.3f} {f['r@10']:.3f} {f['hit@5']:.3f} {f['hit@10']:.3f}  | "
            + "  ".join(parts)
            + f"  n={f['n']}"
        )
    if args.json:
        print(
            json.dumps(
                {
                    "level": args.level,
                    "embedder": args.embedder,
                    "notes": notes,
                    "r@10 by conversation": each,
                    **{n: s.all() for n, s in scores.items()},
                }
            )
        )


if __name__ == "__main__":
    main()
