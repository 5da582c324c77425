"""What is kept, and what a prompt or a tick does, follows archive and notes: not how long it has been going on."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from omg.graph.graph import Graph
from omg.graph.state import SESSIONS_KEPT, USE_DAY_MS, SessionState, State, Uses
from omg.memory import Memory
from omg.vault.files import SLACK
from omg.worker.nights import reflect_each

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


def many(state: State) -> None:
    for n in range(3_000):
        own = SessionState(task=f"Task {n}", last_ms=NOW_MS - n * 60_000, system="served", activated_ms=1)
        state.sessions[f"agent:main:main:thread:{n}"] = own


def test_a_prompt_does_not_read_or_write_records_of_ended_conversations(omg: Memory) -> None:
    graph = omg.find()
    graph.update(many)
    kept = set(json.loads((graph.folder / "state.json").read_text())["sessions"])
    assert kept == {f"agent:main:main:thread:{n}" for n in range(SESSIONS_KEPT)}
    graph.note(many)
    assert len(graph.state().sessions) == SESSIONS_KEPT


def test_recording_a_used_note_appends_one_line(omg: Memory) -> None:
    graph = omg.find()
    graph.uses.adopt({f"omg/fact/n{n}": (3, NOW_MS - 9 * USE_DAY_MS) for n in range(5_000)})
    before = graph.uses.file.stat().st_size
    graph.uses.add(["omg/fact/n7"], NOW_MS)
    graph.uses.add(["omg/fact/n7"], NOW_MS + 1_000)  # the same talk
    assert graph.uses.file.stat().st_size - before < 60
    again = Graph(graph.identity, graph.folder, graph.vault, graph.index)
    assert again.uses.all()["omg/fact/n7"] == (4, NOW_MS)


def test_the_file_of_note_uses_stays_short_and_a_torn_line_spoils_no_count(tmp_path: Path) -> None:
    uses = Uses(tmp_path / "uses.jsonl")
    for day in range(SLACK + 50):
        uses.add(["omg/fact/a", "omg/fact/b"], NOW_MS + day * USE_DAY_MS)
    assert len(uses.file.read_bytes().split()) // 3 < SLACK + 10
    with uses.file.open("ab") as f:
        f.write(b'["omg/fact/c", 1')  # a crash
    other = Uses(tmp_path / "uses.jsonl")
    other.add(["omg/fact/d"], NOW_MS)
    assert {id: times for id, (times, _) in other.all().items()} == {
        "omg/fact/a": SLACK + 50,
        "omg/fact/b": SLACK + 50,
        "omg/fact/d": 1,
    }
    uses.drop(lambda id: id != "omg/fact/a")
    assert list(other.all()) == ["omg/fact/a"]
    with uses.file.open("ab") as f:
        f.write(b'["omg/fact/cut-sho')  # of a note that no whole line names
    other.drop(lambda id: id == "omg/fact/cut-short")
    assert len(uses.file.read_bytes().splitlines()) == 1


def test_a_use_of_a_note_does_not_bring_back_the_folder_of_a_forgotten_graph(tmp_path: Path) -> None:
    uses = Uses(tmp_path / "graph" / "uses.jsonl")
    with pytest.raises(FileNotFoundError):
        uses.add(["omg/fact/a"], NOW_MS)
    assert not uses.file.parent.exists()


def test_the_use_count_of_a_note_is_removed_with_the_note(omg: Memory) -> None:
    graph = omg.find()
    graph.uses.add(["omg/fact/gone"], NOW_MS)
    list(reflect_each(omg.worker))
    assert dict(graph.uses.all()) == {}


def test_a_map_that_an_import_rewrites_several_times_leaves_one_replaced_file(omg: Memory) -> None:
    for n in range(2):
        omg.capture(
            [{"role": "user", "content": f"I prefer the number {n}.", "timestamp": f"2026-02-0{n + 1}"}]
        )
        omg.work(force=True)
        time.sleep(2.1 * (n == 0))  # so long an editor may still save into what was replaced
    replaced = [file.name for file in omg.find().vault.root.rglob(".omg-*~*")]
    assert sum("~moc-preferences" in name for name in replaced) == 1, replaced
