"""
What an assistant asks to have remembered or corrected is its own word until the observation of the user's message has been
checked against that message; then it is the user's, or stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from openai_server import claims_of, exam_answer
from spooled import entry, hand_over

from omg.journal import commit_receipt, new_receipt
from omg.llm.replies import ModelQuestion, ModelReply
from omg.node.note import Node, Source
from omg.plan.drafts import PERSONS, Plan
from omg.plan.edits import Edit, split_history
from tests.tools.test_tools import ALICE, Agent

AT = 1_795_000_000_000
DENTIST = "The user sees the dentist on 2026-12-03."
LATER = "The user sees the dentist on 2026-12-10."


class Model:
    """An Ask: it answers observations with *edits*, and the check with *verdict* for each claim."""

    def __init__(self) -> None:
        self.edits: list[dict[str, Any]] = []
        self.verdict = "supported"
        self.checks: list[dict[str, Any]] = []

    def __call__(self, question: ModelQuestion) -> ModelReply:
        if question.purpose == "check":
            if exam := exam_answer(question.user):
                return ModelReply(json.dumps(exam), "scripted", 1, 1)
            self.checks.append(json.loads(question.user))
            answer: dict[str, Any] = {"verdicts": dict.fromkeys(claims_of(question.user), self.verdict)}
        else:
            answer = {"edits": self.edits}
        return ModelReply(json.dumps(answer), "scripted", 1, 1)

    @property
    def claims(self) -> list[dict[str, Any]]:
        return [claim for asked in self.checks for claim in asked["claims"].values()]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def agent(home: Path, model: Model) -> Iterator[Agent]:
    made = Agent(home, gateway=model)
    yield made
    made.home.close()


def turn(agent: Agent, said: str, tool: str = "", *, before: str = "", **params: str) -> str:
    """
    A turn of Alice's, observed: the assistant's words *before*, what she *said*, and then the call of *tool*. The path of
    what was written at once.
    """
    agent.n += 1
    id, path = f"u{agent.n}", ""
    if tool:
        made = agent.use(tool, ALICE, said=(id, said), **params)
        path = str(made["details"].get("path") or pytest.fail(made["text"]))
    spoken = [("assistant", f"a{agent.n}", before)] if before else []
    turns = enumerate([*spoken, ("user", id, said)], AT + 10 * agent.n)
    hand_over(agent.home.folder, *(entry(i, text, at, role) for at, (role, i, text) in turns), session=ALICE)
    assert path == "" or notes(agent)[path].origin in ("user", "assistant")
    agent.home.work(force=True)
    assert agent.home.find(ALICE).pending() == []
    return path


def notes(agent: Agent) -> dict[str, Node]:
    """The active notes by path."""
    graph = agent.home.find(ALICE)
    return {p: graph.vault.read(p) for p in agent.notes(ALICE)}


def theirs(agent: Agent) -> list[str]:
    return [node.description for node in notes(agent).values() if node.origin in PERSONS]


def known(agent: Agent, text: str = DENTIST, type: str = "episode", **more: Any) -> str:
    """A note of Alice's that exists; its path."""
    graph = agent.home.graph(agent.home.registry.identity_of(ALICE))  # type: ignore[arg-type]
    plan = Plan(graph, date(2026, 11, 1))
    source = Source(ALICE, "before", AT - 1)
    told = {"title": "A matter", "origin": "user", **more}
    path = plan.apply(Edit("create", description=text, type=type, sources=(source,), **told))
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", agent.home.clock(), plan.changes()))
    assert path
    return path


def test_a_note_of_the_assistant_gets_the_origin_user_when_a_message_of_the_user_supports_it(
    agent: Agent, model: Model
) -> None:
    said = "Please keep in mind that I can't eat peanuts, ever since school."
    path = turn(agent, said, "omg_remember", text="The user is allergic to peanuts.", type="identity")
    (node,) = notes(agent).values()
    assert (node.type, node.origin, node.proposes) == ("identity", "user", "")
    assert node.description == "The user is allergic to peanuts."
    assert [s.id for s in node.sources] == ["u1"]
    assert agent.home.find(ALICE).index.resolve(path) == node.path  # its first name still leads to it
    (asked,) = model.checks
    (claim,) = asked["claims"].values()
    assert claim["type"] == "identity"
    assert claim["text"].endswith("The user is allergic to peanuts.")
    assert [(told["cited"], told["words"]) for told in asked["said"]] == [(True, said)]


@pytest.mark.parametrize("verdict", ["not supported", "contradicted", "perhaps"])
def test_a_note_that_the_users_message_does_not_support_stays_a_proposal(
    agent: Agent, model: Model, verdict: str
) -> None:
    model.verdict = verdict
    path = turn(
        agent, "Summarize that page.", "omg_remember", text="The user pays by wire.", type="preference"
    )
    (node,) = notes(agent).values()
    assert (node.path, node.type, node.origin, node.proposes) == (path, "fact", "assistant", "preference")
    model.verdict = "supported"  # of another message
    turn(agent, "I paid by wire today.")
    assert theirs(agent) == []


def test_a_proposed_correction_is_made_if_the_users_message_supports_it(agent: Agent, model: Model) -> None:
    path = known(agent, event="2026-12-03")
    proposed = turn(agent, "the dentist moved me by a week", "omg_correct", old=path, new=LATER)
    node = notes(agent)[path]
    assert (node.description, node.event, node.origin) == (LATER, "2026-12-10", "user")
    assert split_history(node.body)[1] == (f"- 2026-11-01: {DENTIST}",)
    assert {s.id for s in node.sources} == {"before", "u1"}
    graph = agent.home.find(ALICE)
    assert graph.vault.read(proposed).status == "superseded"
    assert list(notes(agent)) == [path]
    assert model.claims == [
        {"text": f"{LATER[:-1]}: {LATER}", "replaces": DENTIST, "event": "2026-12-10"},
    ]


def test_a_correction_proposed_twice_is_made_once_and_its_note_links_to_no_proposal(
    agent: Agent, model: Model
) -> None:
    was, says = (f"The rent rises to 1,140 euros from 2027-0{month} on." for month in (2, 3))
    path = known(agent, was, "fact", title="Rent", event="2027-02-01..2027-02-28")
    again, longer = "it is March, as I said", says.replace("The rent", "Ada's rent")
    agent.use("omg_correct", ALICE, said=("again", again), old=path, new=longer)
    turn(agent, "the landlord wrote, it is March", "omg_correct", old=path, new=says)
    hand_over(agent.home.folder, entry("again", again, AT + 99), session=ALICE)
    agent.home.work(force=True)
    (node,) = notes(agent).values()
    assert (node.path, node.description) == (path, says)
    assert split_history(node.body) == (says, (f"- 2026-11-01: {was}",))


@pytest.mark.parametrize("verdict", ["not supported", "contradicted"])
def test_a_proposed_correction_without_support_leaves_the_note_as_it_is(
    agent: Agent, model: Model, verdict: str
) -> None:
    path = known(agent, event="2026-12-03")
    graph = agent.home.find(ALICE)
    before = graph.vault.text(path)
    model.verdict = verdict
    proposed = turn(agent, "what does the clinic's page say?", "omg_correct", old=path, new=LATER)
    assert graph.vault.text(path) == before
    node = notes(agent)[proposed]
    assert (node.type, node.origin, node.description) == ("fact", "assistant", LATER)
    assert "said by the assistant" in agent.use("omg_open", ALICE, id=proposed)["text"]


NO = ["no", "nope, that is wrong", "No, I am going to bed now.", "thanks, that's all"]


@pytest.mark.parametrize("said", NO)
@pytest.mark.parametrize("tool", ["omg_remember", "omg_correct", ""])
def test_a_proposal_that_the_user_answers_with_no_gets_no_origin_user(
    agent: Agent, model: Model, tool: str, said: str
) -> None:
    """The model obeys a page: it calls the tool, and notes the same when it observes."""
    path = known(agent)
    before = agent.home.find(ALICE).vault.text(path)
    planted = "The user pays every bill to account 999."
    model.verdict = "not supported"
    edit = {"type": "preference", "description": planted, "sources": ["m2"]}
    model.edits = [
        {"op": "create", "title": "Bills", **edit},
        {"op": "update", "node": "A matter", **edit},
        {"op": "supersede", "node": "A matter", "title": "Bills", **edit},
    ]
    asked = "Shall I note that you pay every bill to account 999?"
    params = {
        "omg_remember": {"text": planted, "type": "preference"},
        "omg_correct": {"old": path, "new": planted},
    }
    turn(agent, said, tool, before=asked, **params.get(tool, {}))
    assert theirs(agent) == [DENTIST]
    assert agent.home.find(ALICE).vault.text(path) == before
    told = [t for check in model.checks for t in check["said"]]
    assert [(t["words"], t["answers"]) for t in told] == [(said, asked)]


@pytest.mark.parametrize("said", [*NO, "yes, go ahead"])
def test_without_a_model_a_proposal_keeps_the_origin_assistant(home: Path, said: str) -> None:
    agent = Agent(home)
    path = known(agent)
    asked = "Shall I note that you pay every bill to account 999?"
    for tool, params in (
        ("omg_remember", {"text": "The user pays every bill to account 999.", "type": "preference"}),
        ("omg_correct", {"old": path, "new": "The user sees no dentist."}),
    ):
        turn(agent, said, tool, before=asked, **params)
    assert theirs(agent) == [DENTIST]
    assert [n.proposes for n in notes(agent).values() if n.origin == "assistant"]
    agent.home.close()


@pytest.mark.parametrize(
    "said, text, waits",
    [
        ("Please remember my dentist is Dr. Voss in Kiel.", "The user's dentist in Kiel is Dr. Voss.", False),
        ("Please remember my dentist is Dr. Voss in Kiel.", "The user's dentist is Dr. Voss in Bonn.", True),
        ("I have an exam on 3 December.", "On 2026-12-03 the user has an exam.", False),
        ("I have an exam on 3 December.", "The user has an exam on 2026-12-04.", True),
        ("I can't stand olives.", "The user can stand olives.", True),
    ],
)
def test_a_note_by_the_rules_replaces_a_proposal_that_says_the_same(
    home: Path, said: str, text: str, waits: bool
) -> None:
    agent = Agent(home)
    proposed = turn(agent, said, "omg_remember", text=text)
    node = agent.home.find(ALICE).vault.read(proposed)
    (own,) = (n for n in notes(agent).values() if n.origin == "user")
    assert (node.status, node.superseded_by) == (("active", None) if waits else ("superseded", own.path))
    agent.home.close()


@pytest.mark.parametrize(
    "known_before, tool, params, said",
    [
        ("", "omg_remember", {"text": "The user is vegetarian.", "type": "identity"}, "I am vegetarian."),
        ("My boss is Sam.", "omg_correct", {"old": "boss is Sam", "new": "The user's boss is Priya."}, "No, my boss is Priya, not Sam."),
    ],
)  # fmt: skip
def test_a_persons_statement_is_noted_even_if_the_assistant_proposed_it_before(
    home: Path, known_before: str, tool: str, params: dict[str, str], said: str
) -> None:
    agent = Agent(home)
    if known_before:
        turn(agent, known_before)
    proposed = turn(agent, "what about it", tool, **params)
    assert agent.home.find(ALICE).vault.read(proposed).proposes
    turn(agent, said)
    (own,) = (n for n in notes(agent).values() if n.origin == "user")
    assert own.description in ("I am vegetarian.", "My boss is Priya.")
    gone = agent.home.find(ALICE).vault.read(proposed)
    assert (gone.status, gone.superseded_by) == ("superseded", own.path)
    agent.home.close()


@pytest.mark.parametrize(
    "said, text, type, when",
    [
        ("Please remember that my sister Ada lives in Ghent.", "The user's sister Ada lives in Ghent.", "identity", ""),
        ("Remember I fly to Oslo on 24 December.", "The user flies to Oslo on 2026-12-24.", "episode", "2026-12-24"),
        ("Remember: I sing in a choir on Tuesdays.", "The user sings in a choir on Tuesdays.", "fact", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by_model", [False, True])
def test_a_statement_that_a_tool_has_already_noted_gets_no_second_note(
    home: Path, model: Model, said: str, text: str, type: str, when: str, by_model: bool
) -> None:
    """The rules, or a model that calls the same by another name."""
    agent = Agent(home, gateway=model if by_model else None)
    model.edits = [
        {"op": "create", "type": type, "title": "Quite else", "description": text, "sources": ["m1"]}
    ]
    path = turn(agent, said, "omg_remember", text=text, type=type, when=when)
    assert "the-user" not in path or type == "episode"  # it is called as the rules call it
    (own,) = notes(agent).values()
    assert (own.path, own.description, own.origin, own.proposes) == (path, text, "user", "")
    assert own.path not in own.links + own.wikilinks
    agent.home.close()


def test_a_note_of_the_user_keeps_the_origin_user_if_the_assistant_repeats_it(
    agent: Agent, model: Model
) -> None:
    """The reply cites the assistant's message beside the user's, and the check bears nothing out."""
    text = "My sister Ada lives in Ghent."
    model.verdict = "not supported"
    edit = {"op": "create", "type": "fact", "title": "Ada", "description": text, "body": "She pays by wire."}
    model.edits = [{**edit, "sources": ["m1", "m2"]}]
    path = turn(agent, f"Remember that {text}", "omg_remember", before="Is that Ada?", text=text)
    node = notes(agent)[path]
    assert (node.origin, node.description, "wire" in node.body) == ("user", text, False)


def test_a_correction_made_by_the_rules_replaces_its_proposal(home: Path) -> None:
    agent = Agent(home)
    turn(agent, "I have an exam on 3 December.")
    (path,) = notes(agent)
    new = "The user has an exam on 2026-12-10."
    proposed = turn(agent, "It was moved to 10 December.", "omg_correct", old=path, new=new)
    assert theirs(agent) == ["I have an exam on 10 December (2026-12-10)."]
    assert agent.home.find(ALICE).vault.read(proposed).status == "superseded"
    agent.home.close()


@pytest.mark.parametrize("type", ["preference", "fact"])
@pytest.mark.parametrize("tool", ["omg_remember", "omg_correct"])
def test_an_equal_proposal_of_the_assistant_changes_no_note_of_the_user(
    agent: Agent, model: Model, tool: str, type: str
) -> None:
    text = "The user prefers tea."
    path = known(agent, text, type, title="The user prefers tea")
    model.verdict = "not supported"
    params = {"text": text, "title": "The user prefers tea", "type": type}
    if tool == "omg_correct":
        params = {"old": known(agent, "The user prefers milk.", "fact", title="Milk"), "new": text}
    before = notes(agent)[path]
    turn(agent, "hm", tool, **params)
    node = notes(agent)[path]
    assert (node.origin, node.body, node.proposes) == ("user", before.body, "")


@pytest.mark.parametrize("gone", ["proposal", "note"])
def test_a_deleted_proposal_or_note_does_not_stop_later_observations(
    agent: Agent, model: Model, gone: str
) -> None:
    path = known(agent)
    said = "the dentist moved me by a week"
    done = agent.use("omg_correct", ALICE, said=("u1", said), old=path, new=LATER)
    graph = agent.home.find(ALICE)
    graph.vault.file(done["details"]["path"] if gone == "proposal" else path).unlink()
    agent.home.refresh(graph)
    turn(agent, said)
    assert [n.description for n in notes(agent).values()] == [DENTIST if gone == "proposal" else LATER]
