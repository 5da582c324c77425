"""The graph made again from its archive: what a person did stays, what was forgotten stays forgotten."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from killed import in_child
from planted import MONDAY, Scripted, edit, graph_of, home_at, note, put
from spooled import entry, hand_over

from omg import rebuild
from omg.curate import link_notes, new_note, pin_note, rename_note, take_back, undoable
from omg.errors import NotFound
from omg.journal import Change, commit_receipt, new_receipt
from omg.llm.replies import ModelReply
from omg.memory import Memory
from omg.node.note import amend_text
from omg.observe.question import Observer
from omg.plan.drafts import Plan
from omg.plan.edits import Edit
from omg.rebuild import build_anew, persons_notes, take_rebuilt
from omg.worker.nights import one_night

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MAIN = "agent:main:main"
SILENT = Observer(
    lambda question: ModelReply('{"edits": []}', "silent", 0, 0), "silent", 32_000
)  # notes nothing


@pytest.fixture
def omg(omg):
    """With three notes, each of a message of its own."""
    texts = ["I prefer short checklists.", "My sister Maya lives in Lisbon.", "I am allergic to peanuts."]
    hand_over(omg.folder, *(entry(f"e{n}", t, 1_771_500_000_000 + n * 1000) for n, t in enumerate(texts)))
    omg.work(force=True)
    return omg


def built(omg, graph):
    return build_anew(graph, omg.worker.observer("main"), omg.config, NOW)


def path_of(graph, word):
    return next(e.path for e in graph.index.entries() if word in e.description)


def test_rebuilding_with_the_same_observer_gives_the_same_notes(omg):
    graph = omg.find(MAIN)
    before = {p: graph.vault.bytes(p) for p in graph.vault.paths() if p.startswith(("nodes/", "mocs/"))}
    made = built(omg, graph)
    assert (made.before, made.after) == (3, 3)
    take_rebuilt(graph, NOW)
    assert {
        p: graph.vault.bytes(p) for p in graph.vault.paths() if p.startswith(("nodes/", "mocs/"))
    } == before
    assert graph.index.messages(["e1"])


def test_a_rebuild_with_another_observer_is_one_change_that_can_be_undone(omg):
    graph = omg.find(MAIN)
    before = {p: graph.vault.bytes(p) for p in graph.vault.paths("nodes/")}
    build_anew(graph, SILENT, omg.config, NOW)
    cycle = take_rebuilt(graph, NOW)
    assert {p: graph.vault.bytes(p) for p in graph.vault.paths("nodes/")} != before
    assert not (graph.folder / "rebuild").exists()
    _, refused = take_back(graph, cycle, NOW)
    assert {p: graph.vault.bytes(p) for p in graph.vault.paths("nodes/")} == before and not refused


def test_notes_and_edits_and_deletions_by_a_person_survive_a_rebuild(omg):
    graph = omg.find(MAIN)
    mine = new_note(graph, "fact", "Router", "The router is in the attic.", NOW).path
    touched, deleted = path_of(graph, "checklists"), path_of(graph, "peanuts")
    file = graph.vault.file(touched)
    file.write_text(file.read_text() + "\nand mine\n")
    graph.vault.file(deleted).unlink()
    omg.refresh(graph)
    built(omg, graph)
    take_rebuilt(graph, NOW)
    assert graph.vault.bytes(mine) is not None
    assert "and mine" in graph.vault.text(touched)
    assert graph.vault.bytes(deleted) is None


def test_a_rebuild_treats_a_read_only_note_as_edited_and_keeps_its_text_and_mode(omg):
    graph = omg.find(MAIN)
    locked, private = path_of(graph, "checklists"), path_of(graph, "peanuts")
    file = graph.vault.file(private)
    file.write_text(file.read_text() + "\nand mine\n")
    file.chmod(0o600)
    graph.vault.file(locked).chmod(0o444)
    before = {path: (graph.vault.bytes(path), graph.vault.mode(path)) for path in (locked, private)}
    assert set(persons_notes(graph)) >= {locked, private}
    built(omg, graph)
    file.write_text(file.read_text() + "\nand more\n")  # it is brought once more
    before[private] = (file.read_bytes(), 0o600)
    take_rebuilt(graph, NOW)
    assert {path: (graph.vault.bytes(path), graph.vault.mode(path)) for path in before} == before


def correct(omg, graph, path, was, now):
    """As a person does in an editor."""
    file = graph.vault.file(path)
    file.write_text(file.read_text().replace(was, now))
    omg.refresh(graph)


def rebuild_all(omg, graph):
    built(omg, graph)
    take_rebuilt(graph, NOW)
    return sorted(p for p in graph.vault.paths() if p.startswith("nodes/"))


def test_a_rebuild_does_not_bring_back_what_a_person_corrected_and_renamed(omg):
    graph = omg.find(MAIN)
    before = path_of(graph, "Lisbon")
    correct(omg, graph, before, "Lisbon", "Porto")
    maya = rename_note(graph, before, "maya", NOW).path
    text = graph.vault.text(maya)
    paths = rebuild_all(omg, graph)
    assert maya in paths and len(paths) == 3
    assert graph.vault.text(maya) == text
    assert not [e.path for e in graph.index.entries() if "Lisbon" in e.description]


def test_a_model_that_renames_a_corrected_note_does_not_bring_the_old_text_back(omg):
    graph = omg.find(MAIN)
    sister = path_of(graph, "Lisbon")
    correct(omg, graph, sister, "Lisbon", "Porto")
    cited = tuple(graph.vault.read(sister).sources)
    edit = Edit("create", "Maya in Lisbon", "Maya lives in Lisbon.", "identity", sources=cited, origin="user")
    other = replace(
        edit, title="Allergy", description="The user keeps an epinephrine pen at home.", type="fact"
    )
    new = rebuild.open_new(graph)
    plan = Plan(new, NOW.date())
    assert plan.apply(edit) == sister and not plan.changes()
    assert plan.apply(other) == "nodes/fact/allergy"  # of one message several notes may come
    new.close()


def test_after_a_rebuild_an_earlier_pin_and_an_earlier_link_can_still_be_undone(omg):
    graph = omg.find(MAIN)
    short, sister = path_of(graph, "checklists"), path_of(graph, "Lisbon")
    pin_note(graph, short, NOW)
    link_notes(graph, sister, short, NOW)
    rebuild_all(omg, graph)
    assert graph.vault.read(short).pinned and short in graph.vault.read(sister).links
    last = undoable(graph, None)
    assert last.summary == (f"linked {sister} to {short}",)
    take_back(graph, last.id, NOW)
    assert short not in graph.vault.read(sister).links
    take_back(graph, undoable(graph, None).id, NOW)
    assert not graph.vault.read(short).pinned


def test_what_a_rebuild_added_to_an_edited_note_is_kept_when_the_rebuild_is_applied(omg):
    graph = omg.find(MAIN)
    sister = path_of(graph, "Lisbon")
    correct(omg, graph, sister, "Lisbon", "Porto")
    new = rebuild.open_new(graph)
    text = new.vault.text(sister)
    added = amend_text(text, history="- 2026-02-20: moved to Faro.")
    with new.lock():
        change = Change(sister, text, added, theirs=True)
        commit_receipt(new, new_receipt("observation", NOW, [change]))
    new.close()
    rebuild_all(omg, graph)
    assert graph.vault.text(sister) == added
    assert not graph.vault.ours(graph.vault.bytes(sister))


def test_an_edited_note_that_is_renamed_during_a_rebuild_exists_only_once_afterwards(omg):
    graph = omg.find(MAIN)
    sister = path_of(graph, "Lisbon")
    correct(omg, graph, sister, "Lisbon", "Porto")
    built(omg, graph)
    maya = rename_note(graph, sister, "maya", NOW).path
    take_rebuilt(graph, NOW)
    paths = set(graph.vault.paths("nodes/"))
    assert maya in paths and sister not in paths and len(paths) == 3


@pytest.mark.parametrize("step", ["persons_notes", "fill_pending"])
def test_an_edit_made_while_a_rebuild_replaces_notes_is_kept(omg, monkeypatch, step):
    graph = omg.find(MAIN)
    build_anew(graph, SILENT, omg.config, NOW)
    file, done = graph.vault.file(path_of(graph, "checklists")), getattr(rebuild, step)

    def edit_and_do(*graphs):
        file.write_text(file.read_text() + "\nand mine\n")
        return done(*graphs)

    monkeypatch.setattr(rebuild, step, edit_and_do)
    cycle = take_rebuilt(graph, NOW)
    assert file.read_text().endswith("and mine\n")
    assert len(list(graph.vault.paths("nodes/"))) == 1
    take_back(graph, cycle, NOW)
    assert file.read_text().endswith("and mine\n")


def test_an_empty_rebuild_replaces_nothing(omg):
    with pytest.raises(NotFound, match="omg rebuild"):
        take_rebuilt(omg.find(MAIN), NOW)


def test_the_night_after_a_rebuild_writes_the_weekly_pages_anew_except_deleted_ones(home, monkeypatch):
    opened = home_at(home)
    graph, week = graph_of(opened), "reflections/2026-W02"
    doing = "Ines carried box {} up to the third floor, and the lamp from her mother broke on the way there"
    days = [MONDAY + timedelta(n) for n in range(5)]
    put(graph, *[note(f"nodes/episode/{d}", doing.format(n), d) for n, d in enumerate(days)])
    for day in days:
        edit(graph, f"nodes/episode/{day}", "A person was here.")
    monkeypatch.setattr(opened.worker, "answering", lambda model: Observer(Scripted(), "scripted", 32_000))

    def night():
        one_night(opened.worker, graph, None, dry_run=False, pending=True)
        return graph.vault.bytes(week)

    assert night()
    build_anew(graph, Observer(), opened.config, NOW)
    take_rebuilt(graph, NOW)
    assert graph.vault.bytes(week) is None and graph.vault.read(f"nodes/episode/{MONDAY}").reflected_in
    assert night()
    graph.vault.file(week).unlink()  # but what a person deleted stays so
    assert night() is None
    opened.close()


def test_after_a_rebuild_killed_at_any_step_the_vault_is_either_old_or_new(omg, tmp_path):
    graph, config, home = omg.find(MAIN), omg.config, omg.folder
    build_anew(graph, SILENT, config, NOW)
    omg.close()
    shutil.copytree(home, tmp_path / "before")

    def taken(at: int = 0) -> tuple[int, dict[str, str]]:
        """Take the new notes in a child that dies at its *at*-th change of a file; then open the home again."""
        shutil.rmtree(home)
        shutil.copytree(tmp_path / "before", home)
        changes = in_child(
            lambda: take_rebuilt(Memory(config, clock=lambda: NOW, embed=None).find(MAIN), NOW), at
        )[1]
        after = Memory(config, clock=lambda: NOW, embed=None)
        graph = after.find(MAIN)
        after.close()
        notes = {f.name: f.read_text() for f in (graph.vault.root / "nodes").rglob("*.md")}
        # a rebuild that stayed would be continued by the next one
        assert bool(notes) == (graph.folder / "rebuild").exists()
        return changes, notes

    (_, old), (changes, new) = taken(1), taken()
    assert new != old and changes > 10
    assert all(taken(at)[1] in (old, new) for at in range(2, changes, changes // 10))
