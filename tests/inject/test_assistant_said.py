"""
Questions about the assistant's words get these words, marked as the assistant's, and show whether the user
accepted them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from corpora.grounded import rows
from openai_server import OpenAIServer, Request

from omg.config import Config, Llm, Observation
from omg.memory import Memory

ROWS = {row["id"]: row for row in rows("assistant")}
ASKED = {question["ask"]: question for row in ROWS.values() for question in row["questions"]}
NOW = datetime(2026, 3, 25, 12, tzinfo=UTC)
GIVEN = re.compile(r"^- .*(?:\n  .*)*", re.M)  # a note's line with the rest of its text, or a passage


def reply_to(request: Request) -> Any:
    """What the model replies to the observation that *request* asks about."""
    said = request.user.partition("# Messages")[2]
    pieces = (piece for row in ROWS.values() for piece in row["observed"])
    return {"edits": next(p["edits"] for p in pieces if f": {p['messages'][0]['text']}" in said)}


def observed(memory: Memory) -> Memory:
    """Return *memory* after all conversations were observed, each row as a conversation of one person."""
    for n in range(max(len(row["observed"]) for row in ROWS.values())):
        for id, row in ROWS.items():
            for piece in row["observed"][n : n + 1]:
                entries = [
                    {"role": m["role"], "content": m["text"], "timestamp": m["at"]} for m in piece["messages"]
                ]
                memory.capture(entries, session=f"ines:thread:{id}")
        assert memory.observe()["waiting"] == []
    return memory


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with OpenAIServer() as server:
        llm = Llm(api_base=server.base, api_key="k", timeout_s=60, context_window=64_000)
        watch = Observation(model="openai/scripted")
        config = Config(home=tmp_path_factory.mktemp("omg"), observation=watch, llm=llm)
        server.always(reply_to)
        with Memory(config, embed=None, clock=lambda: NOW) as memory:
            yield observed(memory)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    config = Config(home=tmp_path_factory.mktemp("omg"), observation=Observation(model="offline"))
    with Memory(config, embed=None, clock=lambda: NOW) as memory:
        yield observed(memory)


def given(memory: Memory, ask: str) -> list[str]:
    """What a new conversation is given of the question: each passage, and each note with all that is said of it."""
    slice = memory.inject(ask, session="ines:thread:asking")
    notes: dict[str, str] = {}
    for m in GIVEN.finditer(slice.system + slice.prompt):
        line = re.match(r"- (\S+) (?:— |\()", m[0])
        name = line[1] if line else m[0]
        notes[name] = f"{notes.get(name, '')}\n{m[0]}"
    return [text.strip() for text in notes.values()]


def is_assistants(text: str) -> bool:
    """Whether a reader of the note or passage *text* sees that the assistant said it."""
    return text.startswith("- assistant") or re.search(r"\b(?:assistant|Assistent)", text) is not None


def unanswered(memory: Memory, ask: str) -> list[str]:
    theirs = "\n".join(filter(is_assistants, given(memory, ask)))
    return [words for words in ASKED[ask]["answer"] if words not in theirs]


@pytest.mark.parametrize("ask", ASKED)
def test_statements_of_the_assistant_are_shown_with_the_assistant_as_speaker(
    scripted: Memory, ask: str
) -> None:
    assert unanswered(scripted, ask) == []


def test_without_a_model_26_of_27_questions_get_a_quotation_of_the_assistant(offline: Memory) -> None:
    missing = {ask: words for ask in ASKED if (words := unanswered(offline, ask))}
    assert len(ASKED) == 27
    assert len(missing) <= 1, missing


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("how", ["scripted", "offline"])
def test_nothing_that_the_assistant_said_is_given_as_the_users_word(how: str, ask: str, request: Any) -> None:
    users = [
        m["text"]
        for row in ROWS.values()
        for p in row["observed"]
        for m in p["messages"]
        if m["role"] == "user"
    ]
    for words in ASKED[ask]["answer"]:
        if not any(words in text for text in users):
            assert [
                t for t in given(request.getfixturevalue(how), ask) if words in t and not is_assistants(t)
            ] == []


@pytest.mark.parametrize("ask", [ask for ask in ASKED if ASKED[ask]["shows"]])
def test_a_statement_of_the_assistant_shows_whether_the_user_accepted_it(scripted: Memory, ask: str) -> None:
    told = [t for t in given(scripted, ask) if any(words in t for words in ASKED[ask]["shows"])]
    assert told
    if ASKED[ask]["stance"] == "accepted" and "answer: “" not in "".join(told):
        assert not any("by the assistant)" in text for text in told)


@pytest.mark.parametrize("id", ROWS)
def test_an_offer_becomes_the_users_note_only_if_the_user_accepted_it(scripted: Memory, id: str) -> None:
    graph = scripted.find("agent:main:ines")
    notes = {(e.title, e.type, e.origin) for e in graph.index.entries()}
    for note in ROWS[id]["notes"]:
        assert (note["title"], note["type"], note["origin"]) in notes
