"""A memory moves: two accounts become one person, or a session key changes. Nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path

import pytest
from spooled import entry, hand_over

from omg.config import load_config
from omg.curate import forget_selection, join_accounts, move_identity, select_to_forget
from omg.errors import BadInput, NotFound
from omg.graph.graph import GRAPH_MARK
from omg.memory import Memory
from omg.openclaw.graph_checks import check_graph
from omg.tools.removing import Codes
from omg.tools.tools import slash_command
from omg.worker.status import home_status, status_text

ALICE, BOB = "agent:main:telegram:direct:111", "agent:main:discord:direct:222"
PERSON = "agent:main:person:ada"
CONFIG = '[observation]\nmodel = "offline" # mine\n[embedding]\nmodel = "none"\n'
Open = Callable[[], Memory]


@pytest.fixture
def opened(home: Path) -> Iterator[Open]:
    home.mkdir(exist_ok=True)
    (home / "omg.toml").write_text(CONFIG)
    homes: list[Memory] = []

    def open() -> Memory:
        for one in homes:
            one.close()
        homes.append(Memory(load_config(home), embed=None))
        return homes[-1]

    yield open
    for one in homes:
        one.close()


def say(home: Memory, session: str, text: str, id: str, *, observe: bool = True) -> None:
    hand_over(home.folder, entry(id, text, 1_795_000_000_000 + int(id[1:])), session=session)
    if observe:
        home.work(force=True)
    else:
        home.take_in()


def texts(home: Memory, key: str) -> list[str]:
    vault = home.find(key).vault
    return [vault.text(p) for p in vault.paths() if p.startswith("nodes/")]


def test_joining_two_accounts_keeps_the_whole_memory_of_both(opened: Open) -> None:
    home = opened()
    say(home, ALICE, "I prefer short checklists.", "m1")
    say(home, BOB, "I prefer long walks.", "m2")
    say(home, BOB, "I prefer green tea.", "m3", observe=False)
    assert join_accounts(home.registry, "ada", ["telegram:111", "discord:222"]) == [
        (BOB, PERSON),
        (ALICE, PERSON),
    ]
    home = opened()
    assert [w.key for w in home.registry.identities()] == [PERSON]
    graph = home.find(PERSON)
    assert {"m1", "m2"} <= graph.index.seen(["m1", "m2", "m3"])
    assert len(graph.pending()) == 1
    home.work(force=True)
    for words in ("short checklists", "long walks", "green tea"):
        assert any(words in text for text in texts(home, PERSON))
        assert graph.index.search(words, now=home.clock())
    say(home, BOB, "I prefer rye bread.", "m4")
    assert any("rye bread" in text for text in texts(home, PERSON))
    say(home, BOB, "I prefer long walks.", "m2")  # an import of what was taken in under the former key
    assert not home.find(PERSON).pending()
    assert (home.folder / "omg.toml").read_text().startswith(CONFIG)


def test_joining_accounts_keeps_notes_that_differ_and_the_words_of_a_person(opened: Open) -> None:
    home = opened()
    for session, id in ((ALICE, "m1"), (BOB, "m2")):
        say(home, session, "I prefer short checklists.", id)
    vault = home.find(BOB).vault
    (note,) = [p for p in vault.paths() if p.startswith("nodes/")]
    vault.file(note).write_text(vault.text(note) + "\nBob's own words.\n")
    vault.file("index").write_text(vault.text("index") + "\nOn Bob's index.\n")
    home.refresh(home.find(BOB))
    move_identity(home.registry, BOB, ALICE)
    home = opened()
    found = texts(home, ALICE)
    assert len(found) == 2
    assert sum("Bob's own words." in text for text in found) == 1
    graph = home.find(ALICE)
    ids = [e.id for e in graph.index.entries() if e.path.startswith("nodes/")]
    assert len(set(ids)) == 2
    inbox = [graph.vault.text(p) for p in graph.vault.paths() if p.startswith("inbox/")]
    assert any("On Bob's index." in text for text in inbox)
    (kept,) = (home.folder / "joined").iterdir()
    assert "Bob's own words." in (kept / "vault" / f"{note}.md").read_text()


def test_joining_accounts_brings_back_nothing_that_either_had_forgotten(opened: Open) -> None:
    home = opened()
    for session, id in ((ALICE, "m1"), (BOB, "m2")):
        say(home, session, "I prefer short checklists.", id)
        graph = home.find(session)
        forget_selection(
            home.intake,
            graph,
            select_to_forget(graph, ids=[e.path for e in graph.index.entries() if "/preference/" in e.path]),
        )
    join_accounts(home.registry, "ada", ["telegram:111", "discord:222"])
    home = opened()
    for session, id in ((ALICE, "m1"), (BOB, "m2")):
        say(home, session, "I prefer short checklists.", id)
    assert texts(home, PERSON) == []


def test_moving_to_an_unused_key_renames_the_folder(opened: Open) -> None:
    home = opened()
    say(home, ALICE, "I prefer short checklists.", "m1")
    new = "agent:main:direct:alice"
    move_identity(home.registry, ALICE, new)
    home = opened()
    assert [w.key for w in home.registry.identities()] == [new]
    assert any("short checklists" in text for text in texts(home, new))
    assert home.find(new).index.seen(["m1"]) == {"m1"}
    with pytest.raises(NotFound):
        move_identity(home.registry, ALICE, new)


def test_after_a_move_to_a_new_key_an_account_still_uses_its_vault_outside_the_home(
    opened: Open, tmp_path: Path
) -> None:
    from omg.config import set_vault

    home = opened()
    set_vault(home.folder, ALICE, tmp_path / "notes")
    home = opened()
    say(home, ALICE, "I prefer short checklists.", "m1")
    move_identity(home.registry, ALICE, BOB)
    home = opened()
    assert home.config.vaults == {BOB: tmp_path / "notes"}
    assert any("short checklists" in text for text in texts(home, BOB))


@pytest.mark.parametrize(
    ("name", "accounts"), [("", ["a:b"]), ("ada", ["telegram"]), ("ada", [":1"]), ("ada", ["telegram:"])]
)
def test_joining_refuses_a_key_that_is_no_account(opened: Open, name: str, accounts: list[str]) -> None:
    with pytest.raises(BadInput):
        join_accounts(opened().registry, name, accounts)


def test_joining_extends_an_inline_links_table_and_keeps_its_entries_and_comments(
    opened: Open, home: Path
) -> None:
    (home / "omg.toml").write_text('[identity]\nlinks = { bob = ["telegram:9"] }  # mine\n')
    join_accounts(opened().registry, "ada", ["telegram:111"])
    assert load_config(home).identity.links == {"bob": ["telegram:9"], "ada": ["telegram:111"]}
    assert "# mine" in (home / "omg.toml").read_text()


def test_joining_a_new_account_is_offered_for_a_week_and_never_happens_by_itself(opened: Open) -> None:
    omg = opened()
    main, phone = "agent:main:main", "agent:main:telegram:direct:111"
    for session in (main, phone):
        omg.capture([{"role": "user", "content": "I like tea."}], session=session)

    def offers(session: str) -> str:
        context = {"sessionKey": session, "senderIsOwner": session == main, "trigger": "user"}
        body = {"args": "status", "context": context | {"channel": "" if session == main else "telegram"}}
        return str(slash_command(omg.intake, body, Codes())["text"])

    for session in (main, phone):
        assert "omg identity join owner telegram:111" in offers(session)
    status = status_text(home_status(omg.worker), UTC)
    assert status.count("identity join owner telegram:111") == 1
    found = [f.what for f in check_graph(omg, omg.find(phone)) if "identity join" in f.what]
    assert len(found) == 1
    assert {who.key for who in omg.registry.identities()} == {main, phone}
    mark = omg.find(phone).folder / GRAPH_MARK
    os.utime(mark, (mark.stat().st_mtime - 8 * 86_400,) * 2)
    assert "identity join" not in offers(main) + offers(phone)
