"""
The child process that imports LiteLLM, seen from both ends of its pipe. The child answers many questions at once.

    Child.call(question) ── a JSON line ──▶ listen → complete → litellm ── a JSON line ──▶ an answer

An answer is `{text, tokens_in, tokens_out, usd, cut}` or `{why, status, again, wait_s}`, with the number of its question.
Importing LiteLLM costs some 3 s of CPU and 200 MB, so only the child imports it, at the first question. The child holds no
state and imports nothing of ours, so it may be killed at any moment. (worker/intake.py reads long drops in such a process.)
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .replies import Places

IDLE_S = 60.0
# LiteLLM's timeout ends a call first. GRACE_S later the child ends the call; KILL_S later the child itself is killed.
GRACE_S, KILL_S = 1.0, 5.0
REPEATED_CHARS = 24  # a message that shares this many characters in a row with the question quotes it
START_S = 120.0  # time for `import litellm` from a cold disk on a busy machine
# Started by path and with -P, so that the child imports nothing from the working folder or from another package `omg`.
MODEL_CHILD = (sys.executable, "-P", __file__)

# Servers that people run themselves. `[llm] api_base` is their address; every other provider has its own address.
SELF_HOSTED = {
    "openai", "custom_openai", "openai_like", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy",
    "xinference", "docker_model_runner", "lemonade", "ollama", "ollama_chat",
}  # fmt: skip


# ---- the parent's end


class Child:
    """
    Runs *command* as a process that answers questions. The process starts with a question, ends after *idle_s* without
    one, and is killed if it hangs.

    Any number of threads may call at once. The process ends with its parent, even during a call, because its stdin closes.
    """

    def __init__(self, idle_s: float = IDLE_S, command: Sequence[str] = MODEL_CHILD) -> None:
        self.places: dict[str, Places] = {}  # by model
        self._start = (*command, str(idle_s))
        self.running: Running | None = None
        self._starting = threading.Lock()
        self._closed = False

    def call(self, question: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """
        Return the answer to *question*, or a failure if the process dies. After *timeout_s* + KILL_S the process is killed.

        When the process is killed, its other open questions fail as well; they may be asked again.
        """
        answer: dict[str, Any] | None = None
        for _ in range(2):
            with self._starting:
                if not self._closed and (self.running is None or self.running.over):
                    self.running = Running(self._start)
            if self._closed or self.running is None:
                break
            hello = self.running.hello()
            if "ready" not in hello:
                answer = hello
                break
            if (answer := self.running.ask(question, timeout_s + KILL_S)) is not None:
                break  # None: the process had just ended because it was idle
        if self._closed and "why" in (answer or {"why": ""}):
            return child_gone("OMG is stopping", again=False)
        return answer or child_gone("its process left twice")

    def close(self) -> None:
        """End the process. Running calls in other threads return at once."""
        self._closed = True
        with self._starting:
            if self.running is not None:
                self.running.end()


class Running:
    """One process, from its start to its end. Each answer carries the number of its question."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # LiteLLM may print what it was asked
            env={
                **os.environ,
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise LiteLLM fetches a price list
                "LITELLM_MODE": "PRODUCTION",  # otherwise LiteLLM looks for a .env file
            },
            start_new_session=True,  # Ctrl-C reaches only the parent
        )
        self.over = False
        self._numbers = itertools.count(1)
        self._greeting: Future[dict[str, Any] | None] = Future()
        self._asked = {0: self._greeting}  # number → the answer to come
        self._guard, self._speaking = threading.Lock(), threading.Lock()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def hello(self) -> dict[str, Any]:
        """Wait for the first line of the process: `{"ready": true}`, or why the process could not start."""
        try:
            hello = self._greeting.result(START_S)
        except TimeoutError:
            self.process.kill()
            hello = self._greeting.result()
        why = f"its process did not start, exit code {self.process.returncode}"
        return child_gone(why) | {"started": False} if hello is None else hello

    def ask(self, question: dict[str, Any], timeout_s: float) -> dict[str, Any] | None:
        """Return the answer to *question*; None if the process, being idle, ended before reading the question."""
        number, answer = next(self._numbers), Future[dict[str, Any] | None]()
        with self._guard:
            if self.over:
                return None
            self._asked[number] = answer
        until = time.monotonic() + timeout_s
        killer = threading.Timer(timeout_s, self.process.kill)  # the process may also hang while we write
        killer.daemon = True
        killer.start()
        try:
            assert self.process.stdin is not None
            line = json.dumps({**question, "number": number}).encode() + b"\n"
            with (
                self._speaking,
                contextlib.suppress(OSError, ValueError),
            ):  # the listener sees when the process has ended
                self.process.stdin.write(line)
                self.process.stdin.flush()
            said = answer.result()
        finally:
            killer.cancel()
        if said is not None or self.process.returncode == 0:
            return said
        if time.monotonic() >= until:
            return child_gone("it had to be killed", status=408)
        return child_gone(f"its process died, exit code {self.process.returncode}")

    def end(self) -> None:
        self.process.kill()
        self._listener.join()

    def _listen(self) -> None:
        """Give each answer to the call that waits for it. When the process ends, give None to all waiting calls."""
        assert self.process.stdin is not None and self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                value = json.loads(line)
                with self._guard:
                    asked = self._asked.pop(value.pop("number"), None)
                if asked is not None:
                    asked.set_result(value)
        self.process.wait()
        with self._guard:
            self.over = True
        for asked in self._asked.values():
            asked.set_result(None)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # a line could not be written any more
                pipe.close()


def child_gone(why: str, status: int = 0, again: bool = True, wait_s: float | None = None) -> dict[str, Any]:
    return {"why": why, "status": status, "again": again, "wait_s": wait_s}


# ---- the child's end


def child_main(idle_s: float) -> None:
    def load() -> None:
        gc.disable()  # the import makes only objects that stay: to look for garbage took a third of its time
        try:
            import litellm
        except Exception as e:
            raise RuntimeError(
                f"LiteLLM cannot be imported: {e}; install OMG with its extra `models`, or LiteLLM alone:"
                " pip install litellm"
            ) from e
        gc.freeze()
        gc.enable()
        litellm.suppress_debug_info = True
        litellm.telemetry = False

    serve_parent(idle_s, complete_once, load)


def serve_parent(
    idle_s: float, answer: Callable[[dict[str, Any]], Any], load: Callable[[], None] = lambda: None
) -> None:
    """
    Call *load* and report ready; then *answer* each question until no question has come for *idle_s*.

    If *answer* is a coroutine function, questions are answered at the same time, otherwise one after the other.
    """
    import asyncio

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what LiteLLM prints must not fall between our lines

    def say(number: int, value: dict[str, Any]) -> None:
        answers.write(json.dumps({**value, "number": number}) + "\n")
        answers.flush()

    async def respond(question: dict[str, Any]) -> None:
        number = question.pop("number")
        try:
            value = answer(question)
            say(number, await value if inspect.isawaitable(value) else value)
        except Exception as e:
            say(number, child_gone(f"it could not answer: {type(e).__name__}"))

    async def serve() -> None:
        questions, loop = asyncio.Queue[bytes](), asyncio.get_running_loop()

        def heard(line: bytes) -> None:
            loop.call_soon_threadsafe(questions.put_nowait, line)

        threading.Thread(target=listen_to_parent, args=(heard,), daemon=True).start()
        try:
            load()
        except Exception as e:
            say(0, child_gone(str(e), again=False))
            os._exit(1)
        say(0, {"ready": True})
        under_way = set[asyncio.Task[None]]()
        while True:
            try:
                line = await asyncio.wait_for(questions.get(), idle_s)
            except TimeoutError:
                if not under_way:
                    os._exit(0)
                continue
            task = loop.create_task(respond(json.loads(line)))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    asyncio.run(serve())


def listen_to_parent(heard: Callable[[bytes], None]) -> None:
    """Pass each line of the parent to *heard*. When stdin ends, the parent is gone, and this process exits at once."""
    for line in sys.stdin.buffer:
        heard(line)
    os._exit(0)


async def complete_once(question: dict[str, Any]) -> dict[str, Any]:
    """Ask once through LiteLLM. Give up if the server is still sending its answer after the timeout."""
    import asyncio

    import litellm

    try:
        asking = litellm.acompletion(**completion_arguments(question))
        said = await asyncio.wait_for(asking, question["timeout_s"] + GRACE_S)
        choice = said.choices[0]
        text = choice.message.content or ""
        usage = getattr(said, "usage", None)
    except TimeoutError:
        return child_gone("its answer did not end", status=408)
    except Exception as e:
        return failure_value(e, question)
    try:
        usd = float(litellm.completion_cost(said))
    except Exception:
        usd = 0.0  # a model without a price
    return {
        "text": text,
        "tokens_in": getattr(usage, "prompt_tokens", 0) or 0,
        "tokens_out": getattr(usage, "completion_tokens", 0) or 0,
        "usd": usd,
        "cut": choice.finish_reason == "length",
    }


def completion_arguments(question: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with which to call `litellm.acompletion` for *question*."""
    import litellm

    model, schema = question["model"], question["schema"]
    # A lone surrogate, half of an emoji that someone cut, cannot be sent.
    system, user = (question[role].encode("utf-8", "replace").decode() for role in ("system", "user"))
    provider = litellm.get_llm_provider(model)[1]
    ours: dict[str, Any] = {}
    switch = question["json_schema"]
    if schema and (litellm.supports_response_schema(model) if switch == "auto" else switch):
        # Not strict: our schemas leave properties open.
        ours["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    elif schema:
        system = schema_in_words(system, schema)
    if not question["plain"] and question["temperature"] is not None:
        ours["temperature"] = question["temperature"]
    if question["api_base"] and provider in SELF_HOSTED:
        ours["api_base"] = question["api_base"]
        # The client requires a key, but a self-hosted server may have none.
        unset = "none" if provider == "openai" and "OPENAI_API_KEY" not in os.environ else None
        ours["api_key"] = question["api_key"] or unset
    elif question["api_key"] and not question["api_base"]:
        ours["api_key"] = question["api_key"]
    return {
        "model": model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "max_tokens": question["max_tokens"],
        "timeout": question["timeout_s"],
        "max_retries": 0,  # the parent decides on retries
        "num_retries": 0,
        "drop_params": True,  # leaves out parameters that the model does not take, as far as LiteLLM knows
        **ours,
    }


def schema_in_words(system: str, schema: dict[str, Any] | None) -> str:
    """Append *schema* as text to *system*, for a model that takes no schema."""
    if not schema:
        return system
    words = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"{system}\n\nReply with one JSON value and nothing else. It follows this JSON schema:\n{words}"


def failure_value(error: Exception, question: dict[str, Any]) -> dict[str, Any]:
    """Describe *error* for a person and for the retry loop, without any text of *question*."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return child_gone(f"its reply could not be read: {type(error).__name__}")
    message = " ".join(str(getattr(error, "message", error)).split())
    # "litellm.RateLimitError: RateLimitError: OpenAIException - slow down" → "slow down"; also drop a reply's text
    why = message.rpartition("Exception - ")[2].partition(", Received response")[0]
    why = re.sub(r"^(litellm\.)?(\w+Error: )+", "", why)
    if "api_key" in why and "credentials" in why.lower():
        status = 401  # LiteLLM reports a missing key as an internal error
    for secret in known_keys_of(question):
        why = why.replace(secret, "[key]")
    why = why[:200]
    if quotes_message(why, question["system"] + "\n" + question["user"]):
        why = "the server's message is left out because the message quotes the conversation"
    return child_gone(why, status, status in (408, 425, 429) or status >= 500, retry_after_s(error))


def known_keys_of(question: dict[str, Any]) -> list[str]:
    """Return all API keys that this process knows, to remove them from a server's error messages."""
    found = [value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET"))]
    return [secret for secret in [question["api_key"], *found] if len(secret) >= 4]


def quotes_message(message: str, asked: str) -> bool:
    """Whether *message* has REPEATED_CHARS characters in a row that are also in *asked*."""
    asked = " ".join(asked.split())
    return any(message[i : i + REPEATED_CHARS] in asked for i in range(len(message) - REPEATED_CHARS + 1))


def retry_after_s(error: Exception) -> float | None:
    """Return how many seconds the server asks us to wait (its header Retry-After); None if it gives no number."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    with contextlib.suppress(ValueError):
        return max(0.0, float(headers.get("retry-after") or ""))
    return None


if __name__ == "__main__":
    child_main(float(sys.argv[1]))
