"""A person's own changes: writing, renaming, merging, forgetting."""

import json
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest
from spooled import entry, hand_over

from omg.curate import (
    closed_cycles,
    find_note,
    forget_selection,
    is_untouched,
    link_notes,
    merge_into,
    new_note,
    open_note,
    pin_note,
    rename_note,
    select_to_forget,
    supersede_by,
    take_back,
    undoable,
    write_edits,
)
from omg.errors import BadInput, Locked, NotFound, OmgError
from omg.forget.places import BLANK
from omg.forget.selection import select_words
from omg.graph.state import flock
from omg.memory import Memory
from omg.node.note import Source
from omg.openclaw.graph_checks import check_graph
from omg.plan.edits import Edit
from omg.rebuild import build_anew, take_rebuilt
from tests.forget.test_everywhere import traces

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MAIN = "agent:main:main"


def say(omg, *texts, session=MAIN):
    said = getattr(omg, "said", 0)
    omg.said = said + len(texts)
    entries = [entry(f"e{n}", text, 1_771_500_000_000 + n * 1000) for n, text in enumerate(texts, said + 1)]
    hand_over(omg.folder, *entries, session=session)
    omg.work(force=True)


@pytest.fixture
def graph(omg):
    return omg.find()


@pytest.fixture
def router(graph):
    return new_note(graph, "fact", "Router", "The router is in the attic.", NOW).path


@pytest.fixture
def modem(graph):
    return new_note(graph, "fact", "Modem", "The modem is up there.", NOW).path


def test_a_new_note_of_a_person_is_on_the_map_of_its_type_and_has_the_origin_human(graph):
    path = new_note(graph, "fact", "Router", "The router is in the attic. Its name is Bob.", NOW).path
    node = graph.vault.read(path)
    assert (node.origin, node.description) == ("human", "The router is in the attic.")
    assert "[[nodes/fact/router" in graph.vault.text("mocs/moc-facts")


def test_the_index_page_still_counts_open_loops_after_another_note_is_written(omg, graph):
    say(omg, "I have a dentist appointment on 2026-12-24.")
    line = "[[mocs/moc-open-loops|Open loops]] (1)"
    assert line in graph.vault.text("index")
    new_note(graph, "fact", "Router", "The router is in the attic.", NOW)
    assert line in graph.vault.text("index")
    assert not [f for f in check_graph(omg, graph) if "out of date" in f.what]


def test_the_doctor_reports_a_damaged_receipt_and_forgetting_deletes_it(omg):
    say(omg, "My sister Maya lives in Lisbon.")
    graph = omg.find(MAIN)
    file = graph.folder / "receipts" / "20260101T000000-x.json"
    file.write_text('{"id": "x", "after": "Maya lives in Lisb')
    other = file.with_name("20260102T000000-x.json")
    other.write_text("{garbage about Lisbon")
    selection = select_to_forget(graph, matching="Lisbon")
    named = [f.where for f in check_graph(omg, graph) if "cannot be undone any more" in f.what]
    assert named == [str(graph.folder / "damaged" / f.name) for f in (file, other)]
    forget_selection(omg.intake, graph, selection)
    assert sorted(f.name for f in (graph.folder / "damaged").iterdir()) == [file.name, f"{file.name}.txt"]


def test_undo_skips_a_change_that_was_forgotten(omg, graph):
    kept = new_note(graph, "fact", "Router", "The router is in the attic.", NOW)
    new_note(graph, "fact", "Code", "The code is 4711.", NOW)
    forget_selection(omg.intake, graph, select_to_forget(graph, matching="4711"))
    assert undoable(graph, None).id == kept.cycle


def test_undo_does_not_claim_success_if_nothing_of_the_change_is_left(graph):
    made = new_note(graph, "fact", "Router", "The router is in the attic.", NOW)
    renamed = rename_note(graph, made.path, "Modem", NOW)
    with pytest.raises(BadInput, match="renamed or deleted since"):
        take_back(graph, made.cycle, NOW)
    take_back(graph, renamed.cycle, NOW)
    take_back(graph, made.cycle, NOW)
    assert graph.vault.bytes(made.path) is None


def body(graph, path):
    return graph.vault.text(path).partition("\n---\n")[2].strip()


def test_an_opened_note_shows_its_title_once_above_its_text(graph):
    path = new_note(graph, "fact", "Maria's e-bike", "It stands in the attic, by Maria's e-bike.", NOW).path
    assert body(graph, path) == "# Maria's e-bike\n\nIt stands in the attic, by Maria's e-bike."
    node = graph.vault.read(path)
    assert (node.title, node.body) == ("Maria's e-bike", "It stands in the attic, by Maria's e-bike.")
    assert graph.vault.ours(graph.vault.bytes(path))


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_rename_changes_a_title_made_from_the_file_name_and_no_other_title(omg, graph, by_hand):
    def renamed(path, name):
        if not by_hand:
            return rename_note(graph, path, name, NOW).path
        graph.vault.file(path).rename(graph.vault.file(f"nodes/fact/{name}"))
        omg.refresh(graph)
        return f"nodes/fact/{name}"

    path = new_note(graph, "fact", "Router", "It is in the attic.", NOW).path
    assert body(graph, renamed(path, "modem")) == "# Modem\n\nIt is in the attic."
    own = new_note(graph, "fact", "Roof", "# Up there\n\nThe roof is red.", NOW).path
    assert body(graph, renamed(own, "tiles")) == "# Up there\n\nThe roof is red."


def test_pinning_and_linking_and_superseding_write_the_properties_of_the_notes(graph, router, modem):
    pin_note(graph, router, NOW)
    link_notes(graph, router, modem, NOW)
    supersede_by(graph, modem, router, NOW)
    node = graph.vault.read(router)
    assert node.pinned
    assert modem in node.links
    assert node.supersedes == (modem,)
    pin_note(graph, router, NOW, pinned=False)
    assert not graph.vault.read(router).pinned


def test_the_beginning_of_a_name_can_open_a_note_but_not_change_it(graph):
    path = new_note(graph, "fact", "Garden gate and fence", "The garden gate squeaks.", NOW).path
    assert open_note(graph, "garden-gate").node.path == path
    with pytest.raises(NotFound, match="did you mean"):
        find_note(graph, "garden-gate")
    with pytest.raises(NotFound, match=f"did you mean {path}"):
        find_note(graph, "fence")  # not mocs/moc-preferences, which is spelled more like it


def test_what_is_forgotten_leaves_no_trace_in_any_file(omg):
    say(
        omg,
        "I prefer short checklists.",
        "Remember that the combination of the locker in our old changing rooms is zanzibarquartz and my locker is number 9.",
    )
    say(omg, "I decided to repaint the zanzibarquartz locker because it rusts.")
    say(omg, "My sister Maya lives in Lisbon.")
    graph = omg.find(MAIN)
    assert traces(omg)
    what = select_to_forget(graph, matching="zanzibarquartz")
    assert what.paths
    forget_selection(omg.intake, graph, what)
    omg.work(force=True)
    assert traces(omg) == []
    kept = [e.description for e in graph.index.entries() if e.path.startswith("nodes/")]
    assert any("Lisbon" in d for d in kept)
    assert any("checklists" in d for d in kept)
    with sqlite3.connect(graph.folder / "index.db") as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)


def cited(graph, *ids):
    """Return the descriptions of the notes that cite these messages."""
    return [graph.index.entry(p).description for p in graph.index.citing(ids)]


def test_forgetting_before_a_day_uses_the_persons_time_zone(omg):
    say(omg, "I prefer tea in the morning.", "My sister Maya lives in Lisbon.")
    graph = omg.find(MAIN)
    what = select_to_forget(graph, before_ms=1_771_500_001_500)
    assert what.messages == ("e1",)
    forget_selection(omg.intake, graph, what)
    assert cited(graph, "e1") == []
    assert cited(graph, "e2") == ["My sister Maya lives in Lisbon."]


def test_a_note_written_by_hand_is_forgotten_under_every_name_it_had(omg):
    graph = omg.find()
    path = new_note(graph, "fact", "Zanzibarquartz locker", "It holds the zanzibarquartz.", NOW).path
    path = rename_note(graph, path, "Zanzibarquartz", NOW).path
    other = new_note(graph, "fact", "Attic", f"Up there is [[{path}|the thing]], and dust.", NOW).path
    link_notes(graph, other, path, NOW)
    what = select_to_forget(graph, ids=["zanzibarquartz"])
    assert what.linking == (other,)
    forget_selection(omg.intake, graph, what)
    assert traces(omg) == []
    assert "Up there is the thing, and dust." in graph.vault.text(other)
    assert [link for link in graph.index.dangling() if link[0].startswith("nodes/")] == []


def test_the_notes_before_and_after_a_forgotten_note_no_longer_mention_it(omg):
    graph = omg.find()
    old = new_note(graph, "fact", "Zanzibarquartz", "The zanzibarquartz is up there.", NOW).path
    kept = new_note(graph, "fact", "Shelf", "The shelf is full.", NOW).path
    merge_into(graph, kept, old, NOW)
    assert "zanzibarquartz" in graph.vault.text(kept)
    forget_selection(omg.intake, graph, select_to_forget(graph, ids=[old]))
    assert traces(omg) == []
    say(omg, "Remember that the zanzibarquartz is down there.")
    source = Source(MAIN, "e1", int(NOW.timestamp() * 1000))
    told = ("Zanzibarquartz", "Remember that the zanzibarquartz is down there.")
    assert write_edits(graph, [Edit("supersede", *told, target=kept, sources=(source,))], NOW, "replaced it")
    forget_selection(omg.intake, graph, select_to_forget(graph, session=MAIN))
    assert traces(omg) == []
    assert (graph.vault.read(kept).status, graph.vault.read(kept).superseded_by) == ("active", None)


def test_the_messages_and_receipts_of_a_deleted_note_can_still_be_forgotten(omg):
    say(omg, "Remember that the combination of the locker in our old changing rooms is zanzibarquartz.")
    graph = omg.find(MAIN)
    [path] = graph.index.citing(["e1"])
    graph.vault.file(path).unlink()
    omg.refresh(graph)
    forget_selection(omg.intake, graph, select_to_forget(graph, matching="ZanzibarQuartz"))
    assert traces(omg) == []


@pytest.mark.parametrize("redacts", [False, True])
def test_forgetting_reaches_the_log_and_broken_drops_and_rebuilt_graphs_and_the_inbox(omg, redacts):
    say(
        omg,
        "Remember that the combination of the locker in our old changing rooms is zanzibarquartz.",
        "My sister Maya lives in Lisbon.",
    )
    graph = omg.find(MAIN)
    build_anew(graph, omg.worker.observer("main"), omg.config, NOW)
    take_rebuilt(graph, NOW)
    build_anew(graph, omg.worker.observer("main"), omg.config, NOW)
    for name in ("vault", "archive"):  # what a rebuild of an earlier build left
        shutil.copytree(graph.folder / name, graph.folder / "replaced" / "20260201T000000" / name)
    [path] = graph.index.citing(["e1"])
    log = omg.folder / "omg.log"
    log.write_text(f"up\ndropped {path}: Zanzibarquartz\ndown\n")
    with (omg.folder / "events.jsonl").open("a") as events:
        events.write(json.dumps({"event": "x", "error": "zanzibarquartz"}) + "\n")
    bad = omg.folder / "spool" / "bad"
    bad.mkdir()
    (bad / "1-x.json").write_text('{"torn": "Zanzibarquartz')
    (graph.folder / "damaged").mkdir(exist_ok=True)
    (graph.folder / "damaged" / "x.json").write_text("{zanzibarquartz, and more")
    (graph.vault.root / "inbox" / "mine.md").write_text("Remember: zanzibarquartz opens it.\n")
    (graph.vault.root / "my-page.md").write_text("About zanzibarquartz.\n")
    (graph.vault.root / "my-page.sync-conflict-20260301-101112-ABCDEFG.md").write_text(
        "About zanzibarquartz!\n"
    )
    graph.uses.add(["omg/fact/zanzibarquartz"], 10**12)
    omg.refresh(graph)
    held = graph.vault.file(path).with_name(f".omg-0123abcd-{'0' * 16}-{'1' * 16}~note")
    held.write_text("")
    word = "zanzibarquartz"
    what = select_words(graph, word) if redacts else select_to_forget(graph, matching=word)
    forget_selection(omg.intake, graph, what)
    omg.work(force=True)
    assert traces(omg) == []
    assert log.read_text() == ("up\n" + f"dropped {path}: {BLANK}\n" * redacts + "down\n")
    assert not redacts or (bad / "1-x.json").exists()
    assert cited(graph, "e2") == ["My sister Maya lives in Lisbon."]


def test_a_reader_opened_before_a_forgetting_sees_nothing_of_it_afterwards(omg):
    say(omg, "Remember that the combination of the locker in our old changing rooms is zanzibarquartz.")
    other = Memory(omg.config, clock=lambda: NOW, embed=None)
    reader = other.find(MAIN)
    assert reader.index.search_raw("zanzibarquartz", 3, now=NOW)
    graph = omg.find(MAIN)
    forget_selection(omg.intake, graph, select_to_forget(graph, matching="zanzibarquartz"))
    assert reader.index.search_raw("zanzibarquartz", 3, now=NOW) == []
    assert reader.index.search("zanzibarquartz", 3, now=NOW) == []
    other.close()
    assert traces(omg) == []


def test_nothing_is_forgotten_while_the_graph_is_being_rebuilt(omg):
    say(omg, "Remember that the combination of the locker in our old changing rooms is zanzibarquartz.")
    graph = omg.find(MAIN)
    with flock(graph.folder / "rebuild.lock", "x"), pytest.raises(Locked, match="rebuilding"):
        forget_selection(omg.intake, graph, select_to_forget(graph, matching="zanzibarquartz"))
    assert not (graph.folder / "forgetting.json").exists()


# --- undo, history, refusals


def test_every_change_by_hand_can_be_undone_and_redone(graph, router, modem):
    new_note(graph, "fact", "Attic", f"It holds the [[{router}|router]].", NOW)

    def files():
        return {p: graph.vault.text(p) for p in graph.vault.paths()}

    def undoing(cycle):
        return next(r for r in closed_cycles(graph) if r.summary == (f"undid {cycle}",))

    for deed in (
        lambda: pin_note(graph, router, NOW),
        lambda: link_notes(graph, router, modem, NOW),
        lambda: merge_into(graph, router, modem, NOW),
        lambda: supersede_by(graph, router, modem, NOW),
        lambda: rename_note(graph, router, "gadget", NOW),
        lambda: new_note(graph, "fact", "Cellar", "It is damp.", NOW),
    ):
        before = files()
        done = deed()
        after = files()
        assert after != before
        _, refused = take_back(graph, done.cycle, NOW)
        assert (files(), refused) == (before, [])
        undo = undoing(done.cycle)
        take_back(graph, undo.id, NOW)
        assert files() == after
        take_back(graph, undoing(undo.id).id, NOW)
        assert files() == before


def test_a_note_edited_by_a_person_still_counts_as_edited_after_a_rename_is_undone(graph, router):
    file = graph.vault.file(router)
    file.write_text(file.read_text() + "\nMine.\n")
    done = rename_note(graph, router, "gadget", NOW)
    assert not is_untouched(graph, done.path)
    take_back(graph, done.cycle, NOW)
    assert not is_untouched(graph, router)


def test_a_rename_updates_links_of_every_form_and_keeps_their_labels(graph, router):
    text = "See [[router]], [[Nodes/Fact/Router#Name|it]], [[omg/fact/router]]; not `[[router]]`."
    above = "[[omg/nodes/fact/{0}|the box]], [[memory/omg/nodes/fact/{0}]]"  # from a folder above the vault
    other = new_note(graph, "fact", "Attic", f"{text} {above.format('router')}", NOW).path
    new = rename_note(graph, router, "gadget", NOW).path
    assert above.format("gadget") in graph.vault.text(other)
    said = "See [[nodes/fact/gadget|router]], [[nodes/fact/gadget#Name|it]], [[omg/fact/router]]; not `[[router]]`."
    assert said in graph.vault.text(other)
    assert find_note(graph, "router") == new
    assert (graph.vault.read(new).id, graph.vault.bytes(router)) == ("omg/fact/router", None)
    assert "[[nodes/fact/gadget|Gadget]]" in graph.vault.text("mocs/moc-facts")
    assert f"wrote {router}" in [r.summary[0] for r in closed_cycles(graph, new)]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_rename_and_its_undo_keep_a_notes_file_mode(graph, mode, router):
    graph.vault.file(router).chmod(mode)
    done = rename_note(graph, router, "gadget", NOW)
    assert graph.vault.mode(done.path) == mode
    take_back(graph, done.cycle, NOW)
    assert graph.vault.mode(router) == mode


@pytest.mark.parametrize(
    ("name", "title", "alias"),
    [
        ("iPhone", "iPhone", True),
        ("Maria's e-bike", "Maria's e-bike", True),
        ("Maria's bike", "Maria's bike", False),
        ("e-bike", "E bike", False),
        ("nodes/project/macOS", "macOS", True),
    ],
)
def test_a_renamed_note_has_the_new_name_as_its_title_exactly_as_typed(graph, name, title, alias, router):
    new = rename_note(graph, router, name, NOW).path
    node = graph.vault.read(new)
    assert (node.title, node.aliases) == (title, (title, router) if alias else (router,))
    assert graph.index.entry(new).title == title
    assert f"[[{new}|{title}]]" in graph.vault.text("mocs/moc-facts")


@pytest.mark.parametrize("name", ["../x", ".hidden", "a|b", "a[b", "x#y", "", "nodes/../../x", "a\\b"])
def test_a_rename_to_a_name_with_link_characters_or_outside_the_vault_is_refused(graph, name, router):
    with pytest.raises(OmgError):
        rename_note(graph, router, name, NOW)
    assert graph.vault.bytes(router) is not None


def test_generated_pages_cannot_be_merged_or_renamed(graph, router):
    for deed in (
        lambda: rename_note(graph, "mocs/moc-facts", "x", NOW),
        lambda: merge_into(graph, router, "index", NOW),
        lambda: supersede_by(graph, "now", router, NOW),
        lambda: pin_note(graph, "index", NOW),
    ):
        with pytest.raises(BadInput, match="OMG writes"):
            deed()


def test_a_superseded_note_cannot_replace_another(graph, router, modem):
    supersede_by(graph, router, modem, NOW)
    with pytest.raises(BadInput, match="itself superseded"):
        supersede_by(graph, modem, router, NOW)
    assert supersede_by(graph, router, modem, NOW).cycle is None


def test_a_merge_by_hand_keeps_what_a_nightly_merge_would_keep(graph):
    a = new_note(graph, "project", "Flat", "The flat is being painted.", NOW).path
    more = {"type": "project", "priority": "high", "loop": "open"}
    b = write_edits(graph, [Edit("create", "Paint", "Paint the flat.", **more)], NOW, "wrote it")
    merge_into(graph, a, b, NOW)
    node = graph.vault.read(a)
    assert (node.priority, node.loop) == ("high", "open")
    assert f"Paint the flat. ([[{b}|" in graph.vault.text(a)
    assert graph.vault.read(b).superseded_by == a
    assert b not in graph.vault.text("mocs/moc-projects")


def test_a_former_file_name_leads_to_the_note_and_a_partial_name_gets_suggestions(omg):
    graph = omg.find()
    new_note(graph, "fact", "Maya", "Maya lives in Porto.", NOW)
    rename_note(graph, "nodes/fact/maya", "sister", NOW)
    rename_note(graph, "nodes/fact/sister", "youngest sister", NOW)
    assert find_note(graph, "maya") == find_note(graph, "sister") == "nodes/fact/youngest sister"
    with pytest.raises(NotFound, match="did you mean nodes/fact/youngest sister"):
        find_note(graph, "youngest")
    new_note(graph, "fact", "Sister", "The sister ship is called Anna.", NOW)
    assert find_note(graph, "sister") == "nodes/fact/sister"


def test_undo_of_a_rename_is_refused_if_the_note_was_edited_since(graph, router):
    done = rename_note(graph, router, "gadget", NOW)
    file = graph.vault.file(done.path)
    file.write_text(file.read_text().replace("hall", "attic") + "\nMine.\n")
    with pytest.raises(BadInput, match=r"left alone: nodes/fact/gadget; `omg history` lists"):
        take_back(graph, done.cycle, NOW)
    assert graph.vault.bytes(router) is None
    assert "Mine." in graph.vault.text(done.path)
