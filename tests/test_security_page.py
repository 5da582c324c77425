"""SECURITY.md and docs/privacy.md promise nothing that no test holds."""

import re
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
SECURITY, PRIVACY = REPO / "SECURITY.md", REPO / "docs" / "privacy.md"
TEST = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)")


@pytest.mark.parametrize("page", [SECURITY, PRIVACY], ids=lambda page: page.name)
def test_every_test_mentioned_on_a_page_of_promises_exists(page: Path) -> None:
    named = TEST.findall(page.read_text("utf-8"))
    assert named
    gone = [
        f"{file}::{name}" for file, name in named if f"\ndef {name}(" not in (REPO / file).read_text("utf-8")
    ]
    assert gone == []


def test_every_promise_mentions_a_test() -> None:
    promised = SECURITY.read_text("utf-8").partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in promised.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    assert [row for row in rows if not TEST.search(row)] == []


def test_every_part_of_the_privacy_page_mentions_a_test() -> None:
    parts = PRIVACY.read_text("utf-8").split("\n## ")[1:]
    assert [part.partition("\n")[0] for part in parts if not TEST.search(part)] == []
