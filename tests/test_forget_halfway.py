"""A forgetting that is stopped half way, or meets what goes on beside it: nothing of it comes back, and nothing else is lost."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from test_forget_everywhere import ALICE, MAIN, NOW, SECRET, forget, opened, say, traces

from omg.config import Config, Embedding, Observation
from omg.curate import forget_selection, move_identity, new_note, select_to_forget
from omg.daemon.daemon import Daemon
from omg.forget import erase
from omg.forget import selection as bare
from omg.forget.erase import forget_now, select_words
from omg.graph.graph import Graph
from omg.memory import Memory
from omg.observe import run

PERSON = "4915550123"  # stands in the names of ALICE's folders


class Killed(BaseException): ...


def killed(*_: Any, **__: Any) -> NoReturn:
    raise Killed


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Memory]:
    which = opened(tmp_path / "omg")
    yield which
    which.close()


def redact(home: Memory) -> Graph:
    graph = home.find(MAIN)
    forget_selection(home.intake, graph, select_words(graph, SECRET))
    return graph


def told(graph: Graph) -> dict[str, str]:
    return {e.path: e.description for e in graph.index.entries() if e.path.startswith("nodes/")}


# --- beside others


def test_words_taken_out_while_the_observer_answers_are_not_written_back(
    home: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(home, f"My locker combination is {SECRET}.")
    (path,) = told(home.find(MAIN))
    say(home, "My sister Maya lives in Lisbon.", observe=False)
    home.intake.take_in()
    replies = run.replies_to

    def meanwhile(graph: Graph, plan: Any, *args: Any, **more: Any) -> Any:
        plan.amend(path, priority="high")
        redact(home)
        monkeypatch.undo()
        yield from replies(graph, plan, *args, **more)

    monkeypatch.setattr(run, "replies_to", meanwhile)
    home.work(force=True)
    assert traces(home) == []
    home.work(force=True)
    assert any("Lisbon" in text for text in told(home.find(MAIN)).values())


def test_a_daemon_does_not_begin_anew_a_graph_that_a_command_forgot_whole(tmp_path: Path) -> None:
    folder = tmp_path / "omg"
    home = opened(folder)
    say(home, "I prefer tea in the morning.", session=ALICE)
    home.close()
    config = Config(home=folder, observation=Observation(model="offline"), embedding=Embedding(model="none"))
    daemon = Daemon(config)
    daemon.memory.find(ALICE)
    command = opened(folder)
    forget(command, ALICE, session=ALICE)
    command.close()
    assert traces(daemon.memory, PERSON) == []
    daemon._rescanned = -1e9
    daemon._keep()
    daemon.memory.work()
    assert traces(daemon.memory, PERSON) == []
    daemon.memory.close()


def test_a_daemon_names_in_no_log_a_session_that_a_command_forgot_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "omg"
    home = opened(folder)
    say(home, "I prefer coffee.")
    say(home, "I prefer tea in the morning.", session=ALICE)
    home.close()
    config = Config(home=folder, observation=Observation(model="offline"), embedding=Embedding(model="none"))
    daemon = Daemon(config)
    daemon._unlooked.extend(daemon.memory.registry.identities())
    under_way = daemon.memory.registry.graphs()
    assert next(under_way).identity.key == MAIN
    command = opened(folder)
    forget(command, ALICE, session=ALICE)
    command.close()
    caplog.set_level(logging.INFO)
    daemon._keep()
    assert list(under_way) == []
    assert "forgotten whole" in caplog.text
    assert PERSON not in caplog.text
    daemon.memory.close()


def test_what_is_said_while_a_graph_is_removed_begins_it_anew(
    home: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(home, "I prefer tea in the morning.", session=ALICE)
    remove = bare.remove_graph

    def slow(graph: Graph) -> None:
        say(home, "I moved to Porto.", session=ALICE, observe=False)
        home.intake.take_in()
        remove(graph)

    monkeypatch.setattr(erase, "remove_graph", slow)
    forget(home, ALICE, session=ALICE)
    home.work(force=True)
    (text,) = told(home.find(ALICE)).values()
    assert "Porto" in text
    assert traces(home, "tea in the morning") == []


def test_what_is_said_while_a_graph_is_removed_outlives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened(tmp_path / "omg")
    say(home, "I prefer tea in the morning.", session=ALICE)
    remove = bare.remove_graph

    def slow(graph: Graph) -> None:
        say(home, "I moved to Porto.", session=ALICE, observe=False)
        home.intake.take_in()
        monkeypatch.setattr(bare, "write_mark", killed)
        remove(graph)

    monkeypatch.setattr(erase, "remove_graph", slow)
    with pytest.raises(Killed):
        forget(home, ALICE, session=ALICE)
    monkeypatch.undo()
    home.close()
    home = opened(tmp_path / "omg")
    home.work(force=True)
    (text,) = told(home.find(ALICE)).values()
    assert "Porto" in text
    assert traces(home, "tea in the morning") == []
    home.close()


def test_a_slice_served_between_two_steps_of_a_redaction_is_served_no_more(
    home: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(home, f"My locker combination is {SECRET}.")
    make_anew = erase.make_anew

    def between(graph: Graph, trace: Any) -> None:
        home.inject("locker?", session=MAIN)
        make_anew(graph, trace)

    monkeypatch.setattr(erase, "make_anew", between)
    redact(home).flush()
    assert traces(home) == []
    assert SECRET not in str(home.inject("hello", session=MAIN))


def test_a_vault_elsewhere_of_an_account_that_was_merged_is_forgotten_too(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "omg", tmp_path / "elsewhere"
    home = opened(folder)
    say(home, f"My locker combination is {SECRET}.", session=ALICE)
    say(home, "I prefer tea.")
    home.close()
    (graph,) = (folder / "graphs").glob(f"*{PERSON}*")
    shutil.move(str(graph / "vault"), elsewhere)
    config = Config(home=folder, observation=Observation(model="offline"), vaults={ALICE: elsewhere})
    home = Memory(config, clock=lambda: NOW, embed=None)
    move_identity(home.registry, ALICE, MAIN)
    home.close()
    home = opened(folder)
    forget(home, MAIN, session=ALICE)
    assert not [f for f in elsewhere.rglob("*.md") if SECRET in f.read_text().lower()]
    home.close()


# --- stopped


def test_what_a_person_wrote_into_a_note_that_a_stopped_redaction_had_renamed_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened(tmp_path / "omg")
    graph = home.find()
    path = new_note(graph, "fact", f"{SECRET} shelf", f"The {SECRET} lies on it.", NOW).path
    monkeypatch.setattr(type(graph.vault), "remove", killed)
    with pytest.raises(Killed), graph.lock():
        forget_now(graph, select_words(graph, SECRET))
    monkeypatch.undo()
    file = graph.vault.root / f"{path}.md"
    file.write_text(f"{file.read_text()}\nHerons nest on it.\n")
    home.close()
    home = opened(tmp_path / "omg")
    home.find()
    assert traces(home) == []
    assert traces(home, "herons nest")
    home.close()


def test_whoever_works_next_completes_a_forgetting_that_another_process_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, daemon = opened(tmp_path / "omg"), opened(tmp_path / "omg")
    say(command, f"My locker combination is {SECRET}.")
    say(command, "My sister Maya lives in Lisbon.")
    graph = daemon.find(MAIN)
    monkeypatch.setattr(erase, "copies_of", killed)
    with pytest.raises(Killed):
        forget(command, MAIN, matching=SECRET)
    monkeypatch.undo()
    daemon.refresh(graph)
    assert traces(daemon) == []
    assert any("Lisbon" in text for text in told(daemon.find(MAIN)).values())
    command.close()
    daemon.close()


def test_a_note_that_a_stopped_forgetting_took_away_is_made_anew_of_what_else_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note of two messages: one is forgotten, the other is observed again, though its note was missed meanwhile."""
    home = opened(tmp_path / "omg")
    (kept,) = say(home, "My sister Maya lives in Lisbon.")
    (gone,) = say(home, f"My locker combination is {SECRET}.")
    graph = home.find(MAIN)
    path = next(p for p, text in told(graph).items() if "Lisbon" in text)
    other = graph.index.sources(next(p for p, text in told(graph).items() if SECRET in text))[0]
    text = graph.vault.text(path)
    assert text is not None
    line = next(part for part in text.splitlines() if f"id: {kept}" in part)
    stamp = str(graph.index.sources(path)[0].timestamp)
    second = line.replace(kept, gone).replace(stamp, str(other.timestamp))
    both = text.replace(line, f"{line}\n{second}").encode()
    graph.vault.write(path, both, text.encode())
    graph.vault.remember(path, both)
    home.refresh(graph)
    what = select_to_forget(graph, matching=SECRET)
    assert what.again == (kept,)
    monkeypatch.setattr(erase, "copies_of", killed)
    with pytest.raises(Killed), graph.lock():
        forget_now(graph, what)
    monkeypatch.undo()
    home.close()
    home = opened(tmp_path / "omg")
    home.work(force=True)
    assert any("Lisbon" in text for text in told(home.find(MAIN)).values())
    assert traces(home) == []
    home.close()


def test_a_note_that_a_stopped_redaction_renamed_does_not_count_as_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened(tmp_path / "omg")
    say(home, f"My {SECRET} is 12 metres long.")
    graph = home.find(MAIN)
    monkeypatch.setattr(erase, "change_folder", killed)
    with pytest.raises(Killed), graph.lock():
        forget_now(graph, select_words(graph, SECRET))
    monkeypatch.undo()
    home.close()
    home = opened(tmp_path / "omg")
    graph = home.find(MAIN)
    ids = {e.path: e.id for e in graph.index.entries()}
    made = {s.id: [ids[p]] for p in told(graph) for s in graph.index.sources(p)}
    assert made
    assert not graph.tombstones.gone(made)
    assert traces(home) == []
    home.close()


def test_tombstones_kept_of_a_graph_that_was_removed_are_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened(tmp_path / "omg")
    (id,) = say(home, "My sister Maya lives in Lisbon.", session=ALICE)
    forget(home, ALICE, matching="lisbon")
    say(home, "I prefer tea.", session=ALICE)
    monkeypatch.setattr(bare, "write_private", lambda file, _: (file.with_suffix(".tmp").touch(), killed()))
    with pytest.raises(Killed):
        forget(home, ALICE, session=ALICE)
    monkeypatch.undo()
    home.close()
    home = opened(tmp_path / "omg")
    for who in home.registry.identities():
        home.graph(who)
    entry = {
        "entryId": id,
        "message": {"role": "user", "content": "My sister Maya lives in Lisbon.", "timestamp": 1},
    }
    drop = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": ALICE, "entries": [entry]}
    (home.folder / "spool" / "001771500009999-x.json").write_text(json.dumps(drop))
    home.work(force=True)
    assert traces(home, "lisbon") == []
    home.close()


def test_a_note_that_is_no_text_is_named_and_left_as_it_is(home: Memory) -> None:
    graph = home.find()
    file = graph.vault.root / "nodes" / "fact" / "mine.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    raw = f"---\ndescription: caf\xe9 {SECRET}\n---\n\ncaf\xe9 {SECRET}.\n".encode("latin-1")
    file.write_bytes(raw)
    home.refresh(graph)
    what = select_words(graph, SECRET)
    assert [named for named in what.beyond if str(file) in named]
    forget_selection(home.intake, graph, what)
    assert file.read_bytes() == raw
