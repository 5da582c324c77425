"""When things happen: steps, rests, cuts, failures and caps of the Observer, and activations of the slice."""

import json
import re
import threading
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from openai_server import believed, created
from spooled import entry, hand_over

from omg.config import Config, Llm, Observation
from omg.curate import forget_selection, select_to_forget
from omg.errors import ModelUnavailable
from omg.inject.decide import Prompt, slice_for
from omg.llm.replies import ModelReply
from omg.memory import Memory
from omg.observe.run import pending_batches
from omg.reflect.run import is_due
from omg.worker.events import event_text, follow_events, read_events
from omg.worker.schedule import step_tokens
from omg.worker.status import home_status

MAIN = "agent:main:main"
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now

    def pass_(self, **time):
        self.now += timedelta(**time)


class Model:
    """A gateway that answers with one note for each message, and counts."""

    def __init__(self):
        self.asked, self.error, self.during = [], None, lambda: None

    def __call__(self, question):
        if answer := believed(question):
            return answer
        self.asked.append(question)
        self.during()
        if self.error:
            raise self.error
        said = re.findall(r"^(m\d+) \S+ user: (.*)", question.user.split("# Messages")[1], re.M)
        edits = [created(text[:200], handle, title=text[-40:], priority="medium") for handle, text in said]
        return ModelReply(
            json.dumps({"edits": edits, "now": {"task": "Plan the trip", "next": "Ask for the date"}}),
            "scripted",
            100,
            50,
        )


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def make(home, clock, model):
    made = []

    def make(**options):
        options = {"message_tokens": 1_000, "buffer_tokens": 200, **options}
        made.append(
            Memory(
                Config(home=home, observation=Observation(**options), llm=Llm(attempts=1, backoff_s=0)),
                gateway=model,
                clock=clock,
                embed=None,
            )
        )
        return made[-1]

    yield make
    for which in made:
        which.close()


@pytest.fixture
def omg(make):
    return make()


def say(omg, *texts, session=MAIN, reason="turn"):
    """One turn, dropped and taken in, of messages a second apart; a text of N words has about N tokens."""
    n = getattr(omg, "count", 0)
    omg.count = n + len(texts)
    now_ms = int(omg.clock().timestamp() * 1000)
    said = [{"content": text} if isinstance(text, str) else text for text in texts]
    entries = [
        entry(f"{session}-{n + i}", m["content"], now_ms + i, **{k: m[k] for k in m if k != "content"})
        for i, m in enumerate(said)
    ]
    hand_over(omg.folder, *entries, session=session, reason=reason, at_ms=now_ms)
    omg.take_in()
    return omg.find(MAIN)


CALL = {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}]}


def result(n):
    text = [{"type": "text", "text": words(n)}]
    return {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": text}


def words(n, what="lamp"):
    return " ".join([f"The {what} is"] + ["green"] * n) + "."


def given(omg, prompt="What about the lamp?", session=MAIN, model=""):
    return slice_for(omg.find(MAIN), Prompt(prompt, session, model), omg.clock(), omg.config)


def happened(omg, name):
    return [e for e in read_events(omg.folder) if e["event"] == name]


# --- steps


def test_below_the_observation_step_no_model_is_asked_and_above_it_one_batch_is_asked(omg, model):
    graph = say(omg, words(150))
    assert omg.work() == []
    assert model.asked == []
    say(omg, words(60, "chair"))
    assert omg.worker.due(graph) == "step"
    assert len(omg.work()) == 1
    assert len(model.asked) == 1
    assert graph.pending() == []
    assert omg.work() == []


def test_the_observation_step_is_halved_near_the_threshold_of_the_context(omg, model, clock):
    graph = say(omg, words(60))
    given(omg)
    graph.update(lambda state: setattr(state.sessions[MAIN], "asked_ms", 1))  # OMG is its context engine
    for _ in range(4):
        say(omg, words(190))
        omg.work()
        clock.pass_(seconds=5)
    assert graph.state().sessions[MAIN].window >= 780
    assert step_tokens(graph.state(), omg.config.observation) == 100
    say(omg, words(110))
    assert omg.worker.due(graph) == "step"


def test_without_steps_an_observation_starts_only_at_the_full_threshold_or_after_a_compaction(make, clock):
    omg = make(buffer_tokens=False)
    graph = say(omg, words(20))
    clock.pass_(days=3)
    assert omg.worker.due(graph) is None and "resting" not in omg.worker.waits(graph)
    options = omg.config.reflection
    graph.update(lambda state: setattr(state, "changed_tokens", options.observation_tokens - 1))
    assert is_due(graph, omg.config) is None
    graph.update(lambda state: setattr(state, "changed_tokens", options.observation_tokens))
    assert is_due(graph, omg.config) == "now"
    say(omg, words(980))
    assert omg.worker.due(graph) == "step"
    say(omg, words(20), reason="compaction")
    assert omg.worker.due(graph) == "urgent"


def test_one_huge_message_is_observed_in_pieces_without_waiting_for_more_turns(make, model):
    omg = make(max_tokens_per_batch=500)
    say(omg, words(1_600))
    omg.work()
    assert len(model.asked) >= 3
    assert "[part 2/" in model.asked[1].user
    assert omg.find(MAIN).pending() == []


def test_a_turn_with_tool_results_and_hardly_a_word_is_observed(omg, model):
    graph = say(omg, "Look.", CALL, result(300))
    assert omg.worker.due(graph) == "step"
    omg.work()
    assert "calls read(" in model.asked[0].user
    assert "TOOL RESULT of read" in model.asked[0].user


def test_a_call_and_its_result_are_in_one_batch_even_if_a_compaction_came_between(omg, clock):
    say(omg, words(30), CALL)
    clock.pass_(seconds=1)
    say(omg, result(30))
    clock.pass_(seconds=1)
    graph = say(omg, words(30))
    assert [len(b) for b in pending_batches(graph.pending(), 40)] == [2, 1]


def test_a_full_batch_ends_where_people_paused(omg, clock):
    for _ in range(3):
        for _ in range(4):
            clock.pass_(minutes=1)
            graph = say(omg, words(30))
        clock.pass_(hours=3)
    sizes = {p.tokens for p in graph.pending()}
    fits = 6 * max(sizes)
    assert [len(b) for b in pending_batches(graph.pending(), fits)] == [4, 4, 4]
    assert [len(b) for b in pending_batches(graph.pending(), 100 * fits)] == [12]


# --- rest, cuts


def test_a_short_turn_waits_for_more_or_for_an_hour_of_silence(make, model, clock):
    omg = make(message_tokens=10_000, buffer_tokens=5_000)
    graph = say(omg, words(300))
    for _ in range(3):
        clock.pass_(minutes=40)
        assert omg.work() == [] and model.asked == []
        say(omg, words(300))
    clock.pass_(seconds=3_599)
    assert omg.worker.due(graph) is None
    clock.pass_(seconds=1)
    assert omg.worker.due(graph) == "quiet"
    assert len(omg.work()) == 1 and len(model.asked) == 1
    assert graph.state().quiet_ms == int(clock.now.timestamp() * 1000)


def test_a_plan_for_a_near_day_is_noted_within_an_hour(make, model, clock):
    omg = make(message_tokens=10_000, buffer_tokens=5_000)
    graph = say(omg, "I meet Ana on Friday at the mill.")
    for _ in range(3):
        clock.pass_(minutes=19)
        assert omg.work() == []
        say(omg, words(40))
    clock.pass_(minutes=4)
    assert len(omg.work()) == 1
    assert "nodes/" in "".join(graph.vault.paths()) and not graph.state().near_day_ms
    say(omg, words(40))
    clock.pass_(minutes=59)
    assert omg.work() == []


def test_a_time_span_of_several_months_does_not_count_as_a_near_day(make):
    graph = say(make(), "I want to halve the costs within 6 months.")
    assert not graph.state().near_day_ms


def test_the_rules_observe_after_a_short_silence(make, clock):
    omg = make(model="offline")
    graph = say(omg, words(20))
    clock.pass_(seconds=239)
    assert omg.worker.due(graph) is None
    clock.pass_(seconds=1)
    assert omg.worker.due(graph) == "quiet"


def test_the_night_observes_waiting_turns_and_reports_them(make, model, clock):
    omg = make(quiet_after=False)
    graph = say(omg, words(20))
    clock.pass_(hours=9)
    assert omg.work() == []
    assert "all is observed in the night" in omg.worker.waits(graph)
    (night,) = omg.reflect()
    assert graph.pending() == [] and len(model.asked) >= 1
    assert "1 message that waited" in night["summary"][0]


def test_a_night_without_a_model_leaves_waiting_turns(make, model, clock):
    omg = make(quiet_after=False)
    graph = say(omg, words(20))
    model.error = ModelUnavailable("gateway: nobody is there")
    (night,) = omg.reflect()
    assert len(graph.pending()) == 1 and "nobody is there" in " ".join(night["skipped"])


def test_silence_starts_no_observation_if_observing_after_silence_is_switched_off(make, clock):
    omg = make(quiet_after=False)
    graph = say(omg, words(20))
    clock.pass_(days=3)
    assert omg.worker.due(graph) is None


@pytest.mark.parametrize("cut", ["compaction", "reset"])
def test_after_a_compaction_or_reset_the_next_process_observes_the_conversation_without_waiting(make, cut):
    graph = say(make(), words(20), reason=cut)
    assert make().worker.due(graph) == "urgent"
    make().work()
    assert graph.state().urgent_ms == 0
    assert graph.pending() == []


def test_a_compaction_without_pending_turns_makes_no_later_turn_urgent(omg):
    graph = say(omg, words(20))
    omg.work(force=True)
    say(omg, reason="compaction")
    assert omg.worker.due(say(omg, words(20, "chair"))) is None
    assert graph.state().sessions[MAIN].cut == "compaction"


def test_turns_that_arrive_during_a_call_stay_pending_and_urgent(omg, model, clock):
    graph = say(omg, words(20), reason="compaction")
    clock.pass_(seconds=1)

    def meanwhile():
        clock.pass_(seconds=5)
        model.during = lambda: None
        say(omg, words(20, "chair"), reason="compaction")

    model.during = meanwhile
    omg.work()
    assert len(graph.pending()) == 1
    assert omg.worker.due(graph) == "urgent"


def test_a_message_forgotten_during_a_call_is_not_noted(omg, model, clock):
    graph = say(omg, words(20, "secret"), words(20, "chair"))

    def meanwhile():
        model.during = lambda: None
        forget_selection(omg.intake, graph, select_to_forget(graph, matching="secret"))

    model.during = meanwhile
    omg.work(force=True)
    assert [m.id for p in graph.pending() for m in p.turn().messages] == [f"{MAIN}-1"]
    omg.work(force=True)
    assert graph.pending() == []
    assert not any("secret" in graph.vault.text(p) for p in graph.vault.paths())


# --- failures


def test_a_conversation_that_no_model_can_answer_does_not_hold_up_the_others(omg, model, clock):
    say(omg, words(20, "poison"))
    clock.pass_(seconds=1)
    say(omg, words(20, "boat"), session=f"{MAIN}:thread:7")
    real = model.__call__
    omg.worker.gateway = lambda q: ModelReply("{}", "scripted", 1, 1) if "poison" in q.user else real(q)
    omg.work(force=True)
    graph = omg.find(MAIN)
    assert ["poison" in p.turn().messages[0].text for p in graph.pending()] == [True]
    assert graph.state().failures == 1
    assert "gateway" in omg.worker.waits(graph)
    clock.pass_(minutes=10)
    omg.worker.gateway = real
    omg.worker._askers.clear()
    omg.work()
    assert graph.pending() == []


def test_a_turn_that_breaks_the_model_is_separated_from_its_neighbours(omg, model, clock):
    for what in ("lamp", "poison", "boat"):
        say(omg, words(20, what))
        clock.pass_(seconds=1)
    real = model.__call__
    omg.worker.gateway = lambda q: ModelReply("{}", "scripted", 1, 1) if "poison" in q.user else real(q)
    for _ in range(10):
        omg.work(force=True)
    waiting = [p.turn().messages[0].text.split()[1] for p in omg.find(MAIN).pending()]
    assert waiting == ["poison", "boat"]  # what came later in its conversation is not observed before it


def test_at_the_cap_turns_wait_without_counting_as_failures(make, model, clock):
    omg = make(daily_budget_tokens=152)  # a question and its check
    graph = say(omg, words(210))
    omg.work()
    say(omg, words(210, "chair"))
    for _ in range(5):
        clock.pass_(minutes=10)
        assert omg.work() == []
        omg.work(force=True)
    assert len(model.asked) == 1
    assert graph.state().failures == 0
    assert len(happened(omg, "observation_failed")) == 1
    assert "daily_budget_tokens" in omg.worker.waits(graph)
    status = home_status(omg.worker)
    assert "daily_budget_tokens" in status["graphs"][0]["waiting_because"]
    clock.pass_(days=1)
    assert omg.worker.due(graph) == "step"
    omg.work()
    assert graph.pending() == []


def test_status_says_what_waits_and_why(omg, model, clock):
    graph = say(omg, words(100))
    rest = (clock() + timedelta(hours=1)).astimezone(graph.zone)
    assert (
        f"tokens are pending of the 200 that start an observation; all is observed at {rest:%H:%M:%S} if"
        in omg.worker.waits(graph)
    )
    model.error = ModelUnavailable("gateway: nobody is there")
    omg.work(force=True)
    assert "nobody is there" in omg.worker.waits(graph)
    again = (clock() + timedelta(seconds=30)).astimezone(graph.zone)
    assert f"asked again at {again:%H:%M:%S}, or by `omg observe`" in omg.worker.waits(graph)
    window = home_status(omg.worker)["graphs"][0]["windows"]
    assert window["messages"]["threshold"] == 1_000
    assert window["pending"]["turns"] == 1
    assert window["pending"]["threshold"] == 200


# --- activation


def test_the_slice_stays_the_same_until_new_notes_reach_the_threshold(omg, clock):
    say(omg, words(250))
    omg.work()
    first = given(omg)
    assert first.reason == "new_session"
    for n in range(4):
        clock.pass_(seconds=20)
        say(omg, words(230, f"chair{n}"))
        omg.work()
        here = given(omg, f"Where is chair{n}?")
        if n < 3:
            assert (here.reason, here.system) == (None, first.system)
            assert f"chair{n}" in here.prompt
    assert here.reason is None or here.reason == "threshold"
    clock.pass_(seconds=20)
    say(omg, words(230, "table"))
    omg.work()
    last = given(omg)
    assert "threshold" in (here.reason, last.reason)
    assert last.system != first.system
    assert omg.find(MAIN).state().sessions[MAIN].window < 1_000


def test_the_task_of_a_conversation_survives_a_refresh_of_the_prompt_and_expires(omg, clock):
    say(omg, words(250))
    omg.work()
    graph = omg.find(MAIN)
    assert "Plan the trip" in given(omg).system
    clock.pass_(hours=1)
    again = given(omg)
    assert again.reason == "idle"
    assert "Plan the trip" in again.system
    assert graph.state().sessions[MAIN].task == "Plan the trip"
    clock.pass_(days=60)
    late = given(omg)
    assert late.reason == "idle"
    assert "Plan the trip" not in late.system


# --- events


def test_events_tell_actions_and_costs_but_no_conversation_text(omg, model):
    say(omg, words(250, "hippogriff"))
    omg.work()
    (start,), (end,) = happened(omg, "observation_start"), happened(omg, "observation_end")
    assert (start["trigger"], start["messages"], start["model"]) == ("step", 1, "gateway")
    assert (
        start["cycle"]
        == end["cycle"]
        == omg.find().folder.joinpath("receipts").glob("*.json").__next__().stem
    )
    assert start["tokens"] > 200
    assert (end["calls"], end["model_tokens"], end["notes"]) == (2, 152, 1)
    assert end["compression"] == pytest.approx(end["tokens"] / end["note_tokens"], abs=0.1)
    assert end["duration_ms"] >= 0
    text = (omg.folder / "events.jsonl").read_text()
    assert "hippogriff" not in text
    assert "green" not in text


def test_following_events_survives_a_new_events_file(omg, monkeypatch):
    say(omg, words(20))
    stream = follow_events(omg.folder)
    (omg.folder / "events.jsonl").write_text("")
    monkeypatch.setattr("omg.worker.events.POLL_S", 0.01)

    def tell():
        omg.registry.tell("one", tokens=1)
        with (omg.folder / "events.jsonl").open("a") as file:
            file.write('{"event": "torn')
        omg.registry.tell("two")

    threading.Timer(0.1, tell).start()
    assert [event["event"] for event in islice(stream, 2)] == ["one", "two"]
    event = {"at": "2026-03-02T09:00:00.000+00:00", "event": "one", "cycle": "c", "split": 0}
    assert event_text(event, UTC) == "2026-03-02 09:00:00 one"
    assert event_text(event | {"tokens": 3}, UTC) == "2026-03-02 09:00:00 one: tokens 3"
