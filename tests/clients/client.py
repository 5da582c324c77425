"""The real clients, driven headless: an empty home, a scripted model, no way out but loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from scripted_model import ScriptedModel

from omg.client import ask_daemon
from omg.hosts.hook import HOSTS, Host

REPOSITORY = Path(__file__).parents[2]
WAIT_S = 60
GIVEN = "What is remembered of"  # begins each part of what we give


@dataclass(frozen=True)
class Reply:
    session: str
    text: str
    took_s: float
    code: int


@dataclass
class Client:
    """One client in a home of its own; several may share `omg`, OMG's home."""

    cache: Path  # where npm put them
    root: Path
    omg: Path
    model: ScriptedModel
    name: str = ""
    python: Path = field(default_factory=lambda: Path(sys.executable))  # the one that has `omg`
    extra: dict[str, str] = field(default_factory=dict)
    hooks_are_processes: bool = True
    piped: bool = False  # its prompt is its stdin
    forks: bool = True
    own_breaks: bool = False  # its requests do not begin with the ones before, even without us
    needs_settings: bool = True  # it cannot run without
    settings_file: str = ""  # the person's settings, if not the file that our installation changes
    session_header: str = ""  # names the session in a request
    sub_agent: str = ""  # directives that start one, whose task holds CANARY-SUB
    tool_of_ours: str = ""  # how the model names a tool of `omg mcp`
    foreign_settings: str = '{\n  "env": {\n    "MINE": "1"\n  }\n}\n'
    foreign_mark: str = '"MINE"'

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "harbour"

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{self.cache}/node_modules/.bin:{self.python.parent}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TERM": "xterm",
            "OMG_HOME": str(self.omg),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KF_RULE_CACHE_DIR": os.environ["KF_RULE_CACHE_DIR"],  # or each home compiles the rules: 4 s
            **self.extra,
        }

    def prepare(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        (self.project / "a.txt").write_text("a file of the project\n")
        if self.needs_settings:
            self.settings.parent.mkdir(parents=True, exist_ok=True)
            self.settings.write_text(self.foreign_settings)

    @property
    def settings(self) -> Path:
        return self.home / self.declared.config / (self.settings_file or self.declared.settings)

    def command(self, text: str, session: str | None, fork: bool) -> list[str]:
        raise NotImplementedError

    def reply_of(self, out: str) -> tuple[str, str]:
        """Session and text of what it printed."""
        raise NotImplementedError

    def shell(self, line: str) -> str:
        """A directive for a call of its shell."""
        raise NotImplementedError

    def reads(self, file: str) -> str:
        """A directive by which the model reads *file* with a tool."""
        return self.shell(f"cat {file}")

    def ours(self, tool: str, **arguments: str) -> str:
        """A directive by which the model calls a tool of `omg mcp`."""
        return f"[[tool {self.tool_of_ours}{tool} {json.dumps(arguments)}]]"

    def compact(self, session: str) -> list[tuple[str, str]]:
        """Let the context be compacted; returns what was said for that."""
        raise NotImplementedError

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Turns meanwhile are all of one process, which is killed at the end; else each is one of its own."""
        yield

    def start(
        self, text: str, session: str | None = None, fork: bool = False, cwd: Path | None = None
    ) -> Any:
        with tempfile.TemporaryFile("w+") as typed:  # a client with a prompt still reads stdin to its end
            typed.write(text if self.piped else "")
            typed.seek(0)
            return subprocess.Popen(
                self.command(text, session, fork), cwd=cwd or self.project, env=self.env, text=True,
                stdin=typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip

    def turn(
        self, text: str, session: str | None = None, *, fork: bool = False, cwd: Path | None = None
    ) -> Reply:
        began = time.monotonic()
        process = self.start(text, session, fork, cwd)
        out, err = process.communicate(timeout=180)
        assert process.returncode == 0, (out[-2000:], err[-2000:])
        return Reply(*self.reply_of(out), time.monotonic() - began, process.returncode)

    def told(self, prompt: str, word: str, cwd: Path | None = None) -> None:
        """Ask *prompt* until the model is told *word* beside it: on a busy machine the daemon may be late."""
        for _ in range(12):
            self.turn(prompt, cwd=cwd)
            if any(word in str(r["flat"]) for r in self.conversations()[-1:]):
                return
        raise AssertionError(f"{word} was never given: {self.conversations()[-1]['flat'][-3:]}")

    def omg_command(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(
            [str(self.python), "-P", "-m", "omg.cli", *args], env=self.env, cwd=self.project,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *args: str) -> None:
        self.omg_command("install", self.name, "--yes", *args)

    # --- what OMG kept

    def settled(self) -> None:
        """Until no mark and no drop waits. The daemon reads a transcript a second after its mark."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            left = [p for p in (self.omg / "spool").rglob("[!.]*.json") if "bad" not in p.parts]
            if not left:
                time.sleep(0.3)  # it takes in what it has just written
                if not list((self.omg / "spool").glob("*.json")):
                    return
            time.sleep(0.1)
        raise AssertionError(f"still in the spool: {left}")

    def kept(self) -> list[tuple[str, str, str]]:
        """(graph, role, text) of each message of a person or an assistant that said something, oldest first."""
        found = []
        for graph in sorted((self.omg / "graphs").glob("[!.]*")):
            messages = []
            for file in (graph / "pending").glob("*.json"):
                messages += json.loads(file.read_text("utf-8"))["messages"]
            for file in (graph / "archive").glob("*.jsonl"):
                messages += [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            messages.sort(key=lambda m: m["timestamp"])
            key = json.loads((graph / "identity.json").read_text("utf-8"))["key"]
            found += [(key, m["role"], m["text"]) for m in messages if m["role"] != "tool" and m["text"]]
        return found

    def conversations(self) -> list[dict[str, Any]]:
        """The model's requests of conversations, without titles and the like."""
        return [r for r in self.model.requests() if len(r["flat"]) > 1 and not self.is_aside(r)]

    def is_aside(self, request: dict[str, Any]) -> bool:
        return False

    def asked(self, words: str) -> None:
        """Until the model was asked with *words* in the newest message."""
        until = time.monotonic() + WAIT_S
        while not any(words in text for r in self.conversations()[-2:] for _, text in r["flat"][-3:]):
            assert time.monotonic() < until
            time.sleep(0.1)

    def prefix_breaks(self) -> list[str]:
        """Requests that do not begin with all of the one before in their session, unless it was compacted since."""
        breaks, before = [], dict[str, list[tuple[str, str]]]()
        for request in self.conversations():
            if "MOCK-SUMMARY" in str(request["reply"].get("text")):
                continue  # the client's question for a summary
            # The client changes its own system prompt; what we give counts wherever it is.
            pairs = [(role, text.strip()) for role, text in request["flat"] if text]
            flat = [pair for pair in pairs if pair[0] != "system" or "omg-memory" in pair[1]]
            session = str(request["headers"].get(self.session_header))
            last, before[session] = before.get(session, []), flat
            old, new = (sum("MOCK-SUMMARY" in text for _, text in texts) for texts in (last, flat))
            if new > old:
                continue  # compacted since
            if self.own_breaks:  # the client changes its requests by itself; only what we gave is compared
                last, flat = ([pair for pair in texts if GIVEN in pair[1]] for texts in (last, flat))
            same = [a == b for a, b in zip(last, flat, strict=False)]
            shared = [*same, False].index(False)
            if shared < len(last):
                breaks.append(f"request {request['n']}: {shared} of {len(last)}: {last[shared][1][:200]!r}")
        return breaks

    def given(self) -> list[str]:
        """What we gave in the newest conversation, wherever it stands."""
        return [text for _, text in self.conversations()[-1]["flat"] if GIVEN in text]

    @property
    def declared(self) -> Host:
        return HOSTS[self.name]


@dataclass
class ClaudeCode(Client):
    name: str = "claude-code"
    needs_settings: bool = False
    session_header: str = "x-claude-code-session-id"
    tool_of_ours: str = "mcp__plugin_omg_omg__"
    sub_agent: str = (
        '[[tool Agent {"description":"d","prompt":"CANARY-SUB look","subagent_type":"general-purpose"}]]'
    )

    def __post_init__(self) -> None:
        self.extra = {
            "ANTHROPIC_BASE_URL": self.model.base,
            "ANTHROPIC_API_KEY": "sk-dummy-canary-key",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def command(self, text: str, session: str | None, fork: bool) -> list[str]:
        again = ["--resume", session] if session else []
        forked = ["--fork-session"] if fork else []
        allowed = ["--allowedTools", "Bash,Task,Agent,mcp__plugin_omg_omg"]
        return ["claude", "-p", text, "--output-format", "json", *allowed, *again, *forked]

    def reply_of(self, out: str) -> tuple[str, str]:
        said = json.loads(out)
        return said["session_id"], said["result"]

    def shell(self, line: str) -> str:
        return f'[[tool Bash {{"command":"{line}","description":"x"}}]]'

    def compact(self, session: str) -> list[tuple[str, str]]:
        self.turn("/compact", session)
        return []


@dataclass
class Codex(Client):
    name: str = "codex"
    session_header: str = "session-id"
    tool_of_ours: str = "mcp__omg/"
    sub_agent: str = '[[tool multi_agent_v1/spawn_agent {"message":"CANARY-SUB look"}]] [[tool exec_command {"cmd":"sleep 3"}]]'
    foreign_mark: str = "[analytics]"

    def __post_init__(self) -> None:
        self.extra = {"MOCK_KEY": "sk-dummy-canary-key"}
        self.foreign_settings = f"""\
# mine
model = "mock-1"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "{self.model.base}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"

[analytics]
enabled = false
"""

    def command(self, text: str, session: str | None, fork: bool) -> list[str]:
        again = ["fork" if fork else "resume", session] if session else []
        return ["codex", "exec", *again, "--json", "--skip-git-repo-check", *self.trusting, text]

    trusting = ("--dangerously-bypass-hook-trust",)  # a person reviews the hooks in the client's screen

    def reply_of(self, out: str) -> tuple[str, str]:
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        said = [e["item"]["text"] for e in lines if e["type"] == "item.completed" and "text" in e["item"]]
        return next(e["thread_id"] for e in lines if e["type"] == "thread.started"), said[-1]

    def shell(self, line: str) -> str:
        return f'[[tool exec_command {{"cmd":"{line}"}}]]'

    def compact(self, session: str) -> list[tuple[str, str]]:
        prompt = "Question full: [[usage 90000]] [[say that was long]]"
        self.trusting = (*self.trusting, "-c", "model_auto_compact_token_limit=50000")
        self.turn(prompt, session)
        return [("user", prompt), ("assistant", "that was long")]


@dataclass
class OpenCode(Client):
    name: str = "opencode"
    session_header: str = "x-session-affinity"
    tool_of_ours: str = "omg_"
    sub_agent: str = '[[tool task {"description":"d","prompt":"CANARY-SUB look","subagent_type":"general"}]]'
    hooks_are_processes: bool = False
    piped: bool = True
    settings_file: str = "opencode.json"
    foreign_mark: str = "mock-1"
    server: str = ""  # where one is that stays

    def __post_init__(self) -> None:
        model = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{self.model.base}/v1", "apiKey": "sk-dummy-canary-key"},
                 "models": {"mock-1": {"limit": {"context": 200000, "output": 8000}}}}  # fmt: skip
        config = {"$schema": "https://opencode.ai/config.json", "model": "mock/mock-1", "small_model": "mock/mock-1",
                  "provider": {"mock": model}, "autoupdate": False, "share": "disabled", "permission": "allow"}  # fmt: skip
        self.foreign_settings = json.dumps(config, indent=2)

    def prepare(self) -> None:
        # At each start it asks the registry for this, for over a minute if there is none.
        shutil.copytree(self.cache / "opencode-plugin", self.settings.parent, symlinks=True)
        super().prepare()

    def command(self, text: str, session: str | None, fork: bool) -> list[str]:
        again = ["-s", session] if session else []
        forked = ["--fork"] if fork else []
        return ["opencode", "run", "--format", "json", *again, *forked]

    def reply_of(self, out: str) -> tuple[str, str]:
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        said = [e["part"]["text"] for e in lines if e["type"] == "text"]
        return lines[0]["sessionID"], said[-1]

    def shell(self, line: str) -> str:
        return f'[[tool bash {{"command":"{line}","description":"x"}}]]'

    @contextmanager
    def staying(self) -> Iterator[None]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.server = f"http://127.0.0.1:{port}"
        process = subprocess.Popen(
            ["opencode", "serve", "--port", str(port)], cwd=self.project, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout and any("listening" in line for line in process.stdout)
            yield
        finally:
            self.server = ""
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        head = {"content-type": "application/json"}
        asked = Request(f"{self.server}/session/{path}", json.dumps(body).encode(), head)
        with build_opener(ProxyHandler({})).open(asked, timeout=180) as answer:
            return json.load(answer)

    def turn(
        self, text: str, session: str | None = None, *, fork: bool = False, cwd: Path | None = None
    ) -> Reply:
        if not self.server:
            return super().turn(text, session, fork=fork, cwd=cwd)
        answer = self.post(f"{session}/message", {"parts": [{"type": "text", "text": text}]})
        said = [part["text"] for part in answer["parts"] if part["type"] == "text"]
        return Reply(str(session), said[-1], 0.0, 0)

    def compact(self, session: str) -> list[tuple[str, str]]:
        self.post(f"{session}/summarize", {"providerID": "mock", "modelID": "mock-1"})
        return []

    def is_aside(self, request: dict[str, Any]) -> bool:
        return any(role == "system" and "title" in text[:400].lower() for role, text in request["flat"])


@dataclass
class Gemini(Client):
    name: str = "gemini"
    forks: bool = False
    own_breaks: bool = True
    settings_file: str = "settings.json"
    foreign_mark: str = "gemini-api-key"
    tool_of_ours: str = "mcp_omg_"
    sub_agent: str = '[[tool invoke_agent {"agent_name":"generalist","prompt":"CANARY-SUB look"}]]'

    def __post_init__(self) -> None:
        self.extra = {
            "GEMINI_API_KEY": "sk-dummy-canary-key",
            "GOOGLE_GEMINI_BASE_URL": self.model.base,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        security, general = {"auth": {"selectedType": self.foreign_mark}}, {"enableAutoUpdate": False}
        self.foreign_settings = json.dumps({"security": security, "general": general}, indent=2)

    def command(self, text: str, session: str | None, fork: bool) -> list[str]:
        again = ["-r", session] if session else []
        return ["gemini", "-p", text, "-o", "json", "--approval-mode", "yolo", *again]

    def reply_of(self, out: str) -> tuple[str, str]:
        said = json.loads(out[out.index("{") :])
        return said["session_id"], said["response"]

    def is_aside(self, request: dict[str, Any]) -> bool:
        return "streamGenerateContent" not in request["path"]  # which model to ask, and summaries

    def shell(self, line: str) -> str:
        return f'[[tool run_shell_command {{"command":"{line}"}}]]'

    def reads(self, file: str) -> str:
        return f'[[tool read_file {{"file_path":"{file}"}}]]'

    def compact(self, session: str) -> list[tuple[str, str]]:
        prompt = f"Question full: [[usage 900000]] {self.reads('a.txt')} [[say that was long]]"
        self.turn(prompt, session)
        return [("user", prompt), ("assistant", "that was long")]


CLIENTS: dict[str, type[Client]] = {
    "claude-code": ClaudeCode,
    "codex": Codex,
    "opencode": OpenCode,
    "gemini": Gemini,
}


# --- trouble


@contextmanager
def hooks_killed(event: str, home: Path) -> Iterator[Counter[str]]:
    """Kill each hook for *event* of *home* as soon as it is there; yields how many were."""
    killed: Counter[str] = Counter()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for place in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    line = (place / "cmdline").read_bytes().split(b"\0")
                    if b"hook" in line and event.encode() in line and str(home).encode() in line:
                        os.kill(int(place.name), signal.SIGKILL)
                        killed[event] += 1

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield killed
    finally:
        over.set()


def daemon_up(home: Path) -> dict[str, Any] | None:
    return ask_daemon(home, "/health", {}, timeout_s=5)
