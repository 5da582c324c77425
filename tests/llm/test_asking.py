"""The real LiteLLM, in its real child process, against a scripted server on loopback."""

import json
import logging
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from openai_server import Drop, Fail, Hang, OpenAIServer, Raw, Say, Slow, created

from omg.config import Config, Llm
from omg.errors import BadReply, ConfigError, CutShort, ModelUnavailable, OverBudget
from omg.llm import child as module
from omg.llm.asker import Asker, llm_request
from omg.llm.child import Child
from omg.llm.replies import Ledger, ModelQuestion, ModelReply, is_degenerate, model_window

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
SCHEMA = {"type": "object", "properties": {"edits": {"type": "array"}}}
ASKED = ModelQuestion("You observe.", "Alice said that her cat is called Cleo.", None, "observe")
LOOP = "The user wants to know what the weather will be like in Lisbon tomorrow. " * 60


@pytest.fixture(scope="module")
def server():
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def child(server):
    """Return one child for all tests, because importing LiteLLM takes seconds. The scripted server stands for every provider."""
    with pytest.MonkeyPatch.context() as patch, closing(Child()) as child:
        patch.setenv("OPENAI_BASE_URL", server.base)
        patch.setenv("ANTHROPIC_API_BASE", server.base)
        patch.setenv("ANTHROPIC_API_KEY", "sk-of-anthropic")
        yield child


@pytest.fixture
def ask(server, child, tmp_path):
    """Return a function that makes an Ask for this server: `ask()("…")`."""
    server.reset()
    made = []

    def make(models="openai/m", gateway=None, observation=None, child=child, **llm):
        settings = {
            "api_base": server.base,
            "api_key": "sk-of-alice",
            "backoff_s": 0.01,
            "timeout_s": 2,
            **llm,
        }
        config = Config(
            home=tmp_path,
            llm=settings,
            observation={"model": "openai/m"} | (observation or {}),
            time={"zone": "UTC"},
        )
        ledger = Ledger(tmp_path / "ledger.jsonl", config)
        made.append(Asker(config, models, ledger, gateway=gateway, child=child, now=lambda: NOW))
        return made[-1]

    yield make
    for one in made:
        one.close()


def lines(tmp_path):
    file = tmp_path / "ledger.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


# ---- what is asked, what comes back


def test_a_reply_comes_back_with_its_cost_and_is_entered_in_the_ledger(ask, server, tmp_path):
    server.replies(Say("Cleo.", tokens_in=50, tokens_out=3))
    assert ask()(ASKED) == ModelReply("Cleo.", "openai/m", 50, 3, 0.0, cut=False)
    [request] = server.history
    assert (request.model, request.system, request.user) == ("m", ASKED.system, ASKED.user)
    assert request.key == "sk-of-alice"
    assert request.body["max_tokens"] == 8000
    [line] = lines(tmp_path)
    assert (line["purpose"], line["tokens_in"]) == ("observe", 50)


def test_a_model_with_a_price_costs_money(ask, server):
    server.replies(Say("x", tokens_in=1_000_000, tokens_out=0))
    assert ask("openai/gpt-4o-mini")(ASKED).usd == pytest.approx(0.15)


def test_tokens_are_counted_here_when_the_server_counts_none(ask, server):
    server.replies(Say("Her cat is called Cleo.", usage=False))
    reply = ask()(ASKED)
    assert 10 < reply.tokens_in < 25 and 4 < reply.tokens_out < 10


@pytest.mark.parametrize(
    "text",
    ['```json\n{"edits": []}\n```\nThat is all.', '{"edits": [{"op": "cre'],
    ids=["fenced", "truncated"],
)
def test_a_cut_reply_is_passed_on_unchanged_and_the_ledger_says_so(ask, server, tmp_path, text):
    server.replies(Say(text, finish="length" if text.endswith("cre") else "stop"))
    reply = ask()(ASKED)
    assert reply.text == text
    assert reply.cut == ("cut" in lines(tmp_path)[0]) == text.endswith("cre")


def test_a_models_thinking_is_removed_from_its_reply(ask, server):
    server.replies('<think>\nThe user {"has": "a cat"}\n</think>\n\n{"edits": []}')
    assert ask()(ASKED).text == '{"edits": []}'


def test_a_lone_surrogate_does_not_stop_a_question(ask, server):
    server.replies("ok")
    assert ask()(ModelQuestion("s", "cut here: \ud83d", None, "observe")).text == "ok"
    assert server.history[0].user == "cut here: ?"


# ---- JSON schema


def with_schema(schema=SCHEMA):
    return ModelQuestion("You observe.", "…", schema, "observe")


@pytest.mark.parametrize(
    ("model", "switch", "sent"),
    [
        ("openai/gpt-4o-mini", "auto", True),
        ("openai/m", "auto", False),
        ("openai/m", True, True),
        ("openai/gpt-4o-mini", False, False),
    ],
)
def test_a_schema_is_sent_to_models_that_accept_it_and_written_into_other_prompts(
    ask, server, model, switch, sent
):
    server.replies({"edits": []})
    ask(model, json_schema=switch)(with_schema())
    [request] = server.history
    assert request.schema == (SCHEMA if sent else None)
    assert ("JSON schema" in request.system) is not sent


def test_a_refused_schema_is_not_sent_again(ask, server):
    server.replies(Fail(400, "response_format is not supported"), "first", "second")
    one = ask(json_schema=True)
    assert [one(with_schema()).text, one(with_schema()).text] == ["first", "second"]
    assert [r.schema is not None for r in server.history] == [True, False, False]
    assert "temperature" not in server.history[1].body


def test_a_model_is_asked_with_the_temperature_that_it_is_given(ask, server):
    server.always("fine")
    ask("openai/m", temperature={"openai/m": 1.0})(with_schema())
    ask("openai/m", temperature={"openai/m": False})(with_schema())
    by_default = ask("openai/m", temperature={"openai/other": 1.0})
    by_default(with_schema())
    by_default(replace(ASKED, purpose="reflect"))
    assert [request.body.get("temperature") for request in server.history] == [1.0, None, 0.3, 0.0]


def test_the_gateways_model_gets_a_temperature_only_if_one_is_configured(tmp_path):
    asked = []

    def lent(question):
        asked.append(llm_request(question, 100).get("temperature", "unsaid"))
        return ModelReply("fine", "gateway", 1, 1)

    for own in ({}, {"gateway": 0.7}, {"gateway": False}):
        config = Config(home=tmp_path, llm=Llm(temperature=own))
        Asker(config, "gateway", Ledger(tmp_path / "l.jsonl", config), gateway=lent)(with_schema())
    assert asked == ["unsaid", 0.7, "unsaid"]


def test_a_request_refused_with_and_without_its_schema_is_not_tried_a_third_time(ask, server):
    server.always(Fail(400, "maximum context length is 4096 tokens"))
    with pytest.raises(ModelUnavailable, match=r"openai/m: refused the request \(400: maximum context"):
        ask(json_schema=True)(with_schema())
    assert len(server.history) == 2


# ---- trouble


def test_a_rate_limit_is_waited_out(ask, server, tmp_path):
    server.replies(Fail(429, retry_after=0.3), "at last")
    start = time.monotonic()
    assert ask()(ASKED).text == "at last"
    assert time.monotonic() - start >= 0.3
    assert len(lines(tmp_path)) == 1


@pytest.mark.parametrize("fault", [Fail(408), Fail(500), Drop(), Raw(b"<html>"), Drop("x", after=9)])
def test_a_request_is_retried_after_a_passing_fault(ask, server, fault):
    server.replies(fault, "at last")
    assert ask()(ASKED).text == "at last"


def test_a_request_is_given_up_after_the_configured_number_of_tries(ask, server, tmp_path):
    server.always(Fail(500, "out of memory"))
    with pytest.raises(ModelUnavailable) as e:
        ask(attempts=3)(ASKED)
    assert len(server.history) == 3
    assert str(e.value) == (
        "openai/m: gave no usable answer after 3 tries (500: out of memory); "
        "check that the server is up, and [llm] api_base"
    )
    assert lines(tmp_path) == []


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, r"refused the key .*OPENAI_API_KEY"),
        (403, "which models it may use"),
        (404, "check the model's name"),
    ],
)
def test_a_permanent_error_is_not_tried_again(ask, server, status, says):
    server.always(Fail(status))
    with pytest.raises(ModelUnavailable, match=says):
        ask()(ASKED)
    assert len(server.history) == 1


@pytest.mark.parametrize(
    ("model", "settings", "says"),
    [
        ("openai/m", {"api_base": "", "api_key": ""}, "openai/m: refused the key .*OPENAI_API_KEY"),
        ("nosuch/m", {}, "nosuch/m: refused the request .*check the model's name"),
        ("openai/m", {"api_base": "http://127.0.0.1:9/v1", "attempts": 2}, "after 2 tries .*check that the server is up"),
    ],
    ids=["no key", "no provider", "down"],
)  # fmt: skip
def test_the_error_names_the_missing_key_provider_or_server(ask, model, settings, says):
    with pytest.raises(ModelUnavailable, match=says):
        ask(model, **settings)(ASKED)


def test_the_error_for_a_server_that_never_answers_says_how_long_omg_waited(ask, server):
    server.always(Hang())
    with pytest.raises(ModelUnavailable, match=r"did not answer within 0.3 s after 2 tries"):
        ask(timeout_s=0.3, attempts=2)(ASKED)


def test_a_long_wait_in_the_retry_after_header_raises_an_error_without_waiting(ask, server):
    server.replies(Fail(429, "quota", retry_after=3600))
    with pytest.raises(ModelUnavailable, match=r"asks us to wait 3[56]\d\d s"):
        ask()(ASKED)
    assert len(server.history) == 1


@pytest.mark.parametrize("text", ["", None, LOOP, "<think>on and on"])
def test_after_a_useless_reply_the_model_is_asked_once_more_and_the_ledger_has_both(
    ask, server, tmp_path, text
):
    server.replies(Say(text), "better")
    assert ask()(ASKED).text == "better"
    assert len(lines(tmp_path)) == 2

    server.replies(Say(text), Say(text))
    with pytest.raises(BadReply, match=r"openai/m: sent a(n empty| reply that repeats)"):
        ask()(ASKED)
    assert len(lines(tmp_path)) == 4


def test_the_error_for_a_reply_without_text_names_the_option_max_output_tokens(ask, server):
    server.always(Say("", finish="length", tokens_out=8_000))
    with pytest.raises(CutShort, match=r"wrote no text in 8,000 tokens .*max_output_tokens"):
        ask()(ASKED)
    assert len(server.history) == 1  # the same again would be paid for the same again
    with pytest.raises(CutShort, match=r"openai/a: .*; openai/b: "):
        ask(["openai/a", "openai/b"])(ASKED)


def test_the_requested_length_of_a_reply_fits_the_limit_and_the_window_of_the_model(ask, server):
    server.always("x")
    long = replace(ASKED, user="word " * 3_000)
    for models, question, settings in (
        ("openai/gpt-4-turbo", ASKED, {}),  # the table knows that it gives 4,096
        ("openai/m", long, {"context_window": 8_000}),
        ("openai/m", long, {"context_window": 5_000}),
        ("openai/m", ASKED, {"max_output_tokens": 300}),
    ):
        ask(models, **settings)(question)
    asked = [request.body["max_tokens"] for request in server.history]
    assert asked[0] == 4_096
    assert 4_900 < asked[1] < 5_000
    assert asked[2:] == [4_000, 300]


def test_a_server_that_refuses_a_long_reply_is_asked_for_a_short_one(ask, server):
    server.always(lambda request: Fail(400, "max_tokens") if request.body["max_tokens"] > 4_096 else "x")
    assert ask()(ASKED).text == "x"
    assert [r.body["max_tokens"] for r in server.history] == [8_000, 4_000]


def test_the_next_model_is_asked_when_one_fails(ask, server, caplog):
    server.always(lambda request: Fail(401) if request.model == "a" else f"I am {request.model}")
    assert ask(["openai/a", "openai/b"])(ASKED).text == "I am b"
    assert [r.message.rpartition("; ")[2] for r in caplog.records] == ["asking openai/b instead"]
    assert "openai/a: refused the key" in caplog.text


# ---- budgets


def test_repeated_useless_replies_stop_at_the_daily_cap(ask, server):
    server.always(Say("", tokens_in=900, tokens_out=100))
    with pytest.raises(OverBudget):
        ask(observation={"daily_budget_tokens": 1000})(ASKED)
    assert len(server.history) == 1


def test_concurrent_calls_are_limited_by_configuration_and_halved_after_refusals(ask, server):
    under_way, most = [0], []

    def reply(request):
        under_way[0] += 1
        most.append(under_way[0])
        time.sleep(0.1)
        under_way[0] -= 1
        return "x"

    server.always(reply)
    at_once(ask("openai/patient", observation={"parallel": 4}), *[ASKED] * 12)
    assert max(most) == 4
    both = threading.Barrier(2)

    def refuse(request):
        both.wait(30)
        return Fail(429)

    server.replies(refuse, refuse)  # neither call begins after a refusal, so the two refusals count once
    refused = ask("openai/refusing", observation={"parallel": 4})
    at_once(refused, ASKED, ASKED)
    most.clear()
    at_once(refused, *[ASKED] * 12)
    assert max(most) == 2


# ---- the gateway's model


def test_the_model_of_the_gateway_is_called_through_the_given_function(ask, server, tmp_path):
    heard = []

    def gateway(question):
        heard.append(question)
        return ModelReply("from the gateway", "mock/mock-1", 0, 0)

    assert ask("gateway", gateway=gateway)(with_schema()).text == "from the gateway"
    assert heard[0].schema is None and "JSON schema" in heard[0].system  # the plugin passes on text only
    [line] = lines(tmp_path)
    assert line["model"] == "mock/mock-1" and line["tokens_in"] > 10


def test_without_a_gateway_the_next_model_is_asked_or_the_error_says_so(ask, server):
    server.replies("from the server")
    assert ask(["gateway", "openai/m"])(ASKED).text == "from the server"
    with pytest.raises(
        ModelUnavailable, match="gateway: OpenClaw's plugin is not connected; start the gateway"
    ):
        ask("gateway")(ASKED)


@pytest.mark.parametrize("models", ["offline", "", [], ["openai/m", "offline"]])
def test_without_a_model_nothing_is_asked(ask, models):
    with pytest.raises(ConfigError, match="name a LiteLLM model"):
        ask(models)


# ---- what must not get out


def test_no_error_and_no_log_holds_the_conversation_or_a_key(ask, server, caplog):
    caplog.set_level(logging.DEBUG)
    server.always(lambda request: Fail(400, f"cannot use {request.key}: 'content': '{request.user}'"))
    with pytest.raises(ModelUnavailable) as e:
        ask()(ASKED)
    server.always(Fail(401, "Incorrect API key provided: sk-of-alice"))
    with pytest.raises(ModelUnavailable) as f:
        ask()(ASKED)
    for text in (str(e.value), str(f.value), caplog.text):
        assert "Cleo" not in text and "sk-of-alice" not in text
    assert "the message quotes the conversation" in str(e.value) and "[key]" in str(f.value)


@pytest.mark.parametrize("own_address", [True, False])
def test_an_api_key_is_sent_to_one_provider_only(ask, server, own_address):
    server.always(Fail(401))
    one = ask(["openai/a", "anthropic/claude-3-haiku-20240307"], api_base=server.base if own_address else "")
    with pytest.raises(ModelUnavailable):
        one(ASKED)
    assert [r.headers.get("x-api-key") or r.key for r in server.history] == ["sk-of-alice", "sk-of-anthropic"]


# ---- the process


def test_a_call_that_still_receives_bytes_after_the_timeout_is_abandoned_and_retried(ask, server):
    server.replies(Slow("x" * 200, 60, drip=True), "at last")
    start = time.monotonic()
    assert ask(timeout_s=0.5)(ASKED).text == "at last"
    assert time.monotonic() - start < 50


STAND_IN = """
import asyncio, os, signal, sys, time
from types import SimpleNamespace as Some
supports_response_schema = supports_vision = lambda model: False
get_llm_provider = lambda model: (model, "openai", None, None)
print("a line on stdout that is not ours")
async def acompletion(*, messages, **_):
    said = messages[-1]["content"]
    if said == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if said == "hang":
        await asyncio.sleep(60)
    if said == "stuck":
        time.sleep(60)
    if said.startswith("after"):
        await asyncio.sleep(float(said.split()[1]))
    message = Some(content=f"{os.getpid()}")
    return Some(choices=[Some(message=message, finish_reason="stop")], usage=None)
"""


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """A child that imports something quicker than LiteLLM. Call it with the user's words."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "litellm.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    rest = dict.fromkeys(("system", "api_base", "api_key"), "") | dict.fromkeys(
        ("schema", "plain", "temperature")
    )
    with closing(Child(idle_s=0.3)) as child:

        def call(user, timeout_s=20.0):
            asked = {"model": "m", "user": user, "json_schema": False, "max_tokens": 9, "timeout_s": 1} | rest
            return child.call(asked, timeout_s)

        call.child = child
        yield call


def test_one_process_answers_many_questions_and_ends_when_idle(quick):
    first = quick("who?")["text"]
    assert quick("who?")["text"] == first == str(quick.child.running.process.pid)
    assert quick.child.running.process.wait(5) == 0
    assert quick("who?")["text"] != first


def test_a_question_to_a_process_that_is_just_ending_is_not_lost(quick):
    for pause in (0.29, 0.295, 0.3, 0.305, 0.31):
        assert "text" in quick("who?")
        time.sleep(pause)


def test_a_process_that_is_stuck_is_killed(quick, monkeypatch):
    monkeypatch.setattr(module, "KILL_S", 1.0)
    quick("who?")
    hung = quick.child.running.process
    assert quick("stuck", timeout_s=0.1)["status"] == 408
    assert hung.returncode == -9
    assert "text" in quick("who?")


def at_once(call, *said):
    with ThreadPoolExecutor(len(said)) as pool:
        return list(pool.map(call, said))


def test_a_hanging_call_delays_no_other_call_and_does_not_end_the_process(quick):
    first = quick("who?")["text"]
    answers = at_once(quick, "hang", "after 0.1", "after 1.5")
    assert [answer.get("status", answer.get("text")) for answer in answers] == [408, first, first]
    assert quick("who?")["text"] == first


def test_a_failed_import_of_litellm_is_reported_once_with_its_remedy(quick, ask, tmp_path):
    (tmp_path / "path" / "litellm.py").write_text("raise ImportError('no such wheel')")
    with pytest.raises(
        ModelUnavailable,
        match=r"^openai/m: LiteLLM cannot be imported: no such wheel; install OMG with its extra `models`",
    ):
        ask(child=quick.child)(ASKED)


@pytest.mark.parametrize("under_way", [True, False], ids=["call", "pause"])
def test_stopping_ends_the_running_calls(quick, ask, under_way):
    one = ask(child=quick.child, timeout_s=60, backoff_s=60)
    raised = []

    def call():
        try:
            one(ModelQuestion("", "hang" if under_way else "die", None, "observe"))
        except ModelUnavailable as e:
            raised.append(str(e))

    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.5)
    one.close()
    if under_way:
        quick.child.close()
    thread.join(5)
    assert not thread.is_alive() and "OMG is stopping" in raised[0]


def test_the_model_process_dies_with_its_parent_even_during_a_call(quick):
    code = """if True:
        from omg.llm.child import Child
        child = Child()
        asked = {"model": "m", "system": "", "user": "who?", "schema": None, "plain": True,
            "json_schema": False, "max_tokens": 9, "timeout_s": 60, "api_base": "", "api_key": ""}
        print(child.call(asked, 60)["text"], flush=True)
        child.call(asked | {"user": "hang"}, 60)
    """
    here = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=here) as parent:
        pid = int(parent.stdout.readline())
        time.sleep(0.2)
        assert alive(pid)
        parent.kill()
    for _ in range(200):
        if not alive(pid):
            return
        time.sleep(0.02)
    raise AssertionError("the child outlived its parent")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ---- loops


@pytest.mark.parametrize(
    "text",
    [
        LOOP,
        "\n".join(f"- Looping remark number {i % 5} about one and the same topic" for i in range(100)),
        '{"edits": [' + '{"op": "create", "title": "Cat", "description": "The cat is called Cleo."}, ' * 60,
        json.dumps([{"title": "Cat", "body": "The user's cat is called Cleo."}] * 60, indent=1)[:-40],
        "* built pkg\n" * 1000,
        "はい、そうです。" * 300,
        "A fine beginning, with a fact in it.\n" + "and then " * 400,
    ],
    ids=range(7),
)
def test_a_repeating_reply_is_recognised(text):
    assert is_degenerate(text)


EDITS = [
    created(f"Prefers option {i * 7} over option {i}.", f"m{i}", f"m{i + 1}", links=["mocs/moc-preferences"])
    for i in range(60)
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(EDITS, indent=2),
        json.dumps(EDITS),
        "\n".join(f"[{'#' * i}{' ' * (100 - i)}] {i}%" for i in range(101)),
        "Build output: " + " ".join(f"step{i}" for i in range(12_000)),
        "| day | done |\n"
        + "\n".join(f"| 2026-03-{i % 28 + 1:02} | yes, all of it, as agreed |" for i in range(60)),
        "short",
        "",
    ],
    ids=range(7),
)
def test_a_long_list_is_not_taken_for_a_repeating_reply(text):
    assert not is_degenerate(text)


# ---- windows


@pytest.mark.parametrize(
    ("model", "llm", "tokens"),
    [
        ("openai/gpt-4o", {}, 128_000),
        ("gemini/gemini-2.5-flash", {}, 1_048_576),
        ("openai/qwen-at-home", {"api_base": "http://127.0.0.1:1/v1"}, 8_192),
        ("gateway", {}, 32_000),
        ("openai/gpt-4o", {"context_window": 5_000}, 5_000),
    ],
)
def test_a_models_window_comes_from_the_configuration_the_price_table_or_a_default(
    tmp_path, model, llm, tokens
):
    assert model_window(model, Config(home=tmp_path, llm=llm)) == tokens
