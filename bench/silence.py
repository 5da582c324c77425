#!/usr/bin/env python3
"""
Measures how many prompts get no memory if nothing fits them, and how many still get memory if something does.

    python bench/silence.py --talks [--embedder static|multilingual|none]
    python bench/silence.py --data locomo10.json [BEAM/7 longmemeval.json …] [--prompts 200] [--embedder static|none|minilm-int8]
        [--kept 0.985] [--json]

    fits       questions about the conversation that the graph was made of
    nothing    questions about other conversations' people; and general knowledge, coding, small talk (GENERAL)

With --talks: one person's life in five languages (bench/talks.toml), observed by the rules. omg/inject/decide.py
decides each prompt. Half 0 of the figures is the one on which thresholds were chosen, half 1 the other.

The notes are the offline Observer's, for LoCoMo also the data set's own observations (bench/locomo.py, graph level); the
archive is there, too. "Found" is what a prompt would be given without a threshold. For each conversation, thresholds are
chosen on all other conversations: the highest thresholds that keep the share --kept of what is found there. Printed are the
results of these thresholds, and of those in omg/inject/decide.py.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import languages
import locomo
from questions.data import Conversation, read_all

from omg.config import Config
from omg.embed import Embedder, load_embedder, static
from omg.graph.graph import Graph
from omg.identity import Identity
from omg.index.index import Index
from omg.index.search import parse_query
from omg.inject.decide import (
    FLOOR,
    SURE,
    SURE_OF_OWN,
    asks_of_memory,
    is_of_own,
    preview,
    relevant_hits,
    sureness,
)
from omg.inject.passages import find_said
from omg.message.turn import Message, Turn
from omg.observe.question import Observer
from omg.observe.run import observe_batch
from omg.text.words import told_words
from omg.vault.vault import Vault

ASKER = "agent:main:asks"
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)  # first day of the talks
SESSION_LINES = 8
SAID_SHARE = 0.6  # a line with this share of a fact's words says the fact
GENERAL_SHARE = 0.3  # share of GENERAL among the prompts that nothing fits
GENERAL = """\
Write a Python function that reverses a linked list|How do I center a div with flexbox?|What is the capital of Mongolia?
Explain how TCP slow start works|Translate 'good morning' into Japanese|Write a haiku about autumn leaves
What's the boiling point of ethanol?|Fix this regex: ^[a-z+$|Give me a SQL query that counts rows per month
Why is the sky blue?|Who wrote The Brothers Karamazov?|Convert 45 miles to kilometres|What does the Rust borrow checker do?
Draft a polite decline to a vendor's cold email|What is the difference between mitosis and meiosis?|How many moons does Jupiter have?
Refactor this class to use dependency injection|Explain the CAP theorem to me|What's a good synonym for 'important'?
Generate a random UUID for me|Summarise the plot of Macbeth|How does a heat pump work?|What year did the Berlin Wall fall?
Write unit tests for a stack implementation|Explain the offside rule|What is the derivative of x^3 sin x?
List the planets in order of size|How do vaccines work?|Set the docker container's memory limit to 2 GB
Show me how to grep recursively for a word|What is a monad?|Describe the water cycle|What's the tallest building in the world?
How do I exit vim?|Compare REST and GraphQL|How long do I boil an egg?|What's the square root of 1764?|Name three rivers in France
Write a limerick about a cat|What does HTTP status 418 mean?|Explain quantum entanglement simply|Parse this JSON and print the keys
How do I undo the last git commit?|How is cheese made?|What causes tides?|Please proofread: 'Their going to the store'
What is the GDP of Norway?|Rename all .txt files to .md in bash|what is 17% of 230|Tell me a joke|lol that's funny|hmm let me think
good night!|How are you today?|Thanks, that was very helpful|sounds like a plan|never mind|one moment please|can you repeat that?
continue|who are you?|what can you do?"""


@dataclass(frozen=True)
class Row:
    conversation: str
    fits: bool
    general: bool
    own: bool  # asked in the first person
    found: bool  # whether something is found without a threshold
    sure: float


def rows_of_graph(
    graph: Graph, name: str, now: datetime, prompts: Iterable[tuple[str, bool, bool]]
) -> list[Row]:
    """Return a row for each of *prompts*: (text, whether something fits, whether the text is of GENERAL)."""
    rows = []
    for text, fits, general in prompts:
        query = parse_query(text, now.date())
        asks = asks_of_memory(query)
        hits = relevant_hits(graph, query, now, 10, FLOOR) if asks else []
        said = find_said(graph, query, hits, session=ASKER, now=now) if asks else []
        index = graph.index
        sure = sureness(query, hits, said, index.knows, index.by_meaning) if asks else 0.0
        rows.append(Row(name, fits, general, is_of_own(query), bool(hits or said), sure))
    return rows


def threshold(rows: Sequence[Row], kept: float, otherwise: float) -> float:
    """Return the highest threshold that keeps the share *kept* of found rows; *otherwise* if there are too few rows."""
    found = sorted(row.sure for row in rows if row.fits and row.found)
    return found[int(len(found) * (1 - kept))] if len(found) >= 20 else otherwise


def figures(rows: Sequence[Row], answered: Callable[[Row], bool]) -> dict[str, float]:
    def share(of: Sequence[Row], silent: bool) -> float:
        return round(sum(answered(row) != silent for row in of) / max(1, len(of)), 3)

    nothing = [row for row in rows if not row.fits]
    return {
        "found of before": share([row for row in rows if row.fits and row.found], False),
        "silent": share(nothing, True),
        "silent, of others": share([row for row in nothing if not row.general], True),
        "silent, general": share([row for row in nothing if row.general], True),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--talks", action="store_true", help="own cases in five languages")
    parser.add_argument("--prompts", type=int, default=200, help="of either kind")
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--kept", type=float, default=0.985)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    args = parser.parse_args()
    chance, embedder = random.Random(args.seed), load_embedder(args.embedder)
    if args.talks:
        tell_talks(embedder)
        return
    conversations = read_all(args.data)
    observed = {c.id: c for file in args.data if file.is_file() for c in observations(file)}
    rows = []
    for c in conversations:
        asked = asked_of(c, conversations, args.prompts, chance)
        for told in [observed[c.id], None] if c.id in observed else [None]:
            rows += rows_of_conversation(c, told, embedder, asked)
    chosen = {}
    for name in {row.conversation for row in rows}:
        others = [row for row in rows if row.conversation != name]
        chosen[name] = (
            threshold([row for row in others if not row.own], args.kept, SURE),
            threshold([row for row in others if row.own], args.kept, SURE_OF_OWN),
        )
    told = {
        "left out": figures(rows, lambda row: row.found and row.sure >= chosen[row.conversation][row.own]),
        "sure.py": figures(rows, lambda row: row.found and row.sure >= (SURE, SURE_OF_OWN)[row.own]),
        "none": figures(rows, lambda row: row.found),
    }
    print(
        f"{sum(row.fits for row in rows)} prompts that something fits, {sum(not row.fits for row in rows)} that nothing fits"
    )
    print(
        f"thresholds, median of {len(chosen)}: {median(c[0] for c in chosen.values()):.3f}, of one's own {median(c[1] for c in chosen.values()):.3f}; sure.py: {SURE}, {SURE_OF_OWN}"
    )
    for name, figure in told.items():
        print(f"{name:10}", "  ".join(f"{what} {value:.3f}" for what, value in figure.items()))
    if args.json:
        print(json.dumps({"prompts": len(rows), "embedder": args.embedder, "thresholds": chosen, **told}))


def tell_talks(embedder: Embedder | None) -> None:
    for language, talk in languages.read_talks().items():
        home = Path(tempfile.mkdtemp(prefix="silence-"))
        graph = graph_of_talk(talk, home, embedder)
        given = {
            kind: [
                preview(graph, prompt, ASKER, BEGAN + timedelta(days=40), Config(home=home))
                for prompt in talk[kind]
            ]
            for kind in ("asks", "nothing")
        }
        tells = [says(fact, s.system + s.prompt) for fact, s in zip(talk["said"], given["asks"], strict=True)]
        for half in (0, 1):
            fits = sum(bool(s.prompt) for s in given["asks"][half::2])
            loud = sum(bool(s.prompt) for s in given["nothing"][half::2])
            count = len(given["nothing"][half::2])
            print(
                f"{language} {half}  given {fits:2} of {len(tells[half::2])}, with the fact {sum(tells[half::2]):2}"
                f"  silent {count - loud} of {count}  precision {fits / max(1, fits + loud):.2f}",
                flush=True,
            )
        graph.close()
        shutil.rmtree(home)


def graph_of_talk(talk: dict[str, list[str]], home: Path, embedder: Embedder | None) -> Graph:
    """Make a graph of the talk: eight remarks after each fact, one session of eight lines a day."""
    index = Index(home / "index.db", embedder)
    graph = Graph(
        Identity("agent:main:main", "dm", "main"), home, Vault(home / "vault", home / "written.jsonl"), index
    )
    index.sync(graph.vault)
    lines = [
        line for n, fact in enumerate(talk["said"]) for line in (fact, *talk["remarks"][8 * n : 8 * n + 8])
    ]
    for n in range(0, len(lines), SESSION_LINES):
        began = round((BEGAN + timedelta(days=n // SESSION_LINES)).timestamp() * 1000)
        said = tuple(
            Message(f"m{n + i}", "user", text, began + 60_000 * i)
            for i, text in enumerate(lines[n : n + SESSION_LINES])
        )
        graph.put(f"{began}-{n:04d}", Turn(f"s{n}", f"s{n}", "main", messages=said))
        observe_batch(graph, graph.pending(), Observer(), Config(home=home))
    while index.embed():
        pass
    return graph


def says(fact: str, text: str) -> bool:
    """Return whether a line of *text* has most words of *fact*."""
    words = told_words(fact)
    return any(len(words & told_words(line)) >= SAID_SHARE * len(words) for line in text.split("\n"))


def observations(file: Path) -> list[locomo.Conversation]:
    """Return LoCoMo's own observations; none for another data set."""
    raw = json.loads(file.read_text(encoding="utf-8")) if file.suffix == ".json" else None
    return list(locomo.read(file)) if isinstance(raw, list) and "observation" in raw[0] else []


def asked_of(
    conversation: Conversation, all: Sequence[Conversation], prompts: int, chance: random.Random
) -> list[tuple[str, bool, bool]]:
    """Return a conversation's share of *prompts*: (text, whether something fits, whether the text is of GENERAL)."""
    each = max(1, prompts // len(all))
    own = [q.text for q in conversation.questions if not q.abstain and q.category != "open-domain"]
    foreign = [q.text for c in all if c is not conversation for q in c.questions if not q.abstain]
    general = [line for line in GENERAL.replace("\n", "|").split("|") if line]
    talked = round(each * GENERAL_SHARE) if foreign else each
    return [
        *((text, True, False) for text in chance.sample(own, min(each, len(own)))),
        *((text, False, False) for text in chance.sample(foreign, min(each - talked, len(foreign)))),
        *((text, False, True) for text in chance.sample(general, min(talked, len(general)))),
    ]


def rows_of_conversation(
    conversation: Conversation,
    told: locomo.Conversation | None,
    embedder: Embedder | None,
    asked: Iterable[tuple[str, bool, bool]],
) -> list[Row]:
    """
    Return the rows of a graph of *conversation*. Its notes are the observations in *told*, or else the rules' notes.
    """
    home = Path(tempfile.mkdtemp(prefix="silence-"))
    who = Identity("agent:main:main", "dm", "main")
    try:
        index = (
            locomo.graph_level(told, home, embedder, static()) if told else Index(home / "index.db", embedder)
        )
        graph = Graph(who, home, Vault(home / "vault", home / "written.jsonl"), index)
        if told is None:
            observe_by_rules(graph, conversation)
        while index.embed():
            pass
        now = max(m.at for m in conversation.messages) + timedelta(days=1)
        rows = rows_of_graph(graph, conversation.id, now, asked)
        graph.close()
        return rows
    finally:
        shutil.rmtree(home)


def observe_by_rules(graph: Graph, conversation: Conversation) -> None:
    graph.index.sync(graph.vault)
    for n, session in enumerate(conversation.sessions):
        said = tuple(
            Message(m.id, m.role, m.text, round(m.at.timestamp() * 1000), sender=m.speaker)  # type: ignore[arg-type]
            for m in session.messages
        )
        graph.put(f"{said[0].timestamp}-{n:04d}", Turn(session.id, session.id, "main", messages=said))
        observe_batch(graph, graph.pending(), Observer(), Config(home=graph.folder))


if __name__ == "__main__":
    main()
