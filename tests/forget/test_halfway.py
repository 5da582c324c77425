"""A forgetting that is stopped half way, or meets what goes on beside it: nothing of it comes back, and nothing else is lost."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import pytest
from spooled import entry, hand_over

from omg.config import Config, Embedding, Observation
from omg.curate import forget_selection, move_identity, new_note, select_to_forget
from omg.daemon import Daemon
from omg.forget import erase
from omg.forget.erase import forget_now
from omg.forget.places import BLANK
from omg.forget.selection import select_words
from omg.graph.graph import Graph
from omg.index.index import Index
from omg.memory import Memory
from omg.observe import run
from tests.forget.test_everywhere import ALICE, MAIN, NOW, SECRET, forget, opened, say, traces

PERSON = "4915550123"  # stands in the names of ALICE's folders


class Killed(BaseException): ...


def killed(*_: Any, **__: Any) -> NoReturn:
    raise Killed


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[], Memory]]:
    """Opens the home, as the next process would: the one before is closed."""
    opened_before: list[Memory] = []

    def begin() -> Memory:
        for before in opened_before:
            before.close()
        opened_before[:] = [opened(tmp_path / "omg")]
        return opened_before[0]

    yield begin
    for last in opened_before:
        last.close()


@pytest.fixture
def home(begin: Callable[[], Memory]) -> Memory:
    return begin()


@contextmanager
def killed_at(where: Any, step: str) -> Iterator[None]:
    """What is done meanwhile is killed when it comes to *step*."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(where, step, killed)
        yield


def redact(home: Memory) -> Graph:
    graph = home.find(MAIN)
    forget_selection(home.intake, graph, select_words(graph, SECRET))
    return graph


def told(graph: Graph) -> dict[str, str]:
    return {e.path: e.description for e in graph.index.entries() if e.path.startswith("nodes/")}


# --- beside others


def test_words_redacted_during_an_observation_are_not_written_back(
    home: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    (path,) = told(home.find(MAIN))
    say(home, "My sister Maya lives in Lisbon.", f"I prefer {SECRET} tea.", observe=False)
    home.intake.take_in()
    ask = run.ask_about

    def meanwhile(batch: Any, *args: Any) -> Any:
        batch.plan.amend(path, priority="high")
        redact(home)
        monkeypatch.undo()
        return ask(batch, *args)

    monkeypatch.setattr(run, "ask_about", meanwhile)
    home.work(force=True)
    assert traces(home) == []
    home.work(force=True)
    assert traces(home) == []
    assert any("Lisbon" in text for text in told(home.find(MAIN)).values())
    assert any(f"{BLANK} tea" in text for text in told(home.find(MAIN)).values())


@pytest.fixture
def daemon(home: Memory) -> Iterator[Daemon]:
    """Beside the commands of *home*."""
    config = Config(
        home=home.folder, observation=Observation(model="offline"), embedding=Embedding(model="none")
    )
    daemon = Daemon(config)
    yield daemon
    daemon.memory.close()


def test_a_daemon_does_not_recreate_a_graph_that_a_command_forgot(home: Memory, daemon: Daemon) -> None:
    say(home, "I prefer tea in the morning.", session=ALICE)
    daemon.memory.find(ALICE)
    forget(home, ALICE, session=ALICE)
    assert traces(daemon.memory, PERSON) == []
    daemon._rescanned = -1e9
    daemon._keep()
    daemon.memory.work()
    assert traces(daemon.memory, PERSON) == []


def test_a_daemon_still_checks_one_memory_for_secrets_if_another_memory_fails(
    home: Memory, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for session in (ALICE, MAIN):
        say(home, "I prefer tea in the morning.", session=session)
        daemon.memory.find(session)
    failing, other = (graph.index for graph in daemon.memory.registry.kept())
    search = Index.look_for_secrets

    def fail(index: Index, limit: int = 9) -> int:
        if index is failing:
            raise ValueError("a broken message")
        return search(index, limit)

    monkeypatch.setattr(Index, "look_for_secrets", fail)
    caplog.clear()
    for _ in range(3):
        daemon._keep()
    assert (search(failing) > 0, search(other)) == (True, 0)
    assert sum("made ready for prompts" in r.getMessage() for r in caplog.records) == 1, "logged once"


def test_a_daemon_does_not_log_the_session_key_of_a_memory_that_a_command_forgot(
    home: Memory, daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    say(home, "I prefer coffee.")
    say(home, "I prefer tea in the morning.", session=ALICE)
    daemon._unlooked.extend(daemon.memory.registry.identities())
    under_way = daemon.memory.registry.graphs()
    assert next(under_way).identity.key == MAIN
    forget(home, ALICE, session=ALICE)
    caplog.set_level(logging.INFO)
    daemon._keep()
    assert list(under_way) == []
    assert "whole memory was forgotten" in caplog.text
    assert PERSON not in caplog.text


@pytest.mark.parametrize("killed_then", [False, True])
def test_a_turn_that_comes_while_a_graph_is_removed_starts_a_new_graph(
    home: Memory, begin: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch, killed_then: bool
) -> None:
    say(home, "I prefer tea in the morning.", session=ALICE)
    remove = erase.remove_graph

    def slow(graph: Graph) -> None:
        say(home, "I moved to Porto.", session=ALICE, observe=False)
        home.intake.take_in()
        if killed_then:
            monkeypatch.setattr(erase, "write_mark", killed)
        remove(graph)

    monkeypatch.setattr(erase, "remove_graph", slow)
    with pytest.raises(Killed) if killed_then else nullcontext():
        forget(home, ALICE, session=ALICE)
    monkeypatch.undo()
    if killed_then:
        home = begin()
    home.work(force=True)
    (text,) = told(home.find(ALICE)).values()
    assert "Porto" in text
    assert traces(home, "tea in the morning") == []


def test_a_slice_served_during_a_redaction_is_not_served_again(
    home: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    make_anew = erase.make_anew

    def between(graph: Graph, trace: Any) -> None:
        home.inject("locker?", session=MAIN)
        make_anew(graph, trace)

    monkeypatch.setattr(erase, "make_anew", between)
    redact(home).flush()
    assert traces(home) == []
    assert SECRET not in str(home.inject("hello", session=MAIN))


def test_forgetting_a_merged_account_also_cleans_its_vault_outside_the_home(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "omg", tmp_path / "elsewhere"
    home = opened(folder)
    say(
        home,
        f"Remember that the combination of the locker in our old changing rooms is {SECRET}.",
        session=ALICE,
    )
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


def test_an_edit_survives_in_a_note_that_a_stopped_redaction_has_renamed(
    home: Memory, begin: Callable[[], Memory]
) -> None:
    graph = home.find()
    path = new_note(graph, "fact", f"{SECRET} shelf", f"The {SECRET} lies on it.", NOW).path
    with killed_at(type(graph.vault), "remove"), graph.lock():
        forget_now(graph, select_words(graph, SECRET))
    file = graph.vault.root / f"{path}.md"
    file.write_text(f"{file.read_text()}\nHerons nest on it.\n")
    home = begin()
    home.find()
    assert traces(home) == []
    assert traces(home, "herons nest")


def test_the_next_process_completes_a_forgetting_that_another_began(home: Memory) -> None:
    command, daemon = opened(home.folder), home
    say(command, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
    say(command, "My sister Maya lives in Lisbon.")
    graph = daemon.find(MAIN)
    with killed_at(erase, "copies_of"):
        forget(command, MAIN, matching=SECRET)
    command.close()
    daemon.refresh(graph)
    assert traces(daemon) == []
    assert any("Lisbon" in text for text in told(daemon.find(MAIN)).values())


def test_a_note_removed_by_a_stopped_forgetting_is_rebuilt_from_its_other_messages(
    home: Memory, begin: Callable[[], Memory]
) -> None:
    """A note of two messages: one is forgotten, the other is observed again, though its note was missed meanwhile."""
    (kept,) = say(home, "My sister Maya lives in Lisbon.")
    (gone,) = say(home, f"Remember that the combination of the locker in our old changing rooms is {SECRET}.")
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
    with killed_at(erase, "copies_of"), graph.lock():
        forget_now(graph, what)
    home = begin()
    home.work(force=True)
    assert any("Lisbon" in text for text in told(home.find(MAIN)).values())
    assert traces(home) == []


def test_a_kill_leaves_the_tombstones_of_a_removed_graph_complete_or_absent(
    home: Memory, begin: Callable[[], Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    (id,) = say(home, "My sister Maya lives in Lisbon.", session=ALICE)
    forget(home, ALICE, matching="lisbon")
    say(home, "I prefer tea.", session=ALICE)
    write = erase.write_private

    def torn(file: Path, text: str) -> None:
        if file.name == erase.JOURNAL:
            return write(file, text)
        file.with_suffix(".tmp").touch()
        killed()

    monkeypatch.setattr(erase, "write_private", torn)
    with pytest.raises(Killed):
        forget(home, ALICE, session=ALICE)
    monkeypatch.undo()
    home = begin()
    for who in home.registry.identities():
        home.graph(who)
    hand_over(home.folder, entry(id, "My sister Maya lives in Lisbon.", 1), session=ALICE)
    home.work(force=True)
    assert traces(home, "lisbon") == []


def test_forgetting_reports_a_note_that_is_not_utf8_and_leaves_it_unchanged(home: Memory) -> None:
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
