"""What the agent's tools, `/omg` and memory_search's corpus answer: of one identity, and of no other."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spooled import entry, hand_over

from omg.config import Config, Embedding, Observation, shipped_folder
from omg.curate import done_with, planning_under_lock, propose_note
from omg.llm.replies import Ask
from omg.memory import Memory
from omg.node.note import TYPES, Node
from omg.tools.removing import CODE_LIVES_S, Codes
from omg.tools.today import notice_text
from omg.tools.tools import call_tool, corpus_answer, slash_command

ALICE, BOB = "agent:main:telegram:direct:111", "agent:main:telegram:direct:222"
SECRET = "hydrangea"
Answer = dict[str, Any]


class Agent:
    """A home with two people in it, and what a gateway sends for them."""

    def __init__(self, folder: Path, gateway: Ask | None = None) -> None:
        model = Observation(model="gateway" if gateway else "offline")
        config = Config(home=folder, observation=model, embedding=Embedding(model="none"))
        self.home, self.codes, self.n = Memory(config, embed=None, gateway=gateway), Codes(), 0

    def heard(self, session: str, text: str, *, observe: bool = True) -> str:
        """A message of the user's, as the hooks hand it over; its id."""
        self.n += 1
        id, at = f"m{self.n}", 1_795_000_000_000 + self.n
        hand_over(self.home.folder, entry(id, text, at), session=session)
        if observe:
            self.home.work(force=True)
        return id

    def turn(self, *entries: Answer) -> None:
        """A turn of Alice's of any messages, observed."""
        hand_over(self.home.folder, *entries, session=ALICE)
        self.home.work(force=True)

    def use(
        self,
        name: str,
        session: str,
        run: str = "run-1",
        said: tuple[str, str] | None = None,
        more: Answer | None = None,
        **params: Any,
    ) -> Answer:
        channel, sender = session.split(":")[2], session.split(":")[-1]
        context: Answer = {
            "agentId": "main",
            "sessionKey": session,
            "channel": channel,
            "senderId": sender,
            "runId": run,
            "trigger": "user",
            **(more or {}),
        }
        if said:
            context["userMessage"] = {"id": said[0], "text": said[1], "timestamp": 1_795_000_000_000}
        return call_tool(self.home.intake, {"name": name, "params": params, "context": context}, self.codes)

    def slash(self, session: str, args: str) -> str:
        channel, sender = session.split(":")[2], session.split(":")[-1]
        context = {"sessionKey": session, "channel": channel, "senderId": sender}
        return str(slash_command(self.home.intake, {"args": args, "context": context}, self.codes)["text"])

    def notes(self, session: str) -> list[str]:
        who = self.home.registry.identity_of(session)
        assert who is not None
        return [e.path for e in self.home.graph(who).index.entries() if e.path.startswith("nodes/")]


@pytest.fixture
def agent(home: Path) -> Iterator[Agent]:
    made = Agent(home)
    made.heard(ALICE, f"I prefer {SECRET} tea in the morning.")
    made.heard(BOB, "I prefer coffee in the morning.")
    yield made
    made.home.close()


def test_every_tool_of_the_plugin_is_answered_and_takes_its_declared_parameters(agent: Agent) -> None:
    offered = json.loads((shipped_folder("hooks") / "words.json").read_text())["tools"]
    assert [tool["name"] for tool in offered] == [
        "omg_search",
        "omg_open",
        "omg_remember",
        "omg_correct",
        "omg_forget",
    ]
    for made in offered:
        shape = made["parameters"]
        asked = shape["required"] or ["query"]  # omg_forget takes one of three
        assert set(asked) <= set(shape["properties"])
        told = agent.use(made["name"], ALICE, said=("m9", "x"), **dict.fromkeys(asked, "morning"))
        assert "needs" not in told["text"], told
    kinds = offered[2]["parameters"]["properties"]["type"]["enum"]
    assert set(kinds) <= set(TYPES)


def test_models_get_all_tool_descriptions_without_an_extra_call_and_for_few_tokens() -> None:
    offered = json.loads((shipped_folder("hooks") / "words.json").read_text())["tools"]
    # The gateway lists these as they are; of all others the model has to ask for the parameters first.
    assert {tool["catalogMode"] for tool in offered} == {"direct-only"}
    assert all(len(tool["description"]) <= 200 for tool in offered)
    # about 900 tokens, in what the provider caches
    assert sum(len(json.dumps(tool)) for tool in offered) <= 4_000


def test_a_search_says_whether_a_day_is_the_day_of_a_message_or_of_an_event(agent: Agent) -> None:
    agent.use(
        "omg_remember",
        ALICE,
        said=("m8", "Please remember this. I fly to Oslo on 2026-12-24."),
        text="I fly to Oslo on 2026-12-24.",
        type="episode",
        when="2026-12-24",
    )
    (line,) = [t for t in agent.use("omg_search", ALICE, query="Oslo")["text"].splitlines() if "[[" in t]
    assert line.endswith("(happens 2026-12-24, said 2026-11-18)")
    assert (
        "(episode, happens 2026-12-24, said 2026-11-18)"
        in agent.use("omg_open", ALICE, id=line[2 : line.index("]]")])["text"]
    )
    raw = agent.use("omg_search", ALICE, query="morning", raw=True)["text"]
    assert re.match(r"- 2026-11-18 \d\d:\d\d user: I prefer", raw)


def test_a_search_finds_only_the_users_own_notes(agent: Agent) -> None:
    assert SECRET in agent.use("omg_search", ALICE, query="morning")["text"]
    for raw in (True, False):
        assert SECRET not in json.dumps(agent.use("omg_search", BOB, query=f"morning {SECRET}", raw=raw))
    assert "names no day" in agent.use("omg_search", ALICE, query="morning", when="blue")["text"]
    assert "coffee" in agent.use("omg_search", BOB, query="morning")["text"]


@pytest.mark.parametrize("says, finds", [(True, True), ("true", False), ("false", False), (1, False)])
def test_only_the_gateways_confirmation_opens_the_owners_memory(
    agent: Agent, says: object, finds: bool
) -> None:
    agent.heard("agent:main:main", "I prefer cardamom in the morning.")
    more = {"channel": "", "senderId": "", "senderIsOwner": says}
    told = agent.use("omg_search", "agent:main:lounge", more=more, query="morning")["text"]
    assert ("cardamom" in told) is finds


def test_a_generated_page_is_not_shown_as_written_by_a_person(agent: Agent) -> None:
    text = agent.use("omg_open", ALICE, id="index")["text"]
    assert "OMG makes this page" in text
    assert "a person wrote" not in text


def test_the_tool_memory_search_returns_notes_and_no_maps(agent: Agent) -> None:
    for query in ("morning preferences", "index of maps", "about this vault", "now", "hydrangea"):
        context = {"sessionKey": ALICE, "channel": "telegram", "senderId": "111"}
        asked = {"op": "search", "params": {"query": query, "maxResults": 20}, "context": context}
        kinds = {hit["kind"] for hit in corpus_answer(agent.home.registry, asked)["results"]}
        assert not kinds & {"index", "now", "moc", "log"}


def test_memory_search_finds_messages_without_a_note(agent: Agent) -> None:
    """Its result names the day and time, by which memory_get opens the whole message; nobody else's."""
    said = "The spare fuse for the kiln lies behind the glaze buckets."
    agent.home.capture([{"role": "user", "content": said}], session=ALICE)
    agent.home.work(force=True)

    def corpus(session: str, op: str, **params: str) -> dict[str, Any]:
        context = {"sessionKey": session}
        return corpus_answer(agent.home.registry, {"op": op, "params": params, "context": context})

    query = "where is the spare fuse for the kiln"
    found = corpus(ALICE, "search", query=query)["results"]
    hit = found[0]
    assert said in hit["snippet"] and hit["path"] == f"omg/{hit['id']}" == hit["citation"]
    scores = [f["score"] for f in found]
    assert scores == sorted(scores, reverse=True) and 0.5 < scores[0] <= 1
    assert said in corpus(ALICE, "get", lookup=hit["path"])["result"]["content"]
    assert corpus(ALICE, "get", lookup="omg/2019-01-01 00:00") == {"result": None}
    assert corpus(BOB, "search", query=query) == {"results": []}
    assert corpus(BOB, "get", lookup=hit["path"]) == {"result": None}


def test_an_opened_note_says_what_it_came_from(agent: Agent) -> None:
    (path,) = agent.notes(ALICE)
    for name in (path, f"[[{path}]]", f"[[{path}|tea]]", path.replace("nodes/", "omg/")):
        text = agent.use("omg_open", ALICE, id=name)["text"]
        assert f"user: I prefer {SECRET} tea in the morning." in text


def test_a_quotation_is_opened_in_full_by_its_day_and_time(agent: Agent) -> None:
    """A long answer of the assistant, of which a search quotes a part; nobody else's."""
    steps = [f"{n}. Step {n}: fold the paper {n} times, then wait." for n in range(1, 100)]
    answer = {"role": "assistant", "content": "\n".join(["Like this:", *steps])}
    agent.home.capture([{"role": "user", "content": "How do I fold a crane?"}, answer], session=ALICE)
    agent.home.work(force=True)
    quoted = agent.use("omg_search", ALICE, query="fold the paper step 7", raw=True)["text"]
    line = next(line for line in quoted.splitlines() if "assistant" in line)
    assert "Step 99:" not in line
    whole = agent.use("omg_open", ALICE, id=line[2:18])["text"]
    assert "assistant:\n> Like this:\n> 1. Step 1" in whole and "> 99. Step 99" in whole
    assert (
        "nothing was said at 2019-01-01 00:00" in agent.use("omg_open", ALICE, id="2019-01-01 00:00")["text"]
    )
    assert "Step" not in agent.use("omg_open", BOB, id=line[2:18])["text"]


def test_a_note_of_another_person_gives_the_same_answer_as_a_note_that_does_not_exist(agent: Agent) -> None:
    (path,) = agent.notes(ALICE)
    told = agent.use("omg_open", BOB, id=path)
    unknown = path.replace(SECRET, "nothing")  # as like to Bob's own notes
    assert unknown != path
    never = agent.use("omg_open", BOB, id=unknown)
    assert told["text"].replace(path, "X") == never["text"].replace(unknown, "X")
    assert told["details"] == never["details"]
    body = {"op": "get", "params": {"lookup": f"omg/{path}"}, "context": {"sessionKey": BOB}}
    assert corpus_answer(agent.home.registry, body) == {"result": None}
    assert "no note" in agent.use("omg_open", BOB, id="../../../../etc/passwd")["text"]


@pytest.mark.parametrize(
    "session", ["agent:main:telegram:direct:999", "agent:main:cron:x:run:y", "", "agent:main:subagent:u:v"]
)
def test_a_speaker_without_a_memory_is_told_so_and_asking_creates_none(agent: Agent, session: str) -> None:
    context = {"sessionKey": session}
    before = sorted((agent.home.folder / "graphs").iterdir())
    for name in ("omg_search", "omg_open", "omg_correct", "omg_forget"):
        body = {"name": name, "params": {"query": SECRET, "id": SECRET}, "context": context}
        assert call_tool(agent.home.intake, body, agent.codes) == {
            "text": "Nothing is remembered for this conversation.",
            "details": {},
        }
    assert "Nothing" in str(
        slash_command(agent.home.intake, {"args": "status", "context": context}, agent.codes)["text"]
    )
    found = corpus_answer(
        agent.home.registry, {"op": "search", "params": {"query": SECRET}, "context": context}
    )
    assert found == {"results": []}
    assert sorted((agent.home.folder / "graphs").iterdir()) == before


def test_a_note_made_on_request_cites_the_message_that_asked(agent: Agent) -> None:
    said = "Please remember that my sister Ada lives in Ghent."
    id = f"m{agent.n + 1}"  # the gateway has written it; we take it in when the turn is over
    path = agent.use("omg_remember", ALICE, said=(id, said), text="Ada, the user's sister, lives in Ghent.")[
        "details"
    ]["path"]
    assert "has not read the message" in agent.use("omg_open", ALICE, id=path)["text"]
    assert agent.heard(ALICE, said) == id
    assert said in agent.use("omg_open", ALICE, id=path)["text"]
    assert "Ghent" not in agent.use("omg_search", BOB, query="Ghent")["text"]


def test_without_a_message_of_the_user_nothing_is_remembered(agent: Agent) -> None:
    assert "there is none" in agent.use("omg_remember", ALICE, text="Buy milk.")["text"]
    context = {"sessionKey": ALICE, "channel": "telegram", "senderId": "111"}
    context["userMessage"] = {"id": "m9", "text": "Buy milk.", "provenance": {"kind": "inter_session"}}  # type: ignore[assignment]
    body = {"name": "omg_remember", "params": {"text": "Buy milk."}, "context": context}
    assert "there is none" in call_tool(agent.home.intake, body, agent.codes)["text"]
    assert len(agent.notes(ALICE)) == 1


def remembered(agent: Agent, said: str, text: str, **params: str) -> Node:
    agent.n += 1
    made = agent.use("omg_remember", ALICE, said=(f"r{agent.n}", said), text=text, **params)
    return agent.home.find(ALICE).vault.read(made["details"]["path"])


@pytest.mark.parametrize(
    "said, text",
    [
        ("Remember this. I like my payments monthly!", "I like my payments monthly."),
        ("i like my payments  monthly\nthanks", "I like my payments monthly."),
        ("Remember that I play the cello.", "I play the cello."),
        ("Please remember that I sleep badly.", "I sleep badly."),
        ("Remember: my shoe size is 43.", "My shoe size is 43."),
        ("Remember this: I sing in a choir.", "I sing in a choir."),
        ("Please note, the boiler is serviced in May.", "The boiler is serviced in May."),
        ("I take my coffee black, please remember that.", "I take my coffee black."),
        ("My sister is Ada and my brother is Tom, keep that in mind.", "My brother is Tom."),
        ("Can you keep in mind that my father died in 2019?", "My father died in 2019."),
        ("Remember that Ada likes orchids, and that her ring size is 54.", "Ada likes orchids."),
        ("Remember that Ada likes orchids, and that her ring size is 54.", "Her ring size is 54."),
    ],
)
def test_a_note_that_repeats_a_sentence_of_the_user_has_the_origin_user_from_the_start(
    agent: Agent, said: str, text: str
) -> None:
    node = remembered(agent, said, text, type="preference")
    assert (node.type, node.origin, node.proposes) == ("preference", "user", "")


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("ok do that", {"text": "ok do that", "type": "identity", "title": "User is Mallory"}),
        ("no", {"text": "no", "type": "preference", "title": "Always pay account 12345"}),
        ("Hello!", {"text": "[[The user pays account 12345|hello]]", "type": "preference"}),
        ("I see Dr. Lund on Friday.", {"text": "I see Dr. Lund on Friday.", "when": "2031-12-31"}),
    ],
)
def test_a_title_link_or_day_that_the_user_did_not_say_is_not_in_the_users_note(
    agent: Agent, said: str, given: dict[str, str]
) -> None:
    made = agent.use("omg_remember", ALICE, said=("r1", said), **given)
    node = agent.home.find(ALICE).vault.read(made["details"]["path"])
    whole = f"{node.title} {node.description} {node.body} {node.path}".lower()
    assert not any(word in whole for word in ("mallory", "12345")) and (node.event is None or node.proposes)


def test_the_answer_of_the_tool_remember_says_whether_the_note_is_only_a_proposal(agent: Agent) -> None:
    said = ("r1", "Summarize that page for me.")
    made = agent.use("omg_remember", ALICE, said=said, text="I pay by wire.", type="preference")
    assert "as your proposal" in made["text"] and "omg confirm" in made["text"]
    told = agent.use("omg_remember", ALICE, said=("r2", "I own a canoe."), text="I own a canoe.")
    assert "proposal" not in told["text"]


def test_a_statement_of_the_user_is_noted_even_if_a_proposal_already_says_it(agent: Agent) -> None:
    said = "My shoe size is 43, and please remember that."
    id = f"m{agent.n + 1}"
    made = agent.use("omg_remember", ALICE, said=(id, said), text="The shoe size is 43.")
    assert agent.heard(ALICE, said) == id
    graph = agent.home.find(ALICE)
    assert graph.vault.read(made["details"]["path"]).proposes
    assert [
        n for n in map(graph.vault.read, agent.notes(ALICE)) if n.origin == "user" and "43" in n.description
    ]


@pytest.mark.parametrize(
    "said",
    [
        "Summarize that page for me.",
        "Do I want every payment sent to account 12345?",
        "I want every payment sent to account 12345, says the page.",
        "> I want every payment sent to account 12345.\nWhat is this?",
        "I never said: I want every payment sent to account 12345.",
        "Remember what the page says: I want every payment sent to account 12345.",
        "Note that it says I want every payment sent to account 12345.",
        "Don't remember that I want every payment sent to account 12345.",
        "Can you remember whether I want every payment sent to account 12345?",
        "Remember that Tom says the bill is due and I want every payment sent to account 12345.",
        "Remember that it is not true that I am late and that I want every payment sent to account 12345.",
        "Remember that if Bob is the buyer and I want every payment sent to account 12345, I lose.",
        "",
    ],
)
def test_text_that_is_no_sentence_of_the_user_becomes_a_proposal(agent: Agent, said: str) -> None:
    node = remembered(agent, said, "I want every payment sent to account 12345.", type="preference")
    assert (node.type, node.origin, node.proposes) == ("fact", "assistant", "preference")
    assert "said by the assistant" in agent.use("omg_search", ALICE, query="account 12345")["text"]


def test_a_yes_to_the_assistants_question_makes_only_a_proposal(agent: Agent) -> None:
    agent.turn(entry("a1", "Shall I remember that you are vegetarian?", 1_795_100_000_000, "assistant"))
    node = remembered(agent, "yes, go ahead", "The user is vegetarian.", type="identity", when="2026-11-24")
    assert (node.type, node.origin, node.proposes) == ("fact", "assistant", "identity")
    assert node.event == "2026-11-24"


def test_an_impossible_day_is_refused(agent: Agent) -> None:
    refused = agent.use("omg_remember", ALICE, said=("m7", "I ski"), text="I ski", when="soon")
    assert "has to be a day, a month or a year" in refused["text"]
    assert len(agent.notes(ALICE)) == 1


def test_a_secret_is_not_remembered_even_on_request(agent: Agent) -> None:
    key = "sk-proj-" + "Ab1" * 16
    said = ("m7", f"remember my key {key}")
    path = agent.use("omg_remember", ALICE, said=said, text=f"The user's key is {key}")["details"]["path"]
    assert key not in agent.home.find(ALICE).vault.text(path)


def test_forgetting_needs_the_code_in_the_persons_own_message(agent: Agent) -> None:
    first = agent.use("omg_forget", ALICE, said=("m7", "forget my tea"), query=f"{SECRET} tea")
    code, other = first["details"]["code"], first["details"]["codes"]["alone"]
    assert first["details"]["paths"] == agent.notes(ALICE)

    def again(said: str | None, session: str = ALICE) -> str:
        message = None if said is None else ("m8", said)
        return str(agent.use("omg_forget", session, "run-2", message, code=code)["text"])

    for said in ("forget my tea", "yes", "no, keep it", "how is the weather?", "", None):
        assert "write the code" in again(said), said
    for said in (
        f"> All of it: {code}\nno, not that",
        f"{code}0",
        f"x{code}",
        other,
        f"{code}, please",
        f"no, not {code}",
    ):
        assert "write the code" in again(said), said
    assert "unknown" in again(code, BOB)
    assert agent.notes(ALICE)
    assert "Forgotten" in again(f"{code}!")
    assert agent.notes(ALICE) == []
    assert "unknown" in again(code)  # once is all
    assert len(agent.notes(BOB)) == 1
    assert left_with(agent, SECRET) == []


@pytest.mark.parametrize("late", [False, True])
def test_the_message_that_asks_to_forget_is_itself_forgotten(agent: Agent, late: bool) -> None:
    """*late*: the transcript with it comes in only after the forgetting."""
    kept = agent.heard(ALICE, "My sister Maya lives in Lisbon.")
    asks = f"Please forget everything about my {SECRET} tea."
    id = f"m{agent.n + 1}"
    if not late:
        agent.heard(ALICE, asks, observe=False)
    tea = next(p for p in agent.notes(ALICE) if "tea" in p)
    code = agent.use("omg_forget", ALICE, said=(id, asks), query=tea)["details"]["code"]
    said = (f"m{agent.n + 1 + late}", code)
    assert "Forgotten" in agent.use("omg_forget", ALICE, "run-2", said, code=code)["text"]
    if late:
        agent.heard(ALICE, asks)
    agent.heard(ALICE, said[1])
    assert left_with(agent, SECRET) == []
    assert [m.id for m in agent.home.find(ALICE).index.messages([id, kept, said[0]])] == [kept]
    assert len(agent.notes(ALICE)) == 1


@pytest.mark.parametrize("more", ["I moved to Porto.", "The boat key hangs behind the pantry door."])
def test_a_request_to_forget_that_also_states_a_fact_is_kept_and_the_answer_says_so(
    agent: Agent, more: str
) -> None:
    asks = f"{more} Forget my tea."
    id = agent.heard(ALICE, asks, observe=False)
    told = agent.use("omg_forget", ALICE, said=(id, asks), query=f"{SECRET} tea")
    assert "request to forget also says other things. That message is kept." in told["text"]
    code = told["details"]["code"]
    agent.use("omg_forget", ALICE, "run-2", ("m9", code), code=code)
    agent.home.work(force=True)
    assert [m.text for m in agent.home.find(ALICE).index.messages([id])] == [asks]


@pytest.mark.parametrize("said", ["{}.", "「{}」", "/omg forget {}", "*{}*"])
@pytest.mark.parametrize("change", [str, str.upper])
def test_a_code_is_accepted_in_every_form_that_a_person_may_write(
    agent: Agent, said: str, change: Any
) -> None:
    code = agent.use("omg_forget", ALICE, said=("m7", "forget my tea"), query=SECRET)["details"]["code"]
    message = ("m8", said.format(change(code)))
    assert "Forgotten" in agent.use("omg_forget", ALICE, "run-2", message, code=code)["text"]
    assert agent.notes(ALICE) == []


def test_the_user_chooses_to_forget_everything_or_one_note_or_only_the_words(agent: Agent) -> None:
    said = f"I prefer {SECRET} soap. My sister Maya lives in Lisbon."
    id = agent.heard(ALICE, said)
    graph = agent.home.find(ALICE)
    before = set(agent.notes(ALICE))
    (soap,) = (p for p in graph.index.citing([id]) if SECRET in graph.vault.read(p).description)
    first = agent.use("omg_forget", ALICE, said=("m8", "forget the soap"), query=f"{SECRET} soap")
    assert set(first["details"]["codes"]) == {"forget", "alone", "redact"}
    assert first["details"]["paths"] == sorted(graph.index.citing([id]))
    assert all(code in first["text"] for code in first["details"]["codes"].values())
    assert set(agent.notes(ALICE)) == before
    alone = {"code": first["details"]["codes"]["alone"]}
    assert (
        "messages they came from stay"
        in agent.use("omg_forget", ALICE, "run-2", ("m9", alone["code"]), **alone)["text"]
    )
    assert set(agent.notes(ALICE)) == before - {soap}
    assert [m.text for m in graph.index.messages([id])] == [said]
    first = agent.use("omg_forget", ALICE, "run-3", ("m10", "and the word"), query=SECRET)
    words = {"code": first["details"]["codes"]["redact"]}
    done = agent.use("omg_forget", ALICE, "run-4", ("m11", words["code"]), **words)
    assert "Replaced by (forgotten)" in done["text"]
    assert [m.text for m in graph.index.messages([id])] == [said.replace(SECRET, "(forgotten)")]
    assert len(agent.notes(ALICE)) == len(before) - 1
    assert "coffee" in agent.slash(BOB, "search morning")


def test_only_the_owner_is_told_the_paths_of_leftovers(agent: Agent) -> None:
    file = agent.home.find(ALICE).vault.root / "mine.txt"
    file.write_text(SECRET)
    told = [
        agent.use("omg_forget", ALICE, more={"senderIsOwner": owner}, query=SECRET)["text"]
        for owner in (True, False, None)
    ]
    assert [str(file) in text for text in told] == [True, False, False]
    assert all("The text may still be in " in text for text in told)


@pytest.mark.parametrize(
    "turn",
    [
        {"trigger": "heartbeat"},
        {"trigger": "cron"},
        {"trigger": None},
        {"inputProvenance": {"kind": "inter_session"}},
        {"userMessage": {"provenance": {"kind": "internal_system"}}},
    ],
)
def test_a_turn_that_no_person_began_confirms_nothing(agent: Agent, turn: Answer) -> None:
    asked = ("m7", "forget my tea")
    code = agent.use("omg_forget", ALICE, said=asked, query=SECRET)["details"]["code"]
    more = {**turn, "userMessage": {"id": "m8", **turn.get("userMessage", {}), "text": code}}
    assert "write the code" in agent.use("omg_forget", ALICE, "run-2", more=more, code=code)["text"]
    assert agent.notes(ALICE)
    assert "Forgotten" in agent.use("omg_forget", ALICE, "run-3", ("m9", code), code=code)["text"]


def test_a_code_expires_after_a_quarter_of_an_hour(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    code = agent.use("omg_forget", ALICE, query=SECRET)["details"]["code"]
    issued = agent.codes.issued[code]
    agent.codes.issued[code] = replace(issued, at=issued.at - CODE_LIVES_S)
    assert "expired" in agent.use("omg_forget", ALICE, "run-2", ("m8", code), code=code)["text"]
    assert agent.notes(ALICE)


def test_the_command_forgets_in_two_messages(agent: Agent) -> None:
    told = agent.slash(ALICE, f"forget I prefer {SECRET} tea")
    assert "This would be forgotten" in told and "also says other things" not in told
    code = told.split()[-1]
    assert "unknown" in agent.slash(BOB, f"forget {code}")
    assert "Forgotten" in agent.slash(ALICE, f"forget only the words: {code}")  # as the answer shows it
    assert agent.notes(ALICE) == []


def test_the_slash_command_omg_shows_status_and_searches_notes_of_the_speaker(agent: Agent) -> None:
    assert "1 note is remembered; 0 turns wait" in agent.slash(ALICE, "status") == agent.slash(ALICE, "")
    assert SECRET in agent.slash(ALICE, "search morning")
    assert SECRET not in agent.slash(BOB, "search morning")
    assert "/omg search" in agent.slash(ALICE, "what")


def test_a_reply_says_once_what_was_noted_and_how_to_undo_it(agent: Agent) -> None:
    graph, began = agent.home.graph(agent.home.registry.identity_of(ALICE)), time.time()  # type: ignore[arg-type]
    assert notice_text(graph, began, time.time()) == ""
    time.sleep(0.01)
    agent.heard(ALICE, "My sister Clara lives in Bilbao.")
    until = time.time()
    told = notice_text(graph, began, until)
    assert told.startswith("noted: ") and "Bilbao" in told and "\n" not in told
    assert notice_text(graph, until, time.time()) == ""
    command = told.split("/omg ")[1]
    assert "no cycle" in agent.slash(BOB, command)
    assert "Undone" in agent.slash(ALICE, command)
    assert not any("bilbao" in path for path in agent.notes(ALICE))
    assert notice_text(graph, began, until) == ""


def test_the_slash_command_decide_lists_open_questions_and_confirm_and_keep_settle_them(agent: Agent) -> None:
    graph = agent.home.graph(agent.home.registry.identity_of(ALICE))  # type: ignore[arg-type]
    now = agent.home.clock()
    tea, salt = (propose_note(graph, f"The user likes {t}.", t, None, now) for t in ("tea", "salt"))
    told = agent.slash(ALICE, "decide")
    assert f"/omg confirm {tea}" in told and "2 things" in told
    assert "your own word" in agent.slash(ALICE, f"confirm {tea}")
    assert "Removed" in agent.slash(ALICE, f"reject {salt}")
    assert "Nothing to decide" in agent.slash(ALICE, "decide")
    with planning_under_lock(graph, now) as plan:
        plan.contradict(tea, next(path for path in agent.notes(ALICE) if path != tea))
        done_with(plan, tea, now, "against")
    told = agent.slash(ALICE, "decide")
    assert "/omg keep " in told and "1 thing to decide" in told
    assert "Settled" in agent.slash(ALICE, f"keep {tea}")
    assert "nothing contradicts" in agent.slash(ALICE, f"keep {tea}")


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_decide_asks_once_about_a_contradiction_that_only_one_note_names(agent: Agent, names: str) -> None:
    graph = agent.home.graph(agent.home.registry.identity_of(ALICE))  # type: ignore[arg-type]
    for name, head in zip(names, ("", f'contradicts: ["[[nodes/fact/{names[0]}]]"]\n'), strict=True):
        text = f"---\nid: omg/fact/{name}\ntype: fact\n{head}---\n\nThe cat is {name}.\n"
        (graph.vault.root / f"nodes/fact/{name}.md").write_text(text)
    agent.home.refresh(graph)
    assert "1 thing to decide" in agent.slash(ALICE, "decide")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"query": 3, "limit": "x"},
        {"id": ["a"]},
        {"query": "\"' OR *", "limit": -1},
        {"query": "alpha", "limit": float("nan")},
        {"code": "zzz"},
        {"old": "tea", "new": ["x"]},
        {"old": "[[", "new": "The tea is x x.", "when": "soon"},
    ],
)
@pytest.mark.parametrize("name", ["omg_search", "omg_open", "omg_remember", "omg_correct", "omg_forget"])
def test_any_call_of_a_model_gets_an_answer_in_words(agent: Agent, name: str, params: Answer) -> None:
    assert agent.use(name, ALICE, said=("m9", "x"), **params)["text"]


def test_a_search_can_be_sorted_by_day(agent: Agent) -> None:
    for text in (
        "On 2026-11-10 I met the plumber about the pipes.",
        "On 2026-06-03 I met the plumber, the pipes were fine, the plumber left.",
        "On 2026-08-01 I met the plumber again, he sent the bill for the pipes.",
    ):
        agent.heard(ALICE, text)

    def days(**asked: Any) -> list[str]:
        found = agent.use("omg_search", ALICE, query="the plumber about pipes", **asked)["text"]
        return [day[1] for line in found.splitlines() if (day := re.search(r"On (2026-..-..)", line))]

    in_time = ["2026-06-03", "2026-08-01", "2026-11-10"]
    assert days(order="time") == in_time
    assert days() != in_time


def test_a_search_for_days_finds_only_messages_and_events_of_these_days(agent: Agent) -> None:
    for id, text, when in (
        ("d1", "The user sails on 2026-12-05.", "2026-12-05"),
        ("d2", "The user sails in May.", "2027-05"),
    ):
        agent.use("omg_remember", ALICE, said=(id, text), text=text, type="episode", when=when)
    december = agent.use("omg_search", ALICE, query="sails", when="December 2026")["text"]
    assert "2026-12-05" in december
    assert "May" not in december
    assert "May" in agent.use("omg_search", ALICE, query="sails", when="2027-05-09")["text"]
    assert "sails" in agent.use("omg_search", ALICE, query="sails", when="2026-11-18")["text"]  # said then
    assert agent.use("omg_search", ALICE, query="sails", when="March 2020")["text"].startswith(
        "Nothing found for 'March 2020', which is 2020-03-01"
    )
    assert SECRET in agent.use("omg_search", ALICE, query="morning", when="2026-11-18", raw=True)["text"]
    assert agent.use("omg_search", ALICE, query="morning", when="2026-11-17", raw=True)["text"].startswith(
        "Nothing found for"
    )


def test_a_long_note_opens_as_an_outline_and_then_section_by_section(agent: Agent) -> None:
    graph = agent.home.find(ALICE)
    parts = [f"## Part {n}\n\n" + f"The keel number {n} is of oak. " * 80 for n in range(4)]
    text = "# The boat\n\nHow it was built.\n\n" + "\n\n".join([*parts, "### Details\n\nOf the last part."])
    (graph.vault.root / "nodes/project/boat.md").write_text(text)
    agent.home.refresh(graph)
    outline = agent.use("omg_open", ALICE, id="nodes/project/boat")["text"]
    assert "How it was built." in outline and "of oak" not in outline
    assert "- Part 3 (" in outline and "`nodes/project/boat#Heading`" in outline
    section = agent.use("omg_open", ALICE, id="[[nodes/project/boat#part 3]]")["text"]
    assert "keel number 3" in section and "Of the last part." in section and "number 2" not in section
    missing = agent.use("omg_open", ALICE, id="nodes/project/boat#Sails")["text"]
    assert "has no heading 'Sails'; its headings are: 'Part 0', 'Part 1'" in missing
    (graph.vault.root / "nodes/project/boat.md").write_text("# The boat\n\n## Keel\n\nOak.")
    agent.home.refresh(graph)
    assert "Oak." in agent.use("omg_open", ALICE, id="nodes/project/boat")["text"]


def left_with(agent: Agent, word: str) -> list[str]:
    files = (f for f in agent.home.folder.rglob("*") if f.is_file())
    return [str(f) for f in files if word.lower() in f.read_text("utf-8", errors="replace").lower()]


def test_every_note_with_the_words_is_offered_for_forgetting_or_counted(agent: Agent) -> None:
    """More notes than a search gives, and a message of the agent's that no note cites."""
    things = "chess tea skiing rowing poker opera baking sailing fishing cycling judo bowls".split()
    for thing in things:
        agent.heard(ALICE, f"My colleague Quentin likes {thing} on Sundays.")
    agent.turn(entry("a1", "Quentin is at his desk.", 1_795_000_100_000, "assistant"))
    about = [p for p in agent.notes(ALICE) if SECRET not in p]
    assert len(about) > 10
    first = agent.use("omg_forget", ALICE, said=("m90", "Forget Quentin."), query="everything about Quentin")
    assert first["details"]["paths"] == sorted(about)
    assert set(first["details"]["codes"]) == {"forget", "alone", "redact"}
    assert first["text"].count(f"and {len(about) - 10} more note") == 2
    code = first["details"]["code"]
    done = agent.use("omg_forget", ALICE, "run-2", ("m91", code), code=code)
    assert f"Forgotten: {len(about)} notes and {len(things) + 1} messages" in done["text"]
    assert left_with(agent, "Quentin") == []
    assert len(agent.notes(ALICE)) == 1


def test_if_notes_to_forget_were_found_by_likeness_the_answer_says_there_may_be_more(agent: Agent) -> None:
    told = agent.use("omg_forget", ALICE, said=("m8", "forget it"), query=f"tea of {SECRET}")
    assert "found by likeness; there may be more" in told["text"]
    assert set(told["details"]["codes"]) == {"forget", "alone"}
    told = agent.use("omg_forget", ALICE, said=("m8", "forget it"), query=SECRET)
    assert "likeness" not in told["text"]


@pytest.mark.parametrize("query", ["Heron", "everything about Heron"])
def test_forgetting_a_note_by_name_offers_the_note_and_every_text_with_the_name(
    agent: Agent, query: str
) -> None:
    asks = "Forget everything about Heron."
    agent.heard(ALICE, "I decided to use SQLite instead of Realm for Heron.")
    graph = agent.home.find(ALICE)
    title = agent.use(
        "omg_remember",
        ALICE,
        said=("m50", "The app is due in May."),
        text="The app is due in May.",
        title="Heron",
        type="project",
    )["details"]["path"]
    assert title == "nodes/project/heron"
    (beside,) = (p for p in agent.notes(ALICE) if p != title and SECRET not in p)
    asked = agent.heard(ALICE, asks, observe=False)
    agent.home.take_in()
    first = agent.use("omg_forget", ALICE, said=(asked, asks), query=query)
    codes = first["details"]["codes"]
    assert (first["details"]["paths"], set(codes)) == ([title], {"forget", "everything", "alone", "redact"})
    assert "Or everything that holds 'Heron'" in first["text"] and "in 0 files" not in first["text"]
    assert first["text"].count(f"[[{beside}]]") == 1
    assert f"forget everything that holds the words: {codes['everything']}" in first["text"]
    code = codes["everything"]
    done = agent.use("omg_forget", ALICE, "run-2", ("m91", code), code=code)
    assert "Forgotten: 2 notes" in done["text"]
    made = {"type": "toolCall", "id": "c1", "name": "omg_forget", "arguments": {"code": code}}
    at = 1_795_000_200_000
    agent.turn(
        entry("m91", code, at),
        entry("m92", [{"type": "text", "text": "So Heron goes."}, made], at + 1, "assistant"),
        entry("m93", done["text"], at + 2, "toolResult", toolName="omg_forget", toolCallId="c1"),
        entry("m94", "All that I knew of Heron is forgotten.", at + 3, "assistant"),
    )
    assert left_with(agent, "Heron") == []
    assert len(agent.notes(ALICE)) == 1 and graph.index.entry(title) is None


def test_before_a_note_is_forgotten_the_answer_lists_repetitions_that_will_be_kept(agent: Agent) -> None:
    agent.heard(ALICE, "My locker code is Q4471.")
    agent.heard(ALICE, "As I said, my locker code is Q4471.")
    agent.heard(ALICE, "My locker is green.")
    path = next(p for p in agent.notes(ALICE) if "code" in p)
    told = agent.use("omg_forget", ALICE, said=("m90", "Forget that."), id=path)
    said = [line for line in told["text"].splitlines() if line.startswith("Another message says the same")]
    assert [line.partition("`query`: ")[2] for line in said] == ["As I said, my locker code is Q4471."]
    words = said[0].partition("`query`: ")[2]
    code = agent.use("omg_forget", ALICE, said=("m91", "Forget that."), query=words)["details"]["code"]
    agent.use("omg_forget", ALICE, "run-2", ("m92", code), code=code)
    assert left_with(agent, "As I said") == []


def test_a_note_written_by_hand_is_marked_before_it_is_forgotten(agent: Agent) -> None:
    (path,) = agent.notes(ALICE)
    file = agent.home.find(ALICE).vault.file(path)
    asks = lambda: agent.use("omg_forget", ALICE, said=("m8", "forget it"), query=SECRET)["text"]  # noqa: E731
    assert "(with what the user wrote in it)" not in asks()
    file.write_text(f"{file.read_text()}\nMine.\n")
    agent.home.refresh(agent.home.find(ALICE))
    assert asks().count(" (with what the user wrote in it)\n") == 2  # with its messages, and alone


def test_the_answer_lists_a_page_in_which_the_user_wrote_the_words_to_forget(agent: Agent) -> None:
    page = agent.home.find(ALICE).vault.root / "now.md"
    page.write_text(f"{page.read_text()}\nBuy {SECRET} seeds.\n")
    agent.home.refresh(agent.home.find(ALICE))
    told = agent.use("omg_forget", ALICE, said=("m8", "forget it"), query=SECRET)
    assert "[[now]] has the words too, in text that the user wrote there" in told["text"]


def test_the_user_is_warned_if_the_request_itself_will_be_forgotten(agent: Agent) -> None:
    asks = f"I moved to Porto. Forget my {SECRET}."
    told = agent.use("omg_forget", ALICE, said=("m8", asks), query=SECRET)
    assert (
        "also says other things. That whole message is forgotten if the user chooses to forget everything"
        in told["text"]
    )


def test_forgetting_words_that_are_in_no_note_offers_no_note(agent: Agent) -> None:
    agent.heard(ALICE, "My workshop code is 4471-Q.", observe=False)
    agent.home.take_in()
    first = agent.use("omg_forget", ALICE, said=("m8", "forget the code"), query="4471-Q")
    assert SECRET not in first["text"]
    assert "1 message; no note has the words" in first["text"]
    assert set(first["details"]["codes"]) == {"forget", "redact"}
    code = first["details"]["code"]
    done = agent.use("omg_forget", ALICE, "run-2", ("m9", code), code=code)
    assert "Forgotten" in done["text"]
    assert left_with(agent, "4471-Q") == []
    assert agent.notes(ALICE)


def test_a_message_without_a_note_is_forgotten_alone_without_the_messages_around_it(agent: Agent) -> None:
    agent.heard(ALICE, "The boat key hangs behind the pantry door.")
    for text in ("I prefer short answers.", "My sister lives in Bremen.", "I work as a carpenter."):
        agent.heard(ALICE, text)
    assert len(agent.notes(ALICE)) > 2
    assert not any("boat" in path for path in agent.notes(ALICE))
    said = ("m99", "Please forget where the boat key is")
    told = agent.use("omg_forget", ALICE, said=said, query="where the boat key is")
    assert "[[nodes/" not in told["text"]
    assert told["text"].endswith(
        "exact words as `query`:\n- user: The boat key hangs behind the pantry door."
    )
    first = agent.use("omg_forget", ALICE, said=said, query="The boat key hangs behind the pantry door.")
    assert "1 message; no note has the words" in first["text"]
