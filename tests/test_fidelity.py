"""bench/fidelity.py: what of the replies does not stand in a vault is counted as lost, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fidelity import Chat, report_of
from questions.notes import read_notes
from questions.recorded import Row
from recorded_talk import raw_rows

RUN: dict[str, Any] = {"omg": "x", "given": [], "told": [], "left": []}
HOME = """---
description: The user lives in Bergen since 2026-03.
type: identity
priority: high
status: active
origin: user
links:
  - "[[mocs/moc-identity]]"
tags:
  - home
---

# Home

The user lives in Bergen since 2026-03.
The user keeps a grey [[nodes/fact/cat|cat]] called Miso.

## History
- 2026-03-04: The user lives in Oslo since 2024-03.
"""
RAMEN = """---
description: "The assistant named three ramen places in Oslo: Kado, Menya Jiro and Hana."
type: fact
status: active
origin: assistant
---

# Ramen places in Oslo

The assistant named three ramen places in [[nodes/identity/home|Oslo]]: Kado, Menya Jiro and Hana.
"""
BOOKS = """---
description: The user has to bring back the library books by 2026-03-10.
type: episode
status: active
event: 2026-03-10
loop: done
origin: user
---

# Library books
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for path, text in {
        "identity/home": HOME,
        "fact/ramen-places-in-oslo": RAMEN,
        "episode/library-books": BOOKS,
    }.items():
        file = tmp_path / "nodes" / f"{path}.md"
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def change(vault: Path, note: str, was: str, now: str) -> None:
    file = vault / "nodes" / f"{note}.md"
    text = file.read_text(encoding="utf-8")
    assert was in text
    file.write_text(text.replace(was, now), encoding="utf-8")


def report(vault: Path, **run: Any) -> dict[str, Any]:
    return report_of(Chat([Row.of(raw) for raw in raw_rows()], read_notes(vault), RUN | run))


def lost(vault: Path, **run: Any) -> list[tuple[str, str]]:
    return [(loss["what"], loss["as"]) for loss in report(vault, **run)["losses"]]


def test_nothing_is_lost_where_all_stands_in_a_note_or_its_history(vault: Path) -> None:
    found = report(vault)
    assert found["losses"] == [] and found["labels"] == 0
    assert {what: n["all"] for what, n in found["figures"].items()} == {
        "body sentences": 1,
        "descriptions": 4,
        "titles": 3,
        "updates": 1,
        "edits without a loss": 4,
        "type": 3,
        "priority": 1,
        "event": 1,
        "loop": 1,
        "tags": 1,
        "links": 1,
        "close": 1,
    }
    assert found["origins"] == {"episode: user": 1, "fact: assistant": 1, "identity: user": 1}


@pytest.mark.parametrize(
    ("note", "was", "now", "what"),
    [
        ("identity/home", "keeps a grey", "has a", "body sentences"),
        ("identity/home", "- 2026-03-04: The user lives in Oslo since 2024-03.\n", "", "descriptions"),
        ("identity/home", "# Home", "# Where they live", ""),  # still called so by its file
        ("identity/home", "priority: high", "priority: low", "priority"),
        ("identity/home", "  - home\n", "  - flat\n", "tags"),
        ("fact/ramen-places-in-oslo", "[[nodes/identity/home|Oslo]]", "Oslo", "links"),
        ("episode/library-books", "event: 2026-03-10", "event: 2026-03-11", "event"),
        ("episode/library-books", "loop: done", "loop: open", "close"),
    ],
)
def test_what_does_not_stand_in_the_vault_is_named(
    vault: Path, note: str, was: str, now: str, what: str
) -> None:
    change(vault, note, was, now)
    assert lost(vault) == ([(what, "lost")] if what else [])
