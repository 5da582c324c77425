"""Pull the plug at every write of a night: the next run finishes it, and the vault is what it would have been."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from killed import in_child
from openai_server import believing
from planted import NOW, Scripted, graph_of, home_at, plant, snapshot

from omg.journal import receipts_of
from omg.observe.question import Observer
from omg.reflect.run import reflect_graph
from omg.reflect.verdicts import load_seen


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """What a killed process has handed to the kernel is not lost: only a power cut would tell the difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        yield


def planted_home(folder: Path) -> None:
    home = home_at(folder)
    graph = graph_of(home)
    planted = plant(graph, pairs=1, targets=1, episodes=4, weeks=1)
    target = graph.vault.file(planted.targets[0])
    home.refresh(graph)
    target.rename(target.with_name("moved.md"))
    home.refresh(graph)
    home.close()


def night(folder: Path) -> int:
    """One night; returns how often the model was asked."""
    home = home_at(folder)
    graph, model = graph_of(home), Scripted()
    home.refresh(graph)
    reflect_graph(graph, Observer(believing(model), "scripted", 128_000), home.config, NOW)
    home.close()
    return len(model.history)


def killed(folder: Path, write: int = 0) -> tuple[int, int]:
    return in_child(lambda: night(folder), write, also=("write",))


def outcome(folder: Path) -> tuple[dict[str, bytes], dict[str, object], int]:
    """The vault, what was seen, and how many cycles there were."""
    home = home_at(folder)
    graph = graph_of(home)
    known = load_seen(graph)
    cycles = [r for r in receipts_of(graph) if r.kind == "reflection"]
    assert not list(graph.folder.glob("receipts/*.open.json"))
    found = snapshot(graph), {"notes": known.notes, "periods": known.periods}, len(cycles)
    home.close()
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home before its night, and one after."""
    folder = tmp_path_factory.mktemp("night")
    before, after = folder / "before" / "omg", folder / "after" / "omg"
    planted_home(before)
    shutil.copytree(before, after)
    assert night(after) > 1
    return before, after


def test_a_night_killed_at_any_write_is_finished_by_the_next_night(
    undisturbed: tuple[Path, Path], tmp_path: Path
) -> None:
    before, after = undisturbed
    expected = outcome(after)
    assert any(name.startswith("reflections/2026-W") for name in expected[0])
    home = tmp_path / "0" / "omg"
    shutil.copytree(before, home)
    status, writes = killed(home)
    assert status == 0 and writes > 60 and outcome(home) == expected
    paid: list[int] = []
    for die_at in range(1, writes + 1):
        home = tmp_path / str(die_at) / "omg"
        shutil.copytree(before, home)
        assert killed(home, die_at)[0] == 137
        asked = night(home)
        found = outcome(home)
        assert found[0] == expected[0], die_at
        assert found[1:] == expected[1:], die_at
        if die_at % 10 == 0:
            assert night(home) == 0, die_at
        paid.append(asked)
        shutil.rmtree(home.parent)
    # Once the receipt is there, what a model was paid for is never asked again.
    assert paid == sorted(paid, reverse=True) and paid.count(0) > writes - 10
