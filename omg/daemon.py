"""
The daemon: its server, routes, threads, lock, signals and log.

    POST /inject      a session and its prompt     -> the result of the gateway's hook before_prompt_build
    POST /notice      the session of a reply       -> a line below the reply: what was noted (tools/today.py)
    POST /tool /command /corpus                    -> the answers of the agent's tools and commands (tools/tools.py)
    POST /host        a client's session or prompt -> the slice for the client (hosts/serve.py)
    POST /mcp         a tool of `omg mcp`          -> the tool's answer (hosts/serve.py)
    POST /context/assemble                         what leaves a long context, and the text in its place (context.py)
    POST /page        a view and its parameters    -> the owner's page, for the Control UI (ui/pages.py)
    POST /llm/next /llm/done                       the plugin lends OMG the agent's own model (llm/asker.py)
    POST /status /search /work /rebuild /reflect /stop /health

The daemon speaks HTTP with JSON on a unix socket. Only the owner can enter the socket's folder, so no other authentication
is needed. Every request gets an answer, and a bad request does not disturb other clients.

Each request has its own thread. Three more threads work in the background: `_keep` takes in new turns and people's
edits, `_observe` starts the threads that observe (worker/worker.py), and `_reflect` reflects. No request for a prompt's
memory waits for a lock that is held during a model call, or while another process writes to a vault. Only the child
process (llm/child.py) imports model libraries.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import signal
import socketserver
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any

from watchdog import events
from watchdog.observers import Observer as Watch
from watchdog.observers.api import ObservedWatch

from .client import SOCKET, socket_of
from .config import Config, code_digest
from .context import Cut, cut_context
from .errors import Locked, NotFound, OmgError, error_text
from .graph.graph import Graph, session_mark
from .graph.state import flock, parsed_object
from .hosts.serve import HostAnswers, McpAnswers
from .identity import Identity, is_remembered
from .inject.decide import hook_result, result_given_before
from .journal import has_open_receipt
from .llm.asker import GatewayModel
from .llm.replies import ModelQuestion, ModelReply, with_token_counts
from .memory import Memory
from .secrets import redact
from .text.tokens import count_tokens
from .tools.removing import Codes
from .tools.today import notice_text
from .tools.tools import call_tool, corpus_answer, graph_of, search_answer, slash_command
from .worker.intake import DropReader
from .worker.nights import background_reflection, rebuild_each, reflect_answer
from .worker.registry import GRAPHS_KEPT, PATIENCE_S, room_for_graphs
from .worker.schedule import note_asked, note_urgent
from .worker.status import home_status
from .worker.worker import observe_pending

log = logging.getLogger(__name__)

Answer = Callable[[dict[str, Any]], Mapping[str, Any]]
Lost = Callable[[Mapping[str, Any]], None]
# The longest body is a conversation of months, sent once after each start of the gateway (hooks/context/index.js).
BODY_BYTES = 32_000_000

# The gateway uses few connections; each costs a thread and its memory.
CONNECTIONS_AT_ONCE = 128
SILENT_S = 60  # a client that sends nothing for this long is disconnected; our clients ask at once
BUSY = json.dumps({"error": f"busy: {CONNECTIONS_AT_ONCE} connections are open already; ask again"}).encode()

REFUSAL = (
    b"HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
    % (len(BUSY), BUSY)
)


class Server(socketserver.ThreadingUnixStreamServer):
    """
    Answers each request in a thread of its own. *answers*: path → the function that answers. *lost*: path → the function to
    call with an answer that did not reach its client.
    """

    daemon_threads = True
    request_queue_size = 512  # waiting connections; the system drops any further one without an answer

    def __init__(
        self, home: Path, answers: Mapping[str, Answer], lost: Mapping[str, Lost] = MappingProxyType({})
    ) -> None:
        socket = socket_of(home)
        # An existing socket was left by a crash: this process holds the home's lock, so nobody listens on it.
        socket.unlink(missing_ok=True)
        self.answers, self.lost = answers, lost
        self._room = threading.BoundedSemaphore(CONNECTIONS_AT_ONCE)
        mask = os.umask(0o177)
        try:
            super().__init__(str(socket), Handler)
        finally:
            os.umask(mask)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the connection in a thread. If there are too many connections, refuse this one at once."""
        if self._room.acquire(blocking=False):
            return super().process_request(request, client_address)
        try:
            request.setblocking(False)
            request.send(REFUSAL)
        except OSError as e:
            log.debug("a client went away: %s", type(e).__name__)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a client went away: %s", type(sys.exc_info()[1]).__name__)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = SILENT_S

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("content-length") or 0)
        except ValueError:
            length = BODY_BYTES + 1
        if not 0 <= length <= BODY_BYTES:
            self.close_connection = True
            return self.reply(413, {"error": f"the body is larger than {BODY_BYTES} bytes"})
        sent = self.rfile.read(length)
        answer = self.server.answers.get(self.path)
        if answer is None:
            return self.reply(404, {"error": f"no such path: {self.path[:100]}"})
        body = parsed_object(sent or b"{}")
        if body is None:
            return self.reply(400, {"error": "the body is not a JSON object"})
        try:
            value = answer(body)
        except OmgError as e:
            return self.reply(422, {"error": str(e)})
        except Exception as e:
            log.exception("%s failed", self.path)
            return self.reply(500, {"error": f"{type(e).__name__} in OMG's daemon; see omg.log"})
        try:
            self.reply(200, value)
        except OSError:
            if lost := self.server.lost.get(self.path):
                lost(value)
            raise

    do_GET = do_POST

    def reply(self, status: int, value: Mapping[str, Any]) -> None:
        """Send head and body in one write. A second write would wait until the client acknowledges the first."""
        data = json.dumps(value).encode("utf-8", "replace")
        self.send_response_only(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if self.close_connection:
            self.send_header("connection", "close")
        self._headers_buffer.append(b"\r\n" + data)  # type: ignore[attr-defined]
        self.flush_headers()

    def address_string(self) -> str:
        return "gateway"  # a unix peer has no address, and the base class would index into it

    def log_message(self, format: str, *args: Any) -> None:
        pass


# --- Watches the files below a folder, if the system reports their events.


# Without the events of reading: with them, watchdog took 16 % of the interpreter's time during an import, not 7 %.
CHANGES = [
    *(events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent, events.FileDeletedEvent),
    *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent),
]


class VaultWatcher(events.FileSystemEventHandler):  # type: ignore[misc]  # watchdog has no types
    """Calls *touched* with the path of every event in CHANGES. An atomic replace arrives only as *moved*."""

    def __init__(self, touched: Callable[[Path], None]) -> None:
        self.touched = touched

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            if path:
                self.touched(Path(os.fsdecode(path)))


TICK_S = 5.0  # how often the threads look for work that has become due

# how often every vault is scanned for changes without an event (sync services, network drives)
RESCAN_S = 60.0
BLOCKED_S = 20.0  # longest wait of a turn for observation ([context] block_after), which takes 5 to 15 s
BLOCKED_STEP_S = 0.05
IN_VAIN_S = 300.0  # after a wait without result, turns of the graph do not wait for this long
RENDERED_AT_ONCE = 4  # prompts; with more of them each would take longer, because one core renders all
TURN_S = 0.1  # how long a prompt waits for its turn to be rendered: the plugin waits 150 ms in all
STUCK_S = 1.0  # a prompt that takes longer waits for a file; it gives up its place of RENDERED_AT_ONCE
JOIN_S = 10.0  # how long to wait for threads at the end; the gateway's plugin kills the daemon after 5 s
M_ARENA_MAX = -8  # malloc.h
VAULTS_PER_TICK = 50  # graphs without a watch that are scanned in one tick; more take several ticks
VECTORS_AT_ONCE = 32  # an edit waits while these are made


class Daemon:
    """Serves one home until asked to stop. *with_parent*: the gateway started the daemon, and lends its agents' models."""

    def __init__(self, config: Config, *, with_parent: bool = False) -> None:
        self.config, self.with_parent, self.code = config, with_parent, code_digest()
        self.model = GatewayModel(config.llm.timeout_s, config.llm.max_output_tokens, late=self.came_late)
        self.codes = Codes()
        self.memory = Memory(config, gateway=self.model if with_parent else None)
        self.memory.intake.reader = DropReader(apart=True)
        self.hosts = HostAnswers(self.memory)
        self.memory.registry.room = room_for_graphs()
        self.stopping, self.awake, self.touched = threading.Event(), threading.Event(), threading.Event()
        self.rested, self._idle = threading.Event(), True
        self._dirty: dict[str, set[str]] = {}
        self._followed: dict[str, ObservedWatch | None] = {}  # None: the folder cannot be watched
        self._rescanned = 0.0
        self._unlooked: deque[Identity] = deque()  # graphs whose vaults are still to be scanned
        self._warned: dict[
            tuple[str, str], str
        ] = {}  # (memory, aim) → why it failed: each reason is logged once
        self._watch: Any = None  # watchdog's observer, where the system lets us have one
        self._guard = threading.Lock()
        self._rendering, self._turn = dict[object, float](), threading.Condition()  # since when, monotonic
        self._assembling: dict[str, threading.Lock] = {}  # one for each graph: a stuck graph delays no other
        self._in_vain_until: dict[str, float] = {}  # graph → until when no turn waits, by the monotonic clock
        self._began = time.time()
        self._noticed: dict[str, float] = {}  # identity → when its last reply was sent

    def run(self) -> None:
        lost: dict[str, Lost] = {"/llm/next": self.model.again, "/host": self.hosts.lost}
        with Server(self.config.home, self.answers(), lost) as server:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
            self._watched(VaultWatcher(self._spooled), self.config.home / "spool", TICK_S)
            # Daemon threads: when the gateway stops, it does not wait for one that holds a lock or computes.
            turns = {self._keep: self.touched, self._observe: self.awake, self._reflect: self.rested}
            threads = [
                threading.Thread(target=self._repeat, args=turn, name=turn[0].__name__, daemon=True)
                for turn in turns.items()
            ]
            for thread in (*threads, threading.Thread(target=self._warm, daemon=True)):
                thread.start()
            log.info("up, pid %d", os.getpid())
            # Python handles signals in the main thread, but a signal that another thread receives does not wake it.
            while not self.stopping.wait(1):
                pass
            server.shutdown()
            (self.config.home / SOCKET).unlink(missing_ok=True)
            # Do not wait for a model call; its turns stay pending.
            self.model.close()
            self.memory.worker.stop()
            self.memory.intake.reader.close()
            for awake in turns.values():
                awake.set()
            until = time.monotonic() + JOIN_S
            for thread in threads:
                thread.join(max(0.0, until - time.monotonic()))
            if self._watch is not None:
                self._watch.stop()
            ended = self.memory.worker.close(max(0.0, until - time.monotonic()))
            if ended and not any(thread.is_alive() for thread in threads):
                self.memory.close()
            log.info("down")

    def _warm(self) -> None:
        """Load in advance what the first prompt needs, because the gateway waits only 150 ms."""
        count_tokens("warm")
        redact("warm")  # 0.4 s; 4 s where the scanner's rules are not cached yet
        return_freed_memory()

    def answers(self) -> dict[str, Answer]:
        return {
            "/health": self.health,
            **{path: partial(answer, self.memory) for path, answer in shared_answers(self.codes).items()},
            "/inject": self.inject,
            "/notice": self.notice,
            "/host": self.hosts.answer,
            "/mcp": McpAnswers(self.memory).answer,
            "/context/assemble": self.assemble,
            "/llm/next": self.lend,
            "/llm/done": self.model.done,
            "/status": lambda _: {**home_status(self.memory.worker), "daemon": self.health({})},
            "/work": lambda body: observe_pending(self.memory.worker, body),
            "/rebuild": partial(rebuild_each, self.memory.worker),
            "/reflect": lambda body: reflect_answer(self.memory.worker, body),
            "/page": self.page,
            "/stop": self.stop,
        }

    def health(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """
        Report that the daemon is up, and which models observe.

        - `lent`: the name of the agent's own model, which the gateway's plugin lends
        - `trouble`: the latest error of this model
        - `polled_s`: seconds since the plugin last asked for a question to this model; null if never
        """
        polled = self.model.polled
        return {
            "ok": True,
            "pid": os.getpid(),
            "home": str(self.config.home),
            "code": self.code,
            "plugin": self.with_parent,
            "polled_s": None if polled is None else round(time.monotonic() - polled, 1),
            "observer": self.memory.worker.models(),
            "effort": self.config.observation.effort,
            "lent": self.model.answered,
            "trouble": self.model.trouble,
        }

    def inject(self, body: dict[str, Any]) -> Mapping[str, Any]:
        """
        Return the hook's result for this prompt; {} if the session is not served or has no memory yet.

        If too many prompts come at once, return the `system` slice of the session's previous prompt, without notes for
        this prompt.
        """
        # A heartbeat with nothing to do leaves no transcript, so nothing would show that its run is over.
        if (session := str(body.get("sessionKey") or "")) and body.get("trigger") != "heartbeat":
            with contextlib.suppress(OSError):
                self.memory.intake.runs.began(session, self.memory.registry.now_ms())
        with self.turn_to_render() as has_turn:
            if has_turn or not (before := self.given_before(body)):
                return inject_answer(self.memory, body)
        return before

    def notice(self, body: Mapping[str, Any]) -> dict[str, str]:
        """
        Return the line to put below a reply; {} if there is no line.

        The line names the person's notes that are new or changed since the previous reply.
        """
        graph = graph_served(self.memory, body) if self.config.notices.replies else None
        if graph is None or graph.identity.scope != "dm":
            return {}
        until = time.time()
        since = self._noticed.get(graph.identity.key, self._began)
        self._noticed[graph.identity.key] = until
        text = notice_text(graph, since, until)
        return {"text": text} if text else {}

    def given_before(self, body: dict[str, Any]) -> dict[str, str]:
        """Return the `system` slice that the session was given last, and report an event; {} if there is no slice."""
        graph, session = graph_served(self.memory, body), str(body.get("sessionKey") or "")
        if graph is None or not (result := result_given_before(graph, session, self.config)):
            return {}
        waited_ms = round(TURN_S * 1000)
        self.memory.registry.tell(
            "inject_busy", graph=graph.identity.key, session=session, waited_ms=waited_ms
        )
        return result

    @contextlib.contextmanager
    def turn_to_render(self) -> Iterator[bool]:
        """Wait up to TURN_S for one of RENDERED_AT_ONCE places, and hold the place during the block. Yields False if no
        place was free."""

        def is_free() -> bool:
            now = time.monotonic()
            return sum(now - since < STUCK_S for since in self._rendering.values()) < RENDERED_AT_ONCE

        mine = object()
        with self._turn:
            if has_turn := self._turn.wait_for(is_free, TURN_S):
                self._rendering[mine] = time.monotonic()
        try:
            yield has_turn
        finally:
            with self._turn:
                self._rendering.pop(mine, None)
                self._turn.notify()

    def assemble(self, body: dict[str, Any]) -> Mapping[str, Any]:
        """
        Return the messages that leave the context, and the text that replaces them; {} if none leave.

        The plugin `omg-context` sends the request. A turn can leave only after it is observed. If the gateway should
        wait for an observation, three steps follow:
        - The answer holds `wait_ms`.
        - The plugin sends the request again, with `waits`.
        - The second answer comes once the turns are observed, or after `wait_ms` at the latest.
        """
        graph = graph_of(self.memory.registry, body)
        if graph is None:
            return {}
        tell = partial(self.memory.registry.tell, graph=graph.identity.key)
        if body.get("waits") is True:
            self._wait_for_observation(graph, str(body.get("sessionKey") or ""), tell)
        # Under a lock: two requests at once would cut twice.
        with self._assembling.setdefault(graph.identity.key, threading.Lock()):
            made, answer = cut_answer(self.memory, graph, body, tell)
        if made.waits:
            self.awake.set()
        wait = made.blocks and time.monotonic() > self._in_vain_until.get(graph.identity.key, 0.0)
        return {**answer, **({"wait_ms": round(BLOCKED_S * 1000)} if wait else {})}

    def _wait_for_observation(self, graph: Graph, session: str, tell: Callable[..., None]) -> None:
        """
        Wait until no turn of *session* is pending, at most BLOCKED_S. If a turn is still pending after the wait, turns
        of this graph do not wait during the next IN_VAIN_S.
        """
        began, mark = time.monotonic(), session_mark(session)
        self.awake.set()
        while (
            late := any(p.session == mark for p in graph.pending()) or has_open_receipt(graph)
        ) and time.monotonic() - began < BLOCKED_S:
            if self.stopping.wait(BLOCKED_STEP_S) or (state := graph.state()).failures or state.error:
                break
        if late:
            self._in_vain_until[graph.identity.key] = time.monotonic() + IN_VAIN_S
        waited_ms = round((time.monotonic() - began) * 1000)
        tell("context_waited", session=session, observed=not late, duration_ms=waited_ms)

    def lend(self, body: dict[str, Any]) -> Mapping[str, Any]:
        """
        Return a question that the gateway's plugin is to put to the agent's own model; {} if there is none.

        From the first call on, OMG can use the agent's own model, even if the gateway did not start the daemon.
        """
        self.memory.worker.gateway = self.model
        return self.model.next(body)

    def miss_gateway(self) -> None:
        """
        Stop using the agent's own model if the gateway's plugin no longer fetches questions.

        Until the plugin fetches questions again, turns stay pending, and the nightly run works with rules only.
        """
        if self.memory.worker.gateway is not None and self.model.is_gone():
            self.memory.worker.gateway = None
            log.info(
                "the gateway no longer lends the agent's own model; until a gateway is back, turns wait and nightly runs use only rules"
            )

    def came_late(self, question: ModelQuestion, reply: ModelReply) -> None:
        """Enter a late reply of the gateway's model into the ledger, because the reply was paid for."""
        self.memory.worker.ledger.spend(
            with_token_counts(reply, question), question.purpose, self.memory.clock()
        )

    def page(self, body: dict[str, Any]) -> Mapping[str, Any]:
        from .ui.pages import framed_page

        return framed_page(self.memory, body)

    def stop(self, _: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.stopping.set()
        return {}

    # --- three threads: one follows the files, one observes, one reflects; the last two may wait for a model

    def _repeat(self, turn: Callable[[], float | None], awake: threading.Event) -> None:
        """Call *turn* whenever *awake* is set, or after the seconds that *turn* returned, at most TICK_S."""
        while not self.stopping.is_set():
            awake.clear()
            wait_s = None
            try:
                wait_s = turn()
            except Exception:
                log.exception("%s failed; its thread goes on", turn.__name__)
            awake.wait(TICK_S if wait_s is None else min(wait_s, TICK_S))

    def _observe(self) -> None:
        """Let the worker's threads observe what is due; do not wait for them."""
        self.memory.worker.start()
        self._idle = not self.memory.worker.under_way()
        self.rested.set()

    def _reflect(self) -> None:
        """Reflect on the graphs in which enough has changed. Observing goes on meanwhile."""
        background_reflection(self.memory.worker, idle=self._idle)

    def _keep(self) -> float | None:
        """Take in the spool, update the indexes from the vaults, make missing vectors. Return when to run again (seconds)."""
        self.miss_gateway()
        wait_s = None
        try:
            wait_s = self.hosts.keep_up()
            if self.memory.take_in():
                self.awake.set()
        except (OSError, Locked) as e:
            self._warn_once("the spool", e)
        rescan = time.monotonic() - self._rescanned > RESCAN_S
        if rescan:
            self._rescanned = time.monotonic()
            if not self._unlooked:
                self._unlooked.extend(self.memory.registry.identities())
        self._look_through()
        graphs = self.memory.registry.kept()[-GRAPHS_KEPT:]  # watches are scarce
        for key in self._followed.keys() - {graph.identity.key for graph in graphs}:
            self._unfollow(key)
        for graph in graphs:
            self._attempt(graph.identity, partial(self._follow, rescan=rescan))
        for graph in graphs:
            self._attempt(graph.identity, self._embed, "made ready for prompts")
        return wait_s

    def _look_through(self) -> None:
        """Update the index of some graphs whose vaults have no watch."""
        for _ in range(min(VAULTS_PER_TICK, len(self._unlooked))):
            who = self._unlooked.popleft()
            if who.key not in self._followed:
                self._attempt(who, self._catch_up)
            if self.touched.is_set() or self.stopping.is_set():
                break  # a watched vault was just edited, and comes first

    def _attempt(self, who: Identity, what: Callable[[Graph], None], aim: str = "followed") -> None:
        """
        Call *what* with the graph of *who*, and log an error instead of raising it.

        So a broken graph does not keep the caller from the other graphs. A repeated error is logged once. *aim*
        completes the line in the log: "… cannot be followed: …".
        """
        try:
            what(self.memory.graph(who, wait_s=PATIENCE_S, keep=False, make=False))
            self._warned.pop((who.key, aim), None)
        except NotFound:
            log.info(
                "a whole memory was forgotten; its vault is no longer watched"
            )  # without the graph's name
        except Locked as e:
            log.info("%s; the vault's edits are read later", e)
        except Exception as e:
            self._warn_once(who.key, e, aim)

    def _warn_once(self, what: str, error: Exception, aim: str = "followed") -> None:
        """
        Log the warning "<what> cannot be <aim>: <error>", for example "the spool cannot be followed: …".

        Logs nothing if the last warning about *what* and *aim* gave the same error.
        """
        if self._warned.get((what, aim)) != error_text(error):
            self._warned[what, aim] = error_text(error)
            trace = None if isinstance(error, OmgError | OSError) else error
            log.warning("%s cannot be %s: %s", what, aim, error_text(error), exc_info=trace)

    def _catch_up(self, graph: Graph) -> None:
        graph.flush()
        self.memory.refresh(graph, wait_s=PATIENCE_S)
        self._embed(graph)

    def _embed(self, graph: Graph) -> None:
        for work in (graph.index.embed, graph.index.look_for_secrets):
            while work(VECTORS_AT_ONCE) and not (self.touched.is_set() or self.stopping.is_set()):
                pass

    def _watched(self, handler: VaultWatcher, folder: Path, otherwise_s: float) -> ObservedWatch | None:
        """
        Watch *folder* with *handler*. Return None if the system has no watch left; the folder is then scanned every
        *otherwise_s*.
        """
        try:
            if self._watch is None:
                watch = Watch()
                watch.start()
                self._watch = watch
            return self._watch.schedule(handler, str(folder), recursive=True, event_filter=CHANGES)
        except OSError as e:
            log.warning("%s is only scanned every %d s: %s", folder, otherwise_s, error_text(e))
            return None

    def _unfollow(self, key: str) -> None:
        """Stop watching the vault of *key*. When the vault is watched again, it is scanned in full first."""
        with self._guard:
            self._dirty.pop(key, None)
        if watch := self._followed.pop(key, None):
            self._watch.unschedule(watch)

    def _follow(self, graph: Graph, rescan: bool) -> None:
        """
        Update the index with the edits that a person made in the vault of *graph*.

        Also writes state.json, because the answers to prompts change the state only in memory. *rescan*: check every
        file, not only the files that watchdog reported.
        """
        graph.flush()
        key, root = graph.identity.key, graph.vault.root
        if key not in self._followed and root.is_dir():
            self._followed[key] = self._watched(VaultWatcher(self._edited(key, root)), root, RESCAN_S)
            rescan = True
        with self._guard:
            dirty = self._dirty.pop(key, set())
        if not dirty and not rescan:
            return
        try:
            # An event of a folder does not say which files in it changed, so every file is checked, with one stat each.
            everything = rescan or "" in dirty
            self.memory.refresh(graph, None if everything else sorted(dirty), wait_s=PATIENCE_S)
        except BaseException:
            with self._guard:
                self._dirty.setdefault(key, set()).update(dirty or {""})
            raise

    def _spooled(self, path: Path) -> None:
        if path.suffix == ".json" and not path.name.startswith("."):
            self.touched.set()

    def _edited(self, key: str, root: Path) -> Callable[[Path], None]:
        def edited(path: Path) -> None:
            if not path.is_relative_to(root):
                return
            below = path.relative_to(root)
            if any(part.startswith(".") for part in below.parts):
                return
            name = below.with_suffix("").as_posix() if below.suffix == ".md" else ""
            if name or not below.suffix:
                with self._guard:
                    self._dirty.setdefault(key, set()).add(name)
                self.touched.set()

        return edited


def shared_answers(codes: Codes) -> dict[str, Callable[[Memory, dict[str, Any]], Mapping[str, Any]]]:
    """Return path → function for the answers that need only a memory, for the daemon and for a fleet's server."""
    return {
        "/inject": inject_answer,
        "/tool": lambda memory, body: call_tool(memory.intake, body, codes),
        "/command": lambda memory, body: slash_command(memory.intake, body, codes),
        "/corpus": lambda memory, body: corpus_answer(memory.registry, body),
        "/search": lambda memory, body: search_answer(memory.registry, body),
        "/status": lambda memory, body: home_status(memory.worker),
    }


def inject_answer(memory: Memory, body: dict[str, Any]) -> Mapping[str, Any]:
    graph = graph_served(memory, body)
    if graph is None:
        return {}
    tell = partial(memory.registry.tell, graph=graph.identity.key)
    return hook_result(graph, body, memory.clock(), memory.config, tell)


def graph_served(memory: Memory, body: Mapping[str, Any]) -> Graph | None:
    """Return the graph that this prompt may use; None if the session is not served or has no memory yet."""
    if not is_remembered(body, ("user", *memory.config.identity.members)):
        return None
    return graph_of(memory.registry, body)


def cut_answer(
    memory: Memory, graph: Graph, body: dict[str, Any], tell: Callable[..., None] = lambda *_, **__: None
) -> tuple[Cut, dict[str, Any]]:
    """
    Decide what leaves the context, and return the decision and the answer to the gateway. Turns that should leave but are
    not observed become urgent.
    """
    at_ms = memory.registry.now_ms()
    graph.note(partial(note_asked, session=str(body.get("sessionKey") or ""), at_ms=at_ms))
    made = cut_context(graph, body, now=memory.clock(), config=memory.config, tell=tell)
    if made.waits and not graph.state().urgent_ms:
        graph.update(partial(note_urgent, session="", reason="context", at_ms=at_ms, waiting=True))
    if not made.text:
        return made, {}
    tokens = made.raw + sum(map(count_tokens, (made.text, *made.served.values())))
    return made, {**{of: getattr(made, of) for of in ("text", "cut", "served", "told")}, "tokens": tokens}


def return_freed_memory() -> None:
    """Give freed memory back to the system. glibc otherwise keeps it, with one heap for each thread that ever ran."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_ARENA_MAX, 2)
        libc.malloc_trim(0)


# --- The one daemon of a home: its lock, its signals, its log, and its end with the gateway.


@contextlib.contextmanager
def daemon_lock(home: Path) -> Iterator[None]:
    """Hold this home's daemon lock. The kernel releases the lock when the process ends, even after a crash."""
    file = home / "lock"
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(flock(file, "the daemon", timeout_s=0))
        except Locked:
            pid = file.read_text().strip() or "unknown"
            raise Locked(f"a daemon already runs for {home} (pid {pid}); stop it with `omg down`") from None
        file.write_text(str(os.getpid()))
        yield


def serve_home(config: Config, *, with_parent: bool) -> None:
    """
    Run the daemon in the foreground until SIGTERM, SIGINT or /stop; *with_parent*: also until stdin ends.

    Raises Locked if another daemon runs for this home.
    """
    with daemon_lock(config.home):
        return_freed_memory()
        # A prompt waits for the interpreter about twenty times, after each file or row; at 5 ms each that would be 100 ms.
        sys.setswitchinterval(0.0005)
        daemon = Daemon(config, with_parent=with_parent)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stopping.set())
        if with_parent:
            threading.Thread(target=follow_parent, args=(daemon,), daemon=True).start()
        daemon.run()


def follow_parent(daemon: Daemon) -> None:
    """Stop the daemon when stdin ends. Stdin is a pipe from the gateway, so its end means that the gateway is gone."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    daemon.stopping.set()


class LogFormatter(logging.Formatter):
    """Formats the type and the place of an exception, without its message, which may quote a conversation."""

    def formatException(self, ei: Any) -> str:
        lines: list[str] = []
        error = ei[1]
        while error is not None and len(lines) < 5:
            frames = traceback.extract_tb(error.__traceback__)[-4:]
            places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
            lines.append(f"    {type(error).__name__} in {places}")
            error = error.__cause__ or error.__context__
        return "\n".join(lines)


def log_to(file: Path) -> None:
    """Send all logging to *file*, and keep one older file."""
    handler = RotatingFileHandler(file, maxBytes=2_000_000, backupCount=1)
    file.chmod(0o600)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.handlers, root.level = [handler], logging.INFO
