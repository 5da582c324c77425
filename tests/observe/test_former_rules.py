"""Notes of earlier rules go to the archive by one receipt that can be undone, and what a person made their own stays."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from spooled import hand_over

from omg.config import Config, Observation
from omg.curate import take_back
from omg.journal import commit_receipt, new_receipt
from omg.memory import Memory
from omg.node.note import Source
from omg.plan.drafts import Plan
from omg.plan.edits import Edit
from omg.worker.events import read_events
from omg.worker.nights import reflect_each
from omg.worker.status import home_status, status_text

MAIN = "agent:main:main"
NOW = datetime(2026, 2, 19, 9, tzinfo=UTC)
SAID = (
    "We tried adjusting the heartbeat interval, and it works.",
    "I want to be sure that we waste no resources here.",
    "I am a nurse in Graz.",
    "The log level should be lower for the worker.",
    "The gauge sits in the cellar.",
    "The retry loop sleeps too long.",
    "The cache was cold again.",
    "The pump hums at night.",
)
# title, what earlier rules made of it, more
NOTES = (
    ("Heartbeat", "The user has tried adjusting the heartbeat interval.", {}),
    ("Resources", "The user wants to be sure to waste no resources.", {}),
    ("Work", "The user is a nurse in Graz.", {"type": "identity"}),
    ("Log level", "The user finds that the worker's log level should be lower.", {"standing": True}),
    ("Gauge", "The gauge sits in the cellar.", {}),
    ("Retries", "The user finds that the retry loop sleeps too long.", {}),
    ("Cache", "The user says the cache was cold again.", {}),
    ("Pump", "The user says the pump hums at night.", {}),
)
STAY = {"work", "log-level", "gauge", "retries", "cache", "pump"}


@pytest.fixture
def memory(home):
    made = Memory(Config(home=home, observation=Observation(model="offline")), clock=lambda: NOW, embed=None)
    yield made
    for graph in made.registry.kept():
        graph.close()


@pytest.fixture
def graph(memory):
    """A vault that earlier rules wrote: pinned is Retries, Cache was edited, and a note of a person's links to Pump."""
    start = int((NOW - timedelta(hours=1)).timestamp() * 1000)
    said = [
        {"entryId": f"e{n}", "message": {"role": "user", "content": text, "timestamp": start + n}}
        for n, text in enumerate(SAID)
    ]
    hand_over(memory.folder, *said, session=MAIN)
    memory.work(force=True)
    graph = memory.find(MAIN)
    for file in graph.vault.root.glob("nodes/*/*.md"):
        file.unlink()
    memory.registry.refresh(graph)
    memory.registry.refresh(graph)
    (graph.folder / "tombstones.jsonl").unlink(missing_ok=True)
    plan = Plan(graph, date(2026, 2, 1))
    for n, (title, text, more) in enumerate(NOTES):
        sources = (Source(MAIN, f"e{n}", start + n),)
        path = plan.create(Edit("create", title, text, **{"sources": sources, "origin": "user", **more}))
        if title == "Retries":
            plan.amend(path, pinned=True)
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", NOW, plan.changes()))
    cache = graph.vault.root / "nodes" / "fact" / "cache.md"
    cache.write_text(cache.read_text() + "\nIt was the proxy.\n")
    (graph.vault.root / "nodes" / "fact" / "mine.md").write_text("See [[nodes/fact/pump]].\n")
    memory.registry.refresh(graph)
    return graph


def statuses(graph):
    return {
        e.path.rpartition("/")[2]: e.status
        for e in graph.index.entries(status=None)
        if e.path[:6] == "nodes/"
    }


def nights(memory):
    return list(reflect_each(memory.worker))


def test_notes_that_older_rules_wrote_are_archived_and_come_back_if_that_is_undone(memory, graph):
    (night,) = nights(memory)
    found = statuses(graph)
    assert {name for name, status in found.items() if status == "archived"} == {"heartbeat", "resources"}
    assert {name for name, status in found.items() if status == "active"} == STAY | {"mine"}
    assert not [h for h in graph.index.search("heartbeat interval", now=NOW) if "heartbeat" in h.entry.path]
    assert "heartbeat" not in graph.vault.text("mocs/moc-facts")
    (event,) = (e for e in read_events(memory.folder) if e["event"] == "notes_archived")
    assert event["notes"] == 2
    (line,) = (line for line in night["summary"] if "an older version made" in line)
    assert (
        line.startswith("archived 2 notes that an older version made")
        and f"omg undo {event['cycle']}" in line
    )
    assert f"`omg undo {event['cycle']}` brings the notes back" in status_text(
        home_status(memory.worker), UTC
    )
    take_back(graph, event["cycle"], NOW)
    assert set(statuses(graph).values()) == {"active"}
    assert "an older version made" not in status_text(home_status(memory.worker), UTC)
    nights(memory)
    assert set(statuses(graph).values()) == {"active"}  # what was undone is not done again


def test_no_note_is_archived_in_a_home_where_a_model_has_observed(memory, graph):
    memory.worker.ledger.file.write_text(
        '{"day": "2026-02-01", "purpose": "observe", "tokens_in": 1, "tokens_out": 1, "usd": 0}\n'
    )
    nights(memory)
    assert set(statuses(graph).values()) == {"active"}


def test_notes_that_the_present_rules_wrote_stay_active(memory):
    said = {"role": "user", "content": "My sister Maya lives in Lisbon. I decided to sell the boat in May."}
    hand_over(
        memory.folder,
        {"entryId": "e1", "message": {"timestamp": int(NOW.timestamp() * 1000), **said}},
        session=MAIN,
    )
    memory.work(force=True)
    graph = memory.find(MAIN)
    nights(memory)
    assert len(statuses(graph)) == 2 and set(statuses(graph).values()) == {"active"}
