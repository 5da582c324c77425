"""The demo a newcomer runs, and what an independent reader makes of the vault it leaves."""

import os
import re
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from omg.config import load_config
from omg.demo import SAMPLE_FOLDER, run_demo
from omg.memory import Memory


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    import contextlib
    import io

    folder = tmp_path_factory.mktemp("the demo")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        with contextlib.chdir(folder.parent):
            run_demo(Path(folder.name))
    return folder, out.getvalue()


def test_it_shows_the_tree_the_now_note_and_three_slices_with_their_tokens(shown):
    _, text = shown
    assert "preference/" in text
    assert "now.md" in text
    counts = [int(n) for n in re.findall(r"^\((\d+) tokens in all\)$", text, re.M)]
    assert len(counts) == 3
    assert all(0 < n <= 3000 for n in counts)
    assert text.count("## Who the user is") == 1  # what each prompt is given is shown once
    assert "{{title}}" not in text


def test_its_plans_and_wishes_read_as_they_were_put_right(shown):
    _, text = shown
    assert "no, Monday (2026-03-16), tomorrow is Sunday." in text
    assert "going to Hamburg on Thursday, March 12 (2026-03-12)" in text
    assert "All sketches are due on March 23 (2026-03-23)" in text
    assert "due on March 16" not in text
    assert "please keep your answers short from now on" in text.casefold()
    assert "- like-detailed-answers" not in text  # the wish that it turns round


def test_no_note_is_one_that_nora_would_delete(shown):
    folder, _ = shown
    notes = "".join(f.read_text(encoding="utf-8") for f in (folder / "vault/nodes").glob("*/*.md"))
    for trifle in ("Casa Lupo wrote back", "I promised Ines", "Snow again", "Pepper says hi", "queue up"):
        assert trifle not in notes
    assert len([*(folder / "vault/nodes").glob("*/*.md")]) >= 18


def test_every_command_it_prints_works_as_printed_from_any_folder(shown, tmp_path):
    folder, text = shown
    commands = re.findall(r"^  (OMG_HOME=.*)$", text, re.M)
    assert commands
    for line in commands:
        found = subprocess.run(
            line,
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert found.returncode == 0, found.stderr
        assert found.stdout.startswith("nodes/")
    assert f"Open {folder / 'vault'} in Obsidian" in text


def test_the_pasted_key_is_nowhere(shown):
    folder, text = shown
    planted = set(
        re.findall(r"sk-[\w-]{20,}", "".join(f.read_text() for f in (SAMPLE_FOLDER).glob("*.jsonl")))
    )
    assert planted
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not any(key.encode() in data for key in planted), file
    assert not any(key in text for key in planted)


def test_the_samples_projects_are_given_whatever_a_conversation_begins_with(shown):
    """Two days after the sample."""
    folder, _ = shown
    now = [datetime(2026, 3, 16, 9, tzinfo=UTC)]
    with Memory(load_config(folder / "home", {}), clock=lambda: now[0]) as memory:
        for asked in ("List my projects.", "hello"):
            given = memory.inject(asked, session=f"agent:main:main:thread:{asked[:4]}")
            assert "picture book called Tidepool" in given.system
            assert "I want to relaunch the site" in given.system
            now[0] += timedelta(seconds=20)


def test_an_independent_reader_finds_no_isolated_note_and_no_dangling_link(shown):
    folder, _ = shown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from obsidiantools.api import Vault

        vault = Vault(folder / "vault").connect(show_nested_tags=False)
    root = folder / "vault"
    paths = {p.relative_to(root).with_suffix("").as_posix() for p in root.rglob("*.md")}
    # obsidiantools knows a note by its shortest unique name; our links are paths.
    dangling = {n for n in vault.nonexistent_notes if n not in paths and not n.endswith(".base")}
    assert dangling == set()
    alone = [n for n in vault.isolated_notes if not n.startswith(("templates/", "inbox/"))]
    linked = {t for targets in vault.wikilinks_index.values() for t in targets}
    assert [n for n in alone if (folder / "vault" / f"{n}.md").exists() and n not in linked] == []
