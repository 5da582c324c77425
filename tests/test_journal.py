"""The journal: changes that a crash interrupted are finished, a person's edits stay, and a cycle can be undone."""

import json
import os
import threading
import time
from datetime import UTC, date, datetime

import pytest

from omg.curate import take_back
from omg.errors import NotFound
from omg.graph.graph import Tombstones
from omg.journal import (
    KEPT_DAYS,
    RECEIPTS_KEPT,
    Change,
    Rebase,
    Receipt,
    commit_receipt,
    new_receipt,
    receipt_id,
    receipts_of,
    replay_open,
)
from omg.memory import Memory
from omg.node.note import Source, parse_node
from omg.plan.drafts import Plan
from omg.plan.edits import Edit

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AT = "2026-03-01T12:00:00+00:00"
PATH = "nodes/preference/lists"


@pytest.fixture
def graph(omg):
    return omg.find("agent:main:main") if omg.registry.identities() else omg.find()


def edit(**changes):
    source = Source("agent:main:main", changes.pop("said", "m1"), 1_772_000_000_000)
    return Edit(
        **{
            "op": "create",
            "title": "Lists",
            "description": "Prefers short lists.",
            "type": "preference",
            "sources": (source,),
            "origin": "user",
        }
        | changes
    )


def write(graph, *edits, id="c1"):
    with graph.lock():
        plan = Plan(graph, date(2026, 3, 1))
        paths = [plan.apply(e) for e in edits]
        commit_receipt(graph, Receipt(id, "observation", AT, tuple(plan.changes())))
    return paths


def planned(graph, *edits, id="c2", day=date(2026, 3, 2)):
    """Return a receipt for *edits*; nothing is written yet."""
    plan = Plan(graph, day)
    plan.apply_all(edits)
    return Receipt(id, "observation", AT, tuple(plan.changes()))


def person(graph, path, old, new):
    file = graph.vault.file(path)
    data = file.read_bytes()
    assert old.encode() in data
    file.write_bytes(data.replace(old.encode(), new.encode()))


def test_replaying_a_receipt_finishes_it_and_a_second_replay_changes_nothing(graph):
    receipt = planned(graph, edit(), id="c1")
    (graph.folder / "receipts" / "c1.open.json").write_text(receipt.dumps())
    assert replay_open(graph) == ["c1"]
    before = {p: graph.vault.bytes(p) for p in graph.vault.paths()}
    assert PATH in before
    assert replay_open(graph) == []
    (graph.folder / "receipts" / "c1.open.json").write_text(receipt.dumps())
    replay_open(graph)
    assert {p: graph.vault.bytes(p) for p in graph.vault.paths()} == before


def test_a_person_who_edits_between_receipt_and_write_keeps_their_words(graph):
    write(graph, edit())
    receipt = planned(graph, edit(op="update", description="Prefers long lists.", target=PATH))
    person(graph, PATH, "Prefers short lists.", "Prefers *tidy* lists.")
    commit_receipt(graph, receipt)
    text = graph.vault.text(PATH)
    assert "Prefers *tidy* lists." in text
    assert "- 2026-03-02: Prefers long lists." in text
    assert "short" not in text


def test_a_file_that_a_person_put_at_the_planned_path_stays_and_our_text_goes_to_the_inbox(graph):
    receipt = planned(graph, edit())
    file = graph.vault.file(PATH)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("my own\n")
    outcome = commit_receipt(graph, receipt)
    assert file.read_text() == "my own\n"
    assert len(outcome.inbox) == 1
    assert "Prefers short lists." in graph.vault.text(outcome.inbox[0])


def test_a_note_deleted_by_a_person_does_not_come_back_from_the_same_message(omg, graph):
    write(graph, edit())
    graph.vault.file(PATH).unlink()
    omg.refresh(graph)
    assert write(graph, edit(description="Prefers short lists!"), id="c2") == [None]
    assert graph.vault.bytes(PATH) is None
    assert write(graph, edit(said="m2"), id="c3") == [PATH]


def test_a_note_deleted_between_the_receipt_and_the_write_stays_deleted(omg, graph):
    write(graph, edit())
    receipt = planned(graph, edit(op="update", description="Prefers long lists.", target=PATH))
    graph.vault.file(PATH).unlink()
    outcome = commit_receipt(graph, receipt)
    assert PATH not in outcome.written + outcome.kept
    assert graph.vault.bytes(PATH) is None
    omg.refresh(graph)
    assert write(graph, edit(), id="c3") == [None]


def test_a_note_renamed_while_a_receipt_was_open_is_changed_under_its_new_name(omg, graph):
    write(graph, edit())
    receipt = planned(graph, edit(op="update", description="Prefers long lists.", target=PATH, said="m2"))
    renamed = graph.vault.file(PATH).rename(graph.vault.file("nodes/preference/mine"))
    commit_receipt(graph, receipt)
    text = renamed.read_text()
    assert "Prefers long lists." in text
    (graph.folder / "receipts" / "c2.open.json").write_text(receipt.dumps())
    assert replay_open(graph) == ["c2"] and renamed.read_text() == text
    omg.refresh(graph)
    entry = graph.index.entry("omg/preference/lists")
    assert entry.path == "nodes/preference/mine"
    assert graph.index.resolve(PATH) == entry.path  # its former name is an alias
    assert not graph.tombstones.blocks(entry.id, ["m1"], cited=lambda: True)


def test_undo_restores_byte_for_byte(graph):
    write(graph, edit())
    before = {p: graph.vault.bytes(p) for p in graph.vault.paths()}
    write(
        graph,
        edit(op="supersede", title="Long lists", description="Wants everything long.", target=PATH),
        edit(title="Cat", type="fact", description="Has a cat."),
        id="c2",
    )
    assert {p: graph.vault.bytes(p) for p in graph.vault.paths()} != before
    _, refused = take_back(graph, "c2", NOW)
    assert refused == []
    assert {p: graph.vault.bytes(p) for p in graph.vault.paths()} == before


def test_undo_leaves_files_edited_later_and_restores_the_rest(graph):
    write(graph, edit(), edit(title="Cat", type="fact", description="Has a cat."))
    person(graph, PATH, "short", "SHORT")
    _, refused = take_back(graph, "c1", NOW)
    assert refused == [PATH]
    assert "SHORT" in graph.vault.text(PATH)
    assert graph.vault.bytes("nodes/fact/cat") is None
    assert "cat" not in graph.vault.text("mocs/moc-facts")
    assert "[[nodes/preference/lists" in graph.vault.text("mocs/moc-preferences")


def test_receipts_of_neighbouring_seconds_keep_their_order(graph, monkeypatch):
    made = []
    for ns in (1_772_366_400_999_999_000, 1_772_366_401_000_001_000):
        monkeypatch.setattr(time, "time_ns", lambda ns=ns: ns)
        made.append(new_receipt("edit", datetime(2026, 3, 1, 12, tzinfo=UTC), ()))
        commit_receipt(graph, made[-1])
    assert [r.id for r in receipts_of(graph)] == [r.id for r in made[::-1]]


def test_an_import_of_old_messages_is_listed_as_the_latest_change(graph):
    for at in (datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2021, 5, 3, 12, tzinfo=UTC)):
        commit_receipt(graph, new_receipt("observation", at, ()))
    assert [r.at[:4] for r in receipts_of(graph)] == ["2021", "2026"]


def test_a_map_without_markers_is_left_alone(graph):
    write(graph, edit())
    person(graph, "mocs/moc-preferences", "<!-- omg:begin -->", "")
    text = graph.vault.text("mocs/moc-preferences")
    write(graph, edit(title="Tea", description="Likes tea.", said="m2"), id="c2")
    assert graph.vault.text("mocs/moc-preferences") == text


def test_a_change_of_properties_is_applied_to_a_persons_edited_note(graph):
    write(graph, edit())
    before = graph.vault.text(PATH)
    change = Change(PATH, before, before + "x", Rebase(set={"status": "superseded"}))
    person(graph, PATH, "Prefers short lists.", "Prefers lists.  # mine")
    commit_receipt(graph, Receipt("c2", "edit", AT, (change,)))
    node = parse_node(graph.vault.text(PATH), PATH)
    assert node.status == "superseded"
    assert "# mine" in graph.vault.text(PATH)


def test_an_empty_vault_does_not_count_as_deleting_every_note(omg, graph):
    write(graph, edit())
    away = graph.vault.root.rename(graph.vault.root.with_name("away"))
    graph.vault.root.mkdir()  # where a drive is mounted, most days
    again = Memory(omg.config, clock=lambda: NOW, embed=None)
    with pytest.raises(NotFound, match="the vault is empty"):
        again.find("agent:main:main")
    assert list(graph.vault.root.iterdir()) == []
    graph.vault.root.rmdir()
    away.rename(graph.vault.root)
    assert again.find("agent:main:main").index.entry(PATH) is not None
    assert graph.tombstones.messages(["m1"]) == set()
    again.close()


def inbox(graph):
    return [p for p in graph.vault.paths() if p.startswith("inbox/") and p != "inbox/README"]


def test_a_change_without_new_text_does_not_touch_a_file_edited_by_a_person(graph):
    write(graph, edit())
    receipt = planned(graph, edit(op="update", target=PATH, said="m2"))  # one source more, and no word
    person(graph, PATH, "Prefers short lists.", "Prefers *tidy* lists.")
    saved = graph.vault.bytes(PATH)
    outcome = commit_receipt(graph, receipt)
    assert graph.vault.bytes(PATH) == saved
    assert (outcome.kept, outcome.inbox, inbox(graph)) == ([PATH], [], [])


def test_an_interrupted_undo_leaves_a_file_saved_later_alone(graph):
    write(graph, edit())
    write(graph, edit(op="update", description="Prefers long lists.", target=PATH), id="c2")
    now = graph.vault.text(PATH)
    back = Change(PATH, now, "what there was before")
    (graph.folder / "receipts" / "u.open.json").write_text(Receipt("u", "undo", AT, (back,)).dumps())
    person(graph, PATH, "Prefers long lists.", "Prefers *tidy* lists.")
    saved = graph.vault.bytes(PATH)
    replay_open(graph)
    assert (graph.vault.bytes(PATH), inbox(graph)) == (saved, [])


def test_an_update_of_an_unreadable_note_goes_to_the_inbox_without_its_former_text(graph):
    write(graph, edit())
    receipt = planned(graph, edit(op="update", description="Prefers long lists.", target=PATH))
    file = graph.vault.file(PATH)
    file.write_bytes(b"\xff my own")
    outcome = commit_receipt(graph, receipt)
    assert file.read_bytes() == b"\xff my own"
    assert outcome.inbox == inbox(graph)
    (note,) = outcome.inbox
    said = graph.vault.text(note)
    assert (
        "- 2026-03-02: Prefers long lists." in said and "sources:" not in said and "short lists" not in said
    )


def test_a_map_that_cannot_be_written_makes_no_inbox_note(graph):
    write(graph, edit())
    receipt = planned(graph, edit(title="Cat", type="preference", description="Has a cat."))
    moc = graph.vault.file("mocs/moc-preferences")
    moc.write_bytes(b"\xff my own page <!-- omg:begin --> <!-- omg:end -->")
    outcome = commit_receipt(graph, receipt)
    assert moc.read_bytes().startswith(b"\xff my own page") and outcome.inbox == []


def test_a_thread_that_waits_for_the_tombstones_sees_all_of_them(graph, monkeypatch):
    graph.tombstones.add(["m1"])
    graph.tombstones.messages([])
    Tombstones(graph.tombstones.file).add(["m2"])  # another process: ours reads the file again
    seen, lookers = [], []
    real = json.loads

    def slowly(text):
        if not lookers:
            lookers.append(
                threading.Thread(target=lambda: seen.append(graph.tombstones.messages(["m1", "m2"])))
            )
            lookers[0].start()
            lookers[0].join(0.2)
        return real(text)

    monkeypatch.setattr("omg.graph.graph.json.loads", slowly)
    assert graph.tombstones.messages(["m1"]) == {"m1"}
    lookers[0].join()
    assert seen == [{"m1", "m2"}]


def test_later_tombstones_use_the_same_salt(graph):
    graph.tombstones.add(["m1"])
    later = Tombstones(graph.tombstones.file)
    later.add(["m2"])
    assert graph.tombstones.file.read_text().count("salt") == 1
    assert graph.tombstones.messages(["m1", "m2", "m3"]) == {"m1", "m2"}


def test_undoing_an_earlier_cycle_removes_only_notes_of_that_cycle_from_all_maps(graph):
    write(graph, edit(title="First", said="m1", loop="open"), id="c1")
    write(graph, edit(title="Second", description="Prefers long lists.", said="m2"), id="c2")
    take_back(graph, "c1", NOW)
    pages = [
        graph.vault.text(p) for p in graph.vault.paths() if p.startswith("mocs/") or p in ("index", "now")
    ]
    assert not any("nodes/preference/first" in page for page in pages)
    assert "nodes/preference/second" in graph.vault.text("mocs/moc-preferences")


def test_cycles_of_one_second_get_distinct_names(graph):
    with graph.lock():
        for text in ("Likes tea.", "Likes tea a lot."):
            change = Change(PATH, graph.vault.text(PATH) if graph.vault.wrote(PATH) else None, text)
            commit_receipt(graph, new_receipt("edit", NOW, [change], name="maps"))
    assert [r.changes[0].after for r in receipts_of(graph)] == ["Likes tea a lot.", "Likes tea."]
    assert len({receipt_id(NOW, "edit") for _ in range(1_000)}) == 1_000
    assert receipt_id(NOW, of="a|b") == receipt_id(NOW, of="a|b") != receipt_id(NOW, of="a|c")


def test_cycles_are_kept_for_a_month_and_the_newest_cycles_are_always_kept(graph):
    folder, old = graph.folder / "receipts", time.time() - (KEPT_DAYS + 1) * 86_400
    for n in range(RECEIPTS_KEPT + 10):
        file = folder / f"a{n:03d}.json"
        file.write_text(Receipt(file.stem, "observation", AT).dumps())
        os.utime(file, (old + n, old + n))
    undone = folder / "20260101T000000-undo-1.json"
    undone.write_text(Receipt(undone.stem, "undo", AT).dumps())
    os.utime(undone, (old - 9, old - 9))
    write(graph, edit(), id="c1")
    left = sorted(f.stem for f in folder.glob("*.json"))
    assert left == [undone.stem, *(f"a{n:03d}" for n in range(11, RECEIPTS_KEPT + 10)), "c1"]
    take_back(graph, "c1", NOW)  # the young are there
    with pytest.raises(NotFound, match="30 days"):
        take_back(graph, "a000", NOW)
