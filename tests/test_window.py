"""What leaves a long context: the law, what stands for it, and one session's life with both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.config.sections import Config, Context, Observation
from omg.memory import Memory
from omg.tokens import count_tokens
from omg.window.context import Cut, cut_context
from omg.window.cut import Shown, answered_calls, raw_tokens, turns_to_cut, whole_turns

SESSION = "agent:main:main"
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)

# --- the law


@st.composite
def conversations(draw: st.DrawFn) -> list[Shown]:
    """Anything a gateway may hand over: calls answered late, twice, never; people who speak while they run."""
    made: list[Shown] = []
    for _ in range(draw(st.integers(0, 30))):
        role = draw(st.sampled_from(["user", "assistant", "toolResult", "compactionSummary"]))
        ids = st.sampled_from(["a", "b", "c"])
        calls = tuple(draw(st.lists(ids, max_size=2, unique=True))) if role == "assistant" else ()
        answers = draw(ids) if role == "toolResult" else ""
        made.append(Shown(role, draw(st.integers(1, 400)), calls, answers))
    return made


@given(conversations(), st.data(), st.integers(1, 3000), st.integers(0, 3000))
def test_a_cut_takes_whole_observed_turns_and_leaves_the_newest_and_every_call_with_its_result(
    messages: list[Shown], data: st.DataObject, threshold: int, floor: int
) -> None:
    turns = whole_turns(messages)
    assert [i for turn in turns for i in turn] == list(
        range(len(messages))
    )  # raw and cut are all that was said
    numbers = st.sets(st.integers(0, max(len(turns) - 1, 0)))
    before, observed = data.draw(numbers), data.draw(numbers)
    going = turns_to_cut(messages, turns, before, observed, threshold=threshold, floor=floor)
    assert set(going) <= observed - before
    assert not set(going) & set(range(len(turns) - 2, len(turns)))
    gone = {i for n in {*going, *before} for i in turns[n]} if turns else set()
    ends, unanswered = answered_calls(messages)
    assert all((call in gone) == (end in gone) for call, end in ends.items())
    assert not unanswered & {i for n in going for i in turns[n]}
    if raw_tokens(messages, turns, before) < threshold:
        assert not going
    if going:  # never more than needed: without the last of them, more than the floor would be left
        assert raw_tokens(messages, turns, {*before, *going[:-1]}) > floor


def test_what_is_said_while_a_call_runs_is_cut_with_it_or_not_at_all() -> None:
    steered = [
        Shown("user", 10), Shown("assistant", 10, ("a",)), Shown("user", 10), Shown("toolResult", 10, (), "a"),
        Shown("assistant", 10), Shown("user", 10),
    ]  # fmt: skip
    assert whole_turns(steered) == [range(5), range(5, 6)]


def test_a_call_id_that_a_provider_gives_again_joins_no_turns() -> None:
    turn = [Shown("user", 9), Shown("assistant", 9, ("call_0",)), Shown("toolResult", 9, (), "call_0")]
    assert whole_turns(turn * 3) == [range(3), range(3, 6), range(6, 9)]


# --- one session


class Talk:
    """A conversation as the gateway keeps it, and the memory beside it."""

    def __init__(self, home: Path, **options: Any) -> None:
        config = Config(
            home=home,
            observation=Observation(model="offline"),
            context=Context(**{"message_tokens": 1000, "buffer_activation": 0.8} | options),
        )
        self.memory = Memory(config, embed=None)
        self.said: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.at = NOON

    def turn(
        self, text: str, *, tool: str = "", answer: str = "I have written that down for you, as asked."
    ) -> None:
        """One exchange; with *tool*, a call and that result in between. The gateway changes the ids of calls."""
        parts: list[dict[str, Any]] = [
            {"role": "user", "content": text, "idempotencyKey": f"k{len(self.said)}"}
        ]
        if tool:
            call = {
                "type": "toolCall",
                "id": f"call_{len(self.said)}",
                "name": "exec",
                "arguments": {"command": "ls"},
            }
            result = {
                "role": "toolResult",
                "toolCallId": call["id"],
                "toolName": "exec",
                "details": {"took": 3},
            }
            parts += [{"role": "assistant", "content": [call]}, {**result, "content": tool}]
        parts.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
        for part in parts:
            self.at += timedelta(seconds=7)
            self.said.append({**part, "timestamp": round(self.at.timestamp() * 1000)})

    def take_in(self, *, observe: bool = True) -> None:
        entries = [{"entryId": f"e{i}", "message": m} for i, m in enumerate(self.said)]
        drop = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": SESSION, "entries": entries}
        spool = self.memory.folder / "spool"
        spool.mkdir(parents=True, exist_ok=True)
        (spool / f"{len(self.said):015d}-a.json").write_text(json.dumps(drop))
        self.memory.take_in()
        if observe:
            self.memory.work(force=True)

    def view(self) -> list[dict[str, Any]]:
        """The messages as `assemble` is handed them: ids of calls made safe, details left out."""
        shown = json.loads(json.dumps(self.said).replace("call_", "call"))
        return [{k: v for k, v in m.items() if k != "details"} for m in shown]

    def asked(self, budget: int | None = None) -> Cut:
        graph = self.memory.find(SESSION)
        tell = lambda event, **fields: self.events.append({"event": event, **fields})  # noqa: E731
        body = {"sessionKey": SESSION, "messages": self.view(), "tokenBudget": budget}
        return cut_context(graph, body, now=self.at, config=self.memory.config, tell=tell)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path / "omg")
    yield talk
    talk.memory.close()


def long_talk(talk: Talk, turns: int = 30) -> None:
    for n in range(turns):
        talk.turn(f"I prefer the number {n} over all others. " + "And so on and so forth. " * 6)


def test_a_long_conversation_keeps_its_newest_part_and_the_notes_of_the_rest(talk: Talk) -> None:
    long_talk(talk)
    talk.take_in()
    made = talk.asked()
    raw = [m for i, m in enumerate(talk.said) if i not in made.cut]
    assert made.cut == tuple(range(len(made.cut)))  # the oldest
    assert raw[0]["role"] == "user"
    assert 100 < made.raw <= 200 + 100  # a fifth of the threshold, and what is left of one turn
    assert "2026-03-10" in made.text
    assert "number 27 over all others" in made.text
    assert "more: omg_search finds them" in made.text
    assert "[[nodes/preference/" in made.text
    assert count_tokens(made.text) <= 500
    (event,) = talk.events
    assert (event["event"], event["reason"], event["session"]) == ("context_cut", "threshold", SESSION)


def test_what_nobody_has_observed_yet_stays_and_its_observation_is_asked_for(talk: Talk) -> None:
    long_talk(talk)
    talk.take_in(observe=False)
    assert talk.asked() == Cut(waits=True)
    talk.memory.work(force=True)
    assert talk.asked().cut


def test_between_two_cuts_not_a_byte_changes(talk: Talk) -> None:
    long_talk(talk)
    talk.take_in()
    first = talk.asked()
    for n in range(4):
        talk.turn(f"Another remark, number {n}.")
        talk.take_in()
        later = talk.asked()
        assert (later.text, later.cut, later.reason) == (first.text, first.cut, "")
    long_talk(talk)
    talk.take_in()
    assert len(talk.asked().cut) > len(first.cut)


def test_another_process_cuts_what_the_one_before_it_cut(talk: Talk, tmp_path: Path) -> None:
    long_talk(talk)
    talk.take_in()
    first = talk.asked()
    talk.memory.close()
    again = Talk(tmp_path / "omg")
    again.said, again.at = talk.said, talk.at
    later = again.asked()
    again.memory.close()
    assert (later.text, later.cut, later.reason) == (first.text, first.cut, "")


def test_calls_go_with_their_results_though_the_gateway_shows_them_under_other_ids(talk: Talk) -> None:
    for n in range(12):
        talk.turn(f"List folder {n}", tool="a file\n" * 60)
    talk.take_in()
    made = talk.asked()
    kept = [m for i, m in enumerate(talk.view()) if i not in made.cut]
    made_calls = {
        p["id"] for m in kept if m["role"] == "assistant" for p in m["content"] if p["type"] == "toolCall"
    }
    assert made.cut
    assert {m["toolCallId"] for m in kept if m["role"] == "toolResult"} == made_calls


def test_a_small_window_is_cut_earlier(talk: Talk) -> None:
    long_talk(talk, 10)
    talk.take_in()
    assert not talk.asked().cut
    assert talk.asked(budget=800).cut


def test_a_short_conversation_and_an_empty_one_are_left_alone(talk: Talk) -> None:
    talk.turn("I prefer tea.")
    talk.take_in()
    assert talk.asked() == Cut()
    talk.said = []
    assert talk.asked() == Cut()


def test_a_reset_conversation_starts_without_the_notes_of_the_one_before(talk: Talk) -> None:
    long_talk(talk)
    talk.take_in()
    assert talk.asked().cut
    talk.said = []
    talk.turn("Hello again.")
    talk.take_in()
    assert talk.asked() == Cut()


def test_the_gateways_own_summary_is_never_cut(talk: Talk) -> None:
    summary = {"role": "compactionSummary", "summary": "What was before. " * 20, "timestamp": 1}
    long_talk(talk)
    talk.take_in()
    talk.said.insert(0, summary)
    made = talk.asked()
    assert made.cut
    assert 0 not in made.cut


def test_a_forgotten_message_leaves_the_text_and_does_not_come_back_raw(talk: Talk) -> None:
    long_talk(talk)
    talk.take_in()
    before = talk.asked()
    assert "number 25 over" in before.text
    memory = talk.memory
    memory.forget(matching="number 25 over")
    after = talk.asked()
    assert after.reason == "edit"
    assert after.cut == before.cut
    assert "number 25 over" not in after.text
    assert "number 25 over" not in (memory.find(SESSION).folder / "state.json").read_text()


def test_a_turn_that_grew_after_it_was_cut_is_shown_again(talk: Talk) -> None:
    long_talk(talk)
    talk.take_in()
    before = talk.asked()
    talk.said.insert(
        2, {"role": "assistant", "content": "One more thing.", "timestamp": talk.said[1]["timestamp"] + 1}
    )
    after = talk.asked()
    assert {0, 1, 2}.isdisjoint(after.cut)
    assert len(after.cut) == len(before.cut) - 2


@given(st.lists(st.tuples(st.sampled_from("tto!w"), st.integers(1, 90)), max_size=25))
def test_through_any_life_every_message_is_raw_or_observed_and_no_context_is_longer_than_without(
    tmp_path_factory: pytest.TempPathFactory, life: list[tuple[str, int]]
) -> None:
    talk = Talk(tmp_path_factory.mktemp("life") / "omg", message_tokens=300)
    try:
        for what, size in life:
            if what in "to":
                talk.turn(
                    f"I prefer {size} of them. " + "word " * size, tool="line\n" * size if what == "o" else ""
                )
            elif what == "!":
                talk.take_in()
            elif talk.said:
                talk.take_in(observe=False)
                made = talk.asked()
                graph = talk.memory.find(SESSION)
                archived = {at for _, at, _ in graph.index.said_since(SESSION, 0)}
                assert all(talk.said[i]["timestamp"] in archived for i in made.cut)
                whole = sum(count_tokens(json.dumps(m["content"])) for m in talk.view())
                left = [m for i, m in enumerate(talk.view()) if i not in made.cut]
                assert (
                    count_tokens(made.text) + sum(count_tokens(json.dumps(m["content"])) for m in left)
                    <= whole
                )
                assert left[-1] == talk.view()[-1]
    finally:
        talk.memory.close()
