"""The tests' own tools: the scripted server says what it is told, and nothing leaves the machine."""

import json
import os
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest


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


def test_a_reply_ends_at_the_tokens_that_the_request_allows(openai_server):
    openai_server.always("four" * 10)
    whole, short = (json.loads(ask(openai_server, max_tokens=n))["choices"][0] for n in (10, 9))
    assert (whole["message"]["content"], whole["finish_reason"]) == ("four" * 10, "stop")
    assert (short["message"]["content"], short["finish_reason"]) == ("four" * 9, "length")
    assert b'"length"' in ask(openai_server, max_completion_tokens=1, stream=True)


@pytest.mark.parametrize("host", ["example.com", "192.0.2.1", "2001:db8::1"])
def test_nothing_but_loopback_can_be_reached(host):
    with pytest.raises(OSError, match="only loopback"):
        socket.create_connection((host, 80), timeout=1)


def test_home_is_below_tmp_path(tmp_path, home):
    assert home == tmp_path / "omg" == Path(os.environ["OMG_HOME"])
    assert Path.home().is_relative_to(tmp_path)
