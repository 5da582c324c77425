"""What leaves a long context, by what rule, and the notes that replace it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spooled import hand_over

from omg.config import Config, Context, Identities, Inject, Observation
from omg.context import (
    Cut,
    Shown,
    Told,
    answered_calls,
    cut_context,
    raw_tokens,
    render_timeline,
    tokens_of,
    turns_to_cut,
    whole_turns,
)
from omg.curate import forget_selection
from omg.forget.removal import observe_again
from omg.forget.selection import select_words
from omg.inject.decide import hook_result
from omg.journal import replay_open
from omg.memory import Memory
from omg.text.tokens import count_tokens
from omg.tools.removing import Codes
from omg.tools.tools import call_tool
from omg.worker.schedule import note_failure

SESSION = "agent:main:main"
NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)

# --- the law


@st.composite
def conversations(draw: st.DrawFn) -> list[Shown]:
    """Make any messages that a gateway may send: calls answered late, twice or never, and people who speak while calls run."""
    made: list[Shown] = []
    for _ in range(draw(st.integers(0, 30))):
        role = draw(st.sampled_from(["user", "assistant", "toolResult", "compactionSummary"]))
        ids = st.sampled_from(["a", "b", "c"])
        calls = tuple(draw(st.lists(ids, max_size=2, unique=True))) if role == "assistant" else ()
        answers = draw(ids) if role == "toolResult" else ""
        made.append(Shown(role, draw(st.integers(1, 400)), calls, answers))
    return made


@given(conversations(), st.data(), st.integers(1, 3000), st.integers(0, 3000))
def test_a_cut_removes_whole_observed_turns_and_keeps_calls_with_their_results(
    messages: list[Shown], data: st.DataObject, threshold: int, floor: int
) -> None:
    turns = whole_turns(messages)
    # raw and cut are all that was said
    assert [i for turn in turns for i in turn] == list(range(len(messages)))
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


def test_a_repeated_call_id_does_not_join_two_turns() -> None:
    turn = [Shown("user", 9), Shown("assistant", 9, ("call_0",)), Shown("toolResult", 9, (), "call_0")]
    assert whole_turns(turn * 3) == [range(3), range(3, 6), range(6, 9)]


# --- one session


class Talk:
    """A conversation as the gateway keeps it, with the memory of that conversation."""

    def __init__(self, home: Path, identity: Identities | None = None, **options: Any) -> None:
        config = Config(
            home=home,
            identity=identity or Identities(),
            observation=Observation(model="offline"),
            context=Context(**{"message_tokens": 1000, "buffer_activation": 0.8} | options),
            inject=Inject(budget_tokens=250),
        )
        self.at = NOON
        self.memory = Memory(config, clock=lambda: self.at, embed=None)
        self.said: list[dict[str, Any]] = []
        self.before = 0  # messages of conversations that are over
        self.events: list[dict[str, Any]] = []

    def turn(
        self,
        text: str,
        *,
        tool: str = "",
        answer: str = "I have written that down for you, as asked.",
        by: str = "",
    ) -> None:
        """
        One exchange; with *tool*, a call and that result in between. The gateway changes the ids of calls.

        *by*: what of the gateway's own began it.
        """
        parts: list[dict[str, Any]] = [
            {"role": "user", "content": text, "idempotencyKey": f"{self.run}:user"}
        ]
        if by:
            parts[0]["provenance"] = {"kind": "internal_system", "sourceTool": by}
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

    @property
    def run(self) -> str:
        """The id of the run that the next turn is."""
        return f"run-{self.before + len(self.said)}"

    def prompted(self, text: str, session_id: str = "") -> str:
        """What the gateway's hook is given for *text*, which is about to be said."""
        body = {"sessionKey": SESSION, "prompt": text, "runId": self.run, "sessionId": session_id}
        return hook_result(self.memory.find(SESSION), body, self.at, self.memory.config).get(
            "prependContext", ""
        )

    def take_in(self, *, observe: bool = True, reason: str = "turn") -> None:
        self.hand_over((f"e{self.before + i}" for i in range(len(self.said))), reason=reason)
        if observe:
            self.memory.work(force=True)

    def hand_over(self, ids: Iterable[str], **more: Any) -> None:
        """All that was said, under these *ids*."""
        entries = [{"entryId": id, "message": m} for id, m in zip(ids, self.said, strict=True)]
        hand_over(self.memory.folder, *entries, at_ms=self.before + len(self.said), **more)
        self.memory.take_in()

    def view(self) -> list[dict[str, Any]]:
        """The messages as `assemble` is handed them: ids of calls made safe, details left out."""
        shown = json.loads(json.dumps(self.said).replace("call_", "call"))
        return [{k: v for k, v in m.items() if k != "details"} for m in shown]

    def asked(self, budget: int | None = None, **more: Any) -> Cut:
        """The context for a prompt that is not among the messages yet."""
        graph = self.memory.find(SESSION)
        tell = lambda event, **fields: self.events.append({"event": event, **fields})  # noqa: E731
        body = {
            "sessionKey": SESSION,
            "runId": self.run,
            "messages": self.view(),
            "tokenBudget": budget,
            **more,
        }
        return cut_context(graph, body, now=self.at, config=self.memory.config, tell=tell)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    talk = Talk(tmp_path / "omg")
    yield talk
    talk.memory.close()


def long_talk(talk: Talk, turns: int = 30) -> None:
    for n in range(turns):
        talk.turn(f"I prefer the number {n} over all others. " + "And so on and so forth. " * 6)


def remembered_talk(talk: Talk, turns: int = 30, *, observe: bool = True) -> None:
    """The same, taken in, and observed."""
    long_talk(talk, turns)
    talk.take_in(observe=observe)


def test_a_long_conversation_keeps_its_newest_part_and_the_notes_of_the_rest(talk: Talk) -> None:
    remembered_talk(talk)
    made = talk.asked()
    raw = [m for i, m in enumerate(talk.said) if i not in made.cut]
    assert made.cut == tuple(range(len(made.cut)))  # the oldest
    assert raw[0]["role"] == "user"
    assert 100 < made.raw <= 200 + 100  # a fifth of the threshold, and what is left of one turn
    assert "2026-03-10" in made.text
    assert "number 27 over all others" in made.text
    assert "more: omg_search finds them" in made.text
    assert "- prefer-the-number-2" in made.text
    assert count_tokens(made.text) <= 500
    (event,) = talk.events
    assert (event["event"], event["reason"], event["session"]) == ("context_cut", "threshold", SESSION)


def test_an_unobserved_turn_stays_and_its_observation_is_requested(talk: Talk) -> None:
    remembered_talk(talk, observe=False)
    assert talk.asked() == Cut(waits=True, blocks=True)
    talk.memory.work(force=True)
    assert talk.asked().cut


def shown(talk: Talk, made: Cut, start: int, end: int) -> list[str]:
    """Make the plugin's request for the messages from *start* to *end*."""
    handed = [json.dumps(m) for m in talk.said[start:end]]
    kept = [made.served.get(i, "") + text for i, text in enumerate(handed) if i not in made.cut]
    first = min(made.cut, default=0)
    return [*kept[:first], *([made.text] if made.text else []), *kept[first:]]


def test_between_two_cuts_each_request_begins_with_the_same_bytes(talk: Talk) -> None:
    """The first message that the gateway sends moves on as the conversation grows, and varies by some messages."""
    ends = []
    for n in range(40):
        talk.turn(f"I prefer the number {n} over all others.", tool="a file\n" * 60 if n % 2 else "")
        ends.append(len(talk.said))
    talk.take_in()
    view = talk.view()
    before: list[str] = []
    extended = 0
    for n, end in enumerate(ends):
        start = max(0, end - 48 + (0, 3, -5, 1, -2, 4, -7)[n % 7])
        made = talk.asked(messages=view[start:end])
        request = shown(talk, made, start, end)
        if made.text and not made.reason:
            assert request[: len(before)] == before, n
            extended += 1
        before = request
    assert extended > 20
    assert len(talk.events) > 2


def test_messages_that_the_gateway_no_longer_hands_over_stay_in_the_notes(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "omg", observation_tokens=900)
    remembered_talk(talk, 24)
    first = talk.asked()
    assert "number 0 over" in first.text
    remembered_talk(talk, 24)
    later = talk.asked(messages=talk.view()[11:])
    assert later.reason == "threshold"
    assert "number 0 over" in later.text
    talk.memory.close()


def test_the_timeline_lists_the_times_of_turns_only_after_all_of_them_are_observed(talk: Talk) -> None:
    """While the daemon is away, these times tell the plugin which older messages it may leave out."""
    remembered_talk(talk)
    assert talk.asked(messages=talk.view()[21:]).told == (0, talk.said[21]["timestamp"])
    graph = talk.memory.find(SESSION)
    with graph.lock():
        observe_again(graph, {"e4"})
    assert talk.asked(messages=talk.view()[21:]).told == (0, 0)
    talk.memory.work(force=True)
    assert talk.asked(messages=talk.view()[21:]).told == (0, talk.said[21]["timestamp"])


def test_a_small_context_window_is_cut_earlier(talk: Talk) -> None:
    remembered_talk(talk, 10)
    assert not talk.asked().cut
    assert talk.asked(budget=800).cut


def test_the_gateways_own_summary_is_never_cut(talk: Talk) -> None:
    summary = {"role": "compactionSummary", "summary": "What was before. " * 20, "timestamp": 1}
    remembered_talk(talk)
    talk.said.insert(0, summary)
    made = talk.asked()
    assert made.cut
    assert 0 not in made.cut


def test_a_forgotten_message_leaves_the_context_and_does_not_come_back(talk: Talk) -> None:
    remembered_talk(talk)
    before = talk.asked()
    assert "number 25 over" in before.text
    memory = talk.memory
    memory.forget(matching="number 25 over")
    after = talk.asked()
    assert after.reason == "edit"
    assert after.cut == before.cut
    assert "number 25 over" not in after.text
    assert "number 25 over" not in (memory.find(SESSION).folder / "state.json").read_text()


def test_a_turn_that_grew_after_the_cut_is_shown_again(talk: Talk) -> None:
    remembered_talk(talk)
    before = talk.asked()
    talk.said.insert(
        2, {"role": "assistant", "content": "One more thing.", "timestamp": talk.said[1]["timestamp"] + 1}
    )
    after = talk.asked()
    assert {0, 1, 2}.isdisjoint(after.cut)
    assert len(after.cut) == len(before.cut) - 2


# --- what a message was served, in the requests behind it


def questions(talk: Talk, count: int, first: int = 3) -> list[tuple[str, Cut]]:
    """Return each message with the notes served with it, and the context of its request."""
    made = []
    for n in range(first, first + count):
        asked = f"Which number did I say I prefer, was it number {n}?"
        made.append((talk.prompted(asked), talk.asked()))
        talk.turn(asked)
        talk.take_in()
    return made


def test_notes_served_with_a_message_stay_byte_identical_until_the_next_cut(talk: Talk) -> None:
    remembered_talk(talk)
    first = talk.asked()
    before = len(talk.said)
    (one, _), (two, second), (_, third) = questions(talk, 3)
    assert one
    assert second.served == {before: one}
    assert third.served == {before: one, before + 2: two}
    assert third.text == first.text
    remembered_talk(talk, 20)
    assert talk.asked().reason == "threshold"
    assert talk.asked().served == {}  # where the prefix is new anyway, they are no more
    assert talk.memory.find(SESSION).state().sessions[SESSION].served == {}


def test_before_the_first_cut_no_notes_are_served_twice(talk: Talk) -> None:
    remembered_talk(talk, 5)
    talk.asked()
    assert [made.served for _, made in questions(talk, 3)] == [{}, {}, {}]
    assert len(talk.memory.find(SESSION).state().sessions[SESSION].served) <= 1


def test_with_notes_served_again_a_context_is_never_longer_than_without_omg(talk: Talk) -> None:
    remembered_talk(talk, 18)
    assert talk.asked().cut
    for _, made in questions(talk, 12):
        whole = sum(tokens_of(m) for m in talk.view()[:-2])
        cost = made.raw + sum(map(count_tokens, (made.text, *made.served.values())))
        assert cost <= whole
        assert made.raw + sum(map(count_tokens, made.served.values())) < 1000  # the threshold is for both


@pytest.mark.parametrize("gone", ["forgotten", "edited", "superseded", "redacted"])
def test_a_served_slice_that_mentions_a_removed_note_is_not_served_again(talk: Talk, gone: str) -> None:
    remembered_talk(talk)
    talk.asked()
    ((served, _),) = questions(talk, 1)
    graph = talk.memory.find(SESSION)
    path = "nodes/preference/prefer-the-number-3-over-all-others"
    assert "\n- prefer-the-number-3 — " in served
    assert served in talk.asked().served.values()
    if gone == "forgotten":
        talk.memory.forget(matching="number 3 over all")
    elif gone == "redacted":
        forget_selection(talk.memory.intake, graph, select_words(graph, "number 3 over all"))
    elif gone == "edited":
        file = graph.vault.root / f"{path}.md"
        file.write_text(file.read_text().replace("number 3", "number 33"))
        talk.memory.refresh(graph)
    else:
        with graph.lock():
            data = graph.vault.bytes(path)
            graph.vault.write(path, data.replace(b"status: active", b"status: superseded"), data)
            graph.index.sync(graph.vault)
    assert talk.asked().served == {}
    graph.flush()
    assert ("number 3 over" in (graph.folder / "state.json").read_text()) is False


def test_a_slice_that_came_too_late_for_its_request_is_not_served_later(talk: Talk) -> None:
    remembered_talk(talk)
    talk.asked()
    asked = "Which number did I say I prefer, was it number 3?"
    assert talk.prompted(asked)
    talk.asked(missed=talk.run)
    talk.turn(asked)
    assert talk.asked().served == {}


def test_once_the_engine_is_gone_no_record_of_served_notes_is_kept(talk: Talk) -> None:
    remembered_talk(talk)
    talk.asked()
    for n in range(3, 7):
        asked = f"Which number did I say I prefer, was it number {n}?"
        assert talk.prompted(asked)
        talk.turn(asked)
    assert talk.memory.find(SESSION).state().sessions[SESSION].served == {}


# --- what left the context

PLUMBER = "The plumber Albrecht in Karlstrasse mends kitchen taps for 145 euros."
ASKED = "Which plumber did you recommend for the kitchen taps?"


def test_after_a_reset_that_no_hook_reported_a_prompt_quotes_earlier_days(talk: Talk) -> None:
    talk.turn("Who mends taps?", answer=PLUMBER)
    talk.take_in()
    assert PLUMBER not in talk.prompted(ASKED, "window-1")
    talk.at += timedelta(days=1)
    assert PLUMBER in talk.prompted(ASKED, "window-2")
    assert PLUMBER in talk.prompted(ASKED, "window-2")


def test_no_turn_is_cut_from_the_context_before_its_notes_are_indexed(talk: Talk) -> None:
    """The state between archiving and indexing. After a kill there, it lasts until the receipt is replayed."""
    remembered_talk(talk)
    graph = talk.memory.find(SESSION)
    receipt = sorted((graph.folder / "receipts").glob("*.json"))[-1]
    cut_short = receipt.with_name(f"{receipt.stem}.open.json")
    receipt.rename(cut_short)
    assert not talk.asked().cut
    with graph.lock():
        replay_open(graph)
    assert talk.asked().cut


def test_a_link_in_the_timeline_opens_the_original_messages(talk: Talk) -> None:
    remembered_talk(talk)
    link = re.search(r"^- (prefer-the-number-27\S*) — ", talk.asked().text, re.M)
    assert link
    body = {"name": "omg_open", "params": {"id": link[1]}, "context": {"sessionKey": SESSION}}
    opened = call_tool(talk.memory.intake, body, Codes())["text"]
    assert "I prefer the number 27 over all others. And so on and so forth." in opened


# --- options


def test_notes_keep_to_their_budget_and_a_shared_budget_leaves_the_rest_to_messages(tmp_path: Path) -> None:
    for name, options, most in (
        ("few", {"observation_tokens": 0.3}, 300),
        ("more", {"observation_tokens": 800}, 800),
    ):
        talk = Talk(tmp_path / name, **options)
        remembered_talk(talk, 60)
        assert 0.7 * most < count_tokens(talk.asked().text) <= most
        talk.memory.close()
    alone, shared = Talk(tmp_path / "alone"), Talk(tmp_path / "shared", share_token_budget=True)
    for talk in (alone, shared):
        remembered_talk(talk, 18)
    assert alone.asked().cut
    assert not shared.asked().cut  # 500 tokens more, for notes take none yet
    remembered_talk(shared, 6)
    made = shared.asked()
    assert made.cut
    assert count_tokens(made.text) <= 500
    for talk in (alone, shared):
        talk.memory.close()


def test_a_conversation_near_a_small_window_is_observed_in_smaller_steps(talk: Talk) -> None:
    """buffer_tokens is a share of the threshold in use, which may be lower than [observation] message_tokens."""
    remembered_talk(talk, 2, observe=False)
    assert not talk.asked().waits
    remembered_talk(talk, 4, observe=False)
    assert talk.asked().waits  # 200 of 1,000 tokens


@pytest.mark.parametrize(
    ("block_after", "turns", "blocks"),
    [(1.2, 15, False), (1.2, 18, True), (1500, 18, False), (1500, 22, True), (False, 30, False)],
)
def test_a_turn_waits_only_above_the_configured_limit_and_if_an_observation_can_come(
    tmp_path: Path, block_after: Any, turns: int, blocks: bool
) -> None:
    talk = Talk(tmp_path / "omg", block_after=block_after)
    remembered_talk(talk, turns, observe=False)
    made = talk.asked()
    assert (made.waits, made.blocks) == (True, blocks)
    talk.memory.find(SESSION).update(lambda state: note_failure(state, "the model is down", 1))
    assert not talk.asked().blocks
    talk.memory.work(force=True)
    assert not talk.asked().blocks
    talk.memory.close()


def test_a_timeline_keeps_the_reasons_in_notes_if_they_fit_and_ends_with_the_next_step() -> None:
    day = date(2026, 3, 10)
    paint = Told(2, day, "- paint — Uses acrylics.", 1, more="Because it dries quickly.")
    told = [Told(1, day, "- shed — Builds a shed.", 0), paint]
    hints = [("Task", "paint the shed"), ("Next reply", "colours")]
    whole = render_timeline(told, hints, day, messages=9, budget=400)
    assert "- paint — Uses acrylics.\n  Because it dries quickly." in whole
    assert (
        whole.index("Task: paint the shed")
        < whole.index("Next reply: colours")
        < whole.index("Carry on from here")
    )
    tight = render_timeline(told, hints, day, messages=9, budget=count_tokens(whole) + 8)
    assert "- paint — Uses acrylics." in tight and "dries" not in tight
    assert "Carry on" not in render_timeline(told, [], None, messages=9, budget=400)
