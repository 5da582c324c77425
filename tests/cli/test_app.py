"""The command line as its users meet it: help, one-line errors, one JSON value, and init into what is there."""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import click
import pytest
import typer
from shell import Done, omg_here
from typer.testing import CliRunner

from omg.cli.app import app

ROOT: Any = typer.main.get_command(app)


def commands(command: Any = ROOT, name: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for key, sub in sorted(command.commands.items()):
        if hasattr(sub, "commands"):
            yield from commands(sub, (*name, key))
        else:
            yield " ".join((*name, key)), sub


ALL = dict(commands())


def run(*args: str, code: int = 0) -> Done:
    done = omg_here(*args)
    assert done.returncode == code, f"omg {' '.join(args)}: {done.stdout}{done.stderr}"
    return done


def run_apart(*args: str, code: int = 0, full: bool = False) -> subprocess.CompletedProcess[str]:
    """In a process of its own. *full*: no file can grow, as on a full disk."""
    done = subprocess.run(
        [sys.executable, "-m", "omg.cli", *args],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))) if full else None,
    )
    assert done.returncode == code, f"omg {' '.join(args)}: {done.stdout}{done.stderr}"
    return done


def chat(folder: Path, *said: str, roles: tuple[str, ...] = ("user",)) -> Path:
    """A file of what was said in turn by *roles*, a minute apart."""
    file = folder / "chat.jsonl"
    lines = [
        {"role": role, "content": text, "timestamp": f"2026-03-02T09:{n:02d}:00Z"}
        for n, (text, role) in enumerate(zip(said, itertools.cycle(roles)))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_every_option_says_what_it_does(name: str) -> None:
    command = ALL[name]
    assert command.help and len(command.help) > 12
    for parameter in command.params:
        if isinstance(parameter, click.Option) or hasattr(parameter, "help"):
            assert getattr(parameter, "help", None) or parameter.name in ("help",), (
                f"{name}: {parameter.name}"
            )
    shown = CliRunner().invoke(app, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert "Usage" in shown.output


def test_omg_prints_its_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert run("--version").stdout == f"omg {project['version']}\n"


def test_help_costs_less_than_half_a_second_of_work() -> None:
    run_apart("--help")  # compiled by now
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_apart("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) <= 0.4


def test_the_terminal_shows_days_and_times_in_the_persons_zone(home: Path, tmp_path: Path) -> None:
    run("init")
    (home / "omg.toml").write_text('[time]\nzone = "Pacific/Auckland"\n')
    said = [
        ("My studio is in Kyoto.", "2026-03-02T10:00:00Z"),
        ("I prefer green bikes.", "2026-03-02T20:00:00Z"),
    ]
    lines = [json.dumps({"role": "user", "content": text, "timestamp": at}) for text, at in said]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines))
    told = run("import", str(tmp_path / "chat.jsonl"), "--since", "2026-03-03").stdout
    assert "\n1 message: 1 new one" in told  # the first was said on the 2nd in Auckland, too
    assert "> 2026-03-03 user: I prefer" in run("search", "green bikes", "--raw").stdout
    (note,) = json.loads(run("search", "green bikes", "--json", "-k", "1").stdout)
    assert "  2026-03-03 user: I prefer" in run("show", note["path"]).stdout
    observed = json.loads(run("status", "--json").stdout)["graphs"][0]["observed"]
    there = datetime.fromisoformat(observed).astimezone(ZoneInfo("Pacific/Auckland"))
    assert f"observed  {there:%Y-%m-%d %H:%M};" in run("status").stdout
    assert f"{there:%Y-%m-%d %H:%M}:" in run("events").stdout
    *_, today, month = run("events").stdout.splitlines()
    assert today.startswith("today     0 calls, 0 ") and month == "30 days   0 calls, 0 tokens, $0.00"
    assert all("event" in json.loads(line) for line in run("events", "--json").stdout.splitlines())


def test_a_search_finds_messages_without_a_note(tmp_path: Path) -> None:
    said = [("The spare fuse for the kiln lies behind the glaze buckets.", "2026-03-02T10:00:00Z")]
    lines = [json.dumps({"role": "user", "content": text, "timestamp": at}) for text, at in said]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines))
    assert "no note was added" in run("import", str(tmp_path / "chat.jsonl"), "--yes").stdout
    found = run("search", "where is the spare fuse for the kiln").stdout
    assert "What was said:\n- 2026-03-02" in found and "behind the glaze buckets" in found
    assert "What was said" not in run("search", "capital of Mongolia").stdout
    first, *_ = json.loads(run("search", "where is the spare fuse for the kiln", "--json").stdout)
    assert first["at"] == "2026-03-02 10:00" and first["description"] in said[0][0]


def test_a_command_whose_pipe_is_closed_ends_quietly() -> None:
    shell = f"{sys.executable} -m omg.cli --help | head -c 1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_init_adds_missing_files_to_a_handmade_vault_and_changes_no_other_file(tmp_path: Path) -> None:
    vault = tmp_path / "mine"
    theirs = {
        "index.md": "# My index\r\n\r\nby hand\r\n",
        "mocs/moc-facts.md": "mine\n",
        ".obsidian/app.json": '{"spellcheck": true}',
        "ideas.md": "# Ideas\n",
    }
    for name, text in theirs.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_bytes(text.encode())
    for _ in range(2):
        run("init", str(vault))
        assert {name: (vault / name).read_bytes().decode() for name in theirs} == theirs
    assert (vault / "now.md").exists()
    assert (vault / "mocs/moc-decisions.md").exists()
    assert not (vault / ".obsidian/graph.json").exists()  # their settings are theirs
    (vault / "mocs/moc-decisions.md").unlink()
    run("init", str(vault))
    assert (vault / "mocs/moc-decisions.md").exists()


def test_a_memory_on_a_read_only_disk_can_be_read(home: Path) -> None:
    run("new", "fact", "The cat", "--text", "The cat is called Misu.")
    (index,) = home.glob("graphs/*/index.db")
    before = index.stat().st_ino, index.read_bytes()
    for args in (
        ["search", "cat"],
        ["inject", "-p", "What is the cat called?"],
        ["show", "the-cat"],
        ["status"],
    ):
        found = run_apart(*args, full=True)
        assert "Misu" in found.stdout or args == ["status"]
        assert "the disk is full" in found.stderr and found.stderr.count("\n") == 1
    refused = run_apart("new", "fact", "The dog", "--text", "The dog is called Rex.", code=1, full=True)
    assert "Traceback" not in refused.stderr
    assert (index.stat().st_ino, index.read_bytes()) == before
    run("new", "fact", "The dog", "--text", "The dog is called Rex.")
    assert "Rex" in run("search", "dog").stdout


def test_a_search_leaves_out_weak_answers_and_says_when_it_found_nothing_better() -> None:
    run("new", "fact", "The boat key", "--text", "The boat key hangs behind the pantry door.")
    for n, text in enumerate(("Ines lives in Bremen.", "Piet waters the tomatoes.", "The roof is new.")):
        run("new", "fact", f"Note {n}", "--text", text)
    run("link", "the-boat-key", "note-2")
    found = run("search", "Please forget where the boat key is").stdout.splitlines()
    assert found[0] == "nodes/fact/the-boat-key"
    assert found[3:] == ["weak hits not shown: 1; --weak shows them"]
    with_weak = run("search", "Please forget where the boat key is", "--weak").stdout
    assert "nodes/fact/note-2" in with_weak and "weak hits not shown" not in with_weak
    hits = json.loads(run("search", "Please forget where the boat key is", "--json").stdout)
    assert [hit["weak"] for hit in hits] == [False, True]
    assert run("search", "capital of Mongolia").stdout.startswith("nothing found")


def test_the_error_for_an_unusable_file_gives_the_path_and_the_remedy(home):
    (home / "omg.toml").mkdir()
    said = run("search", "x", code=1).stderr
    assert f"{home / 'omg.toml'}: Is a directory; make sure that you may use it" in said
    assert len(said.splitlines()) == 1


def test_a_search_without_notes_finds_a_message_and_shows_the_messages_around_it(tmp_path: Path) -> None:
    page = " ".join(f"word{n}" for n in range(90))
    said = [
        "What shall I water?",
        f"{page} Only the zinnias, they wilt first. {page}",
        "Thanks!",
        "Any time.",
    ]
    run("import", str(chat(tmp_path, *said, roles=("user", "assistant"))))
    printed = run("search", "--raw", "zinnias").stdout.splitlines()
    assert [line[:2] for line in printed] == ["  ", "> ", "  "]
    assert "What shall I water?" in printed[0] and "Thanks!" in printed[2]
    assert ": … " in printed[1] and "Only the zinnias, they wilt first. …" in printed[1]
    assert len(printed[1]) < 600 < len(said[1])
    found, *_ = json.loads(run("search", "--raw", "zinnias", "--json").stdout)
    assert [near["text"] for near in found["around"]] == said[:3]


# --- reading notes


def test_an_import_says_how_many_notes_it_wrote_and_where(tmp_path: Path) -> None:
    run("init", str(tmp_path / "notes"))
    file = chat(tmp_path, "My sister Maya lives in Lisbon.", "I prefer short answers.")
    told = run("import", str(file)).stdout
    notes = len(list((tmp_path / "notes" / "nodes").rglob("*.md")))
    assert notes
    assert f"{notes} new notes in {tmp_path / 'notes'}" in told
    assert "new note" not in run("import", str(file)).stdout
    assert json.loads(run("import", str(file), "--json").stdout)["notes"] == {}


def test_an_import_that_could_read_nothing_exits_1_and_counts_what_it_skipped(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"role": "user", "content": "no time"}\n')
    assert "1 skipped" in run("import", str(broken), code=1).stdout


def test_a_long_import_shows_its_progress_from_the_first_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omg.cli.terminal.PRINT_EVERY_S", 0.0)
    file = chat(tmp_path, *(f"Day {n}: {'we went on and on ' * 100}" for n in range(60)))
    told = run("import", str(file), "--no-observe").stderr.splitlines()
    shares = [int(line.split()[-2]) for line in told if line.startswith("omg: importing: ")]
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert shares[0] < 50 and shares[-1] == 100


def test_notes_are_listed_newest_first_and_by_type(tmp_path: Path) -> None:
    run("import", str(chat(tmp_path, "My sister Maya lives in Lisbon.", "I prefer short answers.")))
    run("new", "fact", "Studio", "--text", "The studio is above the bakery.")
    first, *others = run("list").stdout.splitlines()
    assert first == f"{datetime.now():%Y-%m-%d}  nodes/fact/studio  The studio is above the bakery."
    assert [line[:10] for line in others] == ["2026-03-02", "2026-03-02"]
    assert "Maya" in run("list", "identity").stdout and "studio" not in run("list", "identity").stdout
    run("merge", "studio", "sister-maya")
    assert "nodes/identity/sister-maya" not in run("list").stdout
    assert "nodes/identity/sister-maya (superseded)" in run("list", "--all").stdout
    (only,) = json.loads(run("list", "preference", "--json").stdout)
    assert only["path"].startswith("nodes/preference/")
    assert "types: identity" in run("list", "people", code=1).stderr


def test_a_superseded_note_is_shown_with_its_successor_and_without_the_open_loop_mark(tmp_path: Path) -> None:
    run("import", str(chat(tmp_path, "I have to send Karin the Q4 report by 2026-03-06.")))
    run("new", "fact", "Report", "--text", "Karin has the report.")
    [path] = [n["path"] for n in json.loads(run("list", "--json").stdout) if n["loop"] == "open"]
    assert "open loop" in run("show", path).stdout
    run("merge", "report", path)
    shown = run("show", path).stdout
    assert "(episode, superseded by report, " in shown
    assert "open loop" not in shown


def test_show_prints_a_note_as_plain_text_without_its_yaml(tmp_path: Path) -> None:
    run("init", str(tmp_path / "notes"))
    run("import", str(chat(tmp_path, "My sister Maya lives in Lisbon.")))
    shown = run("show", "sister-maya").stdout
    assert shown.startswith("# Sister Maya\nMy sister Maya lives in Lisbon.\n(identity, said 2026-03-02)\n")
    assert str(tmp_path / "notes/nodes/identity/sister-maya.md") in shown
    assert shown.count("My sister Maya lives in Lisbon.") == 2  # the note, and what was said
    assert "---" not in shown and "sources:" not in shown
    (tmp_path / "notes/nodes/fact").mkdir(parents=True, exist_ok=True)
    (tmp_path / "notes/nodes/fact/mine.md").write_text("Written by hand, without properties.\n")
    run("new", "fact", "Back studio", "--text", "The studio is above the bakery. It has two windows.")
    assert "It has two windows." in run("show", "Back studio").stdout
    assert f"{date.today()}  nodes/fact/mine" in run("list", "fact", "-n", "2").stdout
    assert "\n(fact)\n" in run("show", "mine").stdout


def test_a_note_opens_in_obsidian_if_obsidian_knows_the_vault_else_in_the_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, person, seen = tmp_path / "my notes", tmp_path / "home", tmp_path / "seen"
    for name in ("xdg-open", "open", "vi"):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\necho {name} "$@" > {seen}\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    run("init", str(vault))
    run("new", "fact", "Studio", "--text", "The studio is above the bakery.")
    note = vault / "nodes/fact/studio.md"
    refused = run("open", "studio", code=1).stderr
    assert str(note) in refused and "set EDITOR" in refused
    monkeypatch.setenv("EDITOR", "vi -R")
    run("open", "studio")
    assert seen.read_text() == f"vi -R {note}\n"
    known = person / ".config/obsidian/obsidian.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"vaults": {"1": {"path": str(vault)}}}))
    run("open", "studio")
    assert f"obsidian://open?path={quote(str(note), safe='')}" in seen.read_text()
    run("open")
    assert seen.read_text().strip().endswith(quote(str(vault), safe=""))
    run("open", "studio", "--editor")
    assert seen.read_text() == f"vi -R {note}\n"


@pytest.mark.parametrize(
    "args",
    [["search", "x"], ["import", "chat.jsonl"], ["doctor"], ["events"], ["up"], ["down"]],
    ids=" ".join,
)  # fmt: skip
def test_a_mistyped_home_gives_an_error_and_creates_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setenv("OMG_HOME", str(tmp_path / "mistyped"))
    done = run(*args, code=1)
    assert f"omg: OMG_HOME is {tmp_path / 'mistyped'}, which is no folder" in done.stderr
    assert "omg init" in done.stderr
    assert not (tmp_path / "mistyped").exists()


def test_a_sentence_corrected_in_a_notes_body_appears_in_lists_searches_and_prompts(
    tmp_path: Path,
) -> None:
    run("init", str(tmp_path / "notes"))
    run("import", str(chat(tmp_path, "My sister Maya lives in Lisbon.")))
    file = tmp_path / "notes/nodes/identity/sister-maya.md"
    head, below = file.read_text().split("\n# ", 1)
    file.write_text(f"{head}\n# {below.replace('Lisbon', 'Porto')}")
    changed = file.read_text()
    own = tmp_path / "notes/nodes/fact/boiler.md"
    own.write_text("---\ndescription: About the boiler.\ntype: fact\n---\n\nThe boiler is old.\n")
    for args in (
        ["search", "Maya"],
        ["list"],
        ["show", "sister-maya"],
        ["inject", "-p", "Where does Maya live?"],
    ):
        said = run(*args).stdout
        assert "Maya lives in Porto." in said
        assert "Maya lives in Lisbon." not in said.partition("It was said:")[0].partition("word for word")[0]
    assert "About the boiler." in run("list").stdout
    assert file.read_text() == changed


def test_omg_without_a_command_says_what_is_there_and_what_to_do_next(home):
    assert "omg init" in omg_here().stdout  # nothing is made by looking
    assert not (home / "graphs").exists()
    talk = home.parent / "talk.jsonl"
    said = {
        "role": "user",
        "content": "I decided to rent the garden in Pankow.",
        "timestamp": "2026-02-02T10:00",
    }
    talk.write_text(json.dumps(said) + "\n")
    assert omg_here("import", str(talk), "--no-observe").returncode == 0
    lines = omg_here().stdout.splitlines()
    assert len(lines) <= 10
    assert "1 turn not observed yet" in "\n".join(lines) and "omg observe" in lines[-1]


def test_show_marks_where_it_cuts_a_message(tmp_path: Path) -> None:
    run("init", str(tmp_path / "vault"))
    long = "I like green tea. " + "The harbour is foggy again and nobody sails. " * 12 + "The end."
    run("import", str(chat(tmp_path, long)), "--yes")
    note = next((tmp_path / "vault/nodes").glob("preference/*.md")).stem
    said = run("show", note).stdout.partition("It was said:")[2]
    assert "The end." not in said and "…" in said and "--json" in said
    assert "The end." in run("show", note, "--json").stdout


def test_a_command_that_waits_for_a_model_says_so_and_how_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init", str(tmp_path / "vault"))
    run("import", str(chat(tmp_path, "I like green tea.")), "--yes", "--no-observe")
    settings = {"OBSERVATION_MODEL": "openai/x", "LLM_API_BASE": "http://127.0.0.1:9/v1", "LLM_API_KEY": "k"}
    for name, value in {**settings, "LLM_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(f"OMG_{name}", value)
    done = run("observe", code=1)
    assert "asking openai/x; Ctrl-C stops it" in done.stderr
    assert "not observed" in done.stderr
