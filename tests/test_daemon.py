"""The daemon as a process, over its socket: one for each home, quick to answer and quick to stop."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import OpenAIServer, Reply, Request
from planted import Scripted, graph_of, home_at, plant
from spooled import entry, hand_over

from omg.client import ask_daemon, connected
from omg.config import load_config
from omg.daemon import CONNECTIONS_AT_ONCE, RENDERED_AT_ONCE, STUCK_S, Daemon, Server
from omg.errors import OmgError
from omg.graph.state import flock
from omg.llm.asker import GatewayModel, failure_kind
from omg.llm.replies import ModelQuestion

OWNER = "agent:main:main"
SECRET = "zanzibar marmalade"
LENT = '[observation]\nbuffer_tokens = "turn"\n[embedding]\nmodel = "none"\n'  # by the gateway
OFFLINE = '[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n[embedding]\nmodel = "none"\n'


class Running:
    """`omg serve` in a process of its own."""

    def __init__(
        self, home: Path, config: str = OFFLINE, *, parent: bool = False, under: Sequence[str] = ()
    ) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "omg.toml").write_text(config)
        serve = under or (sys.executable, "-m", "omg.cli", "serve")
        args = [*serve, *(["--with-parent"] if parent else [])]
        self.process = subprocess.Popen(
            args,
            env={**os.environ, "OMG_HOME": str(home)},
            stdin=subprocess.PIPE if parent else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> Running:
        eventually(lambda: self.health() is not None, 20)
        return self

    def health(self) -> dict[str, Any] | None:
        try:
            return ask_daemon(self.home, "/health", {}, timeout_s=5)
        except OmgError:
            return None

    def ask(self, path: str, timeout_s: float = 30, **body: Any) -> dict[str, Any]:
        answer = ask_daemon(self.home, path, body, timeout_s)
        assert answer is not None
        return answer

    def inject(self, prompt: str, session: str = OWNER, **more: Any) -> dict[str, Any]:
        return self.ask("/inject", sessionKey=session, prompt=prompt, trigger="user", **more)

    def say(self, text: str, session: str = OWNER, id: str = "") -> None:
        drop(self.home, text, session, id)

    def remembered(self, text: str, session: str = OWNER) -> None:
        self.say(text, session)
        context = {"sessionKey": session}
        body = {"name": "omg_search", "params": {"query": text}, "context": context}
        eventually(lambda: self.ask("/tool", **body)["details"].get("hits"), 20)

    def log(self) -> str:
        return (self.home / "omg.log").read_text()

    def end(self) -> str:
        """Kill it if it lives; what it said on stderr."""
        if self.process.poll() is None:
            self.process.kill()
        return self.process.communicate(timeout=10)[1]


Start = Callable[..., Running]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    began: list[Running] = []

    def run(config: str = OFFLINE, **how: Any) -> Running:
        began.append(Running(home, config, **how))
        return began[-1]

    yield run
    for one in began:
        one.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Return one daemon, which knows a secret of the owner, for all tests that do not change it."""
    daemon = Running(tmp_path_factory.mktemp("d") / "omg").ready()
    daemon.remembered(f"I prefer {SECRET} at breakfast.")
    yield daemon
    daemon.end()


def drop(home: Path, text: str, session: str = OWNER, id: str = "") -> None:
    now = time.time_ns()
    hand_over(home, entry(id or f"m{now}", text, now // 1_000_000), session=session)


def eventually(truth: Callable[[], Any], within_s: float) -> float:
    """Return the seconds until *truth* holds; fail after *within_s*."""
    began = time.monotonic()
    while not truth():
        assert time.monotonic() - began < within_s, f"not within {within_s} s"
        time.sleep(0.02)
    return time.monotonic() - began


def test_a_prompt_is_answered_even_if_its_run_cannot_be_recorded(shared: Running) -> None:
    runs = shared.home / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    runs.write_text("no folder: as little can be written below it as on a full disk")
    assert SECRET in json.dumps(shared.inject("What do I prefer at breakfast?"))
    runs.unlink()


def test_an_overloaded_daemon_gives_a_prompt_the_previous_slice_of_its_session_if_still_valid(
    home: Path,
) -> None:
    (home / "omg.toml").write_text(OFFLINE)
    daemon = Daemon(load_config(home))
    memory = daemon.memory
    file = graph_of(memory).vault.root / "nodes" / "tea.md"
    note = (
        "---\nid: omg/preference/tea\ntype: preference\npriority: high\n---\nPrefers {} tea in the morning.\n"
    )

    def given() -> str:
        return daemon.inject({"sessionKey": OWNER, "prompt": "hello", "trigger": "user"})[
            "appendSystemContext"
        ]

    def busy() -> int:
        return (memory.folder / "events.jsonl").read_text().count("inject_busy")

    try:
        file.write_text(note.format("green"))
        memory.refresh(graph_of(memory))
        assert "green tea" in given()
        with contextlib.ExitStack() as others:
            for _ in range(RENDERED_AT_ONCE):
                assert others.enter_context(daemon.turn_to_render())
            assert ("green tea" in given(), busy()) == (True, 1)
            file.write_text(note.format("black"))
            memory.refresh(graph_of(memory))
            assert ("black tea" in given(), busy()) == (True, 1)
            time.sleep(STUCK_S)
            assert ("black tea" in given(), busy()) == (True, 1)  # those that hang hold nobody up
    finally:
        memory.close()


def test_only_the_owner_can_use_the_socket(shared: Running) -> None:
    assert stat.S_IMODE((shared.home / "omg.sock").stat().st_mode) == 0o600
    assert stat.S_IMODE(shared.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((shared.home / "omg.log").stat().st_mode) == 0o600
    assert not tcp_ports(shared.process.pid)


def tcp_ports(pid: int) -> set[str]:
    """Return the inodes of the TCP sockets of a process."""
    fds = Path(f"/proc/{pid}/fd")
    mine = {name[8:-1] for fd in fds.iterdir() if (name := str(fd.readlink())).startswith("socket:[")}
    tables = [Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    return mine & {line.split()[9] for table in tables for line in table}


def test_the_second_of_two_daemons_says_that_one_is_already_running(start: Start) -> None:
    both = [start(), start()]
    eventually(lambda: any(d.process.poll() is not None for d in both), 20)
    (gone,) = [d for d in both if d.process.poll() is not None]
    (up,) = [d for d in both if d is not gone]
    said = gone.end()
    assert gone.process.returncode == 0
    assert said.count("\n") == 1
    assert "a daemon already runs" in said
    assert up.ready().ask("/health")["pid"] == up.process.pid


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "/stop", "stdin"])
def test_the_daemon_stops_when_asked_and_leaves_no_socket(start: Start, home: Path, how: str) -> None:
    daemon = start(parent=how == "stdin").ready()
    if how == "/stop":
        daemon.ask("/stop")
    elif how == "stdin":
        assert daemon.process.stdin is not None
        daemon.process.stdin.close()
        daemon.process.stdin = None
    else:
        daemon.process.send_signal(getattr(signal, how))
    assert daemon.process.wait(10) == 0
    assert not (home / "omg.sock").exists()


def test_a_model_that_hangs_delays_no_prompt(start: Start, openai_server: OpenAIServer) -> None:
    openai_server.always(lambda request: Reply("", delay_s=20))
    config = OFFLINE.replace('"offline"', '"openai/hangs"')
    config += f'[llm]\napi_base = "{openai_server.base}"\napi_key = "k"\nattempts = 1\n'
    daemon = start(config).ready()
    daemon.say("I prefer short checklists.")
    eventually(lambda: openai_server.history, 30)
    took = []
    for _ in range(20):
        began = time.monotonic()
        daemon.inject("checklists?")
        took.append(time.monotonic() - began)
    assert sorted(took)[10] < 0.1
    began = time.monotonic()
    daemon.ask("/stop")
    assert daemon.process.wait(10) == 0
    assert time.monotonic() - began < 5


def test_a_vault_locked_by_another_process_blocks_no_reader(start: Start, home: Path) -> None:
    first = start().ready()
    first.remembered("I prefer short checklists.")
    first.ask("/stop")
    first.process.wait(10)
    (graph,) = (home / "graphs").iterdir()
    with flock(graph / "lock", "the test"):
        daemon = start().ready()  # it finds the vault locked from its first moment on
        began = time.monotonic()
        given = daemon.inject("checklists?")
        assert time.monotonic() - began < 5  # the vault is waited for 30 s; what is left is a cold start
        assert "short checklists" in json.dumps(given)
        other = "agent:main:telegram:direct:5"
        daemon.remembered("I prefer long walks.", other)


def test_a_persons_edit_is_found_within_a_second(shared: Running) -> None:
    who = "agent:main:telegram:direct:77"
    shared.remembered("I prefer short checklists.", who)
    (note,) = shared.home.glob("graphs/*direct-77*/vault/nodes/preference/*.md")

    def hits(word: str) -> Any:
        body = {"name": "omg_search", "params": {"query": word}, "context": {"sessionKey": who}}
        return shared.ask("/tool", **body)["details"].get("hits")

    took = []
    for word in ("xylophone", "glockenspiel", "vibraphone"):
        note.write_text(note.read_text() + f"\nAlso the {word}.\n")
        took.append(eventually(lambda word=word: hits(word), 10))
    assert sorted(took)[1] < 1
    note.unlink()
    eventually(lambda: not hits("vibraphone"), 10)


def test_the_search_command_uses_the_vectors_of_the_daemon(start: Start) -> None:
    daemon = start(OFFLINE.replace('"none"', '"static"')).ready()
    daemon.remembered("I prefer short checklists.")
    command = [sys.executable, "-m", "omg.cli", "search", "brief enumerations", "--json"]

    def found() -> Any:
        return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)

    eventually(found, 20)
    assert "short checklists" in found()[0]["description"]  # no word is shared
    daemon.ask("/stop")
    daemon.process.wait(10)
    assert found() == []


def test_the_log_holds_nothing_that_was_said(shared: Running) -> None:
    home = shared.home
    (home / "spool" / "000000000000001-x.json").write_text(f'{{"v": 1, "sessionKey": "{SECRET}"')
    (home / "spool" / "000000000000002-x.json").write_text(json.dumps({"v": SECRET, "entries": SECRET}))
    eventually(lambda: len(list((home / "spool" / "bad").glob("*.json"))) == 2, 10)
    for path in ("/tool", "/inject", "/command", "/corpus"):
        for body in (
            {"params": SECRET},
            {"context": [SECRET]},
            {"sessionKey": {SECRET: 1}, "trigger": "user"},
        ):
            try:
                ask_daemon(home, path, body)
            except OmgError as e:
                assert SECRET not in str(e)
    assert SECRET not in shared.log()
    assert SECRET not in (home / "events.jsonl").read_text()


def test_a_malformed_request_is_refused_and_the_next_one_answered(shared: Running) -> None:
    for path, data, status in [
        ("/nowhere", b"{}", 404),
        ("/inject", b"[1]", 400),
        ("/inject", b"{", 400),
        ("/inject", b"[" * 100_000, 400),
        ("/inject", b"\xff\xfe", 400),
    ]:
        connection = connected(shared.home / "omg.sock", 5)
        connection.request("POST", path, data)
        assert connection.getresponse().status == status, data[:20]
        connection.close()
    assert shared.health()


def test_the_gateways_model_is_asked_over_the_socket(start: Start) -> None:
    daemon = start(LENT, parent=True).ready()
    daemon.say("I prefer short checklists.")
    asked = daemon.ask("/llm/next", timeout_s=40)
    question = asked["question"]
    assert "short checklists" in question["messages"][0]["content"]
    assert (question["purpose"], question["agentId"]) == ("omg.observe", "main")
    failure = f"400: the prompt '{SECRET}' was refused"
    daemon.ask("/llm/done", id=asked["id"], error=failure, code="LLM_BAD")
    eventually(lambda: "LLM_BAD" in json.dumps(daemon.ask("/status")), 10)
    assert SECRET not in json.dumps(daemon.ask("/status")) + daemon.log()


def test_the_gateways_model_gets_a_token_limit_and_a_reply_at_the_limit_is_marked_cut() -> None:
    model, replies = GatewayModel(20, 4_000), []
    question = ModelQuestion("s", "u", None, "observe")
    for reason in ("length", "stop", None):
        asking = threading.Thread(target=lambda: replies.append(model(question)))
        asking.start()
        asked = model.next({})
        assert asked["question"]["maxTokens"] == 4_000
        model.done({"id": asked["id"], "text": "{", "stopReason": reason})
        asking.join(10)
    assert [reply.cut for reply in replies] == [True, False, False]


def test_a_wait_for_the_gateways_model_ends_when_the_daemon_stops(start: Start) -> None:
    daemon = start(LENT, parent=True).ready()
    daemon.say("I prefer short checklists.")
    assert daemon.ask("/llm/next", timeout_s=40)["id"]  # and is never answered
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(daemon.ask, "/llm/next")
        began = time.monotonic()
        daemon.process.terminate()
        assert daemon.process.wait(10) == 0
        with contextlib.suppress(OmgError):
            polling.result(5)
    assert time.monotonic() - began < 5


def test_a_question_to_the_gateway_whose_poll_ended_is_given_to_the_next_poll(home: Path) -> None:
    model = GatewayModel(20, 4_000)
    with Server(
        home, {"/llm/next": model.next, "/llm/done": model.done}, {"/llm/next": model.again}
    ) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        gone = connected(home / "omg.sock", 5)
        gone.request("POST", "/llm/next", b"{}")
        eventually(lambda: model.polled, 5)
        gone.close()  # the plugin's gateway was killed, or reloaded
        replies: list[str] = []
        asking = threading.Thread(
            target=lambda: replies.append(model(ModelQuestion("s", "u", None, "observe")).text)
        )
        asking.start()
        asked = ask_daemon(home, "/llm/next", {}, timeout_s=10)
        assert asked is not None
        ask_daemon(home, "/llm/done", {"id": asked["id"], "text": "noted"})
        asking.join(10)
        assert replies == ["noted"]
        server.shutdown()


def test_a_reply_that_comes_too_late_is_in_the_ledger(start: Start) -> None:
    daemon = start(f"{LENT}[llm]\ntimeout_s = 0.5\n", parent=True).ready()
    daemon.say("I prefer short checklists.")
    asked = daemon.ask("/llm/next", timeout_s=40)
    eventually(lambda: "no answer within" in json.dumps(daemon.ask("/status")), 20)
    assert daemon.ask("/status")["today"]["tokens"] == 0
    late = {"id": asked["id"], "text": '{"edits": []}', "usage": {"input": 700, "output": 30}, "model": "a/b"}
    daemon.ask("/llm/done", **late)
    daemon.ask("/llm/done", **late)
    today = daemon.ask("/status")["today"]
    assert (today["calls"], today["tokens"]) == (1, 730)


# A system whose watches are used up says so where one is asked for.
NO_WATCH = """
import errno, sys
from watchdog.observers import inotify_c as c
def refused(*_):
    raise OSError(errno.EMFILE, "inotify instance limit reached")
for name in ("Inotify", "InotifyFD"):
    if hasattr(c, name):
        getattr(c, name).__init__ = refused
sys.argv = ["omg", "serve"]
from omg.cli import main
main()
"""


def test_a_daemon_without_file_watches_scans_for_changes(start: Start, home: Path) -> None:
    daemon = start(under=(sys.executable, "-c", NO_WATCH)).ready()
    eventually(lambda: "is only scanned every" in daemon.log(), 10)
    drop(home, "I prefer short checklists.")  # and nobody wakes it
    body = {"name": "omg_search", "params": {"query": "checklists"}, "context": {"sessionKey": OWNER}}
    eventually(lambda: daemon.ask("/tool", **body)["details"].get("hits"), 30)


def test_with_256_descriptors_the_owner_is_served_beside_many_others(start: Start, home: Path) -> None:
    daemon = start(under=("sh", "-c", f"ulimit -n 256; exec {sys.executable} -m omg.cli serve")).ready()
    daemon.remembered("I prefer short checklists.")
    for n in range(70):
        drop(home, "I prefer tea.", f"agent:main:telegram:direct:{n}")
    eventually(lambda: not list((home / "spool").glob("*.json")), 60)
    eventually(lambda: not list((home / "graphs").glob("*/pending/*.json")), 60)
    for n in range(0, 70, 3):
        daemon.inject("tea?", f"agent:main:telegram:direct:{n}")
    assert "short checklists" in json.dumps(daemon.inject("How do I like my checklists?"))
    assert sum(1 for _ in Path(f"/proc/{daemon.process.pid}/fd").iterdir()) < 150


@given(st.text(max_size=200), st.text(max_size=40))
def test_an_error_of_the_gateway_is_reported_in_omgs_own_words(said: str, code: str) -> None:
    told = failure_kind({"error": f"{said} {SECRET}", "code": code})
    assert SECRET not in told
    assert told


def test_an_idle_daemon_uses_little_memory(start: Start) -> None:
    """Measured with the static embedder, after the daemon has made vectors, observed by rules and answered a prompt."""
    daemon = start(OFFLINE.replace('"none"', '"static"')).ready()
    daemon.remembered("I prefer short checklists.")
    daemon.inject("How do I like my checklists?")
    time.sleep(0.5)
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    rss_mb = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024
    print(f"RSS {rss_mb:.0f} MB")
    assert rss_mb <= 280  # 38 of them the formats of secrets


def test_enough_changes_start_one_reflection_in_the_background(
    start: Start, home: Path, openai_server: OpenAIServer
) -> None:
    opened = home_at(home)
    graph = graph_of(opened)
    plant(graph, pairs=2, targets=0, episodes=0)
    opened.refresh(graph)
    graph.update(lambda state: setattr(state, "changed_tokens", 600_000))
    opened.close()
    thought = threading.Event()

    def slowly(request: Request) -> object:
        thought.wait(60)
        return Scripted().answer(request.user)

    openai_server.always(slowly)
    config = (
        f'{OFFLINE}[reflection]\nmodel = "openai/scripted"\nobservation_tokens = 1_000_000\nbuffer_activation = 0.5\n'
        f'[llm]\napi_base = "{openai_server.base}"\napi_key = "sk-test"\n'
    )
    daemon = start(config).ready()
    eventually(lambda: openai_server.history, 60)
    for session in (OWNER, "agent:main:telegram:direct:7"):  # its own graph's turns and another's
        daemon.remembered(f"I prefer short checklists in {session.rpartition(':')[2]}.", session)
    assert not thought.is_set() and len(openai_server.history) == 1
    thought.set()

    def nights(event: str) -> list[dict[str, Any]]:
        lines = (home / "events.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["event"] == event]

    eventually(lambda: nights("reflection_end"), 30)
    daemon.remembered("I prefer green ink.")  # a turn later
    assert len(nights("reflection_start")) == len(nights("reflection_end")) == 1
    assert nights("reflection_end")[0]["superseded"] == 2 and not nights("reflection_failed")


def test_each_of_500_simultaneous_connections_is_answered_or_refused(
    home: Path,
) -> None:
    inside, most = [0], [0]
    guard, go = threading.Lock(), threading.Event()

    def slow(_: Any) -> dict[str, Any]:
        with guard:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        go.wait(30)
        with guard:
            inside[0] -= 1
        return {}

    with (
        Server(home, {"/slow": slow, "/quick": lambda _: {"ok": True}}) as server,
        contextlib.ExitStack() as opened,  # closed whatever happens: a test that fails here fails no other
    ):
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        lines = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(500)]
        ends: list[int] = []
        for line in lines:
            line.settimeout(20)
            while True:
                try:
                    line.connect(str(home / "omg.sock"))
                    break
                except BlockingIOError:  # as many wait to be let in as may
                    time.sleep(0.005)
            with contextlib.suppress(BrokenPipeError):  # refused already
                line.sendall(
                    b"POST /slow HTTP/1.1\r\nhost: omg\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"
                )
        eventually(lambda: inside[0] == CONNECTIONS_AT_ONCE, 20)
        with pytest.raises(OmgError, match="busy: 128 connections are open already; ask again"):
            ask_daemon(home, "/quick", {}, timeout_s=10)
        go.set()
        for line in lines:
            with contextlib.suppress(ConnectionResetError):
                ends.append(int((line.recv(4096) or b"HTTP/1.1 503").split()[1]))
            line.close()
        assert most[0] == CONNECTIONS_AT_ONCE == ends.count(200)
        assert set(ends) == {200, 503}
        eventually(lambda: inside[0] == 0, 10)
        eventually(lambda: answered(home), 10)
        server.shutdown()


def answered(home: Path) -> bool:
    try:
        return ask_daemon(home, "/quick", {}, timeout_s=10) == {"ok": True}
    except OmgError:
        return False
