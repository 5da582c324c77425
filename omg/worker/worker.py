"""Observes pending turns in the background, up to `[observation] parallel` graphs at a time.

    worker.start()           take in the spool, and begin to observe each graph in which something is due
    worker.work()            do the same, and wait until it is done
    worker.due(graph)        why turns are due now, or None
    worker.waits(graph)      why turns are not observed yet, for a person

A graph is observed batch by batch; after each batch it goes to the end of the line. A failure makes its graph pause
and loses no turn; the other graphs go on."""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import partial
from heapq import heappop, heappush
from itertools import accumulate, count, islice
from typing import Any, TypedDict

from ..check import is_able
from ..client import ask_daemon
from ..config import Observation
from ..errors import (
    BadReply,
    Locked,
    ModelUnavailable,
    NotFound,
    OmgError,
    OverBudget,
    Stale,
    error_text,
    how_many,
)
from ..graph.graph import Graph, Pending
from ..graph.state import State, flock
from ..identity import Identity
from ..index.index import BACKGROUND
from ..journal import has_open_receipt, replay_open
from ..llm.asker import Asker
from ..llm.child import Child
from ..llm.replies import Ask, Ledger, ModelReply, Places, model_window
from ..observe.question import Observer
from ..observe.run import Observed, observe_batch, pending_batches
from .intake import Intake
from .registry import PATIENCE_S
from .schedule import (
    FRESH,
    OLD,
    note_capped,
    note_completed,
    note_failure,
    recovered,
    retry_at,
    what_is_due,
    why_waiting,
)

log = logging.getLogger(__name__)

MODEL_AWAY = (
    "the Observer is the agent's own model, and no gateway lends it now, so messages wait. Start the gateway, or name "
    "another model in omg.toml. To observe once with rules, run `OMG_OBSERVATION_MODEL=offline omg observe`"
)


ASKED_S = 30.0  # longest wait of requested work for a locked vault
# Graphs that the gateway's model observes at a time, because llm/asker.py makes no more calls.
GATEWAY_GRAPHS = 2
OLD_SHARE = 0.75  # share of a day's cap for turns older than a day; the rest is kept for today's turns
FORESEEN = (OmgError, OSError, sqlite3.Error)
RULES_REST_S = 240.0  # longest silence before rules observe, since they cost nothing
ENDING_S = 10.0  # longest wait of `close` for the work under way
DAY_S = 86_400.0  # deadline of work in the daemon, since an archive of years takes many calls of a model


class Crew:
    """
    Works on graphs with at most *size* threads, the most urgent work first. The threads exist only while there is
    work.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._waiting: list[tuple[int, int, Future[Any], Callable[[], Any]]] = []  # a heap
        self._numbers, self._threads = count(), 0
        self._guard = threading.Lock()

    def start(self, work: Callable[[], Any], rank: int = 0) -> Future[Any]:
        """
        Do *work* as soon as a thread is free. The lowest rank comes first; within a rank, the order of `start`
        counts.
        """
        done: Future[Any] = Future()
        with self._guard:
            heappush(self._waiting, (rank, next(self._numbers), done, work))
            if self._threads < self.size:
                self._threads += 1
                # A daemon thread: exiting does not wait for a call.
                threading.Thread(target=self._serve, name=BACKGROUND, daemon=True).start()
        return done

    def _serve(self) -> None:
        while True:
            with self._guard:
                if not self._waiting:
                    self._threads -= 1
                    return
                *_, done, work = heappop(self._waiting)
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(work())
            except BaseException as e:
                done.set_exception(e)


@dataclass(slots=True)
class Work:
    """A graph that is being observed or waits in line, with its results so far."""

    who: Identity
    crew: Crew
    asked: bool  # observe all pending turns, due or not, because somebody asked
    once: bool  # turns that become due meanwhile wait for the next call of `work`
    since: datetime  # when the batch, or the wait in line, began
    under_way: bool = False
    waited_s: float = 0.0  # wait in line before this batch
    # The present round: why turns are due, and these turns in batches.
    reason: str = ""
    rank: int = FRESH
    began_ms: int = 0
    batches: Iterator[list[Pending]] = field(default_factory=lambda: iter(()))
    # Conversations with a failed batch. Their later turns wait, because the earlier ones are observed first.
    stuck: set[str] = field(default_factory=set)
    failure: str = ""
    observed: list[Observed] = field(default_factory=list)
    trouble: Exception | None = None
    ended: Future[None] = field(default_factory=Future)

    @property
    def patience_s(self) -> float:
        return ASKED_S if self.asked else PATIENCE_S


class Worker:
    """
    Observes the graphs of one home. *gateway*: asks the agent's own model through the plugin; None if no plugin lends
    the model now.
    """

    def __init__(self, intake: Intake, *, gateway: Ask | None, child: Child | None = None) -> None:
        self.intake, self.registry, self.gateway = intake, intake.registry, gateway
        self.config, self.clock = self.registry.config, self.registry.clock
        self.ledger = Ledger(self.registry.folder / "ledger.jsonl", self.config)
        self._finished: set[str] = set()  # graphs without a cycle that an earlier crash left open
        # Failures by graph. The graph's state has them, too, unless the state could not be written.
        self._trouble: dict[str, State] = {}
        self._works: dict[str, Work] = {}  # by graph
        self._resting: set[str] = set()  # graphs that are not to be observed
        self._guard, self._starting = threading.Lock(), threading.Lock()
        self.closed = False
        self._crews: dict[tuple[str, bool], Crew] = {}  # (first model, at night) → threads
        self._child, self._child_is_ours = child or Child(), child is None
        self._askers: dict[tuple[bool, tuple[str, ...]], Asker] = {}

    # --- which model

    def models(self, agent: str = "") -> list[str]:
        """
        Return the models that observe for *agent*: the first model, then its fallbacks.

        The first of these that exists:
        - the models set for this agent
        - the models set for all agents
        - "gateway", if a gateway's plugin uses this home; the gateway may be down
        - "offline": rules instead of a model
        """
        own = self.config.observation.agents.get(agent)
        return self._named((own and own.model) or self.config.observation.model)

    def observing(self, agent: str = "") -> list[str]:
        """
        Return the models that observe for *agent* by day.

        Returns ["offline"] if the configuration says `effort = "low"`: rules observe then, and no model is asked.
        """
        return ["offline"] if self.config.observation.effort == "low" else self.models(agent)

    def reflecting(self, agent: str = "") -> list[str]:
        """
        The models that reflect for *agent*: the models set for the Reflector, else the models that observe by day.
        """
        own = self.config.reflection.model
        return self._named(own) if own else self.observing(agent)

    def _named(self, model: str | list[str]) -> list[str]:
        models = [m for m in ([model] if isinstance(model, str) else model) if m]
        used = self.gateway is not None or (self.registry.folder / "installed.json").exists()
        return models or (["gateway"] if used else ["offline"])

    def observer(self, agent: str) -> Observer:
        return self.answering(self.models(agent))

    def answering(self, model: str | list[str]) -> Observer:
        models = self._named(model)
        if (ask := self._asker(models)) is None:
            return Observer()
        window = min(model_window(m, self.config) for m in ask.models)
        return Observer(ask, ask.models[0], window, partial(self._is_able, ask))

    def _is_able(self, ask: Ask, model: str) -> bool:
        """Whether *model*, asked by *ask*, answers the check well enough. Raises ModelError while this is unknown."""
        return is_able(self.registry.folder, model, ask, self.clock())

    def _asker(self, models: Sequence[str]) -> Asker | None:
        if models[0] == "offline":
            return None
        named = tuple(m for m in models if m != "offline")
        key = (self.gateway is not None, named)  # a plugin may connect after the first question
        if key not in self._askers:
            self._askers[key] = Asker(
                self.config, named, self.ledger, gateway=self.gateway, child=self._child, now=self.clock
            )
        return self._askers[key]

    def crew(self, models: Sequence[str], *, night: bool = False) -> Crew:
        """
        The threads that work on the graphs observed by *models*: a model and its fallbacks.

        Graphs with the same first model share threads. A model that hangs does not hold up the graphs of other models.
        *night*: the threads for nightly runs.
        """
        parallel = self.config.observation.parallel
        size = {"offline": 1, "gateway": min(GATEWAY_GRAPHS, parallel)}.get(models[0], parallel)
        return self._crews.setdefault((models[0], night), Crew(size))

    def away(self, models: Sequence[str]) -> str:
        """
        Return a sentence for a person that says why no model in *models* can be asked here.

        Returns "" if a model can be asked, or if no model is needed.
        """
        return MODEL_AWAY if self.gateway is None and set(models) == {"gateway"} else ""

    # --- when

    def due(self, graph: Graph) -> str | None:
        """Why some pending turns should be observed now; None if all wait."""
        return self._what_is_due(graph, graph.pending())[0] or None

    def _what_is_due(
        self, graph: Graph, pending: Sequence[Pending], *, asked: bool = False
    ) -> tuple[str, int, Sequence[Pending]]:
        options = self.timing(graph.identity.agent)
        found = what_is_due(graph.state(), pending, options, self.clock(), asked=asked)
        hindered = not asked and self.hindered(graph, old=found[1] == OLD)
        return ("", OLD, ()) if hindered else found

    def waits(self, graph: Graph) -> str:
        """Why pending turns are not observed yet, for a person; "" if nothing is pending."""
        state, pending, options = self.state_of(graph), graph.pending(), self.timing(graph.identity.agent)
        now = self.clock().astimezone(graph.zone)
        old = what_is_due(state, pending, options, now)[1] == OLD
        text = why_waiting(state, pending, options, now, self.hindered(graph, old=old))
        work = self._works.get(graph.identity.key)
        return turn_text(work, graph.zone) if text and work else text

    def timing(self, agent: str) -> Observation:
        """
        Return the options that decide when pending turns are observed.

        If fixed rules make the notes instead of a model, turns wait only for a short silence. Rules need no model, so
        waiting longer would save nothing.
        """
        options, free = self.config.observation, self.observing(agent) == ["offline"]
        short = min(options.quiet_after, RULES_REST_S)  # False stays False
        return options.model_copy(update={"quiet_after": short}) if free else options

    def state_of(self, graph: Graph) -> State:
        """The graph's state with the latest failure, even if a bad disk did not store that failure."""
        state, trouble = graph.state(), self._trouble.get(graph.identity.key)
        if trouble is None or trouble.failed_ms <= state.failed_ms:
            return state
        return replace(state, failures=trouble.failures, failed_ms=trouble.failed_ms, error=trouble.error)

    def hindered(self, graph: Graph, *, old: bool = False) -> str:
        """
        Why *graph* cannot be observed: OMG is off, the model is away, or today's cap is reached; "" if it can be
        observed.

        *old*: for turns older than a day, which may use only a share of the cap.
        """
        if off := self.config.switched_off(graph.identity.agent):
            return f"OMG is switched off: {off}"
        observing = self.observing(graph.identity.agent)
        if away := self.away(observing):
            return away
        try:
            if self.answering(observing).ask is not None:
                self.ledger.check(self.clock(), OLD_SHARE if old else 1.0)
        except OverBudget as e:
            return str(e)
        return ""

    # --- the work

    def work(self, *, force: bool = False) -> list[Observed]:
        """
        Take in the spool and observe due turns, or with *force* all pending turns.

        Returns the results once everything is done. A graph with an error pauses, and is tried again later. With
        *force*, an error such as a locked vault is raised after all graphs are done. A failed observation is never
        raised.
        """
        works, troubles = self.start(force=force, once=True)
        for work in works:
            work.ended.result()
        troubles += [work.trouble for work in works if work.trouble is not None]
        if force and troubles:
            raise troubles[0]
        return [observed for work in works for observed in work.observed]

    def observe_now(self, who: Identity) -> tuple[list[Observed], str]:
        """Observe all pending turns of *who*. Returns what was observed, and why the other turns still wait."""
        if why := self.away(self.observing(who.agent)):
            return [], why
        work = self._line_up(who, FRESH, True, True)
        work.ended.result()
        return work.observed, error_text(work.trouble) if work.trouble else work.failure

    def start(self, *, force: bool = False, once: bool = False) -> tuple[list[Work], list[Exception]]:
        """
        Take in the spool and begin to observe due turns. Returns the work begun, and the errors.

        *once*: turns that become due meanwhile wait for the next call.
        """
        works: list[Work] = []
        troubles: list[Exception] = []
        with self._starting:
            try:
                self.intake.take_in()
            except (OSError, Locked) as e:  # pending turns are observed nevertheless
                log.warning("the spool waits: %s", error_text(e))
                troubles.append(e)
            for who in self.registry.identities():
                if not force and self.rests(who):
                    continue
                try:
                    if (rank := self._look_at(who, force)) is not None:
                        works.append(self._line_up(who, rank, force, once))
                    else:
                        self._trouble.pop(who.key, None)
                except Locked as e:  # the holder of the lock will be done soon
                    log.info("%s; its turns wait meanwhile", e)
                    troubles.append(e)
                except Exception as e:
                    self.note_trouble(who, e)
                    troubles.append(e)
        return works, troubles

    def _look_at(self, who: Identity, force: bool) -> int | None:
        """
        Return how urgent the work on the graph of *who* is: PRESSING, FRESH or OLD.

        None means that there is nothing to do now: nothing is due, no model can be asked, or the graph is already being
        observed.
        """
        if self.config.switched_off(who.agent):
            return None
        try:  # `opened` is quick, and most graphs have no work
            graph = self.registry.opened(who, keep=False, make=False)
        except NotFound:
            return None  # the whole graph was just forgotten
        self.intake.take_notes(graph, force=force)
        if who.key in self._works and not force:
            return None
        if who.key not in self._finished:
            if has_open_receipt(graph):
                graph = self.registry.graph(who, wait_s=ASKED_S if force else PATIENCE_S)
            self._finished.add(who.key)
        if not (pending := graph.pending()):
            if who.key in self._trouble:
                graph.update(recovered)
            return None
        if self.away(self.observing(who.agent)):
            return None  # no failure of the model, so no failure is counted
        reason, rank, _ = self._what_is_due(graph, pending, asked=force)
        return rank if reason else None

    def _line_up(self, who: Identity, rank: int, force: bool, once: bool) -> Work:
        """Begin to observe the graph of *who*, unless the graph is being observed already."""
        with self._guard:
            if (work := self._works.get(who.key)) is not None:
                work.asked |= force
                return work
            work = Work(who, self.crew(self.observing(who.agent)), force, once, self.clock())
            if self.closed or who.key in self._resting:
                work.ended.set_result(None)
            else:
                self._works[who.key] = work
                work.crew.start(partial(self._turn, work), rank)
            return work

    def _turn(self, work: Work) -> None:
        """Observe one batch of *work*. Then *work* goes to the end of the line, or ends."""
        key, asked, rank = work.who.key, work.asked, None
        now = self.clock()
        work.waited_s = (now - work.since).total_seconds()
        work.under_way, work.since = True, now
        try:
            rank = None if self.closed else self._observe_next(work)
            self._trouble.pop(key, None)
        except Locked as e:
            log.info("%s; its turns wait meanwhile", e)
            work.trouble = e
        except Exception as e:
            self.note_trouble(work.who, e)
            work.trouble = e
        with self._guard:
            work.under_way, work.since = False, self.clock()
            if work.asked and not asked:  # somebody asked for all pending turns meanwhile
                rank = FRESH
            if rank is None or self.closed or key in self._resting:
                del self._works[key]
                work.ended.set_result(None)
            else:
                work.crew.start(partial(self._turn, work), rank)

    def _observe_next(self, work: Work) -> int | None:
        """Observe the next batch. Returns the rank of the batch after it, or None if the work is done."""
        try:
            graph = self.registry.graph(work.who, wait_s=work.patience_s, make=False)
        except NotFound:
            return None  # the whole graph was forgotten meanwhile
        # The process that observes the graph holds this lock. Only observing needs the lock.
        what = f"the observing of {work.who.key}"
        with flock(graph.folder / "observe.lock", what, ASKED_S if work.asked else 0):
            with graph.lock(work.patience_s):
                replay_open(graph)  # turns that a dead process finished are not asked about again
            batch = self._next_batch(graph, work)
            if batch and self._observe(graph, work, batch):
                return work.rank
            if work.failure:
                failed = partial(note_failure, error=work.failure, at_ms=self.registry.now_ms())
                graph.update(failed)
        return None

    def _next_batch(self, graph: Graph, work: Work) -> list[Pending]:
        """
        Return the next batch to observe; empty if nothing is due any more.

        If all batches so far are done, this function looks for turns that became due meanwhile.
        """
        while True:
            for batch in work.batches:
                whole = [p for p in batch if p.session not in work.stuck and graph.readable(p)]
                if whole:
                    return whole
            now_ms = self.registry.now_ms()
            if work.reason and not work.failure:
                done = partial(note_completed, reason=work.reason, began_ms=work.began_ms, at_ms=now_ms)
                graph.update(done)
            pending = [p for p in graph.pending() if p.session not in work.stuck]
            over = work.once and work.reason and work.rank != OLD
            work.reason, work.rank, files = self._what_is_due(graph, pending, asked=work.asked)
            if not work.reason or (over and work.rank != OLD):
                return []
            work.began_ms, work.batches = now_ms, self._batches(graph, work.rank, files)

    def _batches(self, graph: Graph, rank: int, files: Sequence[Pending]) -> Iterator[list[Pending]]:
        """
        Divide *files* into batches. For old turns, give only the first batch, because fresh turns may be due after
        it.
        """
        most = self.config.observation.max_tokens_per_batch
        if rank == OLD:  # there may be thousands of files: read only as many as needed
            # A model needs days for an archive of years. It reads the newest conversation first, so the most useful notes
            # come first, and the model sees newer notes when it reads older words. Rules are quick, and judge a
            # statement by earlier ones, so they read the oldest conversation first.
            by_rules = self.observing(graph.identity.agent)[0] == "offline"
            files = [p for p in files if p.session == files[0 if by_rules else -1].session]
            said = accumulate(p.tokens for p in files)
            files = [p for p, sofar in zip(files, said, strict=True) if sofar - p.tokens < 2 * most]
        # After useless replies the batches get smaller, to separate the turn that causes these replies from the others.
        limit = max(1, most >> min(graph.state().failures, 8))
        batches = pending_batches([p for p in files if graph.readable(p)], limit)
        return islice(batches, 1) if rank == OLD else batches

    @contextmanager
    def resting(self, graph: Graph) -> Iterator[None]:
        """Keep *graph* from being observed, here and in other processes, until the block ends."""
        key = graph.identity.key
        self._resting.add(key)
        try:
            with flock(graph.folder / "observe.lock", key, math.inf):  # until the batch under way is done
                yield
        finally:
            self._resting.discard(key)

    def places(self) -> dict[str, Places]:
        """Model → how many calls of it are under way."""
        lent = getattr(self.gateway, "places", None)
        return {**self._child.places, **({"gateway": lent} if lent else {})}

    def under_way(self) -> list[Work]:
        """
        The graphs being observed, then the graphs in line. In both groups, the graph that has been there longest
        comes first.
        """
        return sorted(self._works.copy().values(), key=lambda work: (not work.under_way, work.since))

    def rests(self, who: Identity) -> bool:
        """Whether the graph of *who* pauses after an error."""
        trouble = self._trouble.get(who.key)
        return trouble is not None and self.clock().timestamp() < retry_at(trouble)

    def note_trouble(self, who: Identity, error: Exception) -> None:
        """Report and count an error of the graph of *who*. The graph then pauses, as after a model's failure."""
        why = self.report(who.key, error)
        note_failure(self._trouble.setdefault(who.key, State()), why, self.registry.now_ms())
        with suppress(Exception):  # a bad disk may refuse this, too
            self.registry.opened(who, keep=False, make=False).update(
                partial(note_failure, error=why, at_ms=self.registry.now_ms())
            )

    def _observe(self, graph: Graph, work: Work, batch: list[Pending]) -> bool:
        """
        Observe *batch*. Returns whether to go on with the graph's other batches.

        - True after a success, a useless reply or a defect in OMG. After the last two, only the turns of the same
          conversation wait.
        - False after an error that would stop the other batches, too, for example if the model is down.
        """
        started = time.monotonic()
        try:
            observed = self._observe_batch(graph, work, batch)
        except Stale as e:
            log.info("%s: %s", graph.identity.key, e)
            return False  # the turns that are still pending are observed when they are due
        except OverBudget as e:
            if str(e) != graph.state().error:
                self._failed(graph, batch, work.reason, e, started)
            graph.update(partial(note_capped, error=str(e)))
            return False
        except Exception as e:
            if not graph.is_there():
                return False  # the whole graph was forgotten meanwhile
            if self.closed and isinstance(e, ModelUnavailable):
                return False  # `stop` ended the call; the next start asks again at once
            self._failed(graph, batch, work.reason, e, started)
            work.failure = error_text(e)
            work.stuck.add(batch[0].session)
            # Continue after a useless reply or a defect. An error of the model, the disk or the vault would hit the
            # other batches too.
            return isinstance(e, BadReply) or not isinstance(e, FORESEEN)
        if work.once or work.asked:  # else nobody reads the results, and an import has thousands
            work.observed.append(observed)
        return True

    def _failed(
        self, graph: Graph, batch: list[Pending], reason: str, error: Exception, started: float
    ) -> None:
        tokens, took_ms = sum(p.tokens for p in batch), round((time.monotonic() - started) * 1000)
        self.report(graph.identity.key, error, trigger=reason, tokens=tokens, duration_ms=took_ms)

    def report(self, key: str, error: Exception, event: str = "observation_failed", **more: Any) -> str:
        """Log why the graph *key* was not observed or reflected on, and write an *event*. Returns the reason."""
        why = error_text(error)
        log.warning("%s: %s: %s", key, event, why, exc_info=None if isinstance(error, FORESEEN) else error)
        self.registry.tell(event, graph=key, error=why[:2_000], **more)
        return why

    def _observe_batch(self, graph: Graph, work: Work, batch: list[Pending]) -> Observed:
        agent, paid = graph.identity.agent, list[ModelReply]()
        models = self.observing(agent)
        observer, again = self.answering(models), models != self.models(agent)
        if (asker := self._asker(models)) is not None:
            observer = replace(observer, ask=partial(asker, paid=paid.append))
        tell = self._telling(graph, work, paid)
        observed = observe_batch(graph, batch, observer, self.config, tell=tell, again=again)
        done = observed.messages, len(observed.outcome.written), len(observed.dropped)
        log.info("%s: %d messages observed, %d files written, %d dropped", graph.identity.key, *done)
        for why in observed.dropped:
            log.info("%s: dropped %s", graph.identity.key, why)
        return observed

    def _telling(self, graph: Graph, work: Work, paid: Sequence[ModelReply]) -> Callable[..., None]:
        """
        Make the function `tell` that reports the events of one batch.

        `tell` adds these fields to an event:
        - every event: the graph, and the reason for observing
        - observation_start: the time in line, and how many graphs are observed or wait
        - observation_end: the calls, tokens and cost of *paid*
        """

        def telling(event: str, **fields: Any) -> None:
            if event == "observation_start":
                works = self._works.copy().values()
                waiting = sum(not other.under_way for other in works)
                fields |= {
                    "waited_ms": round(work.waited_s * 1000),
                    "under_way": len(works) - waiting,
                    "waiting": waiting,
                }
            if event == "observation_end":
                fields |= {
                    "calls": len(paid),
                    "model_tokens": sum(reply.tokens_in + reply.tokens_out for reply in paid),
                    "usd": round(sum(reply.usd for reply in paid), 6),
                }
            self.registry.tell(event, graph=graph.identity.key, trigger=work.reason, **fields)

        return telling

    def stop(self) -> None:
        """Stop asking models; the turns of unfinished calls stay pending."""
        self.closed = True
        for ask in self._askers.copy().values():
            ask.close()
        if self._child_is_ours:
            self._child.close()

    def close(self, within_s: float = ENDING_S) -> bool:
        """Stop, and wait for the work under way. Returns whether all of it has ended."""
        self.stop()
        return not wait([work.ended for work in self._works.copy().values()], within_s).not_done


def turn_text(work: Work, zone: tzinfo) -> str:
    """Say whether *work* is being done or waits, and since when, for a person in *zone*."""
    since = f"since {work.since.astimezone(zone):%H:%M:%S}"
    if not work.under_way:
        return f"due, and waiting in line {since}: at most {how_many(work.crew.size, 'graph')} at a time"
    return f"it is being observed {since}"


# --- The results of observing, as `Memory.observe` and the daemon return them.


class TurnsWaiting(TypedDict):
    """Turns of one identity that were not observed, and why."""

    identity: str
    turns: int
    why: str


class WorkDone(TypedDict):
    """The result of observing: batches, messages in them, files written, and the turns that still wait."""

    batches: int
    messages: int
    files: int
    waiting: list[TurnsWaiting]


def observe_pending(worker: Worker, body: Mapping[str, Any]) -> WorkDone:
    """Observe all due turns, or with `force` in *body* all pending turns."""
    done = worker.work(force=bool(body.get("force")))
    return {
        "batches": len(done),
        "messages": sum(o.messages for o in done),
        "files": sum(len(o.outcome.written) for o in done),
        "waiting": list(waiting_turns(worker)),
    }


def waiting_turns(worker: Worker) -> Iterator[TurnsWaiting]:
    """
    Yield each identity with pending turns that OMG cannot observe now, with their number and the reason.

    Examples of a reason: no model can be asked, today's cap is reached, the last observation failed. Turns that only
    wait until they are due are left out.
    """
    for graph in worker.registry.graphs():
        state, pending = worker.state_of(graph), graph.pending()
        if pending and (why := worker.hindered(graph) or (state.error if state.failures else "")):
            yield {"identity": graph.identity.key, "turns": len(pending), "why": why}


# --- Hands work to the daemon of the home, if a daemon runs with the same model as this process.


def other_model_of_daemon(worker: Worker) -> str:
    """The model that a running daemon observes with, if it differs from the model of this command; else ""."""
    found = ask_daemon(worker.registry.folder, "/health", {}, timeout_s=10)
    if found is None or found.get("fleet") or found.get("observer") == worker.models():
        return ""
    return ", else ".join(found["observer"])


def handed_to_daemon(worker: Worker, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    Hand *body* to the daemon, and return its answer. None if no daemon runs, or if this command has another model
    than the daemon: the configuration changed since the daemon started, or `OMG_OBSERVATION_MODEL` is set.
    """
    if other := other_model_of_daemon(worker):
        log.warning(
            "the daemon observes with %s, this command was told %s and does the work itself; `omg down` stops the daemon",
            other,
            ", else ".join(worker.models()),
        )
        return None
    return ask_daemon(worker.registry.folder, path, dict(body), timeout_s=DAY_S)
