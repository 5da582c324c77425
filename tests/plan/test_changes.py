"""
Corrections, cancellations and moved dates give one note with the present state; its History has the former
states.
"""

from datetime import UTC, date, datetime

import pytest
from corpora.grounded import rows
from openai_server import OpenAIServer
from spooled import entry, hand_over

from omg.config import Config, Llm, Observation
from omg.identity import identity_of_session
from omg.journal import commit_receipt, new_receipt
from omg.memory import Memory
from omg.node.note import Source
from omg.plan.drafts import Plan
from omg.plan.edits import Edit, split_history

CASES = {case["id"]: case for case in rows("changes")}


def session(case):
    return f"agent:main:telegram:direct:{list(CASES).index(case['id'])}"


def ms(at: str) -> int:
    return int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """What a scripted model's replies made of forty people's vaults: dropped, asked about and written as by the daemon."""
    with OpenAIServer() as server:
        llm = Llm(api_base=server.base, api_key="k", timeout_s=60, context_window=64_000)
        config = Config(
            home=tmp_path_factory.mktemp("omg"), observation=Observation(model="openai/scripted"), llm=llm
        )
        server.always(
            lambda asked: {"edits": next(c for c in CASES.values() if is_about(c, asked.user))["edits"]}
        )
        memory = Memory(config, embed=None)
        for n, case in enumerate(CASES.values()):
            plant(memory.graph(identity_of_session(session(case))), case)
            drop(memory, n, case)
        memory.work(force=True)
        assert [g.pending() for g in memory.registry.graphs()] == [[]] * len(CASES)
        assert len(server.history) == len(CASES)
        yield memory
        memory.close()


def is_about(case, question):
    return all(f": {m['text']}" in question for m in case["messages"])


def plant(graph, case):
    plan = Plan(graph, date(2026, 1, 1))
    for note in case["known"]:
        plan.apply(known_note(note))
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", datetime.now(UTC), plan.changes()))


def known_note(note):
    said = date.fromisoformat(note["said"])
    source = Source("agent:main:main", f"before-{note['handle']}", ms(f"{said}T09:00"))
    fields = {name: note[name] for name in ("title", "description", "type", "event", "loop", "origin")}
    return Edit("create", **fields, body=note["body"] or "", sources=(source,), day=said)


def drop(memory, n, case):
    entries = [entry(f"e{n}-{m['id']}", m["text"], ms(m["at"]), m["role"]) for m in case["messages"]]
    hand_over(memory.folder, *entries, session=session(case))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_changed_fact_is_kept_as_one_note_with_the_present_state_and_a_history(changed, case):
    check(changed.graph(identity_of_session(session(case))), case["expect"])


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
