"""What an import does to a memory: order, repetition, kills, the look before it, and the undo of all of it."""

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime

import pytest
from exports import at, lines, talk, zipped
from typer.testing import CliRunner

from omg.cli.app import app
from omg.config import Config
from omg.importers import import_drops, read_drops
from omg.importers.look import look_at, prices
from omg.importers.taking import became, find_import, known_chats, record_of, records, undo_import
from omg.memory import Memory

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)

# What was said over the years, the newest last: old facts that changed, and some that did not.
YEARS = [
    ("2023-02-01", "I live in Leeds."),
    ("2023-02-02", "My sister Maya lives in Lisbon."),
    ("2023-05-01", "I prefer long answers."),
    ("2023-06-01", "My favourite drink is tea."),
    ("2024-01-10", "I am allergic to peanuts."),
    ("2024-03-01", "Correction: I live in Berlin now, not in Leeds."),
    ("2024-06-01", "We decided to use Postgres for the harbour project."),
    ("2024-09-01", "Correction: my favourite drink is coffee, not tea."),
    ("2025-04-12", "I prefer short answers."),
    ("2025-04-20", "Correction: my sister Maya lives in Porto, not Lisbon."),
    ("2025-05-02", "I finished the harbour map on 20 April 2025."),
]


@pytest.fixture
def memory(tmp_path):
    with closing(Memory(Config(home=tmp_path / "home"), embed=None, clock=lambda: NOW)) as made:
        yield made


def years(path, said=YEARS):
    return zipped(
        path,
        {
            "conversations.json": [
                talk(f"{day}.{n}", day, text, "I see.") for n, (day, text) in enumerate(said)
            ]
        },
    )


def taken_in(memory, path, observe=True):
    record = record_of(memory.folder, [path])
    found = import_drops(memory.intake, read_drops([path]), record=record)
    record.end("done")
    if observe:
        memory.observe()
    return found, record


def notes_of(memory):
    """Path of each note → its text without what differs by when it was written."""
    graph = memory.find("agent:main:main")
    return {p: graph.vault.text(p) for p in graph.vault.paths() if p.startswith("nodes/")}


def today(memory):
    """The active notes as one reads them: path → description, status."""
    graph = memory.find("agent:main:main")
    return {
        e.path: (e.description, e.superseded_by) for e in graph.index.entries() if e.path.startswith("nodes/")
    }


def test_importing_twice_adds_nothing_and_a_second_export_adds_only_new_messages(memory, tmp_path):
    found, _ = taken_in(memory, years(tmp_path / "a.zip"))
    before = notes_of(memory)
    again, record = taken_in(memory, tmp_path / "a.zip")
    assert (found["new"], again["new"], record.id) == (22, 0, "")
    assert notes_of(memory) == before
    more, _ = taken_in(memory, years(tmp_path / "b.zip", [*YEARS, ("2025-06-01", "I prefer window seats.")]))
    assert more["new"] == 2


def test_the_offline_observer_makes_the_same_vault_from_an_import_as_from_daily_chats(tmp_path):
    made = []
    for name in ("on its day", "at once"):
        with closing(Memory(Config(home=tmp_path / name), embed=None, clock=lambda: NOW)) as memory:
            said = [[each] for each in YEARS] if name == "on its day" else [YEARS[::-1]]
            for n, part in enumerate(said):
                taken_in(memory, years(tmp_path / f"{name} {n}.zip", part))
            made.append(today(memory))
    assert made[0] == made[1]


# Question → what holds today, and what held before
QUESTIONS = [
    ("Where do I live?", "Berlin", "I live in Leeds."),
    ("Which city is my home?", "Berlin", "I live in Leeds."),
    ("Do I still live in Leeds?", "Berlin", "I live in Leeds."),
    ("Where did I move to?", "Berlin", "I live in Leeds."),
    ("Where does my sister Maya live?", "Porto", "lives in Lisbon"),
    ("Is Maya in Lisbon?", "Porto", "lives in Lisbon"),
    ("Which city did my sister move to?", "Porto", "lives in Lisbon"),
    ("Who is Maya?", "Maya lives in Porto", "lives in Lisbon"),
    ("What is my favourite drink?", "coffee", "drink is tea"),
    ("Is tea my favourite drink?", "coffee", "drink is tea"),
    ("What shall I drink, coffee or tea?", "coffee", "drink is tea"),
    ("Tea for me?", "coffee", "drink is tea"),
    ("What am I allergic to?", "peanuts", None),
    ("May I eat peanuts?", "allergic to peanuts", None),
    ("Which allergies do I have?", "peanuts", None),
    ("Which database for the harbour project?", "Postgres", None),
    ("What did we decide for the harbour project?", "Postgres", None),
    ("Why Postgres?", "Postgres", None),
    ("What did I finish?", "harbour map", None),
    ("Do I like short answers?", "short answers", "long answers"),
]


def test_twenty_questions_after_an_import_get_the_current_answer(memory, tmp_path):
    taken_in(memory, years(tmp_path / "a.zip"))
    for question, holds, former in QUESTIONS:
        given = memory.inject(question)
        lines = f"{given.system}\n{given.prompt}".splitlines()
        first = next((n for n, line in enumerate(lines) if holds in line), None)
        assert first is not None, question
        for n, line in enumerate(lines):
            if former and former in line and "has changed since" not in line:
                assert n > first, question


def test_an_older_import_does_not_replace_a_note_of_today(memory, tmp_path):
    memory.capture([{"role": "user", "content": "I live in Rome.", "timestamp": "2026-03-01T12:00:00Z"}])
    memory.observe()
    taken_in(memory, years(tmp_path / "a.zip", YEARS[:1]))
    active = [text for text, _ in today(memory).values()]
    assert any("Rome" in text for text in active)
    assert "Rome" in memory.search("Where do I live?")[0].entry.description


def test_undo_removes_a_whole_import_and_the_same_files_can_be_imported_again(memory, tmp_path):
    memory.capture([{"role": "user", "content": "I live in Rome.", "timestamp": "2026-03-01T12:00:00Z"}])
    memory.observe()
    before, path = notes_of(memory), years(tmp_path / "a.zip")
    _, record = taken_in(memory, path)
    graph = memory.find("agent:main:main")
    assert notes_of(memory) != before and graph.index.search_raw("peanuts", 5, now=NOW)
    undone = undo_import(memory.registry, find_import(memory.folder, record.id), NOW)
    assert (notes_of(memory), undone.messages, undone.refused) == (before, 22, [])
    assert graph.index.search_raw("peanuts", 5, now=NOW) == []
    assert [ended for _, ended in records(memory.folder)] == ["undone"]
    found, again = taken_in(memory, path)
    assert found["new"] == 22 and again.id and "peanuts" in str(today(memory))


def test_undo_of_an_import_leaves_a_note_that_was_edited_since_and_lists_it(memory, tmp_path):
    _, record = taken_in(
        memory, years(tmp_path / "a.zip", [("2025-01-01", "My sister Maya lives in Lisbon.")])
    )
    (path,) = [p for p in notes_of(memory) if "sister" in p]
    graph = memory.find("agent:main:main")
    file = graph.vault.file(path)
    file.write_text(file.read_text() + "\nShe has a boat.\n")
    memory.refresh(graph)
    undone = undo_import(memory.registry, find_import(memory.folder, record.id), NOW)
    assert undone.refused == [path] and "She has a boat." in graph.vault.text(path)


def test_an_interrupted_import_continues_under_its_id_and_one_undo_covers_both_parts(memory, tmp_path):
    path = years(tmp_path / "a.zip")
    record = record_of(memory.folder, [path])
    with pytest.raises(KeyboardInterrupt):
        import_drops(memory.intake, read_drops([path]), record=record, progress=stop_after(5))
    again, second = taken_in(memory, path)
    assert second.id == record.id and 0 < again["new"] < 22
    assert undo_import(memory.registry, find_import(memory.folder, second.id[-4:]), NOW).messages == 22


def stop_after(calls):
    left = iter(range(calls))

    def progress(n):
        if next(left, None) is None:
            raise KeyboardInterrupt

    return progress


def test_an_import_killed_three_times_loses_and_doubles_nothing(tmp_path):
    said = [
        (f"2025-{n % 12 + 1:02}-{n % 28 + 1:02}", f"My colleague Person{n} lives in Town{n}.")
        for n in range(60)
    ]
    path, home = years(tmp_path / "a.zip", said), tmp_path / "home"
    command = [sys.executable, "-m", "omg.cli", "import", str(path), "--yes", "--no-observe"]
    run = "from omg.cli import main; main()"
    command = [sys.executable, "-c", run, *command[3:]]
    env = {
        **os.environ,
        "OMG_HOME": str(home),
        "OMG_EMBEDDING_MODEL": "none",
        "OMG_OBSERVATION_MODEL": "offline",
    }
    home.mkdir()
    delays = random.Random(7)
    for n in range(3):
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while time.monotonic() < until and len(list(home.glob("graphs/*/pending/*.json"))) <= 6 * n:
            time.sleep(0.01)
        time.sleep(delays.random() / 50)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with closing(Memory(Config(home=home), embed=None)) as memory:
        memory.take_in()
        graph = memory.find("agent:main:main")
        ids = [m.id for p in graph.pending() for m in p.turn().messages]
        assert sorted(ids) == sorted(f"{day}.{n}-{k}" for n, (day, _) in enumerate(said) for k in (0, 1))
        assert len(list(records(home))) == 1


def test_an_older_export_does_not_replace_a_newer_copy_of_a_chat(memory, tmp_path):
    new = {**talk("c1", "2025-03-01", "draft", "answer"), "update_time": at("2025-03-05")}
    old = talk("c1", "2025-03-01", "draft", "answer")
    old["mapping"]["c1-1"]["message"] |= {
        "id": "retried",
        "content": {"content_type": "text", "parts": ["other"]},
    }
    taken_in(memory, zipped(tmp_path / "new.zip", {"conversations.json": [new]}))
    drops = read_drops([zipped(tmp_path / "old.zip", {"conversations.json": [old]})])
    drops.reading.newest.update(known_chats(memory.folder))
    assert import_drops(memory.intake, drops)["new"] == 0


def test_the_preview_of_an_import_counts_messages_and_prices_each_way_of_observing(memory, tmp_path):
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("needs the extra models")
    look = look_at(read_drops([years(tmp_path / "a.zip")]), memory.registry.zone)
    assert look.conversations == {"ChatGPT": 11}
    assert look.messages == {"user": 11, "assistant": 11}
    assert (len(look.days), min(look.days).isoformat()) == (11, "2023-02-01")
    rules, night, whole = prices(look, ["openai/gpt-4o-mini"], memory.config)
    assert rules.usd == 0.0 and rules.tokens_in == 0
    assert 0 < night.usd < whole.usd < 0.05
    (only,) = prices(look, ["offline"], memory.config)
    assert only.usd == 0.0
    assert prices(look, ["no/such-model"], memory.config)[-1].usd is None


@pytest.fixture
def omg(tmp_path, monkeypatch):
    monkeypatch.setenv("OMG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMG_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("OMG_OBSERVATION_MODEL", "offline")
    (tmp_path / "home").mkdir()

    def run(*args, code=0):
        found = CliRunner().invoke(app, [*map(str, args)])
        assert found.exit_code == code, found.output + str(found.exception)
        return found

    return run


def test_two_commands_lead_from_a_zip_to_what_the_user_worked_on_in_spring(omg, tmp_path):
    told = omg("import", years(tmp_path / "a.zip"), "--yes")
    assert "11 conversations (11 of ChatGPT)" in told.stdout and "2023-02-01 to 2025-05-02" in told.stdout
    summary = told.stdout[told.stdout.index("22 messages: 22") :].strip().splitlines()
    assert (
        summary[0] == "22 messages: 22 new ones came in, 22 observed" and "`omg undo import-" in summary[-1]
    )
    assert len(summary) <= 14
    given = omg("inject", "--prompt", "Tell me what I worked on in spring 2025").stdout
    assert "harbour map" in given and "Porto" in given
    assert "Berlin now" not in given[given.rindex("What was said") :]


def test_an_import_is_undone_at_the_command_line_by_its_id(omg, tmp_path):
    id = json.loads(omg("import", years(tmp_path / "a.zip"), "--yes", "--json").stdout)["import"]
    assert "22 messages" in omg("undo", id).stdout
    assert "undone already" in str(omg("undo", id, code=1).exception)
    assert "nothing found" in omg("search", "peanuts").stdout


def test_an_import_that_costs_money_needs_a_terminal_or_yes(omg, tmp_path, monkeypatch):
    monkeypatch.setenv("OMG_OBSERVATION_MODEL", "openai/gpt-4o-mini")
    told = omg("import", years(tmp_path / "a.zip"), code=1)
    assert "gpt-4o-mini at once" in told.stdout and "nothing was imported" in told.stderr
    assert not list((tmp_path / "home").glob("graphs/*/pending/*.json"))


def test_old_chats_on_this_machine_are_listed_with_the_command_that_imports_them(omg, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert omg("import", "--found").stdout == "no histories of assistants on this machine\n"
    years(tmp_path / "Downloads" / "chatgpt.zip")
    assert f"omg import {tmp_path}/Downloads/chatgpt.zip" in omg("import", "--found").stdout


def test_an_import_lists_its_notes_by_title(memory, tmp_path):
    _, record = taken_in(memory, years(tmp_path / "a.zip"))
    found = became(memory.registry.graphs(), record)
    assert any(
        "allergic" in title.lower() or "peanut" in title.lower()
        for titles in found.notes.values()
        for title in titles
    )
    assert sum(map(len, found.notes.values())) == len(today(memory))


# --- what `omg export` wrote


@pytest.mark.parametrize("suffix", ["", ".jsonl"])
def test_an_export_of_omg_imports_again_with_notes_messages_and_origins(omg, tmp_path, monkeypatch, suffix):
    omg("import", years(tmp_path / "a.zip"), "--yes")
    with closing(Memory(Config(home=tmp_path / "home"), embed=None)) as memory:
        graph = memory.find("agent:main:main")
        file = graph.vault.file("nodes/identity/sister-maya")
        file.write_text(file.read_text() + "\nShe has a boat.\n")
        memory.refresh(graph)
        before = notes_of(memory)
    out = tmp_path / f"out{suffix}"
    omg("export", out)
    monkeypatch.setenv("OMG_HOME", str(tmp_path / "new"))
    (tmp_path / "new").mkdir()
    assert "8 notes and 22 messages came in" in omg("import", out).stdout
    assert "0 notes and 0 messages came in" in omg("import", out).stdout
    with closing(Memory(Config(home=tmp_path / "new"), embed=None)) as memory:
        graph = memory.find("agent:main:main")
        assert notes_of(memory) == before
        by_hand = [p for p in before if graph.vault.theirs(graph.vault.bytes(p))]
        assert by_hand == ["nodes/identity/sister-maya"]
        assert graph.index.messages(["2024-01-10.4-0"])[0].text == "I am allergic to peanuts."
        assert "Berlin" in memory.inject("Where do I live?").system


def test_what_was_forgotten_here_does_not_come_back_from_an_export(omg, tmp_path):
    omg("import", years(tmp_path / "a.zip"), "--yes")
    omg("export", tmp_path / "out.jsonl")
    omg("forget", "--matching", "peanuts", "--yes")
    assert "left out: removed earlier by `omg forget`" in omg("import", tmp_path / "out.jsonl").stdout
    assert "peanuts" not in omg("search", "peanuts", "--raw").stdout


def test_an_omg_export_may_have_a_byte_order_mark_and_a_cut_export_is_reported(omg, tmp_path):
    omg("import", years(tmp_path / "a.zip"), "--yes")
    omg("export", tmp_path / "out.jsonl")
    whole = (tmp_path / "out.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(whole[:-50])
    assert "1 skipped in " in omg("import", tmp_path / "cut.jsonl").stdout
    (tmp_path / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + whole)
    assert "0 notes and 0 messages came in" in omg("import", tmp_path / "marked.jsonl").stdout


def test_a_path_in_an_export_that_leads_out_of_the_vault_is_skipped(omg, tmp_path):
    head = {"omg": "export", "v": 1}
    evil = {"note": "nodes/../../../evil", "text": "---\ntype: fact\ndescription: x\n---\n# x\n\nx\n"}
    told = omg("import", lines(tmp_path / "out.jsonl", [head, evil, {"what": 1}])).stdout
    assert "0 notes" in told and "2 skipped" in told
    assert not list(tmp_path.rglob("evil*"))
