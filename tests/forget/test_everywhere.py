"""What is forgotten is found however it is written, and wherever it stands; what is not ours to change is named."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from spooled import entry, hand_over

from omg.config import Config, Observation
from omg.curate import forget_selection, move_identity, new_note, select_to_forget
from omg.forget.places import blanked, holds_words, may_hold
from omg.forget.selection import select_words
from omg.graph.graph import Graph
from omg.memory import Memory
from omg.message.turn import Message, message_to_json

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MAIN = "agent:main:main"
ALICE = "agent:main:telegram:direct:4915550123"
SECRET = "zanzibarquartz"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Memory]:
    which = opened(tmp_path / "omg")
    yield which
    which.close()


def opened(folder: Path) -> Memory:
    return Memory(
        Config(home=folder, observation=Observation(model="offline")), clock=lambda: NOW, embed=None
    )


said = iter(range(1, 10_000))


def say(home: Memory, *texts: Any, session: str = MAIN, observe: bool = True, **more: Any) -> list[str]:
    """Messages of the user's, as a hook hands them over; their ids."""
    numbered = [(next(said), text) for text in texts]
    entries = [entry(f"entry-{n:05}", text, 1_771_500_000_000 + n * 1000, **more) for n, text in numbered]
    hand_over(home.folder, *entries, session=session)
    if observe:
        home.work(force=True)
    return [e["entryId"] for e in entries]


def forget(home: Memory, key: str = MAIN, **what: Any) -> Graph:
    graph = home.find(key)
    forget_selection(home.intake, graph, select_to_forget(graph, **what))
    return graph


def traces(home: Memory, word: str = SECRET) -> list[str]:
    """Files that hold *word*, in their bytes or in their names."""
    files = [f for f in sorted(home.folder.rglob("*")) if f.is_file()]
    found = [f for f in files if word.encode() in f.read_bytes().lower() or word in str(f).lower()]
    return [str(f.relative_to(home.folder)) for f in found]


# --- however it is written


FORMS = {
    "case": ("The BLUE Anchor opens it.", "blue anchor"),
    "full-width": ("The Ｂｌｕｅ anchor opens it.", "blue anchor"),
    "asked in full width": ("The blue anchor opens it.", "ｂｌｕｅ　ａｎｃｈｏｒ"),
    "a line's end": ("It is the blue\nanchor that opens it.", "blue anchor"),
    "a quotation's end": ("> It is the blue\n> anchor that opens it.", "blue anchor"),
    "a narrow blank": ("The blue\u202fanchor opens it.", "blue anchor"),
    "two blanks": ("The blue  anchor opens it.", "blue anchor"),
    "zero-width": ("The bl\u200bue an\u00adchor opens it.", "blue anchor"),
    "composed": ("The caf\u00e9 Zo\u00eb opens it.", "cafe\u0301 zoe\u0308"),
    "decomposed": ("The cafe\u0301 Zoe\u0308 opens it.", "caf\u00e9 zo\u00eb"),
    "ligature": ("The \ufb01re door opens it.", "fire door"),
    "sharp s": ("The Stra\u00dfe opens it.", "STRASSE"),
    "a file's name": ("See nodes/fact/blue-anchor.", "blue anchor"),
    "as JSON": (json.dumps({"a": "the blue\nanch\u00f6r"}), "blue anch\u00f6r"),
    "as JSON with only a line's end escaped": (json.dumps({"a": "the blue\nanchor"}), "blue anchor"),
    "as JSON in JSON": (
        json.dumps(json.dumps({"a": 'the "blue"\nanch\u00f6r \U0001f600'})),
        '"blue" anch\u00f6r \U0001f600',
    ),
}


@pytest.mark.parametrize(("text", "words"), FORMS.values(), ids=FORMS)
def test_words_to_forget_are_found_in_every_spelling_and_leave_no_trace(text: str, words: str) -> None:
    assert holds_words(text, words)
    assert may_hold(message_to_json(Message("m1", "user", text, 1), "agent:main:main"), words)
    left = blanked(text, words)
    assert not holds_words(left, words)
    assert blanked(left, words) == left
    assert not holds_words(text, f"{words} elsewhere")


@pytest.mark.parametrize("form", ["full-width", "a line's end", "zero-width", "composed", "two blanks"])
def test_a_message_is_forgotten_if_it_spells_the_given_words_differently(home: Memory, form: str) -> None:
    text, words = FORMS[form]
    (id,) = say(home, f"Remember this: {text}")
    say(home, "My sister Maya lives in Lisbon.")
    graph = forget(home, matching=words)
    assert list(graph.index.messages([id])) == []
    files = [f for f in home.folder.rglob("*") if f.is_file()]
    assert [f for f in files if holds_words(f.read_bytes().decode("utf-8", "replace"), words)] == []
    assert "Lisbon" in "".join(e.description for e in graph.index.entries())


def test_a_message_is_forgotten_if_only_its_sender_or_its_tool_call_has_the_words(home: Memory) -> None:
    sender = {"senderId": "77", "senderName": "Zanzibar  Quartz", "senderIsOwner": True}
    call = {"type": "toolCall", "id": "c1", "name": "zanzibar_quartz_lookup", "arguments": {"q": "tide"}}
    ids = say(home, "I prefer tea.", __openclaw=sender)
    ids += say(home, [{"type": "text", "text": "Looking."}, call], role="assistant")
    result = [{"type": "text", "text": "High at nine."}]
    ids += say(home, result, role="toolResult", toolCallId="c1", toolName="zanzibar_quartz_lookup")
    graph = home.find(MAIN)
    assert set(select_to_forget(graph, matching="zanzibar quartz").messages) == set(ids)


# --- by session


def test_no_file_still_contains_the_key_of_a_forgotten_session(home: Memory) -> None:
    session = f"{MAIN}:thread:{SECRET}"
    say(home, "My sister Maya lives in Lisbon.")
    say(home, "I prefer tea in the morning.", session=session)
    home.inject("tea?", session=session)
    cursor = home.folder / "cursors" / "0123.json"
    cursor.write_text(json.dumps({"agentId": "main", "sessionKey": session, "windows": {}}))
    (home.folder / "owners.json").write_text(json.dumps({session: True, MAIN: True}))
    assert {"events.jsonl", "cursors/0123.json", "owners.json"} < set(traces(home))
    forget(home, session=session)
    assert traces(home) == []
    assert json.loads((home.folder / "owners.json").read_text()) == {MAIN: True}
    assert "Lisbon" in "".join(e.description for e in home.find(MAIN).index.entries())


def test_forgetting_a_persons_only_session_removes_the_folder_of_their_graph(home: Memory) -> None:
    say(home, "I prefer tea in the morning.", session=ALICE)
    ids = say(home, "My sister Maya lives in Lisbon.", session=ALICE)
    home.inject("tea?", session=ALICE)
    assert len(traces(home, "4915550123")) > 5
    forget(home, ALICE, session=ALICE)
    assert traces(home, "4915550123") == []
    # Another process had the graph open; and what was forgotten does not come back.
    hand_over(home.folder, entry(ids[0], "My sister Maya lives in Lisbon.", 1), session=ALICE)
    home.work(force=True)
    assert traces(home, "lisbon") == []
    say(home, "I moved to Porto.", session=ALICE)
    assert "Porto" in "".join(e.description for e in home.find(ALICE).index.entries())


def test_a_graph_with_a_note_by_a_person_stays_if_its_only_session_is_forgotten(home: Memory) -> None:
    say(home, "I prefer tea in the morning.", session=ALICE)
    graph = home.find(ALICE)
    path = new_note(graph, "fact", "Attic", "The attic is dry.", NOW).path
    forget(home, ALICE, session=ALICE)
    assert home.find(ALICE).vault.bytes(path)
    assert ALICE not in (home.folder / "events.jsonl").read_text()
    assert ALICE not in (graph.folder / "state.json").read_text()


# --- wherever it stands


@pytest.mark.parametrize("redacts", [False, True])
def test_forgetting_also_cleans_the_graphs_that_were_merged_into_this_graph(
    home: Memory, redacts: bool
) -> None:
    say(
        home,
        f"Remember that the combination of the locker in our old changing rooms is {SECRET}.",
        session=ALICE,
    )
    say(home, "My sister Maya lives in Lisbon.", session=ALICE)
    say(home, "I prefer tea in the morning.")
    move_identity(home.registry, ALICE, MAIN)
    assert [t for t in traces(home) if t.startswith("joined/")]
    graph = home.find(MAIN)
    what = select_words(graph, SECRET) if redacts else select_to_forget(graph, matching=SECRET)
    forget_selection(home.intake, graph, what)
    assert traces(home) == []
    assert any(t.startswith("joined/") for t in traces(home, "lisbon"))


def test_forgetting_does_not_touch_graphs_that_were_merged_into_another_persons_graph(home: Memory) -> None:
    bob, robert = "agent:main:telegram:direct:222", "agent:main:discord:direct:222"
    say(
        home,
        f"Remember that the combination of the locker in our old changing rooms is {SECRET}.",
        session=bob,
    )
    say(home, "I prefer tea.", session=robert)
    move_identity(home.registry, bob, robert)
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}, too.")
    before = [t for t in traces(home) if t.startswith("joined/")]
    forget(home, matching=SECRET)
    assert [t for t in traces(home) if t.startswith("joined/")] == before != []


def test_a_second_forgetting_finishes_an_interrupted_one(
    home: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    say(home, "My sister Maya lives in Lisbon.")
    graph = home.find(MAIN)
    with monkeypatch.context() as broken:
        broken.setattr("omg.forget.erase.change_folder", lambda *a: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            forget(home, matching=SECRET)
        second = select_to_forget(graph, matching="Lisbon")
        with pytest.raises(ZeroDivisionError):
            forget_selection(home.intake, graph, second)
    assert traces(home) != []
    forget_selection(home.intake, graph, second)
    assert traces(home) == traces(home, "lisbon") == []


def test_temporary_drops_of_a_killed_hook_are_taken_in_and_forgotten(home: Memory) -> None:
    said = entry("raw-1", f"It is {SECRET}.", 1)
    drop = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": MAIN, "entries": [said]}
    whole = home.folder / "spool" / ".001771500000001-aaaa.json.0a1b2c3d-1111"
    whole.write_text(json.dumps(drop))
    torn = home.folder / "spool" / ".001771500000002-bbbb.json.0a1b2c3d-2222"
    torn.write_text(json.dumps(drop).replace("raw-1", "raw-2")[:-20])
    for file in (whole, torn):
        os.utime(file, (time.time() - 60,) * 2)
    home.intake.take_in()
    assert not whole.exists()
    forget(home, matching=SECRET)
    assert traces(home) == []
    hand_over(home.folder, said)
    home.intake.take_in()
    assert traces(home) == []


def test_a_dead_writers_temporary_file_is_removed_even_if_its_process_number_was_reused(home: Memory) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    graph = home.find(MAIN)
    for folder in (graph.folder, graph.folder / "pending", graph.folder / "receipts", home.folder):
        (folder / f".x.json.{os.getppid()}.0123abcd").write_text(
            f"Remember that the combination of the locker in our old changing rooms is {SECRET}."
        )
    (graph.folder / ".uses.jsonl.tmp").write_text(f'["omg/fact/{SECRET}", 1, 1]')
    forget(home, matching=SECRET)
    assert traces(home) == []


def test_the_plugin_is_told_to_discard_the_notes_it_cached(home: Memory) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    before_ms = time.time_ns() // 1_000_000
    forget(home, matching=SECRET)
    told = json.loads((home.folder / "forgotten.json").read_text())
    assert before_ms <= told["at"] <= time.time_ns() // 1_000_000


# --- what is not ours to change


def test_foreign_files_with_the_words_are_reported_and_left_unchanged(home: Memory) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    graph = home.find(MAIN)
    root = graph.vault.root
    theirs = {
        root / "plan.canvas": json.dumps({"nodes": [{"type": "text", "text": SECRET.title()}]}),
        root / "list.txt": f"tea, {SECRET}",
        root / ".trash" / "mine.md": f"My own words on {SECRET}.\n",
        root / ".stversions" / "old.md": SECRET,
        root / "plain.txt": "tea",
    }
    for file, text in theirs.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (root / ".git").mkdir()
    agents = home.folder.parent / "agents" / "main"
    agents.mkdir(parents=True)
    what = select_to_forget(graph, matching=SECRET)
    named = "\n".join(what.beyond)
    for file in theirs:
        assert (f"{file}:" in named) == (file.name != "plain.txt"), file
    assert f"{root / '.git'}: " in named
    assert f"{root}: the sync service's copies on other devices" in named
    assert f"{agents}: the gateway's own transcripts" in named
    forget_selection(home.intake, graph, what)
    assert {file: file.read_text() for file in theirs} == theirs
    assert {home.folder / t for t in traces(home)} == {f for f in theirs if f.name != "plain.txt"}


def test_a_note_in_obsidians_trash_is_forgotten_too(home: Memory) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    graph = home.find(MAIN)
    (path,) = (e.path for e in graph.index.entries() if e.path.startswith("nodes/"))
    trash = graph.vault.root / ".trash" / "locker.md"
    trash.parent.mkdir()
    graph.vault.file(path).rename(trash)
    home.refresh(graph)
    what = select_to_forget(graph, matching=SECRET)
    assert what.trash == (".trash/locker.md",)
    forget_selection(home.intake, graph, what)
    assert traces(home) == []


def test_forgetting_a_note_removes_only_those_answers_that_repeat_its_words(
    home: Memory,
) -> None:
    (id,) = say(home, f"My cat is called {SECRET}.", observe=False)
    say(home, f"{SECRET}, a lovely name. Noted.", role="assistant", observe=False)
    say(home, "And which day is it today?", observe=False)
    say(home, "It is a Friday with marmalade weather.", role="assistant")
    graph = home.find(MAIN)
    (path,) = graph.index.citing([id])
    what = select_to_forget(graph, ids=[path])
    assert len(what.messages) == 2
    forget_selection(home.intake, graph, what)
    assert traces(home) == []
    assert traces(home, "marmalade")


def test_a_note_that_only_links_to_a_forgotten_note_stays(home: Memory) -> None:
    say(home, f"I like my {SECRET} soap.")
    (kept,) = say(home, "My sister Maya lives in Lisbon.")
    graph = home.find(MAIN)
    (soap,) = (e.path for e in graph.index.entries() if SECRET in e.description)
    (maya,) = graph.index.citing([kept])
    file = graph.vault.root / f"{maya}.md"
    file.write_text(f"{file.read_text()}\nShe sent [[{soap}|it]].\n")
    home.refresh(graph)
    forget(home, matching=SECRET)
    assert set(graph.index.citing([kept])) == {maya}
    assert "She sent" in file.read_text()
    assert traces(home) == []
