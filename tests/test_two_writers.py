"""
A person edits, renames and deletes while the Observer writes the same notes. Ten seconds here; two minutes with
OMG_TWO_WRITERS_S=120.
"""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from spooled import entry, hand_over

from omg.config import Config, Observation
from omg.memory import Memory
from omg.node.markdown import generated_block, with_generated_block
from omg.openclaw.graph_checks import check_graph

MAIN = "agent:main:main"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = float(os.environ.get("OMG_TWO_WRITERS_S", "10"))
THINGS = [
    "tea",
    "coffee",
    "rye bread",
    "jazz",
    "the lake",
    "long walks",
    "chess",
    "linen",
    "early trains",
    "figs",
]
SAYINGS = [
    "I like {}.",
    "I prefer {} in the morning.",
    "Actually I no longer like {}.",
    "My sister loves {}.",
    "I decided to buy {} because it is cheap.",
]


def say(omg: Memory, n: int, text: str) -> None:
    hand_over(omg.folder, entry(f"e{n}", text, 1_771_500_000_000 + n * 60_000))


def kept(file: Path, saved: str, vault: Path) -> bool:
    """
    Whether what the person saved stands as they saved it: all outside the generated block of a page; all but the
    keys of the head that are ours to set, and lines of history that were added, in a note. Else in the inbox, whole.
    """
    now = file.read_text(encoding="utf-8") if file.exists() else ""
    if generated_block(saved) is not None:
        if generated_block(now) is not None and with_generated_block(now, "") == with_generated_block(
            saved, ""
        ):
            return True
    else:
        lines = iter(now.splitlines())
        if all(line in lines for line in theirs(saved)):
            return True
    return any(saved == f.read_text(encoding="utf-8") for f in (vault / "inbox").glob("*.md"))


def theirs(text: str) -> list[str]:
    """The lines of a note, less those of its head that OMG may set in a person's note."""
    if not text.startswith("---\n"):
        return text.splitlines()
    head, mark, body = text.partition("\n---\n")
    ours = ("status:", "superseded_by:", "loop:", "aliases:", "  - ")
    return [line for line in head.splitlines() if not line.startswith(ours)] + [
        mark.strip(),
        *body.splitlines(),
    ]


@pytest.mark.timeout(SECONDS * 4 + 120)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_person_who_edits_during_observations_loses_no_edit_and_gets_no_deleted_note_back(
    home, tmp_path, seed
):
    omg = Memory(Config(home=home, observation=Observation(model="offline")), clock=lambda: NOW, embed=None)
    say(omg, 0, "I like tea. I like jazz. I prefer rye bread.")
    omg.work(force=True)
    graph = omg.find(MAIN)
    diary = tmp_path / "diary.json"
    script = Path(__file__).with_name("person.py")
    call = [sys.executable, str(script), str(graph.vault.root), str(SECONDS), str(seed), str(diary)]
    n = 0
    with subprocess.Popen(call) as person:
        while person.poll() is None:
            n += 1
            say(omg, n, SAYINGS[n % len(SAYINGS)].format(THINGS[n % len(THINGS)]))
            omg.work(force=True)
            omg.refresh(graph)
    assert person.returncode == 0
    time.sleep(2.1)  # what was replaced at the last moment settles
    omg.refresh(graph)
    done = json.loads(diary.read_text())
    assert done["deeds"] > 20
    everything = "\n".join(p.read_text(encoding="utf-8") for p in graph.vault.root.rglob("*.md"))
    assert [w for w in done["lines"] if w not in everything] == []
    changed = [f for f, text in done["saved"].items() if not kept(Path(f), text, graph.vault.root)]
    assert changed == [], (done["saved"][changed[0]], Path(changed[0]).read_text(encoding="utf-8"))
    for note in graph.index.entries(status=None):
        if note.id in done["deleted"]:  # the same name may be used again, for what was said again
            said = [s.id for s in graph.index.sources(note.path)]
            assert not graph.tombstones.blocks(note.id, said, cited=lambda: True), note.path
    named = "\n".join(f.line() for f in check_graph(omg, graph))
    for path, target in graph.index.dangling()[:50]:
        file = graph.vault.root / target  # a view, which is no note
        assert file.is_file() or f"[[{target}]]" in named, (path, target)
    assert graph.pending() == []
    omg.close()
