"""The tests' own tools: the scripted server says what it is told, and nothing leaves the machine."""

import json
import os
import socket
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import Drop, Fail, Hang, Raw, Say, Slow


def ask(server, text="hello", timeout=2.0, **more):
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}],
    }
    request = urllib.request.Request(
        server.base + "/chat/completions",
        json.dumps(body | more).encode(),
        {"content-type": "application/json", "authorization": "Bearer k"},
    )
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        return reply.read()


def text(raw):
    return json.loads(raw)["choices"][0]["message"]["content"]


def test_replies_come_in_order_and_then_the_standing_one(openai_server):
    openai_server.replies("one", {"two": 2})
    openai_server.always(lambda request: request.user[::-1])
    assert [text(ask(openai_server)) for _ in range(4)] == ["one", '{"two": 2}', "olleh", "olleh"]


def test_a_reply_ends_at_the_tokens_that_the_request_allows(openai_server):
    openai_server.always("four" * 10)
    whole, short = (json.loads(ask(openai_server, max_tokens=n))["choices"][0] for n in (10, 9))
    assert (whole["message"]["content"], whole["finish_reason"]) == ("four" * 10, "stop")
    assert (short["message"]["content"], short["finish_reason"]) == ("four" * 9, "length")
    assert b'"length"' in ask(openai_server, max_completion_tokens=1, stream=True)


def test_history_says_what_was_asked(openai_server):
    openai_server.replies("x")
    schema = {"type": "object"}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    ask(openai_server, "Grüße", response_format=form)
    [request] = openai_server.history
    assert (request.model, request.system, request.user, request.key) == ("m", "be brief", "Grüße", "k")
    assert request.schema == schema


def test_an_unexpected_request_is_a_404_that_says_so(openai_server):
    with pytest.raises(urllib.error.HTTPError) as e:
        ask(openai_server)
    assert e.value.code == 404 and "script is over" in e.value.read().decode()
    e.value.close()


def test_a_failure_has_its_status_and_its_retry_after(openai_server):
    openai_server.replies(Fail(429, "slow down", retry_after=7))
    with pytest.raises(urllib.error.HTTPError) as e:
        ask(openai_server)
    assert (e.value.code, e.value.headers["retry-after"]) == (429, "7")
    e.value.close()


@pytest.mark.parametrize("late", [Hang(), Slow("x", 5)])
def test_a_hanging_server_is_given_up_by_the_client_and_answers_the_next(openai_server, late):
    openai_server.replies(late, "next")
    with pytest.raises(TimeoutError):
        ask(openai_server, timeout=0.1)
    assert text(ask(openai_server)) == "next"


def test_a_dripping_body_arrives_whole(openai_server):
    openai_server.replies(Slow("drop by drop", 0.2, drip=True))
    assert text(ask(openai_server)) == "drop by drop"


@pytest.mark.parametrize("drop", [Drop(), Drop("cut in the middle", after=40)])
def test_a_dropped_connection_is_an_error_to_the_client(openai_server, drop):
    openai_server.replies(drop, "next")
    with pytest.raises((HTTPException, OSError)):
        ask(openai_server)
    assert text(ask(openai_server)) == "next"


def test_a_proxys_page_is_sent_as_it_is(openai_server):
    openai_server.replies(Raw(b"<html>"))
    assert ask(openai_server) == b"<html>"


def test_a_stream_carries_the_same_text_and_its_usage(openai_server):
    openai_server.replies(Say("streamed", tokens_in=3, tokens_out=4))
    lines = [line.removeprefix(b"data: ") for line in ask(openai_server, stream=True).split(b"\n\n") if line]
    assert lines.pop() == b"[DONE]"
    chunks = [json.loads(line) for line in lines]
    assert chunks[0]["choices"][0]["delta"]["content"] == "streamed"
    assert chunks[-1]["usage"]["total_tokens"] == 7


@pytest.mark.parametrize("host", ["example.com", "192.0.2.1", "2001:db8::1"])
def test_nothing_but_loopback_can_be_reached(host):
    with pytest.raises(OSError, match="only loopback"):
        socket.create_connection((host, 80), timeout=1)


def test_home_is_below_tmp_path(tmp_path, home):
    assert home == tmp_path / "omg" == Path(os.environ["OMG_HOME"])
    assert Path.home().is_relative_to(tmp_path)


@given(st.text())
def test_the_guards_do_not_disturb_hypothesis(said):
    assert isinstance(said, str)
