"""
What happens to a long conversation with OMG as the context engine: it begins anew, jobs and sub-agents run beside it,
something in it is edited or forgotten. All is judged by what the provider received.

One gateway, with a window so small that a handful of turns is cut. A test that needs a conversation of which something
is cut asks for `cut`, which talks one long where none stands.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import REPO, Gateway, eventually
from longtalk import STANDING, TIMELINE, Said, turn, wire
from openai_server import OpenAIServer, Request, text_of

pytestmark = pytest.mark.gateway

MAIN = "agent:main:main"
PAD = "And so it goes on, and on. " * 60  # an answer repeats the end of what was said
OMG = """\
[observation]
model = "offline"
buffer_tokens = "turn"
[context]
message_tokens = 1500
[inject]
budget_tokens = 500  # what a prompt is given has room before its message in later requests, too
"""
MOST = 16  # turns until there is a cut
# What is talked about until there is a cut: each once, so that no test finds the words of another.
SUBJECTS = iter(
    "number letter colour shape metal herb stone river tree bird cloud fruit tool ship road coin".split()
)
PREFERRED = re.compile(r"the (\w+) (\d+) over all others")


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    """With both plugins in place, as `omg install --context-engine` leaves them (test_context_engine.py)."""
    made: Gateway = boot(
        omg=OMG,
        config={"agents": {"defaults": {"heartbeat": {"target": "none"}}}},
    )
    engine = made.folder / "engine"
    shutil.copytree(REPO / "hooks" / "context", engine)
    shutil.copy(REPO / "hooks" / "daemon.js", engine)
    plugins = {
        "load": {"paths": [str(made.folder / "plugin"), str(engine)]},
        "entries": {"omg-context": {"enabled": True, "config": {"home": str(made.home)}}},
        "slots": {"contextEngine": "omg-context"},
    }
    made.configure({"plugins": plugins})
    yield made.start()


@pytest.fixture
def cut(gateway: Gateway, provider: OpenAIServer) -> str:
    """The subject of which notes 1 and 2 stand in the requests of the main session for what was said."""
    shown = PREFERRED.findall(timeline(turn(gateway, provider, MAIN, "Hello once more.")))
    whole = [subject for subject, n in shown if n == "1" and (subject, "2") in shown]
    return whole[-1] if whole else talked_until_cut(gateway, provider)[0]


def preferred(subject: str, n: int) -> str:
    return f"the {subject} {n} over all others"


def talked_until_cut(gateway: Gateway, provider: OpenAIServer) -> tuple[str, Request]:
    """A new subject, talked about until its notes stand for what was said of it, and the first request with them."""
    subject = next(SUBJECTS)
    for n in range(MOST):
        said = turn(gateway, provider, MAIN, f"I prefer {preferred(subject, n)}. {PAD}")
        assert said.status == "ok"
        if preferred(subject, 2) in timeline(said):
            return subject, said.own[0]
    raise AssertionError(f"nothing was cut in {MOST} turns: {gateway.omg('status', fails=None)}")


def timeline(said: Said) -> str:
    return "".join(TIMELINE.findall(wire(said.own[0])))


def raw(request: Request) -> str:
    """What stands word for word."""
    return STANDING.sub("", wire(request))


def found(provider: OpenAIServer, since: int, words: str) -> Request | None:
    """The agent's first request behind *since* whose newest message holds *words*."""
    asked = (r for r in provider.history[since:] if r.body.get("tools"))
    return next((r for r in asked if words in str(r.body["messages"][-2:])), None)


def archived(gateway: Gateway) -> str:
    return " ".join(m["text"] for m in gateway.memory.taken())


@pytest.mark.parametrize("command", ["/new", "/reset"])
def test_a_new_conversation_has_notes_but_no_messages_of_the_previous_conversation(
    gateway: Gateway, provider: OpenAIServer, cut: str, command: str
) -> None:
    gateway.chat(MAIN, command)
    first = turn(gateway, provider, MAIN, "Good evening to you.").own[0]
    assert not TIMELINE.search(wire(first))
    assert "over all others" not in raw(first)
    assert raw(first).count("Good evening to you.") == 1
    asks = turn(gateway, provider, MAIN, f"Which {cut} did I say I prefer, was it {cut} 2?").own[0]
    assert preferred(cut, 2) in " ".join(STANDING.findall(wire(asks)))
    subject, request = talked_until_cut(gateway, provider)
    (text,) = TIMELINE.findall(wire(request))
    assert {found for found, _ in PREFERRED.findall(text + raw(request))} == {subject}
    for n in range(MOST):
        said = raw(request).count(f"I prefer {preferred(subject, n)}")
        assert said + (preferred(subject, n) in text) <= 1, n


@pytest.mark.usefixtures("cut")
def test_a_job_sees_no_message_of_a_conversation_and_adds_none_to_that_conversation(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    before, since = timeline(turn(gateway, provider, MAIN, "Go on.")), len(provider.history)
    gateway.run_job("SAY done by the job")
    request = eventually(
        lambda: found(provider, since, "SAY done by the job"), 60, "the job", why=gateway.tail
    )
    assert "over all others" not in wire(request)
    after = turn(gateway, provider, MAIN, "And on.")
    assert timeline(after) == before != ""
    assert "done by the job" not in wire(after.own[0]) + archived(gateway)


@pytest.mark.usefixtures("cut")
def test_a_heartbeat_gets_the_cut_context_and_later_requests_do_not_contain_its_prompt(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    before, since = timeline(turn(gateway, provider, MAIN, "Go on still.")), len(provider.history)
    gateway.call("wake", mode="now", text="look around")
    request = eventually(lambda: found(provider, since, "heartbeat"), 60, "a heartbeat", why=gateway.tail)
    assert before != ""
    assert TIMELINE.findall(wire(request)) == [before]
    beaten = lambda: "heartbeat poll" in str([e["message"]["content"] for e in gateway.transcript(MAIN)])  # noqa: E731
    eventually(beaten, 30, "the heartbeat to be over")
    _, request = talked_until_cut(gateway, provider)
    assert "heartbeat poll" not in wire(request)
    assert "heartbeat" not in archived(gateway)


@pytest.mark.usefixtures("cut")
def test_a_sub_agent_sees_no_conversation_and_its_report_is_later_cut_like_other_messages(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    since = len(provider.history)
    spawn = {"task": "SAY the tide is at noon", "label": "tide", "runTimeoutSeconds": 60}
    order = json.dumps({"id": "sessions_spawn", "args": spawn})
    assert turn(gateway, provider, MAIN, f"CALL tool_call {order}").status == "ok"
    child = eventually(
        lambda: found(provider, since, "[Subagent Task]"), 60, "the sub-agent", why=gateway.tail
    )
    assert "over all others" not in wire(child)
    report = eventually(
        lambda: found(provider, since, "subagent_announce"), 60, "its report", why=gateway.tail
    )
    assert TIMELINE.search(wire(report))
    _, request = talked_until_cut(gateway, provider)
    assert "subagent_announce" not in wire(request)
    messages = request.body["messages"]
    calls = {c["id"] for m in messages for c in m.get("tool_calls") or ()}
    assert calls == {m["tool_call_id"] for m in messages if m["role"] == "tool"}


def test_an_edit_to_a_note_of_the_cut_part_is_shown_and_the_former_text_is_gone(
    gateway: Gateway, provider: OpenAIServer, cut: str
) -> None:
    file = note(gateway, f"{cut}-1-over-all-others")
    file.write_text(file.read_text().replace(f"{cut} 1", f"{cut} thyme"))

    def edited() -> bool:
        text = timeline(turn(gateway, provider, MAIN, "Go on with that."))
        return f"the {cut} thyme over all others" in text and preferred(cut, 1) not in text

    eventually(edited, 60, "the edited note", each_s=1)
    assert not held_since(gateway, provider, preferred(cut, 1))


def test_no_later_request_holds_forgotten_words(gateway: Gateway, provider: OpenAIServer, cut: str) -> None:
    words, name = preferred(cut, 2), f"{cut}-2-over-all-others"
    for _ in range(4):
        asks = turn(gateway, provider, MAIN, f"Which {cut} did I say I prefer, was it {cut} 2?").own[0]
        again = turn(gateway, provider, MAIN, "Thank you for that.").own[0]
        if TIMELINE.findall(wire(asks)) == TIMELINE.findall(wire(again)):
            break  # else there was a cut between the two
    assert words in "".join(TIMELINE.findall(wire(again)))
    assert f"{cut}-2" in served(asks)  # a line or a quotation; by its name alone where `system` has its line
    assert served(asks) == served(again)  # before its message, as in the request before
    assert words not in raw(again)
    gateway.omg("forget", "--matching", words, "--yes")
    assert not held_since(gateway, provider, words, name)


def served(request: Request) -> str:
    """What stands before messages of the conversation, besides the notes of what was cut."""
    said = "\n".join(text_of(m["content"]) for m in request.body["messages"] if m["role"] == "user")
    return "".join(STANDING.findall(TIMELINE.sub("", said)))


def note(gateway: Gateway, name: str) -> Path:
    nodes = gateway.memory.graphs()[MAIN] / "vault" / "nodes"
    return next(nodes.glob(f"*/*{name}.md"), nodes / f"{name}.md")


def held_since(gateway: Gateway, provider: OpenAIServer, *words: str) -> list[Request]:
    """The requests that hold any of *words*, from now on until there is another cut."""
    since = len(provider.history)
    talked_until_cut(gateway, provider)
    sent = [(r, json.dumps(r.body, ensure_ascii=False)) for r in provider.history[since:]]
    return [r for r, text in sent if any(w in text for w in words)]
