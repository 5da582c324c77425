"""A person edits the vault in Obsidian. Obsidian cannot run here, so files are written as its documentation describes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from obsidian import relinked, saved
from planted import NOW, graph_of, home_at, note, put

from omg.curate import rename_note
from omg.demo import run_demo
from omg.graph.graph import Graph
from omg.journal import Receipt, commit_receipt
from omg.memory import Memory
from omg.node.note import Source
from omg.plan.drafts import Plan
from omg.plan.edits import Edit
from omg.vault.vault import Vault
from omg.worker.nights import one_night

DAY = dt.date(2026, 4, 20)
TEA = "nodes/preference/tea"
POT = "nodes/fact/pot"


@pytest.fixture(scope="module")
def demo_notes(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """The demo's vault, as OMG wrote it."""
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder)
    (written,) = (folder / "home" / "graphs").glob("main-main-*/written.jsonl")
    return Vault(folder / "vault", written)


@pytest.fixture
def which(home: Path) -> Iterator[Memory]:
    with_home = home_at(home)
    yield with_home
    with_home.close()


@pytest.fixture
def graph(which: Memory) -> Graph:
    graph = graph_of(which)
    body = f"Ada drinks green tea from [[{POT}|the pot]]."
    put(
        graph,
        note(TEA, "Ada drinks green tea.", dt.date(2026, 1, 5), body=body, tags=("drinks",), links=(POT,)),
        note(POT, "The pot is blue.", dt.date(2026, 1, 5)),
    )
    which.refresh(graph)
    return graph


def save(graph: Graph, path: str, text: str) -> None:
    graph.vault.file(path).write_bytes(text.encode())


def said(description: str, target: str | None = TEA, **more: object) -> Edit:
    source = Source("agent:main:main", f"m-{description[:20]}", int(NOW.timestamp() * 1000) + 10**9)
    op = "update" if target else "create"
    edit = Edit(op, title="Tea", description=description, type="preference", target=target, sources=(source,))
    return replace(edit, **more)  # type: ignore[arg-type]


def observe(graph: Graph, *edits: Edit) -> None:
    """Apply *edits* as the Observer does."""
    with graph.lock():
        plan = Plan(graph, DAY)
        plan.apply_all(edits)
        stamp = str(len(list((graph.folder / "receipts").iterdir())))
        commit_receipt(
            graph, Receipt(f"20260420T041000-{stamp}", "observation", "2026-04-20", tuple(plan.changes()))
        )


# --- whose note it is


def test_a_note_does_not_count_as_edited_after_obsidian_reformats_the_frontmatter(demo_notes: Vault) -> None:
    anew = 0
    for path in demo_notes.paths():
        text = demo_notes.text(path)
        if not demo_notes.ours(text.encode()):
            continue
        for eol in ("\n", "\r\n"):
            laid = saved(text, eol=eol).encode()
            anew += laid != text.encode()
            assert demo_notes.ours(laid) and demo_notes.unchanged(laid) and not demo_notes.theirs(laid), path
    assert anew > 40


@pytest.mark.parametrize(
    ("edit", "property"),
    [
        ({"priority": "high"}, "priority"),
        ({"tags": ["drinks", "mornings"]}, "tags"),
        ({"tags": None}, "tags"),
        ({"pinned": True}, "pinned"),
        ({"mood": "calm"}, "own"),
        ({"description": "Ada loves green tea."}, "description"),
    ],
)
def test_an_edited_property_counts_as_edited_by_the_person_and_the_other_properties_do_not(
    graph: Graph, edit: dict[str, object], property: str
) -> None:
    data = saved(graph.vault.text(TEA), edit).encode()
    assert graph.vault.theirs(data) == {property}
    assert graph.vault.ours(data) and not graph.vault.unchanged(data)


def test_a_note_counts_as_edited_if_a_person_writes_words_into_it(graph: Graph) -> None:
    data = (saved(graph.vault.text(TEA)) + "From Kyoto.\n").encode()
    assert not graph.vault.ours(data)


def test_the_observer_updates_a_note_and_keeps_what_a_person_set(which: Memory, graph: Graph) -> None:
    save(graph, TEA, saved(graph.vault.text(TEA), {"priority": "low", "tags": ["mornings"], "mood": "calm"}))
    which.refresh(graph)
    for n, now in enumerate(("Ada drinks black tea.", "Ada drinks white tea.")):
        observe(graph, said(now, priority="high", tags=(f"tag-{n}",)))
        node = graph.vault.read(TEA)
        assert node.description == now and node.body.startswith(now)
        assert (node.priority, node.tags, node.extra) == ("low", ("mornings",), {"mood": "calm"})
        data = graph.vault.bytes(TEA) or b""
        assert graph.vault.ours(data) and {"priority", "tags", "own"} <= graph.vault.theirs(data)


def test_a_persons_property_survives_a_rename_and_a_night(which: Memory, graph: Graph) -> None:
    save(graph, TEA, saved(graph.vault.text(TEA), {"priority": "high"}))
    which.refresh(graph)
    done = rename_note(graph, TEA, "green-tea", NOW)
    assert "priority" in graph.vault.theirs(graph.vault.bytes(done.path) or b"")
    one_night(which.worker, graph, None, dry_run=False, pending=True)
    observe(graph, said("Ada drinks black tea.", target=done.path, priority="low"))
    assert graph.vault.read(done.path).priority == "high"


def test_a_write_keeps_a_property_that_a_person_just_edited_and_marks_no_other_part_as_edited(
    graph: Graph,
) -> None:
    with graph.lock():
        plan = Plan(graph, DAY)
        plan.apply(said("Ada drinks black tea."))
        changes = tuple(plan.changes())
        save(graph, TEA, saved(graph.vault.text(TEA), {"priority": "low"}))
        commit_receipt(graph, Receipt("20260420T041000-1", "observation", "2026-04-20", changes))
    data = graph.vault.bytes(TEA) or b""
    assert "Ada drinks black tea." in data.decode() and b"priority: low" in data
    assert graph.vault.ours(data) and graph.vault.theirs(data) == {"priority"}


def test_a_reformatted_frontmatter_is_no_edit_and_refreshes_no_slice(which: Memory, graph: Graph) -> None:
    epoch = graph.state().epoch
    save(graph, TEA, saved(graph.vault.text(TEA)))
    assert which.refresh(graph).changed == (TEA,)
    assert graph.state().epoch == epoch
    save(graph, TEA, saved(graph.vault.text(TEA), {"pinned": True}))
    which.refresh(graph)
    assert graph.state().epoch == epoch + 1


# --- links


@pytest.mark.parametrize("above", ["omg", "memory/omg", "My vaults/omg"])
def test_links_from_a_folder_above_lead_to_the_note(which: Memory, graph: Graph, above: str) -> None:
    text = f"See [[{above}/{POT}|the pot]], [[{above}/mocs/moc-facts]] and [[{above}/index]].\n"
    save(graph, "nodes/fact/kettle", text)
    which.refresh(graph)
    assert set(graph.index.entry("nodes/fact/kettle").links) >= {POT, "mocs/moc-facts"}
    assert graph.index.resolve("docs/index") is None  # a page of the workspace, and not our index


def test_notes_that_link_to_a_note_renamed_in_obsidian_do_not_count_as_edited(
    which: Memory, graph: Graph
) -> None:
    graph.vault.file(POT).rename(graph.vault.file("nodes/fact/tea-pot"))
    for new in ("nodes/fact/tea-pot", "memory/omg/nodes/fact/tea-pot", "tea-pot"):
        save(graph, TEA, saved(relinked(graph.vault.text(TEA), POT, new)))
        which.refresh(graph)
        data = graph.vault.bytes(TEA) or b""
        assert graph.vault.unchanged(data) and not graph.vault.theirs(data), new
        save(graph, TEA, relinked(graph.vault.text(TEA), new, POT))
    save(graph, TEA, saved(relinked(graph.vault.text(TEA), POT, "memory/omg/nodes/fact/tea-pot")))
    which.refresh(graph)
    observe(graph, said("Ada drinks black tea.", body="Ada drinks black tea."))
    node = graph.vault.read(TEA)
    assert node.body.startswith("Ada drinks black tea.")
    assert "nodes/fact/tea-pot" in node.links and "memory" not in graph.vault.text(TEA)


def test_a_link_that_a_person_changed_is_theirs(which: Memory, graph: Graph) -> None:
    put(graph, note("nodes/fact/cup", "The cup is white.", DAY))
    which.refresh(graph)
    text = graph.vault.text(TEA).replace(f"[[{POT}|", "[[nodes/fact/cup|")
    assert not graph.vault.ours(text.encode())
