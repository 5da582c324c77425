"""A talk of two days with recorded requests and replies, for bench/replay.py and bench/fidelity.py."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

SAID = [
    ("2026-03-04T09:00:00", "user", "I moved to Oslo in March 2024, and I keep a grey cat called Miso."),
    ("2026-03-04T09:01:00", "assistant", "Three ramen places in Oslo: Kado, Menya Jiro and Hana."),
    ("2026-03-04T09:02:00", "user", "I have to bring back the library books by 2026-03-10."),
    ("2026-03-30T10:00:00", "user", "I moved from Oslo to Bergen last week, with Miso."),
    ("2026-03-30T10:01:00", "assistant", "Good luck in Bergen."),
]
NOW = {"task": "", "state": "", "next": ""}
FIRST: list[dict[str, Any]] = [
    {
        "op": "create",
        "type": "identity",
        "title": "Home",
        "description": "The user lives in Oslo since 2024-03.",
        "body": "The user keeps a grey cat called Miso.",
        "priority": "high",
        "tags": ["home"],
        "sources": ["m1"],
    },
    {
        "op": "create",
        "type": "fact",
        "title": "Ramen places in Oslo",
        "description": "The assistant named three ramen places in Oslo: Kado, Menya Jiro and Hana.",
        "links": ["Home"],
        "sources": ["m2"],
    },
    {
        "op": "create",
        "type": "episode",
        "title": "Library books",
        "description": "The user has to bring back the library books by 2026-03-10.",
        "event": "2026-03-10",
        "loop": "open",
        "sources": ["m3"],
    },
]
SECOND: list[dict[str, Any]] = [
    {
        "op": "update",
        "node": "n1",
        "description": "The user lives in Bergen since 2026-03.",
        "sources": ["m1"],
    },
]
KNOWN = """n1 [identity, said 2026-03-04] Home: The user lives in Oslo since 2024-03.
n2 [episode, on 2026-03-10, loop open, said 2026-03-04] Library books: The user has to bring back the library books by 2026-03-10."""
CLOSE = {"op": "close", "node": "n1", "other": None, "description": None, "title": None, "why": "past"}
NIGHT = """Today is 2026-03-30.

# g1: the day of n1 is past
n1 [episode, heard 2026-03-04, on 2026-03-10, loop open] Library books: The user has to bring back the library books by 2026-03-10."""
WEEK = """# Week 10 of 2026, 2026-03-02 to 2026-03-08

e1 2026-03-04 [identity] Home: The user lives in Oslo since 2024-03."""


def observed(known: str, said: list[tuple[str, str, str]]) -> str:
    day = said[0][0][:10]
    lines = [f"m{n} {at[11:16]} {role}: {text}" for n, (at, role, text) in enumerate(said, 1)]
    return f"# Notes that exist\n\n{known}\n\n# Messages\n\n--- Someday {day} ---\n" + "\n".join(lines)


ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("observe", observed("(none yet)", SAID[:3]), {"edits": FIRST, "now": NOW}),
    ("observe", observed(KNOWN, SAID[3:]), {"edits": SECOND, "now": NOW}),
    ("notes", NIGHT, {"groups": [{"group": "g1", "edits": [CLOSE]}]}),
    (
        "period",
        WEEK,
        {"description": "Oslo.", "claims": [{"text": "The user lives in Oslo.", "notes": ["e1"]}]},
    ),
]


def raw_rows() -> list[dict[str, Any]]:
    return [
        {"n": n, "kind": kind, "messages": [{"role": "user", "content": request}], "reply": json.dumps(reply)}
        for n, (kind, request, reply) in enumerate(ROWS, 1)
    ]


def write_talk(folder: Path) -> tuple[Path, Path]:
    """The recorded replies and the conversation, as files."""
    recorded, data = folder / "talk.jsonl.gz", folder / "talk.jsonl"
    with gzip.open(recorded, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in raw_rows())
    said = [
        {"conversation": "talk", "session": at[:10], "role": role, "content": text, "timestamp": at}
        for at, role, text in SAID
    ]
    asked = {"conversation": "talk", "question": "Where does the user live?", "answer": "Bergen"}
    data.write_text("\n".join(map(json.dumps, [*said, asked])), encoding="utf-8")
    return recorded, data
