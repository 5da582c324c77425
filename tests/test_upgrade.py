"""
A home and a vault of an earlier release open after every later change, and lose nothing. They were left by that release's own
commands; the script that ran them is in the history (`git log -- tests/former/make.py`).
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from omg.cli.app import app
from omg.config import Config, Observation, load_config
from omg.curate import closed_cycles
from omg.forget.places import archived_messages
from omg.inject.decide import Prompt, slice_for
from omg.memory import Memory
from omg.node.note import parse_node
from omg.openclaw.graph_checks import check_home
from omg.openclaw.install import daemon_step
from tests.test_daemon import Running

FORMER = sorted((Path(__file__).parent / "former").glob("*.tar.xz"))
OWNER, PEER = "agent:main:main", "agent:main:telegram:direct:77"
WORDS = (  # of the person's own hand, in notes and beside generated blocks
    "PERSON: she moved to the Alfama quarter.",
    "PERSON: words beside the block.",
    "PERSON wrote this one whole.",
    "PERSON: I like the market on Saturdays.",
    "PERSON: I like to swim on Fridays.",
)


@pytest.fixture(params=FORMER, ids=lambda file: file.name.partition(".")[0])
def former(request, tmp_path, monkeypatch) -> Path:
    with tarfile.open(request.param) as tar:
        tar.extractall(tmp_path, filter="tar")
    toml = tmp_path / "omg" / "omg.toml"
    toml.write_text(toml.read_text().replace("@ROOT@", str(tmp_path)))
    monkeypatch.setenv("OMG_HOME", str(tmp_path / "omg"))
    return tmp_path


def omg(*words: str) -> Result:
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done


def notes(root: Path) -> dict[str, str]:
    """The file of every note below *root*, without those that stand by themselves: maps, index and Now."""
    found = {}
    for file in [*root.glob("workspace/memory/omg/**/*.md"), *root.glob("omg/graphs/*/vault/**/*.md")]:
        if file.parent.name != "mocs" and file.name not in ("index.md", "now.md"):
            found[str(file.relative_to(root))] = file.read_text()
    return found


def said(root: Path) -> set[str]:
    """The ids of all that was ever said, wherever it is."""
    ids = {m.id for folder in root.glob("omg/graphs/*/archive") for _, m in archived_messages(folder)}
    for file in root.glob("omg/graphs/*/pending/*.json"):
        ids |= {m["id"] for m in json.loads(file.read_text())["messages"]}
    for file in root.glob("omg/spool/*.json"):
        ids |= {e["entryId"] for e in json.loads(file.read_text())["entries"]}
    return ids


def everything(root: Path) -> str:
    """All that any note says."""
    files = [*root.glob("workspace/memory/omg/**/*.md"), *root.glob("omg/graphs/*/vault/**/*.md")]
    return "\n".join(file.read_text() for file in files)


def test_the_first_day_after_an_upgrade_loses_nothing(former):
    before, heard, tombs = notes(former), said(former), tombstones(former)
    assert len(heard) > 20 and len(before) > 15
    for command in (
        ["status"],
        ["observe"],
        ["doctor", "--fix"],
        ["observe"],
        ["reflect"],
        ["search", "Maya"],
    ):
        if command[0] == "doctor":
            CliRunner().invoke(app, command)  # OpenClaw is not here, which it says
        else:
            omg(*command)
    assert heard <= said(former)
    assert not [*former.glob("omg/spool/*.json"), *former.glob("omg/graphs/*/pending/*.json")]
    assert not [*former.glob("omg/graphs/*/receipts/*.open.json")]
    after, text = notes(former), everything(former)
    assert [path for path in before if path not in after] == []
    for words in WORDS:
        assert words in text
    for path, was in before.items():
        if path.endswith(".md") and "/nodes/" in path:
            old, new = parse_node(was, path), parse_node(after[path], path)
            assert (old.id, old.sources, old.extra) == (new.id, new.sources[: len(old.sources)], new.extra)
            assert old.description in after[path]
    assert tombs <= tombstones(former)


def tombstones(root: Path) -> set[str]:
    return {
        line for file in root.glob("omg/graphs/*/tombstones.jsonl") for line in file.read_text().splitlines()
    }


def test_unfinished_work_of_an_earlier_release_is_finished(former):
    omg("observe")
    with_aquarium = [path for path, text in notes(former).items() if "aquarium" in text]
    # of the receipt that was open
    assert len(with_aquarium) == 1 and "telegram-direct-77" in with_aquarium[0]
    text = everything(former)
    assert "bicycle" in omg("search", "--raw", "bicycle").output  # of the drop in the spool
    assert "kayak" in text  # of the turns that were pending
    assert not [path for path in notes(former) if "projector" in path]  # that note was deleted by its owner


def test_after_an_upgrade_a_session_keeps_the_memory_it_was_given_before(former):
    home = Memory(load_config(), embed=None)
    graph = home.find(OWNER)
    own = graph.state().sessions[OWNER]
    assert own.system.startswith("<omg-memory") and own.task
    given = slice_for(graph, Prompt("Where does Maya live?", OWNER), datetime.now(UTC), home.config)
    assert "\n- tea-over" in given.system
    assert "maya" in given.system + given.prompt
    home.close()


def test_an_earlier_release_s_cycles_are_listed_and_undone(former):
    home = Memory(load_config(), embed=None)
    graph = home.find(OWNER)
    listed = closed_cycles(graph)
    kinds = {receipt.kind for receipt in listed}
    assert {"observation", "edit", "undo", "reflection"} <= kinds
    pinned = next(r for r in listed if any("pinned" in line for line in r.summary))
    home.close()
    assert "undone" in omg("undo", pinned.id).output
    home = Memory(load_config(), embed=None)
    graph = home.find(OWNER)
    assert not graph.vault.read("nodes/preference/tea-over-coffee").pinned
    first = next(r for r in closed_cycles(graph) if r.kind == "observation" and "postgres" in str(r.summary))
    home.close()
    CliRunner().invoke(app, ["undo", first.id])  # which says that the note they edited stays
    text = "\n".join(file.read_text() for file in former.glob("workspace/memory/omg/mocs/*.md"))
    assert "decided-to-use-postgres-for" not in text
    assert "PERSON: she moved to the Alfama quarter." in everything(former)


def test_after_an_upgrade_the_doctor_finds_nothing_broken_in_a_home_of_an_older_version(former):
    omg("observe")
    CliRunner().invoke(app, ["doctor", "--fix"])
    findings = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)["findings"]
    graphs = [f for f in findings if f["level"] == "fail" and re.search(r"cannot be read|damaged", f["what"])]
    assert graphs == []
    assert not [f for f in findings if "out of date" in f["what"]]


def test_a_rebuild_does_not_bring_back_a_note_forgotten_before_the_upgrade(former):
    omg("rebuild", "--yes")
    assert not [path for path in notes(former) if "projector" in path and "workspace" in path]
    assert "PERSON: she moved to the Alfama quarter." in everything(former)


def test_a_daemon_still_running_from_before_an_upgrade_is_reported_and_restarted(
    home: Path, tmp_path: Path
) -> None:
    package, another = Path(__file__).parents[1] / "omg", tmp_path / "another"
    shutil.copytree(package, another / "omg", ignore=shutil.ignore_patterns("__pycache__"))
    with (another / "omg" / "errors.py").open("a") as file:
        file.write("# as it was\n")
    start = f"import sys; sys.path.insert(0, {str(another)!r}); sys.argv = ['omg', 'serve']; from omg.cli import main; main()"
    former = Running(home, under=(sys.executable, "-P", "-c", start)).ready()
    todays: list[Running] = []

    def gateway() -> None:
        former.process.wait(30)
        todays.append(Running(home))

    def said() -> str:
        with Memory(Config(home=home, observation=Observation(model="offline")), embed=None) as memory:
            return "\n".join(finding.line() for finding in check_home(memory))

    try:
        assert "is of another version" in said()
        threading.Thread(target=gateway, daemon=True).start()
        step = daemon_step(home, True)
        assert (step.changed, step.note) == (True, "restarted, because it ran another version of OMG")
        assert "✓ the daemon is up" in said()
        assert not daemon_step(home, True).changed
    finally:
        for each in (former, *todays):
            each.end()
