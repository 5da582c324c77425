#!/usr/bin/env python3
"""
Measures how often prompts still get an outdated fact that changed without a correction ("I drive a Skoda", then "we
sold the car").

    python bench/stale.py [--between 0 40 400] [--embedder static|multilingual|none] [--contexts DIR] [--json]

Each case of tests/corpora/stale.jsonl is a home of its own: the old fact, talk about other things, then the change, all
observed by the rules. Three questions are asked: on the old state, on the new state, on a consequence. A slice (the memory
for one prompt) is

    told     the slice has the change
    alone    the slice has the old fact without the change, so a reader would believe the old fact
    silent   the slice has neither

--contexts: write each question with its slice to a file, for a reader.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from omg import Memory
from omg.embed import load_embedder

CASES = ROOT / "tests" / "corpora" / "stale.jsonl"
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
SUBJECTS = (
    "bread tomatoes Lisbon chess volcanoes violins glaciers sonnets bees tunnels ferries radios".split()
)
ASKED = (
    "Tell me something about {}.",
    "I read an article on {} this morning, quite long.",
    "How would you explain {} to a child?",
    "The documentary on {} was better than I thought.",
)
ANSWERED = "Here is a short overview of {}: where they come from, what they are good for, and what is often got wrong."
STATES = ("told", "alone", "silent")


def main() -> None:
    args = arguments()
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    report: dict[str, Counter[str]] = {}
    for between in args.between:
        for case in cases[: args.cases]:
            for n, (question, text) in enumerate(slices(case, between, args.embedder)):
                state = state_of(case, text)
                report.setdefault(f"{between}", Counter())[state] += 1
                if args.contexts:
                    args.contexts.mkdir(parents=True, exist_ok=True)
                    file = args.contexts / f"{case['id']}-{between}-{n}-{state}.md"
                    file.write_text(f"{text}\n\n---\n\n{question}\n", encoding="utf-8")
                elif state != "told":
                    print(f"    {between:4} {case['id']:10} {state:7} {question}")
    for between, counts in report.items():
        print(f"{between:>4} messages between: " + ", ".join(f"{s} {counts[s]}" for s in STATES))
    if args.json:
        print(
            json.dumps(
                {"stale": {between: {s: counts[s] for s in STATES} for between, counts in report.items()}}
            )
        )


def slices(case: dict[str, Any], between: int, embedder: str) -> Iterator[tuple[str, str]]:
    """Return each question of *case* with its slice, each asked in a new conversation."""
    with tempfile.TemporaryDirectory() as home:
        now = BEGAN + timedelta(days=60)
        with Memory(home, embed=load_embedder(embedder), clock=lambda: now) as memory:
            turns = [
                (BEGAN, case["old"], "Noted, thank you."),
                *talk(between),
                (now - timedelta(days=5), case["new"], "I see."),
            ]
            for n, (at, said, answer) in enumerate(turns):
                messages = [
                    {"role": "user", "content": said, "timestamp": at},
                    {"role": "assistant", "content": answer, "timestamp": at + timedelta(seconds=9)},
                ]
                memory.capture(messages, session=f"agent:main:main:thread:{n // 20}")
            memory.observe()
            for n, question in enumerate(case["questions"]):
                given = memory.inject(question, session=f"agent:main:main:thread:asks-{n}")
                yield question, f"{given.system}\n\n{given.prompt}"


def talk(messages: int) -> Iterator[tuple[datetime, str, str]]:
    for n in range(messages):
        subject = SUBJECTS[n % len(SUBJECTS)]
        yield (
            BEGAN + timedelta(hours=2 + n * 3),
            ASKED[n % len(ASKED)].format(subject),
            ANSWERED.format(subject),
        )


def state_of(case: dict[str, Any], text: str) -> str:
    if case["now"].lower() in text.lower():
        return "told"
    return "alone" if case["was"].lower() in text.lower() else "silent"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--between", type=int, nargs="+", default=[0, 40, 400])
    parser.add_argument("--cases", type=int, help="only the first so many cases")
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--contexts", type=Path)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
