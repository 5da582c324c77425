#!/usr/bin/env python3
"""
Measures how many facts in German, Spanish, Chinese and Japanese a search finds among 1,000 notes.

    python bench/languages.py [--embedder static|multilingual|none …] [--notes 1000] [--first 5] [--json]

One person's 24 facts (bench/talks.toml) are notes among remarks, in the words of the talk. A fact counts as found if its
note is among the --first hits for a prompt in the person's language. `own`: the notes are in this language. `english`: the
notes are in English. Printed are the hits of 12 facts on which no threshold was chosen ("kept"), of the 12 others, and of the
12 prompts that ask by the fact's own words.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from omg.embed import Embedder, load_embedder
from omg.index.index import Index
from omg.index.search import FOR_PROMPT
from omg.node.note import Node, render_node
from omg.vault.vault import Vault

TALKS = Path(__file__).with_name("talks.toml")
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def read_talks() -> dict[str, dict[str, list[str]]]:
    """Return language → the lists `said`, `asks`, `nothing` and `remarks`."""
    talks: Mapping[str, Mapping[str, str]] = tomllib.loads(TALKS.read_text(encoding="utf-8"))
    return {
        language: {
            "said": talk["said"].split("\n")[:-1],
            "asks": talk["asks"].split("\n")[:-1],
            "course": talk["course"].split("\n")[:-1],
            "nothing": talk["nothing"].split("\n")[:-1],
            "remarks": list(remarks(talk)),
        }
        for language, talk in talks.items()
    }


def remarks(talk: Mapping[str, str]) -> Iterator[str]:
    """Return every remark once, in the same order for each language."""
    chance = random.Random(3)
    forms, fills = talk["remarks"].split("\n")[:-1], {k: talk[k].split("|") for k in ("who", "where", "what")}
    seen = set()
    while len(seen) < 2_000:
        text = chance.choice(forms).format(**{k: chance.choice(v) for k, v in fills.items()})
        if text not in seen:
            seen.add(text)
            yield text


def index_of(notes: list[str], home: Path, embedder: Embedder | None) -> Index:
    """Return the index of a vault whose note n says *notes*[n]."""
    folder = home / "vault/nodes/fact"
    folder.mkdir(parents=True)
    for n, text in enumerate(notes):
        node = Node(f"nodes/fact/n{n}", f"omg/n{n}", text, "fact", created=NOW.date(), body=f"# {text}\n")
        (folder / f"n{n}.md").write_text(render_node(node), encoding="utf-8")
    index = Index(home / "index.db", embedder)
    index.sync(Vault(home / "vault"))
    while index.embed():
        pass
    return index


def found(notes: list[str], asks: list[str], embedder: Embedder | None, first: int) -> list[bool]:
    """Return for each of *asks* whether the note of the same number is among the *first* hits."""
    home = Path(tempfile.mkdtemp(prefix="languages-"))
    try:
        index = index_of(notes, home, embedder)
        hits = [[h.entry.path for h in index.search(ask, first, now=NOW, how=FOR_PROMPT)] for ask in asks]
        index.close()
        return [f"nodes/fact/n{n}" in paths for n, paths in enumerate(hits)]
    finally:
        shutil.rmtree(home)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", nargs="+", default=["static"])
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    args = parser.parse_args()
    talks, told = read_talks(), {}
    for name in args.embedder:
        embedder = load_embedder(name)
        for language, talk in talks.items():
            for notes in dict.fromkeys((language, "en")):
                at = time.process_time()
                vault = [*talks[notes]["said"], *talks[notes]["remarks"]][: args.notes]
                of = found(vault, talk["asks"], embedder, args.first)
                kind = "own" if notes == language else "english"
                kept, others, direct = sum(of[1::2]), sum(of[::2]), sum(of[::4]) + sum(of[1::4])
                told[f"{name} {language} {kind}"] = (kept, others)
                print(
                    f"{name:14} {language} {kind:8} kept {kept:2} of 12, others {others:2}; by its words {direct:2} of 12"
                    f"  ({time.process_time() - at:.1f} s)",
                    flush=True,
                )
    if args.json:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
