"""
Kill the process at each write of an observation: after the next run the vault is what an undisturbed run would have
made of it.
"""

import json
import os
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from killed import in_child
from spooled import entry, hand_over

from omg.config import Config, Observation
from omg.memory import Memory
from omg.vault.vault import Vault

SAID = [
    ("user", "I prefer short checklists for deploys."),
    ("assistant", "Noted, short checklists it is."),
    ("user", "My sister Maya lives in Lisbon."),
    ("user", "We decided to use Postgres for the invoice project because of row-level security."),
    ("user", "Actually I now prefer long checklists for deploys."),
]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def fill(home: Path) -> None:
    for n, (role, text) in enumerate(SAID):
        at = 1_771_500_000_000 + n * 60_000
        hand_over(home, entry(f"e{n}", text, at, role))


def run(home: Path) -> None:
    watch = Observation(model="offline", max_tokens_per_batch=40)
    with Memory(Config(home=home, observation=watch), clock=lambda: NOW, embed=None) as which:
        which.work(force=True)


def vaults(home: Path) -> dict[str, bytes]:
    files = sorted((home / "graphs").glob("*/vault/**/*.md"))
    assert files
    return {str(f.relative_to(home)): f.read_bytes() for f in files}


def archived(home: Path) -> list[str]:
    lines = [
        line
        for f in sorted((home / "graphs").glob("*/archive/*.jsonl"))
        for line in f.read_text().splitlines()
    ]
    return sorted(json.loads(line)["id"] for line in lines)


def left_over(home: Path) -> list[str]:
    for root in home.glob("graphs/*/vault"):
        Vault(root, root.parent / "written.jsonl").settle(0)  # the daemon does, two seconds later
    hidden = [f for f in home.glob("graphs/*/vault/**/.omg-*") if f.is_file()]
    waiting = [
        *home.glob("spool/*.json"),
        *home.glob("graphs/*/pending/*.json"),
        *home.glob("graphs/*/receipts/*.open.json"),
    ]
    return [str(f) for f in waiting + hidden]


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    """What a killed process has handed to the kernel is not lost: only a power cut would tell the difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    warm = tmp_path_factory.mktemp("warm") / "omg"
    fill(warm)
    run(warm)  # what is imported and compiled once, the forked children need not repeat
    home = tmp_path_factory.mktemp("undisturbed") / "omg"
    fill(home)
    status, writes = in_child(lambda: run(home))
    assert status == 0
    return home, writes


def test_an_observation_killed_at_any_write_is_finished_by_the_next_run(undisturbed, tmp_path):
    expected, writes = undisturbed
    assert writes > 50
    for n in range(1, writes + 1):
        home = tmp_path / str(n) / "omg"
        fill(home)
        again = partial(run, home)
        assert in_child(again, n)[0] == 137, f"write {n} was never reached"
        again()
        assert left_over(home) == [], f"died at write {n}"
        assert vaults(home) == vaults(expected), f"died at write {n}"
        assert archived(home) == archived(expected), f"died at write {n}"
        shutil.rmtree(home.parent)
