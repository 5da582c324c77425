"""The demo a newcomer runs, and what an independent reader makes of the vault it leaves."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from omg.config import load_config
from omg.demo import (
    ANSWERS,
    DEMO_SESSION,
    PROMPTS,
    SAMPLE_FOLDER,
    Replay,
    recorded_replies,
    run_demo,
    story_in,
)
from omg.importers import read_drops
from omg.llm.replies import ModelQuestion
from omg.memory import Memory
from omg.message.drop import clean_entries
from omg.ui.given import given_view
from omg.ui.request import Asked

STALE = (
    "the demo's recorded replies belong to other questions than are asked now. Look at `python bench/record_demo.py --stale`:"
    " record anew (bench/record_demo.py says how), or if the replies still answer the questions, run it with --keep"
)
SHOWN = 60  # lines


@dataclass(frozen=True)
class Demo:
    folder: Path
    text: str

    def part(self, heading: str) -> str:
        (found,) = re.findall(rf"^{heading}[^\n]*\n(.*?)(?:\n\n|\Z)", self.text, re.M | re.S)
        return found


def made(folder: Path, **options: bool) -> Demo:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.chdir(folder.parent):
        run_demo(Path(folder.name), **options)
    return Demo(folder, out.getvalue())


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> Demo:
    return made(tmp_path_factory.mktemp("the demo"))


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory) -> Demo:
    return made(tmp_path_factory.mktemp("the rules"), offline=True)


def test_the_recorded_replies_belong_to_the_questions_that_are_asked_now(tmp_path):
    replay = Replay(recorded_replies())
    story = story_in(tmp_path, replay)
    with story.memory:
        for _ in story.sessions():
            pass
        story.write_by_hand()
        story.sleep()
    assert not replay.changed, STALE
    assert replay.played == set(replay.rows), STALE


def test_a_recorded_reply_is_found_even_if_the_wording_of_prompts_changed():
    replay = Replay(recorded_replies())
    for row in replay.rows:
        other = row.question.replace("the", "this").replace("user", "person")
        reply = replay(ModelQuestion("Other instructions.", other, None, row.purpose))
        assert reply.text == row.reply
    assert len(replay.changed) == len(replay.rows)


def test_the_demo_shows_an_answer_without_memory_and_one_with_it(shown):
    answers = json.loads(ANSWERS.read_text("utf-8"))
    (given,) = re.findall(r"“When are the Tidepool sketches due.*?\nNora", shown.text, re.S)
    lines = [line for answer in answers.values() for line in answer.split("\n") if line]
    assert [line[12:] for line in given.splitlines()[-len(lines) - 1 : -1]] == lines
    given = given[: given.index("no memory")]
    for fact in ("2026-03-23", "14 of the 16", "15 and 16", "Katrin", "calmer"):
        assert fact in given


@pytest.mark.parametrize("which", ["shown", "by_rules"])
def test_the_demo_prints_at_most_sixty_lines_of_plain_text(which, request):
    text = request.getfixturevalue(which).text
    assert len(text.splitlines()) <= SHOWN
    assert "\x1b" not in text and "{{title}}" not in text


def test_the_demo_has_colours_at_a_terminal_and_fits_its_width(tmp_path):
    code = "import sys; from pathlib import Path; from omg.demo import run_demo; run_demo(Path(sys.argv[1]))"
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "90", "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "d"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "\x1b[" in done.stdout
    story, _, _ = re.sub(r"\x1b\[[\d;]*m", "", done.stdout).partition("\nOpen ")
    assert max(map(len, story.splitlines()[1:])) <= 90


def test_a_reversed_wish_and_a_moved_plan_keep_their_former_state(shown):
    notes = shown.part("A note says what holds now")
    assert re.search(
        r"^a wish .*keep your answers short from now on.*\n(?: +before, .*\n)*? +before, .*detailed answers",
        notes,
        re.M,
    )
    assert re.search(
        r"^a plan .*due on 2026-03-23.*\n(?: +before, .*\n)*? +before, .*due on 2026-03-16", notes, re.M
    )


def test_the_web_page_with_false_claims_creates_no_note_about_the_user(shown):
    assert "No note of hers says so." in shown.part("A note says what holds now")
    notes = "".join(f.read_text("utf-8") for f in (shown.folder / "vault/nodes").glob("*/*.md"))
    assert "pre-approved" not in notes and "loves glossy" not in notes


def test_the_nightly_run_writes_week_pages_and_resolves_a_contradiction(shown):
    night = shown.part("Every night")
    assert "“Prints from 21 March” (2026-03-21) replaced “Price of prints”" in night
    assert [f"Week {n} of 2026" in night for n in (10, 11, 12)] == [True] * 3
    assert re.search(r"at the top of \d maps .*Tidepool", night)  # maps
    old, new = (
        (shown.folder / f"vault/nodes/fact/{name}.md").read_text("utf-8")
        for name in ("price-of-prints", "prints-from-21-march")
    )
    assert "status: superseded" in old and "status: active" in new


def test_words_that_the_demo_forgets_are_in_no_file(shown):
    part = shown.part("What you can take back")
    assert re.search(r"changed: (\d+) files, .* restores the \1\.", part)
    assert re.search(r"no file of this memory\b.* holds the name now", part)
    left = [f for f in shown.folder.rglob("*") if f.is_file() and b"Lindqvist" in f.read_bytes()]
    assert left == []


def test_each_prompt_of_the_demo_is_given_the_note_that_answers_it(shown):
    asked = shown.part("What the assistant is given with each of four prompts")
    pieces = re.split(r"^(?:Nora|group chat) .*”  is given ([\d,]+) tokens.*$", asked, flags=re.M)
    assert all(0 < int(n.replace(",", "")) <= 3000 for n in pieces[1::2])
    for piece, answer in zip(
        pieces[2::2], ("2026-03-23", "50 euros", "Saunders Waterford", "2026-03-28"), strict=True
    ):
        assert answer in piece
    assert "Tidepool" not in pieces[-1]  # the group is given nothing of Nora's own memory


def test_the_demo_without_a_model_says_so_and_notes_the_conversation(by_rules):
    assert "no model is asked" in by_rules.text
    assert "Please keep your answers short from now on" in by_rules.part("A note says what holds now")
    assert "March 23 (2026-03-23)" in by_rules.part("What the assistant is given with each of four prompts")


def test_every_printed_command_works_from_any_folder(shown, tmp_path):
    folder, text = shown.folder, shown.text
    commands = re.findall(r"^  (OMG_HOME=.*)$", text, re.M)
    assert [shlex.split(line)[-1] for line in commands] == ["ui", "watercolour paper"]
    for line in commands[1:]:  # the page is tried in tests/ui/test_browser.py
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
    assert f"Open the folder {folder / 'vault'} in Obsidian" in text


def test_after_the_demo_no_turn_is_pending_and_the_page_of_prompts_lists_every_prompt(shown):
    with Memory(load_config(shown.folder / "home", {}), embed=None) as memory:
        assert not [turn for graph in memory.registry.graphs() for turn in graph.pending()]
        asked = Asked(memory, memory.find(), {}, "")
        given = given_view(asked)["prompts"]
    assert [p["words"] for p in reversed(given)] == [text for text, who in PROMPTS if who == DEMO_SESSION]
    assert all(p["given"] for p in given)


def test_the_pasted_key_is_in_no_file_and_no_output_of_the_demo(shown):
    folder, text = shown.folder, shown.text
    planted = set(
        re.findall(r"sk-[\w-]{20,}", "".join(f.read_text() for f in (SAMPLE_FOLDER).glob("*.jsonl")))
    )
    assert planted
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not any(key.encode() in data for key in planted), file
    assert not any(key in text for key in planted)


def test_the_library_obsidiantools_finds_no_isolated_note_and_no_dangling_link(shown):
    folder = shown.folder
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


def test_a_topic_is_shown_with_its_state_and_its_notes(tmp_path):
    """Of the talk's own messages, said once more after the night; and of questions about a whole."""
    story = story_in(tmp_path, Replay(recorded_replies()))
    with story.memory as memory:
        for _ in story.sessions():
            pass
        story.write_by_hand()
        story.sleep()
        drops = read_drops(sorted(SAMPLE_FOLDER.glob("*.jsonl")), None)
        said = [
            (d["sessionKey"], m.text) for d in drops for m in clean_entries(d["entries"]) if m.role == "user"
        ]
        given = [memory.inject(text, session=f"{key}:thread:x", dry_run=True).prompt for key, text in said]
        assert len(said) == 25 and sum("\n- moc-" in prompt for prompt in given) >= 12
        projects, decisions, stands = (
            memory.inject(question, session=f"{DEMO_SESSION}:thread:x", dry_run=True).prompt
            for question in ("List my projects", "Which decisions have I made?", "How is Tidepool going?")
        )
        assert "\n- moc-portfolio" in projects and "\n- moc-tidepool" in projects
        assert all(word in decisions for word in ("Eleventy", "Saunders Waterford", "English version"))
        assert re.search(r"\n- moc-tidepool[^\n]*\n  \w", stands), "where it stands"
        assert stands.index("\n- moc-tidepool") < stands.index("\n- nodes/project/tidepool")
