"""`[observation] effort = "low"`: rules note each turn at once, and a model reads it once, at night."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from openai_server import Hang, OpenAIServer, Request

from omg.config import Config
from omg.curate import forget_selection, select_to_forget, take_back
from omg.memory import Memory
from omg.worker.status import home_status, observer_text, status_text

MORNING = datetime(2026, 3, 5, 9, tzinfo=UTC)
NIGHT = MORNING + timedelta(hours=18)
TURNS = {
    "coffee": "I prefer oat milk in my coffee.",
    "car": "I decided to sell the old Volvo in April.",
    "flat": "I live in a small flat in Porto.",
    "choir": "I sing in a choir on Tuesdays.",
}
PLAN = "## Your plan\n\n- Ring the garage about the papers, and ask them in passing what a new battery would cost these days\n```py\nprice = 4100\n```"
NOTE = re.compile(r"^(n\d+) \[.*?\] (.+?): (.+)$", re.M)


@contextmanager
def home_of(home: Path, server: OpenAIServer, at: datetime = MORNING, **observation: Any) -> Iterator[Memory]:
    watch = {"effort": "low", "model": "openai/scripted", **observation}
    llm = {"api_base": server.base, "api_key": "k", "attempts": 1, "context_window": 64_000}
    config = Config(home=home, observation=watch, llm=llm, time={"zone": "UTC"})
    with Memory(config, embed=None, clock=lambda: at) as memory:
        yield memory


def say(memory: Memory, *names: str) -> None:
    """Each in a conversation of its own, answered with a plan, with the output of a tool in between."""
    for n, name in enumerate(names):
        call = {"type": "toolCall", "id": f"c-{name}", "name": "look", "arguments": {}}
        entries = [
            {"role": "user", "content": TURNS[name]},
            {"role": "assistant", "content": [call]},
            {"role": "toolResult", "toolCallId": call["id"], "content": "tool words " * 40},
            {"role": "assistant", "content": PLAN},
        ]
        entries = [{**entry, "timestamp": MORNING + timedelta(minutes=n)} for entry in entries]
        memory.capture(entries, session=f"ines:thread:{name}")
        memory.worker.work()  # what is due now, as the daemon's tick does


def notes(memory: Memory) -> dict[str, str]:
    return {e.path: e.description for e in memory.find().index.entries() if e.path.startswith("nodes/")}


def shown(request: Request) -> dict[str, str]:
    """Of the notes that the request says are the rules': description → handle."""
    made = request.user.partition("# Notes that rules made")[2].partition("# Messages")[0]
    return {text: handle for handle, _, text in NOTE.findall(made)}


def update_each(request: Request) -> dict[str, Any]:
    """Each of the rules' notes is said better by one update, citing its message."""
    messages = re.findall(r"^(m\d+) \d\d:\d\d user: (.*)$", request.user, re.M)
    edits = [
        {"op": "update", "node": handle, "description": f"{text} (read)", "sources": [m]}
        for text, handle in shown(request).items()
        for m, said in messages
        if said.split()[-1].strip(".") in text
    ]
    return {"edits": edits, "now": {}}


def test_at_low_effort_rules_make_notes_from_a_turn_by_day_and_ask_no_model(
    home: Path, openai_server: OpenAIServer
) -> None:
    with home_of(home, openai_server) as memory:
        say(memory, "coffee")
        assert any("oat milk" in text for text in notes(memory).values())
        status = status_text(home_status(memory.worker), UTC)
    assert openai_server.history == [] and openai_server.checks == []
    assert "rules make notes at once; at night a model reads the same messages: openai/scripted" in status
    assert "unread    1 piece" in status


def test_without_a_gateway_only_the_nightly_reading_of_the_model_waits() -> None:
    asked = {"offline": False, "effort": "low", "observer": "gateway", "daemon": {}}
    told = observer_text(asked)
    assert "the rules make notes at once, and only the nightly reading waits" in told
    assert "what is said waits" not in told
    assert "what is said waits until a gateway is up" in observer_text({**asked, "effort": "full"})


def test_at_night_one_question_has_all_turns_and_updates_the_notes_that_rules_made(
    home: Path, openai_server: OpenAIServer
) -> None:
    with home_of(home, openai_server) as memory:
        say(memory, *TURNS)
        before = notes(memory)
    openai_server.always(update_each)
    with home_of(home, openai_server, NIGHT) as memory:
        (night,) = memory.reflect()
        after = notes(memory)
        (again,) = memory.reflect()
    (asked,) = openai_server.history
    assert len(openai_server.checks) == 1 and night["calls"] == 2 and again["calls"] == 0
    assert set(shown(asked)) == set(before.values())
    assert after == {path: f"{text} (read)" for path, text in before.items()}
    assert all(text in asked.user for text in TURNS.values())
    assert "- Ring the garage about the papers" in asked.user and "=== another conversation ===" in asked.user
    assert not any(left_out in asked.user for left_out in ("tool words", "price", "these days"))


def test_the_nightly_reading_does_not_bring_back_a_note_that_a_person_undid_that_day(
    home: Path, openai_server: OpenAIServer
) -> None:
    def noted_anew(request: Request) -> dict[str, Any]:
        edit = {"op": "create", "type": "preference", "title": "Oat milk", "sources": ["m1"]}
        return {"edits": [edit | {"description": "Ines prefers oat milk in coffee."}], "now": {}}

    with home_of(home, openai_server) as memory:
        say(memory, "coffee")
        take_back(memory.find(), next((memory.find().folder / "receipts").glob("*.json")).stem, MORNING)
        assert notes(memory) == {}
    openai_server.replies(noted_anew)
    with home_of(home, openai_server, NIGHT) as memory:
        memory.reflect()
        assert notes(memory) == {}


def test_a_night_killed_between_batches_repeats_and_skips_no_batch(
    home: Path, openai_server: OpenAIServer
) -> None:
    with home_of(home, openai_server) as memory:
        say(memory, *TURNS)
        before = notes(memory)
    (home / "omg.toml").write_text(
        '[observation]\neffort = "low"\nmodel = "openai/scripted"\nmax_tokens_per_batch = 100\n'
        f'[llm]\napi_base = "{openai_server.base}"\napi_key = "k"\ncontext_window = 64000\n'
    )
    nights: list[subprocess.Popen[bytes]] = []

    def kill(request: Request) -> object:
        nights[0].kill()
        return Hang()

    openai_server.replies(update_each, kill)
    openai_server.always(update_each)
    command = [sys.executable, "-m", "omg.cli", "reflect"]
    nights.append(subprocess.Popen(command))
    assert nights[0].wait(60) == -9
    done = subprocess.run(command, check=False, timeout=60)
    assert done.returncode == 0
    with home_of(home, openai_server, NIGHT) as memory:
        assert notes(memory) == {path: f"{text} (read)" for path, text in before.items()}
        assert memory.find().state().unread == {}
    read = [text for r in openai_server.history for text in TURNS.values() if f"user: {text}" in r.user]
    killed = [text for text in TURNS.values() if f"user: {text}" in openai_server.history[1].user]
    assert len(openai_server.history) == 3 and sorted(read) == sorted([*TURNS.values(), *killed])


def test_the_nightly_reading_respects_the_daily_cap(home: Path, openai_server: OpenAIServer) -> None:
    with home_of(home, openai_server) as memory:
        say(memory, "coffee")
    with home_of(home, openai_server, NIGHT, daily_budget_tokens=0) as memory:
        (night,) = memory.reflect()
        assert "daily_budget_tokens" in night["skipped"][0] and len(memory.find().state().unread) == 1
    assert openai_server.history == []


def test_after_each_change_between_low_and_full_effort_a_model_still_reads_each_message_once(
    home: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always(update_each)
    with home_of(home, openai_server) as memory:
        say(memory, "coffee")
    with home_of(home, openai_server, effort="full") as memory:
        say(memory, "car")
        memory.observe()
    with home_of(home, openai_server) as memory:
        say(memory, "flat")
    with home_of(home, openai_server, NIGHT, effort="full") as memory:
        memory.reflect()
        assert memory.find().state().unread == {}
    asked = [r.user for r in openai_server.history if r.user.startswith("# Notes that exist")]
    assert [sum(f"user: {TURNS[name]}" in user for user in asked) for name in ("coffee", "car", "flat")] == [
        1
    ] * 3


def test_forgotten_turns_are_not_read_at_night(home: Path, openai_server: OpenAIServer) -> None:
    with home_of(home, openai_server) as memory:
        say(memory, "coffee", "car", "flat")
        graph = memory.find()
        forget_selection(memory.intake, graph, select_to_forget(graph, session="ines:thread:flat"))
        assert "ines:thread:flat" not in (graph.folder / "state.json").read_text()
        (path,) = (p for p, text in notes(memory).items() if "oat milk" in text)
        memory.forget(path, session="ines:thread:coffee")
    openai_server.always(update_each)
    with home_of(home, openai_server, NIGHT) as memory:
        memory.reflect()
        assert not any("oat milk" in text for text in notes(memory).values())
    (asked,) = openai_server.history
    assert TURNS["car"] in asked.user and not any(gone in asked.user for gone in ("oat milk", "Porto"))
