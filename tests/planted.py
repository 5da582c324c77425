"""
A vault with known cases in it, and a model that sees them: for the Reflector's tests and its benchmark.

Contradictions and repetitions come in pairs whose lines carry a word of their own; the model, `Scripted`,
recognises pairs by it, answers in either direction, and cannot know anything else.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omg.config import Config
from omg.graph.graph import Graph
from omg.llm.replies import ModelQuestion, ModelReply
from omg.memory import Memory
from omg.node.note import Node, Source, render_node

MONDAY = dt.date(2026, 1, 5)
NOW = dt.datetime(2026, 4, 20, 4, 10, tzinfo=dt.UTC)
OWNER = "agent:main:main"

# Words that sound like something and mean nothing: no two of them share a stem.
STARTS = "bra cle dro fli gru hal jor kem lun mis nor pel quo rin sto".split()
ENDS = "bin dax fen gol kip lom mur nex pod tav vor wim zen".split()
WORDS = tuple(s + e for e in ENDS for s in STARTS)
PLACES = ("Lisbon", "Porto", "Faro", "Evora", "Braga", "Aveiro", "Tomar", "Sintra")
DOINGS = (
    "walked along the river with Tomas and talked about the {word} plan until it was dark",
    "repaired the {word} in the cellar, which took all afternoon and two trips to the shop",
    "had a long call with the {word} team and agreed to send the figures by Friday",
    "cooked dinner for six people and tried the {word} recipe for the first time",
)


@dataclass(slots=True)
class Planted:
    contradictions: list[tuple[str, str]] = field(default_factory=list)  # (older, newer)
    repeats: list[tuple[str, str]] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)  # notes that others link to
    linkers: list[str] = field(default_factory=list)
    episodes: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)  # open, past their day and over


def home_at(folder: Path, **reflection: Any) -> Memory:
    return Memory(
        Config(home=folder, reflection=reflection, time={"zone": "UTC"}), clock=lambda: NOW, embed=None
    )


def graph_of(home: Memory) -> Graph:
    who = home.registry.identity_of(OWNER)
    assert who is not None
    return home.graph(who)


def ms(day: dt.date, hour: int = 12) -> int:
    return int(dt.datetime(day.year, day.month, day.day, hour, tzinfo=dt.UTC).timestamp() * 1000)


def note(path: str, description: str, day: dt.date, **more: Any) -> Node:
    """A note as the Observer writes them, said on *day*."""
    kind = path.split("/")[1]
    homes = {"identity": "mocs/moc-identity"}
    return Node(
        path=path,
        id="omg/" + path.removeprefix("nodes/"),
        description=description,
        type=kind,
        created=more.pop("created", day),
        updated=day,
        scope="dm",
        identity=OWNER,
        origin=more.pop("origin", "user"),
        sources=more.pop("sources", (Source(OWNER, f"m-{path.rpartition('/')[2]}", ms(day)),)),
        links=(homes.get(kind, f"mocs/moc-{kind}s"), *more.pop("links", ())),
        body=more.pop("body", description),
        **more,
    )


# They say the same in other words.
KEYS = (
    note("nodes/fact/key", "The key hangs behind the cellar door.", MONDAY),
    note("nodes/fact/spare", "Behind the cellar door hangs the key.", MONDAY),
)


def put(graph: Graph, *nodes: Node) -> None:
    """Write *nodes* as ours. Without `Vault.write` and its fsyncs, which a benchmark of 10,000 notes would feel."""
    for node in nodes:
        file = graph.vault.file(node.path)
        file.parent.mkdir(parents=True, exist_ok=True)
        data = render_node(node).encode()
        file.write_bytes(data)
        graph.vault.remember(node.path, data)


def plant(
    graph: Graph, *, pairs: int = 50, targets: int = 20, episodes: int = 200, weeks: int = 12, loops: int = 0
) -> Planted:
    """Write the cases; nobody's hand is in them yet."""
    planted, nodes = Planted(), []
    words = iter(WORDS)
    for n in range(pairs):
        word, place = next(words), PLACES[n % len(PLACES)]
        early, late = MONDAY + dt.timedelta(n), MONDAY + dt.timedelta(n + 30)
        kind = ("preference", "fact")[n % 2]
        older, newer = (f"nodes/{kind}/{word}-{x}" for x in (("a", "b") if n % 3 else ("b", "a")))
        nodes.append(note(older, f"Ines goes to {place} for her {word} course.", early, priority="high"))
        nodes.append(note(newer, f"Ines takes the {word} course at home now, not in {place}.", late))
        planted.contradictions.append((older, newer))
    for n in range(pairs):
        word = next(words)
        one, two = f"nodes/fact/{word}-1", f"nodes/fact/{word}-2"
        nodes.append(note(one, f"The {word} stands in the cellar behind the door.", MONDAY + dt.timedelta(n)))
        nodes.append(note(two, f"Behind the cellar door stands the {word}.", MONDAY + dt.timedelta(n + 9)))
        planted.repeats.append((one, two))
    for _ in range(targets):
        word = next(words)
        target, linker = f"nodes/project/{word}", f"nodes/decision/{word}-choice"
        nodes.append(note(target, f"{word.title()} is a project of Ines and Tomas.", MONDAY))
        body = f"Ines chose green for [[{target}|{word}]].\n\nSee [[{target}#Plans]] too."
        nodes.append(note(linker, f"Ines chose green for {word}.", MONDAY, links=(target,), body=body))
        planted.targets.append(target)
        planted.linkers.append(linker)
    for n in range(episodes):
        day = MONDAY + dt.timedelta(n * weeks * 7 // episodes)
        doing = DOINGS[n % len(DOINGS)].format(word=WORDS[-1 - n % 40])
        path = f"nodes/episode/{day}-{n}"
        nodes.append(note(path, f"On {day} Ines {doing} ({n}).", day, event=str(day)))
        planted.episodes.append(path)
    for n in range(episodes // 20):
        day = MONDAY + dt.timedelta(n * weeks * 7 // (episodes // 20))
        path = f"nodes/fact/invoice-{n}"
        nodes.append(note(path, f"Invoice {1000 + n} was paid on {day}.", day, event=str(day)))
        planted.facts.append(path)
    for n in range(loops):
        word, day = next(words), MONDAY + dt.timedelta(n)
        path = f"nodes/decision/{word}-visit"
        line = f"Ines goes to see the {word} exhibition on {day}."
        nodes.append(note(path, line, day, loop="open", event=str(day)))
        planted.loops.append(path)
    put(graph, *nodes)
    return planted


def edit(graph: Graph, path: str, line: str, day: dt.date | None = None) -> bytes:
    """A person adds *line* to the prose of *path*, on *day* if it is not now; returns the bytes they saved."""
    file = graph.vault.file(path)
    text = file.read_text(encoding="utf-8")
    head, mark, history = text.partition("\n## History\n")
    saved = f"{head.rstrip()}\n\n{line}\n{mark}{history}".encode()
    file.write_bytes(saved)
    if day:
        os.utime(file, (ms(day) / 1000, ms(day) / 1000))
    return saved


@dataclass(slots=True)
class Scripted:
    """
    An Ask. *backward*: it gives pairs the wrong way round. *history* holds what it was asked.

    Of a week it says a line for each five notes; of what it was not told to see, nothing.
    """

    backward: bool = False
    history: list[ModelQuestion] = field(default_factory=list)

    def __call__(self, question: ModelQuestion) -> ModelReply:
        self.history.append(question)
        text = json.dumps(self.answer(question.user))
        return ModelReply(text, "scripted", len(question.user) // 4, len(text) // 4)

    def answer(self, user: str) -> dict[str, Any]:
        return self.looked_back(user) if "# Length" in user else self.judged(user)

    def judged(self, user: str) -> dict[str, Any]:
        parts = re.split(r"^# (g\d+): .*$", user, flags=re.M)[1:]
        return {
            "groups": [
                {"group": g, "edits": self.edits(of)} for g, of in zip(*[iter(parts)] * 2, strict=True)
            ]
        }

    def edits(self, group: str) -> list[dict[str, str]]:
        by_word: dict[tuple[str, str], list[str]] = {}
        for handle, said in re.findall(r"^(n\d+) \[[^\]]*\] [^:]*: (.*)$", group, re.M):
            for word in WORDS:
                if re.search(rf"\b{word}\b", said):
                    op = "supersede" if "course" in said else "merge" if "cellar" in said else ""
                    by_word.setdefault((op, word), []).append(handle)
        edits = []
        for (op, _), handles in by_word.items():
            if op and len(handles) == 2:
                node, other = reversed(handles) if self.backward else handles
                edits.append(
                    {"op": op, "node": node, "other": other, "description": "", "why": "the same subject"}
                )
        late = re.findall(r"^(n\d+) \[[^\]]*loop open\][^:]*: .*exhibition", group, re.M)
        return edits + [{"op": "close", "node": handle, "why": "the day of it is over"} for handle in late]

    def looked_back(self, user: str) -> dict[str, Any]:
        handles = re.findall(r"^(e\d+) ", user, re.M)
        claims = [
            {"text": f"Ines was busy with {len(handles[n : n + 5])} things.", "notes": handles[n : n + 5]}
            for n in range(0, len(handles), 5)
        ]
        return {"description": f"{len(handles)} things happened.", "claims": claims}


def snapshot(graph: Graph) -> dict[str, bytes]:
    """Every file of the vault, less what a write leaves behind for a moment."""
    graph.vault.settle(0)
    root = graph.vault.root
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
