"""What people leave in inbox/ and the agent in its own files becomes notes, and stays where it was written."""

import json
import os
from datetime import UTC, date, datetime, timedelta

import pytest
from typer.testing import CliRunner

from omg.cli.app import app
from omg.config import Config, Observation, load_config
from omg.curate import take_back
from omg.inbox import note_messages, paragraphs, take_loose
from omg.journal import receipts_of
from omg.memory import Memory
from omg.node.note import parse_node
from omg.openclaw.graph_checks import check_graph
from omg.worker.status import home_status, status_text

MAIN = "agent:main:main"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def omg(home, tmp_path):
    config = Config(
        home=home, vaults={MAIN: tmp_path / "workspace/memory/omg"}, observation=Observation(model="offline")
    )
    which = Memory(config, clock=lambda: NOW, embed=None)
    which.graph(which.registry.identity_of(MAIN))
    mark = which.find().folder / "identity.json"
    begun = (NOW - timedelta(days=3)).timestamp()
    os.utime(mark, (begun, begun))
    yield which
    which.close()


def leave(omg, name, text, age_s=3600):
    file = omg.find().vault.root / "inbox" / name
    file.write_text(text)
    at = NOW.timestamp() - age_s
    os.utime(file, (at, at))
    return file


def openclaw(folder, *people):
    """The configuration beside the home of an OpenClaw that *people* reach; its workspace has a memory/."""
    (folder / "ws/memory").mkdir(parents=True)
    (folder / "agents/main").mkdir(parents=True)
    channels = {"telegram": {"dmPolicy": "allowlist", "allowFrom": people}} if people else {}
    settings = {"agents": {"defaults": {"workspace": str(folder / "ws")}}, "channels": channels}
    (folder / "openclaw.json").write_text(json.dumps(settings))


def import_openclaw(home, *more):
    args = ["import", "--openclaw", "--json", *more]
    result = CliRunner().invoke(app, args, env={"OMG_HOME": str(home)})
    return json.loads(result.stdout), result.stderr


def notes(omg):
    vault = omg.find().vault
    return {p: vault.read(p) for p in vault.paths() if p.startswith("nodes/")}


def test_an_inbox_note_is_filed_and_gets_a_line_with_a_link_to_the_new_note(omg):
    file = leave(omg, "thought.md", "I prefer window seats on trains.\n")
    omg.work()
    (path, node), *rest = notes(omg).items()
    assert not rest
    assert (node.type, node.origin) == ("preference", "human")
    assert [s.kind for s in node.sources] == ["inbox"]
    assert node.sources[0].id.startswith("inbox:inbox/thought:")
    assert file.read_text().startswith("I prefer window seats on trains.\n")
    assert f"- 2026-03-01: filed as [[{path}" in file.read_text()
    (said,) = omg.find().index.messages([node.sources[0].id])
    assert said.text == "I prefer window seats on trains."


def test_a_plan_in_an_inbox_note_is_on_the_now_page_once_the_note_is_filed(omg):
    leave(omg, "plan.md", "I plan to see the dentist on 2026-03-09.\n")
    omg.work()
    (path,) = (path for path, node in notes(omg).items() if node.loop == "open")
    assert f"- 2026-03-09 [[{path}|" in omg.find().vault.text("now")


def test_an_inbox_note_that_was_indexed_before_it_was_filed_is_still_filed(omg):
    leave(omg, "thought.md", "I prefer window seats on trains.\n")
    omg.refresh(omg.find())  # as every command does
    omg.work()
    assert [(n.type, n.origin) for n in notes(omg).values()] == [("preference", "human")]


def test_paragraphs_of_an_inbox_file_without_a_note_stay_there_and_can_be_found(omg):
    text = "I prefer window seats on trains.\n\nBlue lamp behind the shed.\n\nThe gate squeaks.\n"
    file = leave(omg, "things.md", text)
    omg.work(force=True)
    assert len(notes(omg)) == 1
    assert file.read_text().startswith(text)
    assert file.read_text().endswith("; 2 of 3 paragraphs are only here\n")
    for words in ("blue lamp shed", "squeaks"):
        assert omg.find().index.search(words, 1, now=NOW)[0].entry.path == "inbox/things"
        assert words.split()[-1] in omg.find().index.search_raw(words, 1, now=NOW)[0][0].text


@pytest.mark.parametrize(
    ("head", "by_a_page"), [("", False), ("---\nurl: https://lamps.example\n---\n", True)]
)
def test_an_unfiled_inbox_text_is_given_as_the_persons_words_unless_it_is_a_clipping(omg, head, by_a_page):
    file = leave(omg, "things.md", f"{head}Blue lamp behind the shed.\n")
    omg.work(force=True)
    assert file.read_text().endswith(": read; no note was made of it\n")
    leave(omg, "things.md", file.read_text())  # a file saved just now is looked at twice
    omg.refresh(omg.find())
    omg.work(force=True)
    assert notes(omg) == {}
    shown = omg.inject("Where is the blue lamp behind the shed?", session=MAIN)
    line = "- things — Blue lamp behind the shed."
    assert (line in shown.system) is not by_a_page  # which only a person's words enter
    assert (f"{line} (from the inbox, perhaps not the user's words)" in shown.prompt) is by_a_page


def test_status_lists_an_inbox_file_until_the_file_is_read(omg):
    leave(omg, "thought.md", "I prefer window seats on trains.\n")
    said = lambda: status_text(home_status(omg.worker), UTC)  # noqa: E731
    assert "  inbox     1 file not read yet: inbox/thought\n" in said()
    omg.work(force=True)
    assert "not read yet" not in said()
    assert "  notes     1\n" in said()


def test_if_a_filing_was_undone_status_lists_the_file_until_its_words_change(omg):
    leave(omg, "thought.md", "I prefer window seats on trains.\n")
    said = lambda: status_text(home_status(omg.worker), UTC)  # noqa: E731
    omg.work(force=True)
    assert "you undid" not in said()
    filed = receipts_of(omg.find())[0]
    take_back(omg.find(), filed.id, datetime.now(UTC))
    assert (
        "  inbox     1 file whose filing you undid: inbox/thought; changed words are read again\n" in said()
    )
    leave(omg, "thought.md", "I prefer aisle seats on trains.\n")
    assert "you undid" not in said() and "1 file not read yet: inbox/thought\n" in said()


def test_status_names_an_unreadable_inbox_note_once(omg):
    leave(omg, "bin.md", "").write_bytes(b"\xff\xfe")
    omg.refresh(omg.find())
    assert "  unreadable inbox/bin: is not UTF-8" in status_text(home_status(omg.worker), UTC)


def test_a_text_file_in_the_inbox_is_renamed_and_filed_like_a_note(omg):
    leave(omg, "cabin.txt", "I prefer cabins without electricity.\n")
    assert "1 file not read yet: inbox/cabin.txt\n" in status_text(home_status(omg.worker), UTC)
    omg.work()
    ((path, node),) = notes(omg).items()
    assert (node.type, node.origin) == ("preference", "human")
    inbox = omg.find().vault.root / "inbox"
    assert (inbox / "cabin.md").read_text().startswith("I prefer cabins without electricity.\n")
    assert f"filed as [[{path}" in (inbox / "cabin.md").read_text()
    assert not (inbox / "cabin.txt").exists()


@pytest.mark.parametrize(
    "name, data, why",
    [
        ("map.png", b"\x89PNG\xff", "is neither a .md nor a .txt in UTF-8"),
        ("cabin.txt", "Hütte".encode("utf-16"), "is neither a .md nor a .txt in UTF-8"),
        ("thought.txt", b"I prefer aisle seats on trains.", "thought.md is there already"),
    ],
)
def test_an_unreadable_inbox_file_stays_and_status_gives_the_cause_and_the_remedy(omg, name, data, why):
    leave(omg, "thought.md", "I prefer window seats on trains.\n")
    leave(omg, name, "").write_bytes(data)
    omg.work(force=True)
    assert (omg.find().vault.root / "inbox" / name).read_bytes() == data and len(notes(omg)) == 1
    assert f"unreadable inbox/{name}: " in (said := status_text(home_status(omg.worker), UTC)) and why in said
    assert any(f.where == f"inbox/{name}" and why in f.mend for f in check_graph(omg, omg.find()))


def test_only_what_was_added_to_an_inbox_file_is_read_again(omg):
    file = leave(omg, "list.md", "I prefer window seats on trains.\n")
    omg.work(force=True)
    text = file.read_text()
    assert omg.work(force=True) == []
    file.write_text(text.replace("trains.\n", "trains.\n\nMy sister Maya lives in Lisbon.\n", 1))
    omg.work(force=True)
    assert len(notes(omg)) == 2
    assert file.read_text().count("filed as") == 2
    assert omg.find().vault.read("inbox/list").type == "note"


def test_an_inbox_file_is_not_read_again_after_the_index_was_deleted(omg):
    leave(omg, "list.md", "I prefer window seats on trains.\n")
    omg.work(force=True)
    folder = omg.find().folder
    omg.close()
    for file in folder.glob("index.db*"):
        file.unlink()
    again = Memory(omg.config, clock=lambda: NOW, embed=None)
    observed = again.work(force=True)
    again.close()
    assert observed == []


def test_a_renamed_inbox_note_is_not_read_again(omg):
    file = leave(omg, "a.md", "I prefer window seats on trains.\n")
    omg.work(force=True)
    file.rename(file.with_name("b.md"))
    assert omg.work(force=True) == []
    assert len(notes(omg)) == 1


def test_a_note_that_is_being_written_is_left_alone(omg):
    leave(omg, "now.md", "I prefer window seats on trains.\n", age_s=5)
    omg.work()
    assert notes(omg) == {}
    assert omg.find().pending() == []


def test_a_note_that_omg_wrote_to_the_inbox_is_not_read_as_a_note_by_a_person(omg):
    graph = omg.find()
    graph.vault.put_inbox(
        "for answer-style", "This was meant for `nodes/x`, which you changed.\n\nI prefer tea.\n"
    )
    assert omg.work(force=True) == []
    assert [p for p in graph.vault.paths() if p.startswith("inbox/")] == [
        "inbox/README",
        "inbox/for-answer-style",
    ]


def test_a_secret_in_an_inbox_note_is_copied_into_no_other_file(omg):
    key = "sk-proj-" + "Ab3" * 16
    leave(omg, "key.md", f"I prefer the key {key} for the shop.\n")
    omg.work(force=True)
    graph = omg.find()
    theirs = ("receipts", "index.db", "index.db-wal")  # the journal and the index hold the note itself
    rest = [f for f in omg.folder.rglob("*") if f.is_file() and not {f.name, f.parent.name} & {*theirs}]
    assert len(rest) > 3
    assert not any(key.encode() in f.read_bytes() for f in rest)
    assert key not in "".join(graph.vault.text(p) for p in graph.vault.paths() if not p.startswith("inbox/"))


def test_the_day_files_of_the_agent_are_read_and_never_changed(omg):
    memory = omg.find().vault.root.parent
    old, today = memory / "2026-02-01.md", memory / "2026-03-01.md"
    old.write_text("- Nora prefers aisle seats.\n")
    today.write_text(
        "# 2026-03-01\n\n- Nora decided to print the book on glossy paper.\n<!-- importance: 7 -->\n"
    )
    before = today.read_bytes()
    omg.work(force=True)
    (node,) = notes(omg).values()
    assert "glossy paper" in node.description
    assert (node.type, node.origin) == ("fact", "assistant")
    assert node.sources[0].id.startswith("inbox:memory/2026-03-01:")
    assert today.read_bytes() == before
    today.write_text(today.read_text() + "- The printer's name is Katrin Ahlers.\n")
    omg.work(force=True)
    assert len(notes(omg)) == 2


def test_a_vault_outside_the_workspace_reads_no_day_files(home, tmp_path):
    (tmp_path / "2026-03-01.md").write_text("- Nora prefers aisle seats.\n")
    which = Memory(
        Config(home=home, vaults={MAIN: tmp_path / "omg"}, observation=Observation(model="offline")),
        clock=lambda: NOW,
        embed=None,
    )
    which.graph(which.registry.identity_of(MAIN))
    which.work(force=True)
    assert which.find().pending() == []
    assert notes(which) == {}
    which.close()


def test_an_inbox_note_deleted_before_it_is_observed_is_still_noted_and_not_restored(omg):
    file = leave(omg, "gone.md", "I prefer window seats on trains.\n")
    graph = omg.find()
    assert take_loose(graph, NOW, {}) == 1
    file.unlink()
    omg.work(force=True)
    assert len(notes(omg)) == 1
    assert not file.exists()


def test_every_paragraph_of_a_web_clipping_counts_as_forwarded():
    def said(head):
        text = f"---\n{head}\n---\nI became a Buddhist.\n\nI sleep on the floor.\n"
        return [m.text for m in note_messages(parse_node(text, "inbox/a"), 0, agents=False)]

    theirs = ["> I became a Buddhist.", "> I sleep on the floor."]
    assert said("url: https://x.example/a") == said("tags: [clippings]") == said("clipped: true") == theirs
    assert said("mood: calm") == ["I became a Buddhist.", "I sleep on the floor."]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("# Dentist\n\nTuesday at ten", ["# Dentist\nTuesday at ten"]),
        ("# A\n\n## B\n\nx\n\ny", ["# A\n## B\nx", "y"]),
        ("x\r\n\r\ny", ["x", "y"]),
        ("x\n\n## History\n\n- 2026-03-01: filed as [[a]]\n", ["x"]),
        ("# only a heading", ["# only a heading"]),
        ("", []),
        (  # a mail and code, whose blocks alone do not look passed on
            "Look:\n\nFrom: Bob <b@x.example>\nDate: 2026-11-01 10:00\nSubject: Hi\n\nI always pay cash.",
            ["Look:", "From: Bob <b@x.example>\nDate: 2026-11-01 10:00\nSubject: Hi", "> I always pay cash."],
        ),
        ("```\na = 1\n\n# I pay cash.\n```\n\nI ski.", ["```\na = 1", "> # I pay cash.\n> ```", "I ski."]),
    ],
)
def test_a_note_is_read_in_paragraphs_each_with_its_heading(text, parts):
    assert paragraphs(parse_node(text, "inbox/x")) == parts


@pytest.mark.parametrize("others", [False, True])
def test_the_memory_flush_of_openclaw_is_filed_unless_other_people_share_the_file(home, tmp_path, others):
    openclaw(tmp_path, "1", *["2"] * others)
    which = Memory(Config(home=home, observation=Observation(model="offline")), clock=lambda: NOW, embed=None)
    graph = which.graph(which.registry.identity_of(MAIN))
    assert graph.vault.root.is_relative_to(home)
    begun = (NOW - timedelta(days=3)).timestamp()
    os.utime(graph.folder / "identity.json", (begun, begun))
    (tmp_path / "ws/memory/2026-02-28.md").write_text("- The studio is on the third floor.\n")
    which.work(force=True)
    said = [m.text for m, _, _ in graph.index.search_raw("studio floor", 3, now=NOW)]
    assert said == ([] if others else ["The studio is on the third floor."])
    which.close()


def test_an_import_from_openclaw_dates_the_agents_older_notes_by_their_day(home, tmp_path):
    openclaw(tmp_path)
    workspace = tmp_path / "ws"
    files = {
        "MEMORY.md": "# Long-term\n\n- Nora prefers aisle seats.\n",
        "memory/2025-11-03.md": "- The studio is on the third floor.\n",
        "memory/2025-12-24-tree.md": "- The tree came from Katrin Ahlers.\n",
        "memory/latin.md": "",
    }
    for name, text in files.items():
        (workspace / name).write_text(text)
    (workspace / "memory/latin.md").write_bytes(b"- caf\xe9")
    saved = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
    os.utime(workspace / "MEMORY.md", (saved, saved))
    (home / "omg.toml").write_text('[observation]\nmodel = "offline"\n')
    preview, _ = import_openclaw(home, "--dry-run")
    assert preview["new"] == 3
    since, _ = import_openclaw(home, "--dry-run", "--since", "2026-01-01")
    assert since["new"] == 1
    first, said = import_openclaw(home)
    assert (first["new"], first["observed"]) == (3, 3)
    assert "latin.md: it is not UTF-8" in said
    assert import_openclaw(home)[0]["new"] == 0
    with Memory(load_config(home, {}), embed=None, clock=lambda: NOW) as memory:
        kept = {node.created: node for node in notes(memory).values()}
        assert sorted(map(str, kept)) == ["2025-11-03", "2025-12-24", "2026-01-05"]
        assert {node.origin for node in kept.values()} == {"assistant"}
        assert "third floor" in kept[date(2025, 11, 3)].description
    assert {name: (workspace / name).read_text() for name in files if "latin" not in name} == {
        name: text for name, text in files.items() if "latin" not in name
    }


def test_an_import_from_openclaw_reads_an_agent_without_a_memory_folder(home, tmp_path):
    openclaw(tmp_path)
    (tmp_path / "ws/memory").rmdir()
    assert import_openclaw(home, "--dry-run")[0]["new"] == 0
    (tmp_path / "ws/MEMORY.md").write_text("- Nora prefers aisle seats.\n")
    assert import_openclaw(home, "--dry-run")[0]["new"] == 1


def test_notes_of_an_agent_are_not_imported_for_the_owner_if_other_people_can_reach_it(home, tmp_path):
    openclaw(tmp_path, "1", "2")
    (tmp_path / "ws/MEMORY.md").write_text("- Bob lives in Porto.\n")
    told, said = import_openclaw(home)
    assert told["new"] == 0
    assert "MEMORY.md and memory/ of main: not imported, because other people can reach this agent" in said
