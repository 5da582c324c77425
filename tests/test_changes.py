"""Corrections, reversals, cancellations, moved dates, retitles: one note with the present state, its course behind it."""

import json
from datetime import UTC, date, datetime

import pytest
from corpora.grounded import rows

from omg.config.sections import Config
from omg.identity import identity_of_session
from omg.journal import commit_receipt, new_receipt
from omg.memory import Memory
from omg.message.turn import Message
from omg.node.fields import Source
from omg.observe.reply import ShownToObserver, parse_reply
from omg.plan.drafts import Plan
from omg.plan.edits import Edit, split_history

MAIN = "agent:main:main"


def ms(at: str) -> int:
    return int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def graph(home):
    memory = Memory(Config(home=home), embed=None)
    yield memory.graph(identity_of_session(MAIN))
    for graph in memory.registry.kept():
        graph.close()


def commit(graph, plan):
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", datetime.now(UTC), plan.changes()))


def known_note(note):
    said = date.fromisoformat(note["said"])
    source = Source(MAIN, f"before-{note['handle']}", ms(f"{said}T09:00"))
    fields = {name: note[name] for name in ("title", "description", "type", "event", "loop", "origin")}
    return Edit("create", **fields, body=note["body"] or "", sources=(source,), day=said)


@pytest.mark.parametrize("case", rows("changes"), ids=lambda case: case["id"])
def test_what_changed_is_one_note_with_its_present_state_and_its_course(graph, case):
    plan = Plan(graph, date(2026, 1, 1))
    paths = {note["handle"]: plan.apply(known_note(note)) for note in case["known"]}
    commit(graph, plan)
    messages = [
        Message(m["id"], m["role"], m["text"], ms(m["at"]), sender=m["sender"], tool=m["tool"])
        for m in case["messages"]
    ]
    notes = {handle: graph.index.entry(path) for handle, path in paths.items()}
    shown = ShownToObserver({m.id: (MAIN, m) for m in messages}, notes, UTC)
    reply = parse_reply(json.dumps({"edits": case["edits"]}), shown)
    assert reply.dropped == []
    plan = Plan(graph, date(2026, 2, 1))
    plan.apply_all(reply.edits)
    commit(graph, plan)
    check(graph, case["expect"])


def check(graph, expect):
    active = [e for e in graph.index.entries() if e.path.startswith("nodes/")]
    assert len(active) == expect["active"]
    (entry,) = active
    node = graph.vault.read(entry.path)
    main, lines = split_history(node.body)
    for words in expect["present"]:
        assert words in node.description
    for words in expect.get("gone", ()):
        assert words not in node.description
    for words in expect["history"]:
        assert any(words in line for line in lines)
    for words in expect.get("kept", ()):
        assert words in main
    for name in {"title", "type", "loop", "event"} & expect.keys():
        assert getattr(node, name) == expect[name]
    for former in graph.index.entries(status="superseded"):
        assert graph.index.resolve(former.superseded_by) == entry.path
