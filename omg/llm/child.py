"""
The process that imports LiteLLM, seen from both ends of its pipe.

    Child.call(question) ── a JSON line ──▶ listen → complete → litellm ── a JSON line ──▶ an answer

An answer is `{text, tokens_in, tokens_out, usd, cut}` or `{why, status, again, wait_s}`. The import costs
some 4 s of CPU and 200 MB, so it happens here only, and not before there is a question. Whether to ask again
is for the caller to say. One rule: the child holds no state and imports nothing of ours, so that it starts
anywhere and killing it at any moment is right. (Long drops are read in such a process as well: worker/reading.py.)
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

IDLE_S = 60.0
GRACE_S = 1.0  # LiteLLM's own timeout comes first: a child that answers late is cheaper than a new one
REPEATED_CHARS = 24  # of what was asked, one after the other: no chance
START_S = 120.0  # for `import litellm` from a cold disk on a busy machine
# By path, and -P: nothing in the working folder, nor another package called omg, is imported.
MODEL_CHILD = (sys.executable, "-P", __file__)

# Servers that people run themselves: `[llm] api_base` is for these. Every other provider has its own address.
SELF_HOSTED = {
    "openai", "custom_openai", "openai_like", "hosted_vllm", "lm_studio", "llamafile", "litellm_proxy",
    "xinference", "docker_model_runner", "lemonade", "ollama", "ollama_chat",
}  # fmt: skip


# ---- the parent's end


class Child:
    """
    The process *command*, started when needed, gone after *idle_s* without a question, killed when it hangs.

    It dies with its parent, even in the middle of a call: its stdin ends then. Calls of several threads
    take turns.
    """

    def __init__(self, idle_s: float = IDLE_S, command: Sequence[str] = MODEL_CHILD) -> None:
        self._idle_s, self._command = idle_s, command
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()
        self._closed = False

    def call(self, question: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The answer to *question*; one of our own when the child dies, or is killed after *timeout_s*."""
        with self._turn:
            for _ in range(2):
                if self._process is None or self._process.poll() is not None:
                    hello = self._start()
                    if "ready" not in hello:
                        return hello
                answer, code = self._exchange(json.dumps(question), timeout_s + GRACE_S)
                if answer is not None:
                    return answer
                if code != 0:  # 0: it was about to leave, idle, when we spoke
                    break
        if self._closed:
            return child_gone("OMG is stopping", again=False)
        if code is None:
            return child_gone("it had to be killed", status=408)
        return child_gone(f"its process died, exit code {code}")

    def close(self) -> None:
        """End the process. A call that is under way in another thread returns at once."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        with self._turn:
            self._end_process()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> dict[str, Any]:
        """What the new process says first: `{"ready": true}`, or why it cannot be."""
        self._end_process()
        if self._closed:
            return child_gone("OMG is stopping", again=False)
        self._process = subprocess.Popen(
            [*self._command, str(self._idle_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # LiteLLM may print what it was asked
            env={
                **os.environ,
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches a price list when imported
                "LITELLM_MODE": "PRODUCTION",  # else it looks for a .env file
            },
            start_new_session=True,  # Ctrl-C is for the parent to understand
        )
        if self._closed:  # while we started it
            self._process.kill()
        hello, code = self._exchange(None, START_S)
        return hello or child_gone(f"its process did not start, exit code {code}") | {"started": False}

    def _exchange(self, line: str | None, timeout_s: float) -> tuple[dict[str, Any] | None, int | None]:
        """Say *line*; what came back, or the exit code of the child that died of it (None: we killed it)."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def kill() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout_s, kill)
        timer.start()
        try:
            if line is not None:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):
            answer = b""
        finally:
            timer.cancel()
        if answer.endswith(b"\n"):
            return json.loads(answer), 0
        process.wait()
        return None, None if late.is_set() else process.returncode

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):  # a line that could not be written any more
                    if pipe is not None:
                        pipe.close()
            self._process.wait()
            self._process = None


def child_gone(why: str, status: int = 0, again: bool = True, wait_s: float | None = None) -> dict[str, Any]:
    return {"why": why, "status": status, "again": again, "wait_s": wait_s}


# ---- the child's end


def child_main(idle_s: float) -> None:
    def load() -> None:
        try:
            import litellm
        except Exception as e:
            raise RuntimeError(
                f"LiteLLM cannot be imported: {e}; install it again: pip install litellm"
            ) from e
        litellm.suppress_debug_info = True
        litellm.telemetry = False

    serve_parent(idle_s, complete_once, load)


def serve_parent(
    idle_s: float, answer: Callable[[dict[str, Any]], dict[str, Any]], load: Callable[[], None] = lambda: None
) -> None:
    """Say that we are there once *load* is done; then *answer* each question, until none comes for *idle_s*."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what LiteLLM prints must not fall between our lines

    def say(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=listen_to_parent, args=(questions,), daemon=True).start()
    try:
        load()
    except Exception as e:
        say(child_gone(str(e), again=False))
        os._exit(1)
    say({"ready": True})
    while True:
        try:
            question = questions.get(timeout=idle_s)
        except queue.Empty:
            os._exit(0)
        say(answer(json.loads(question)))


def listen_to_parent(questions: queue.SimpleQueue[bytes]) -> None:
    """Pass on what the parent says; when it says no more it has gone, and so do we, whatever is under way."""
    for line in sys.stdin.buffer:
        questions.put(line)
    os._exit(0)


def complete_once(question: dict[str, Any]) -> dict[str, Any]:
    """Ask once, through LiteLLM."""
    import litellm

    try:
        said = litellm.completion(**completion_arguments(question))
        choice = said.choices[0]
        text = choice.message.content or ""
        usage = getattr(said, "usage", None)
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
    """What `litellm.completion` is called with."""
    import litellm

    model, schema = question["model"], question["schema"]
    # A lone surrogate, half of an emoji that someone cut, cannot be sent.
    system, user = (question[role].encode("utf-8", "replace").decode() for role in ("system", "user"))
    provider = litellm.get_llm_provider(model)[1]
    ours: dict[str, Any] = {}
    if schema and takes_schema(question):
        form = {"name": "reply", "schema": schema, "strict": is_strict(schema)}
        ours["response_format"] = {"type": "json_schema", "json_schema": form}
    elif schema:
        system = schema_in_words(system, schema)
    if not question["plain"] and question["temperature"] is not None:
        ours["temperature"] = question["temperature"]
    if question["api_base"] and provider in SELF_HOSTED:
        ours["api_base"] = question["api_base"]
        # The client insists on some key, which a server of one's own need not have.
        unset = "none" if provider == "openai" and "OPENAI_API_KEY" not in os.environ else None
        ours["api_key"] = question["api_key"] or unset
    elif question["api_key"] and not question["api_base"]:
        ours["api_key"] = question["api_key"]
    return {
        "model": model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "max_tokens": question["max_tokens"],
        "timeout": question["timeout_s"],
        "max_retries": 0,  # asking again is the parent's affair
        "num_retries": 0,
        "drop_params": True,  # what LiteLLM knows a model not to take
        **ours,
    }


def takes_schema(question: dict[str, Any]) -> bool:
    import litellm

    switch = question["json_schema"]
    return bool(litellm.supports_response_schema(question["model"])) if switch == "auto" else bool(switch)


def is_strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes *schema*: every object closed, and all of its keys required."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema:
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema["properties"]):
            return False
    return all(map(is_strict, schema.values()))


def schema_in_words(system: str, schema: dict[str, Any] | None) -> str:
    """*system* with *schema* put into words, for a model that takes no schema."""
    if not schema:
        return system
    words = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"{system}\n\nReply with one JSON value and nothing else. It follows this JSON schema:\n{words}"


def failure_value(error: Exception, question: dict[str, Any]) -> dict[str, Any]:
    """What of *error* a person and the retry loop need, and nothing of what was asked."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return child_gone(f"its reply could not be read: {type(error).__name__}")
    message = " ".join(str(getattr(error, "message", error)).split())
    # "litellm.RateLimitError: RateLimitError: OpenAIException - slow down" → "slow down"; and no reply's text
    why = message.rpartition("Exception - ")[2].partition(", Received response")[0]
    why = re.sub(r"^(litellm\.)?(\w+Error: )+", "", why)
    if "api_key" in why and "credentials" in why.lower():
        status = 401  # LiteLLM calls a key that is not there an internal error
    for secret in known_keys_of(question):
        why = why.replace(secret, "[key]")
    why = why[:200]
    if quotes_message(why, question["system"] + "\n" + question["user"]):
        why = "its message is left out, it quotes the conversation"
    return child_gone(why, status, status in (408, 425, 429) or status >= 500, retry_after_s(error))


def known_keys_of(question: dict[str, Any]) -> list[str]:
    """Every key this process knows: no server's complaint about one may carry it into a log."""
    found = [value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET"))]
    return [secret for secret in [question["api_key"], *found] if len(secret) >= 4]


def quotes_message(message: str, asked: str) -> bool:
    """Whether REPEATED_CHARS of *message* stand in *asked*."""
    asked = " ".join(asked.split())
    return any(message[i : i + REPEATED_CHARS] in asked for i in range(len(message) - REPEATED_CHARS + 1))


def retry_after_s(error: Exception) -> float | None:
    """Seconds that the server asks us to stay away: its Retry-After, a number or a date."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        with contextlib.suppress(ValueError, TypeError):
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        return None


if __name__ == "__main__":
    child_main(float(sys.argv[1]))
