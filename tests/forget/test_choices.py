"""Forgetting takes no more than a person chose: all that came of it, the note alone, or the words alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest
from killed import in_child
from shell import omg_here
from spooled import entry, hand_over

from omg.curate import (
    closed_cycles,
    forget_selection,
    new_note,
    propose_correction,
    select_to_forget,
    supersede_by,
    take_back,
)
from omg.forget.erase import forget_now
from omg.forget.places import BLANK
from omg.forget.removal import forgetting, redacting
from omg.forget.selection import Selection, Wanted, select, select_words
from omg.graph.graph import Graph
from omg.journal import Change, Rebase, Receipt
from omg.memory import Memory
from omg.message.turn import Message, message_to_json
from omg.openclaw.graph_checks import check_graph
from omg.rebuild import build_anew, take_rebuilt
from omg.tools.removing import choice_text
from tests.forget.test_everywhere import ALICE, MAIN, NOW, SECRET, opened, say, traces
from tests.forget.test_everywhere import home as home

FOUR = (
    f"Remember that the combination of the locker in our old changing rooms is {SECRET}. My sister Maya lives in Lisbon. I prefer tea in the morning. "
    "I decided to repaint the shed because it rusts."
)


def notes(graph: Graph) -> dict[str, str]:
    return {e.path: e.description for e in graph.index.entries() if e.path.startswith("nodes/")}


def redact(home: Memory, words: str = SECRET, key: str = MAIN) -> Graph:
    graph = home.find(key)
    forget_selection(home.intake, graph, select_words(graph, words))
    return graph


# --- words


@pytest.mark.parametrize("redacts", [False, True])
def test_words_that_the_index_has_not_read_yet_are_forgotten(home: Memory, redacts: bool) -> None:
    say(home, "My sister Maya lives in Lisbon.")
    graph = home.find()
    copy = "gate.sync-conflict-20260301-101010-ABCDEFG"
    for path in ("gate", copy):
        graph.vault.file(path).write_text(
            f"---\ndescription: A gate.\nremark: it is {SECRET}\n---\nA gate.\n"
        )
    (archive,) = (graph.folder / "archive").glob("*.jsonl")
    with archive.open("a") as f:
        f.write(message_to_json(Message("late", "user", f"The gate: {SECRET}.", 1), MAIN) + "\n")
    what = select_words(graph, SECRET) if redacts else select_to_forget(graph, matching=SECRET)
    assert what.paths == ("gate", copy) and "late" in what.messages
    forget_selection(home.intake, graph, what)
    assert traces(home, SECRET) == []


# --- what a person wrote in a head, and what a receipt calls things


def test_forgetting_a_linked_note_keeps_properties_that_omg_does_not_understand(
    home: Memory,
) -> None:
    odd = "links: 5\nsuperseded_by: see the attic\n"
    head = f"---\ndescription: The shed is dry.\n{odd}contradicts:\n- '[[nodes/fact/gone]]'\n- later\n---\n"
    what = Selection(paths=("nodes/fact/gone",), messages=())
    left = forgetting(home.find(), what).note(f"{head}It is next to [[nodes/fact/gone|the pond]].\n", "x")
    assert "It is next to the pond." in left and "nodes/fact/gone" not in left
    assert all(line in left for line in odd.splitlines())


def test_redacting_a_word_keeps_receipt_properties_whose_name_is_that_word() -> None:
    change = Change("nodes/fact/shed", None, None, Rebase(set={"description": "my description"}))
    edit = redacting(Selection((), (), text="description", redacts=True))
    (clean,) = edit.receipt(Receipt("r1", "edit", "2026-03-01T12:00:00Z", (change,))).changes
    assert clean.rebase.set == {"description": f"my {BLANK}"}


# --- redact


def test_a_redacted_word_is_in_no_file_and_every_note_and_message_stays(home: Memory) -> None:
    (id,) = say(home, FOUR)
    say(home, f"Tell Ana that {SECRET.upper()} opens it.", observe=False)
    home.inject("locker", session=MAIN)
    graph = home.find(MAIN)
    home.intake.take_in()
    before, waiting = notes(graph), len(graph.pending())
    assert len(before) == 4
    redact(home)
    assert traces(home) == []
    after = notes(graph)
    assert {p: d for p, d in after.items() if BLANK not in d} == {
        p: d for p, d in before.items() if SECRET not in d
    }
    assert sorted(d.replace(SECRET, BLANK) for d in before.values()) == sorted(after.values())
    assert [m.text for m in graph.index.messages([id])] == [FOUR.replace(SECRET, BLANK)]
    assert len(graph.pending()) == waiting == 1
    assert [
        f for f in check_graph(home, graph) if "out of date" in f.what or "cannot be read" in f.what
    ] == []


def test_a_note_named_after_a_redacted_word_is_renamed_and_its_links_follow(home: Memory) -> None:
    graph = home.find()
    path = new_note(graph, "fact", f"{SECRET} locker", f"The {SECRET} is up there.", NOW).path
    other = new_note(graph, "fact", "Attic", f"It holds the [[{path}|{SECRET} thing]], and dust.", NOW).path
    graph.uses.add([graph.vault.read(path).id], 10**12)
    redact(home)
    assert traces(home) == []
    (moved,) = (p for p in notes(graph) if p != other)
    assert moved == "nodes/fact/forgotten-locker"
    assert f"[[{moved}|{BLANK} thing]], and dust." in graph.vault.text(other)
    assert graph.vault.read(moved).id in graph.uses.all()
    assert [link for link in graph.index.dangling() if link[0].startswith("nodes/")] == []


def test_a_change_from_before_a_redaction_can_still_be_undone(home: Memory) -> None:
    graph = home.find()
    new_note(graph, "fact", "Locker", f"It is opened by {SECRET}.", NOW)
    (cycle,) = (r.id for r in closed_cycles(graph) if r.kind == "edit")
    redact(home)
    _, refused = take_back(graph, cycle, NOW)
    assert (refused, notes(graph)) == ([], {})


def test_a_redacted_message_is_not_taken_in_again(home: Memory) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    graph = redact(home)
    (path,) = notes(graph)
    (m,) = graph.index.messages([graph.index.sources(path)[0].id])
    for id in (m.id, "another-id"):
        hand_over(
            home.folder,
            entry(
                id,
                f"Remember that the combination of the locker in our old changing rooms is {SECRET}.",
                m.timestamp,
            ),
        )
        home.work(force=True)
    assert traces(home) == []


def test_redacting_the_placeholder_itself_is_refused(home: Memory) -> None:
    from omg.errors import BadInput

    for words in ("forgotten", "\u200b\u200b", "Gotten)"):
        with pytest.raises(BadInput, match="cannot be redacted"):
            select_words(home.find(), words)


def test_redacted_frontmatter_is_still_valid_and_a_note_of_a_person_stays_marked_as_such(
    home: Memory,
) -> None:
    graph = home.find()
    file = graph.vault.root / "nodes" / "fact" / "mine.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'---\ndescription: "{SECRET}: the word"\naliases: [{SECRET}, door]\nkeeper: Ana {SECRET}\n---\n\nMine, {SECRET}.\n'
    )
    home.refresh(graph)
    redact(home)
    node = graph.vault.read("nodes/fact/mine")
    assert (node.description, node.aliases) == (f"{BLANK}: the word", ("door",))
    assert (node.extra["keeper"], node.full_body.strip()) == (f"Ana {BLANK}", f"Mine, {BLANK}.")
    assert not graph.vault.ours(graph.vault.bytes("nodes/fact/mine") or b"")


def test_redacting_punctuation_or_a_letter_renames_no_other_note(home: Memory) -> None:
    graph = home.find()
    path = new_note(graph, "fact", "A note of Ana", "Where to? The attic. Caf\u00e9 A. Zo\u00eb.", NOW).path
    other = new_note(graph, "fact", "Caf\u00e9 A. Zo\u00eb", "Closed on Mondays.", NOW).path
    for words in ("to?", "A.", "?!"):
        assert select_words(graph, words).renamed == ()
    assert select_words(graph, "?!").paths == ()
    redact(home, "caf\u00e9 a. zo\u00eb")
    assert set(notes(graph)) == {path, "nodes/fact/forgotten"}
    assert other == "nodes/fact/cafe-a-zoe"


def test_if_a_session_key_holds_the_words_a_redaction_gives_the_command_to_forget_it(home: Memory) -> None:
    (id,) = say(home, "I prefer tea. Call me at 4915550123.", session=ALICE)
    graph = redact(home, "4915550123", ALICE)
    (told,) = (b for b in select_words(graph, "4915550123").beyond if "--session" in b)
    assert str(graph.folder) in told and f"--session {ALICE}`" in told
    assert [m.text for m in graph.index.messages([id])] == [f"I prefer tea. Call me at {BLANK}."]


# --- one note alone


def test_one_of_four_notes_from_a_message_can_be_forgotten_alone(home: Memory) -> None:
    (id,) = say(home, FOUR)
    graph = home.find(MAIN)
    before = notes(graph)
    (path,) = (p for p, d in before.items() if SECRET in d)
    whole = select_to_forget(graph, ids=[path])
    assert whole.paths == (path,)
    assert [(SECRET in left, SECRET in gone) for _, left, gone in whole.cut] == [(False, True)]
    what = select(graph, Wanted([path], alone=True))
    assert (what.paths, what.messages) == ((path,), ())
    forget_selection(home.intake, graph, what)
    del before[path]
    assert notes(graph) == before
    assert [m.text for m in graph.index.messages([id])] == [FOUR]
    build_anew(graph, home.worker.observer("main"), home.config, NOW)
    take_rebuilt(graph, NOW)
    assert sorted(notes(graph).values()) == sorted(before.values())


# --- what a note said before


BEFORE, NOW_SAID = "My neighbour Ada closes the gym at 15:17.", "My neighbour Ada closes the gym at 16:43."
CORRECTION = "No, she closes the gym at 16:43, not 15:17."


@pytest.mark.parametrize("by", ["words", "name", "only"])
def test_the_preview_shows_former_texts_of_a_note_and_forgetting_removes_them_for_good(
    home: Memory, by: str
) -> None:
    say(home, "My sister Maya lives in Lisbon.", BEFORE)
    say(home, CORRECTION)
    (path,) = (p for p, text in notes(home.find()).items() if "16:43" in text)
    graph = home.find()
    kept = {p: text for p, text in notes(graph).items() if p != path}
    args = {"words": ["--matching", "the gym at 16:43"], "name": [path], "only": [path, "--only"]}[by]
    assert f"  {path}\n    before: {BEFORE}\n" in command(home, *args)[1]
    assert command(home, *args, "--yes")[0] == 0
    home.work(force=True)
    build_anew(graph, home.worker.observer("main"), home.config, NOW)
    take_rebuilt(graph, NOW)
    assert not any("gym" in text for text in notes(home.find()).values())
    assert by == "name" or notes(home.find()) == kept  # named, it takes its messages, and what else they said
    assert by == "only" or traces(home, "15:17") == traces(home, "16:43") == []


def test_a_note_that_loses_one_source_is_made_again_from_its_other_sources(home: Memory) -> None:
    (first,), (second,) = say(home, BEFORE), say(home, CORRECTION)
    (beside,) = say(home, f"Ask Quentin for the {SECRET}.")
    graph, (path,) = home.find(), notes(home.find())
    text = graph.vault.text(path)
    line = next(part for part in text.splitlines() if f"id: {second}" in part)
    cited = text.replace(line, f"{line}\n{line.replace(second, beside)}")
    written = cited.replace("now.\n\n##", f"now. Quentin has a {SECRET}.\n\n##").encode()
    graph.vault.write(path, written, text.encode())
    graph.vault.remember(path, written)
    home.refresh(graph)
    what = select_to_forget(graph, matching=SECRET)
    assert (what.messages, what.again) == ((beside,), (first, second))
    forget_selection(home.intake, graph, what)
    home.work(force=True)
    assert list(notes(home.find()).values()) == [NOW_SAID]
    assert CORRECTION in graph.vault.text(path)


@pytest.mark.parametrize("alone", [True, False])
def test_forgetting_a_note_also_forgets_its_predecessors_and_the_proposals_to_correct_it(
    home: Memory, alone: bool
) -> None:
    graph = home.find()
    old = new_note(graph, "fact", "Old bin", f"The {SECRET} is in the old bin.", NOW).path
    new = new_note(graph, "fact", "Bin", "The rubbish is in the green bin.", NOW).path
    supersede_by(graph, old, new, NOW)
    propose_correction(graph, new, "The rubbish is in the blue bin.", NOW)
    what = select(graph, Wanted([new], alone=alone))
    assert len(what.paths) == 3 and {old, new} <= set(what.paths)
    assert f"[[{old}]] — The {SECRET} is in the old bin. (superseded)" in choice_text(graph, "forget", what)
    forget_selection(home.intake, graph, what)
    assert notes(graph) == {}


# --- at the command line


def command(home: Memory, *args: str) -> tuple[int, str, str]:
    with patch.dict(os.environ, {"COLUMNS": "120", "OMG_HOME": str(home.folder)}):
        done = omg_here("forget", *args)
    return done.returncode, done.stdout, done.stderr


def test_the_command_says_what_each_choice_removes_and_carries_out_the_chosen_one(home: Memory) -> None:
    say(home, FOUR)
    list_file = home.find(MAIN).vault.root / "list.txt"
    list_file.write_text(SECRET)
    before = notes(home.find(MAIN))
    code, out, err = command(home, "--matching", SECRET)
    assert (code, err) == (0, "")
    whole, _, words = out.partition("or only the words")
    assert whole.startswith("would be forgotten:")
    assert [whole.count(p) for p in before] == [1] * 4
    assert sum(words.count(p) for p in before) == 1
    assert "--redact --yes" in words and f"the text may still be in {list_file}: " in words
    assert notes(home.find(MAIN)) == before
    assert "--redact takes out a text" in command(home, "--redact", "--session", MAIN)[2]
    (path,) = (p for p, d in before.items() if SECRET in d)
    assert "or only these notes (the messages stay):" in command(home, path)[1]
    code, out, err = command(home, "--matching", SECRET, "--redact", "--yes")
    assert (code, err) == (0, "")
    assert out.startswith(f"replaced by {BLANK} in:")
    assert f"the text may still be in {list_file}: " in out
    assert traces(home) == [str(list_file.relative_to(home.folder))]
    assert len(notes(home.find(MAIN))) == 4


def test_the_command_lists_repetitions_that_will_not_be_forgotten(home: Memory) -> None:
    say(home, "Remember that my locker code is Q4471.")
    say(home, "As I said, my locker code is Q4471.")
    (path,) = notes(home.find(MAIN))
    out = command(home, path)[1]
    assert (
        "another message says the same and is kept; --matching WORDS forgets that message, too: As I said, my locker code is Q4471.\n"
        in out
    )
    assert "says the same" not in command(home, "--matching", "Q4471")[1]


def test_a_session_of_another_graph_is_forgotten_without_the_option_identity(home: Memory) -> None:
    say(home, "I prefer coffee.")
    say(
        home,
        f"Remember that the combination of the locker in our old changing rooms is {SECRET}.",
        session=ALICE,
    )
    say(home, "I moved to Porto.", session="agent:main:telegram:direct:222")
    code, out, err = command(home, "--session", ALICE, "--yes")
    assert (code, err) == (0, "") and "forgotten:" in out
    assert traces(home) == []
    assert notes(home.find(MAIN)) and notes(home.find("agent:main:telegram:direct:222"))


# --- killed


def test_the_preview_of_a_forgetting_counts_in_plain_words(home: Memory) -> None:
    graph = home.graph(home.registry.identity_of(MAIN))
    own, told = Selection(("nodes/fact/attic",), ()), Selection((), ("m1",), text="attic")
    assert choice_text(graph, "forget", own).startswith("This would be forgotten:\n")
    assert "1 message; no note has the words." in choice_text(graph, "forget", told)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("furnished") / "omg"
    home = opened(folder)
    say(home, FOUR, f"Remember that my {SECRET} is 12 metres long.")
    graph = home.find(MAIN)
    new_note(graph, "fact", f"{SECRET} shelf", f"The {SECRET} lies on it.", NOW)
    (folder / "omg.log").write_text(f"up: {SECRET}\n")
    home.close()
    return folder


def forgotten(folder: Path, choice: str) -> None:
    graph = opened(folder).find(MAIN)
    what = select_to_forget(graph, matching=SECRET) if choice == "forget" else select_words(graph, SECRET)
    with graph.lock():
        forget_now(graph, what)


@pytest.mark.parametrize("choice", ["forget", "redact"])
def test_a_forgetting_killed_at_any_write_is_finished_at_the_next_start(
    furnished: Path, tmp_path: Path, choice: str
) -> None:
    n, status, promised, ends = 1, 137, False, set()
    while status == 137:
        folder = tmp_path / f"at-{n}" / "omg"
        shutil.copytree(furnished, folder)
        status, _ = in_child(lambda folder=folder: forgotten(folder, choice), n)
        assert status in (0, 137), n
        promised = promised or any(folder.glob("graphs/*/forgetting.json"))
        home = opened(folder)
        graph = home.find(MAIN)
        if promised:
            assert traces(home) == [], f"killed at write {n}"
            ids = {e.path: e.id for e in graph.index.entries()}
            made = {s.id: [ids[p]] for p in notes(graph) for s in graph.index.sources(p)}
            if choice == "redact":  # a note that it renamed does not count as deleted
                assert made and not graph.tombstones.gone(made), f"killed at write {n}"
            ends.add(json.dumps(sorted(notes(graph).items())))
        home.close()
        shutil.rmtree(folder.parent)
        n += 1 if n < 40 else 5
    assert n > 40
    assert len(ends) == 1
