"""A person edits the vault while OMG uses it: OMG follows what they write, move and delete, and names what it cannot read."""

import os
import re
from datetime import UTC, datetime

import pytest
from shell import omg_here
from spooled import entry, hand_over

from omg.curate import merge_into, new_note, pin_note, supersede_by
from omg.errors import BadInput
from omg.journal import Receipt, commit_receipt, receipts_of
from omg.node.note import Source, parse_node
from omg.openclaw.graph_checks import check_graph
from omg.plan.drafts import Plan
from omg.plan.edits import Edit, split_history
from omg.tools.reading import search_tool
from omg.worker.nights import reflect_each

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MAIN = "agent:main:main"


def say(omg, n, text):
    at = 1_771_500_000_000 + n * 60_000
    hand_over(omg.folder, entry(f"e{n}", text, at))
    omg.work(force=True)


@pytest.fixture
def maya(omg):
    """Return a graph with a note of the first message, the note's path, and its file."""
    say(omg, 1, "My sister Maya lives in Lisbon.")
    graph = omg.find(MAIN)
    [path] = graph.index.citing(["e1"])
    return graph, path, graph.vault.file(path)


@pytest.mark.parametrize("gap", ["\n\n", "\n"])
def test_a_hand_written_note_has_its_text_as_description_and_an_update_changes_one_sentence(omg, gap):
    graph = omg.find()
    text = f"# Boat{gap}The boat is in Lisbon. It needs paint.\n"
    file = graph.vault.file("nodes/fact/boat")
    file.write_text(text)
    omg.refresh(graph)
    assert "- boat — The boat is in Lisbon. It needs paint." in omg.inject("Where is the boat?").system
    os.utime(file, (NOW.timestamp() - 3600,) * 2)  # a message from the future counts as of its arrival
    at = round(file.stat().st_mtime * 1000) + 60_000
    hand_over(omg.folder, entry("e1", "No, my boat is in Porto, not Lisbon.", at))
    omg.work(force=True)
    [path] = graph.index.citing(["e1"])
    main, (line,) = split_history(graph.vault.read(path).body)
    assert main == "The boat is in Porto. It needs paint."
    assert line.endswith(": The boat is in Lisbon. ([[nodes/fact/boat|Boat]])")
    assert file.read_text().endswith(f"---\n\n{text}")


def test_a_hand_written_note_without_a_telling_file_name_is_described_with_its_heading(omg):
    omg.find().vault.file("untitled").write_text("# Shopping\n- milk\n- eggs\n")
    omg.refresh(omg.find())
    assert "- untitled — Shopping: milk" in omg.inject("What have I to buy?").system


def test_a_read_only_note_is_not_changed_and_an_update_to_it_is_not_lost(omg, maya):
    graph, path, file = maya
    pages = [graph.vault.file(p) for p in (path, "index", "now", "mocs/moc-identity")]
    for file in pages:
        file.chmod(0o444)
    before = [(file.read_bytes(), file.stat().st_mode) for file in pages]
    say(omg, 2, "My sister Maya lives in Porto now.")
    say(omg, 3, "I like rye bread.")
    assert not any("error" in night for night in reflect_each(omg.worker))
    assert [(file.read_bytes(), file.stat().st_mode) for file in pages] == before
    assert "Porto" in "".join(graph.vault.text(p) for p in graph.vault.paths())
    named = {f.where for f in check_graph(omg, graph) if "read-only" in f.what}
    assert named == {path, "index", "now", "mocs/moc-identity"}
    with pytest.raises(BadInput, match=f"{path}.md is read-only.*chmod u\\+w"):
        pin_note(graph, path, NOW)
    pages[0].chmod(0o640)
    assert pin_note(graph, path, NOW).cycle
    assert pages[0].stat().st_mode & 0o777 == 0o640


def test_the_doctor_reports_a_conflict_copy_and_the_copy_does_not_count_as_a_note(omg, maya):
    graph, path, file = maya
    copy = file.with_name(f"{file.stem}.sync-conflict-20260301-101112-ABCDEFG.md")
    copy.write_text(file.read_text().replace("Lisbon", "Zanzibar"))
    omg.refresh(graph)
    assert graph.index.citing(["e1"]) == [path]
    assert all("Zanzibar" not in h.entry.description for h in graph.index.search("Zanzibar", 5, now=NOW))
    assert any(copy.stem in f.line() for f in check_graph(omg, graph))


def test_a_map_is_updated_when_a_person_writes_or_corrects_or_deletes_or_restores_a_note(omg):
    graph = omg.find()
    file, page = graph.vault.file("nodes/fact/router"), graph.vault.file("mocs/moc-facts")

    def lines():
        omg.refresh(graph)
        return [line for line in page.read_text().splitlines() if line.startswith("- ")]

    file.write_text("The router is in the attic.\n")
    assert lines() == ["- [[nodes/fact/router|Router]] — The router is in the attic."]
    file.write_text("The router is in the cellar.\n")
    assert lines() == ["- [[nodes/fact/router|Router]] — The router is in the cellar."]
    assert "Facts]] (1)" in graph.vault.text("index")
    trash = file.rename(graph.folder / "trash.md")
    assert lines() == []
    trash.rename(file)
    assert lines() == ["- [[nodes/fact/router|Router]] — The router is in the cellar."]
    cycles = len(receipts_of(graph))
    omg.refresh(graph)
    assert len(receipts_of(graph)) == cycles  # what follows is no change of its own
    assert omg_here("history").stdout == "nothing yet\n"  # nor anything that was written
    file.rename(file.with_name("modem.md"))
    omg.refresh(graph)
    assert omg_here("history").stdout.endswith("followed nodes/fact/router to nodes/fact/modem\n")


def test_a_note_says_that_its_text_is_older_than_a_persons_new_description(omg):
    graph = omg.find()
    with graph.lock():
        plan = Plan(graph, NOW.date())
        said = "Maya lives in Lisbon."
        path = plan.apply(
            Edit("create", "Maya's city", said, "fact", body=f"{said} Her flat has two balconies.")
        )
        commit_receipt(graph, Receipt("c1", "observation", NOW.isoformat(), tuple(plan.changes())))
    older = "From before the user changed the line above: "

    def prompt():
        omg.refresh(graph)
        return omg.inject("Where does Maya live, and has her flat a balcony?", session=MAIN).prompt

    assert "Her flat has two balconies." in prompt() and older not in prompt()
    file = graph.vault.file(path)
    text = file.read_text()
    file.write_text(text.replace(f"description: {said}", "description: Maya lives in Porto."))
    assert f"{older}Maya lives in Lisbon. Her flat has two balconies." in prompt()
    file.write_text(text.replace("Lisbon", "Porto"))
    assert "Her flat has two balconies." in prompt() and older not in prompt()


def test_a_rename_is_recognised_if_the_watcher_reports_only_the_old_name(omg, maya):
    graph, path, file = maya
    file.rename(graph.vault.file("nodes/fact/maya"))
    omg.refresh(graph, [path])
    assert graph.index.citing(["e1"]) == ["nodes/fact/maya"]
    assert graph.index.resolve(path) == "nodes/fact/maya"
    assert not graph.tombstones.file.exists()


def test_a_corrected_note_is_dated_by_its_correction(omg, maya):
    graph, path, file = maya
    file.write_text(file.read_text().replace("lives in Lisbon", "lives in Porto"))
    omg.refresh(graph)
    saved = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
    assert graph.index.entry(path).updated == saved


def rewrite_yoga_class(omg):
    say(omg, 1, "My yoga class is on 3 December at 18:00.")
    graph = omg.find(MAIN)
    [path] = graph.index.citing(["e1"])
    file = graph.vault.file(path)
    file.write_text(re.sub("description: .*", "description: Yoga with Mira at 18:00.", file.read_text()))
    omg.refresh(graph)
    return graph, file


def test_prompts_and_search_show_an_update_made_after_a_persons_edit(omg):
    graph, file = rewrite_yoga_class(omg)
    os.utime(file, (1_771_500_000 + 90, 1_771_500_000 + 90))
    omg.refresh(graph)
    say(omg, 2, "No, it is at 19:00, not 18:00.")
    say(omg, 3, "No, it is at 20:00, not 19:00.")
    [entry] = [e for e in graph.index.entries() if e.path.startswith("nodes/") and e.status == "active"]
    note = graph.vault.read(entry.path)
    _, history = split_history(note.body)
    assert note.description == "Yoga with Mira at 20:00."
    assert "Yoga with Mira at 18:00." in history[0] and "19:00" in history[1]
    assert "Yoga with Mira at 18:00." in file.read_text()
    found = omg.search("yoga class")
    assert found[0].entry.path == entry.path and "superseded" in found[1].why
    given = omg.inject("When is my yoga class?")
    assert "20:00" in given.system + given.prompt


def test_an_update_planned_before_a_person_edited_the_note_becomes_a_second_note(
    omg,
):
    graph, file = rewrite_yoga_class(omg)
    say(omg, 2, "No, it is at 19:00, not 18:00.")
    told = {e.description: e for e in graph.index.entries() if e.type == "episode" and e.status == "active"}
    assert len(told) == 2 and "Yoga with Mira at 18:00." in told
    assert all(e.contradicts for e in told.values())
    os.utime(file, (NOW.timestamp() - 3600,) * 2)
    hand_over(omg.folder, entry("e3", "No, it is at 20:00, not 19:00.", round(NOW.timestamp() * 1000)))
    omg.work(force=True)
    told = [e for e in graph.index.entries() if e.type == "episode" and e.status == "active"]
    assert "Yoga with Mira at 20:00." in [e.description for e in told]
    assert "Yoga with Mira at 19:00." not in [e.description for e in told]


def edited_by_hand(omg, made, description):
    """Write *made* as a note and let a person change only its description. Return graph, path and time of the change (ms)."""
    graph = omg.find()
    with graph.lock():
        plan = Plan(graph, NOW.date())
        path = plan.apply(made)
        commit_receipt(graph, Receipt("c1", "observation", NOW.isoformat(), tuple(plan.changes())))
    file = graph.vault.file(path)
    file.write_text(
        file.read_text().replace(f"description: {made.description}", f"description: {description}")
    )
    omg.refresh(graph)
    return graph, path, int(file.stat().st_mtime * 1000)


def test_an_update_after_a_persons_edit_does_not_bring_back_the_corrected_text(omg):
    tea = Edit("create", "Tea", "Jonas's favourite tea is lapsang.", "preference", origin="user")
    graph, path, saved_ms = edited_by_hand(omg, tea, "Jonas's favourite tea is oolong.")
    source = Source(MAIN, "e9", saved_ms + 60_000, "user")
    news = Edit(
        "update", "Tea", "Jonas's favourite tea is sencha.", sources=(source,), origin="user", target=path
    )
    with graph.lock():
        plan = Plan(graph, NOW.date())
        main, (line,) = split_history(plan.drafts[plan.update(news)].node.body)
    assert "oolong" in line and "lapsang" not in main


def test_a_plan_that_a_person_closes_or_replaces_leaves_the_now_page(omg):
    say(omg, 1, "I have to send Karin the report by 2026-03-06.")
    say(omg, 2, "I have to call the plumber by 2026-03-07.")
    graph = omg.find(MAIN)
    report, plumber = (graph.index.citing([id])[0] for id in ("e1", "e2"))
    assert report in graph.vault.text("now") and plumber in graph.vault.text("now")
    file = graph.vault.file(report)
    file.write_text(file.read_text().replace("loop: open", "loop: done"))
    omg.refresh(graph)
    assert report not in graph.vault.text("now") and plumber in graph.vault.text("now")
    called = new_note(graph, "fact", "Pipes", "The plumber mended the pipes.", NOW).path
    supersede_by(graph, plumber, called, NOW)
    assert plumber not in graph.vault.text("now")


def test_an_update_supersedes_a_note_written_at_the_command_line_and_keeps_its_text(omg):
    graph = omg.find()
    written = new_note(graph, "fact", "Boat", "My boat is in Lisbon. It needs paint.", NOW).path
    file = graph.vault.file(written)
    body = file.read_text().partition("---\n\n")[2]
    os.utime(file, (NOW.timestamp() - 3600,) * 2)  # a message from the future counts as of its arrival
    at = round(file.stat().st_mtime * 1000) + 60_000
    hand_over(omg.folder, entry("e1", "No, my boat is in Porto, not Lisbon.", at))
    omg.work(force=True)
    [path] = graph.index.citing(["e1"])
    assert graph.vault.read(path).body.startswith("My boat is in Porto. It needs paint.")
    assert graph.vault.read(written).superseded_by == path
    assert file.read_text().partition("---\n\n")[2] == body


def test_a_contradicting_statement_is_not_copied_into_the_notes_history(omg):
    _, file = rewrite_yoga_class(omg)
    say(omg, 2, "No, it is at 19:00, not 18:00.")
    (line,) = split_history(parse_node(file.read_text(), "").body)[1]
    assert "says otherwise" in line and "Yoga with Mira at 19:00." not in line


@pytest.mark.parametrize("by_hand", [False, True])
def test_text_merged_into_a_hand_written_note_reaches_prompts_and_search(omg, by_hand):
    say(omg, 1, "My sister Maya lives in Lisbon.")
    graph = omg.find(MAIN)
    [gone] = graph.index.citing(["e1"])
    text = "The studio is above the bakery. Maya painted it."
    keep = "nodes/fact/studio"
    if by_hand:
        graph.vault.file(keep).write_text(f"{text}\n")
        omg.refresh(graph)
    else:
        new_note(graph, "fact", "Studio", text, NOW)
    merge_into(graph, keep, gone, NOW)
    assert text in graph.vault.text(keep)
    given = omg.inject("Where does Maya live?")
    assert "My sister Maya lives in Lisbon." in given.prompt and "no longer so" not in given.prompt
    assert "lives in Lisbon" in search_tool(omg.registry, graph, {"query": "Where does Maya live?"})["text"]
    assert "has changed since" not in given.prompt
