"""
When what waits is observed, and by which model.

    worker.work()            take in the spool, observe what is due, graph after graph
    worker.due(graph)        why now, or None · worker.waits(graph)  why not yet, for a person

Not here: the numbers by which something is due (schedule.py), what an observation does (observe/run.py), and the
Reflector (nights.py). One rule: what goes wrong with one graph costs that graph a pause, no turn, and nobody else
anything.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import BadReply, Locked, NotFound, OmgError, OverBudget, Stale, error_text
from ..graph.files import flock
from ..graph.graph import Graph
from ..graph.pending import Pending
from ..graph.state import State
from ..identity import Identity
from ..journal import has_open_receipt, replay_open
from ..llm.asker import Asker, make_asker
from ..llm.child import Child
from ..llm.ledger import Ledger
from ..llm.question import Ask
from ..llm.windows import model_window
from ..observe.question import Observer
from ..observe.run import Observed, observe_batch, pending_batches
from ..provenance.cases import is_able
from .intake import Intake
from .registry import PATIENCE_S
from .schedule import (
    note_capped,
    note_completed,
    note_failure,
    observation_due,
    recovered,
    retry_at,
    step_tokens,
    why_waiting,
)

log = logging.getLogger(__name__)

MODEL_AWAY = (
    "the Observer is the agent's own model, and no gateway lends it now; what was said waits. Start the gateway, "
    "or name another model in omg.toml, or once, as in `OMG_OBSERVATION_MODEL=offline omg observe` for the rules"
)


class Worker:
    """*gateway* asks the agent's own model through the plugin; None: nobody does at the moment."""

    def __init__(self, intake: Intake, *, gateway: Ask | None) -> None:
        self.intake, self.registry, self.gateway = intake, intake.registry, gateway
        self.config, self.clock = self.registry.config, self.registry.clock
        self.ledger = Ledger(self.registry.folder / "ledger.jsonl", self.config)
        self._finished: set[str] = set()  # graphs in which no crash before our time has left a cycle open
        # Failures by key, also in the state wherever that can be written.
        self._trouble: dict[str, State] = {}
        self._working = threading.Lock()
        self._child = Child()
        self._askers: dict[tuple[bool, tuple[str, ...]], Asker] = {}

    # --- which model

    def models(self, agent: str = "") -> list[str]:
        """
        Who observes for *agent*, the first and then its fallbacks: its own model, else the shared one.

        Unset, it is the gateway's in a home that a gateway's plugin uses, whether or not one is up; else `offline`.
        """
        own = self.config.observation.agents.get(agent)
        return self._named((own and own.model) or self.config.observation.model)

    def reflecting(self, agent: str = "") -> list[str]:
        """Who reflects for *agent*: the Reflector's own model, else the Observer's. The Observer keeps its own."""
        return (
            self._named(self.config.reflection.model) if self.config.reflection.model else self.models(agent)
        )

    def _named(self, model: str | list[str]) -> list[str]:
        models = [m for m in ([model] if isinstance(model, str) else model) if m]
        used = self.gateway is not None or (self.registry.folder / "installed.json").exists()
        return models or (["gateway"] if used else ["offline"])

    def observer(self, agent: str) -> Observer:
        return self.answering(self.models(agent))

    def answering(self, model: str | list[str]) -> Observer:
        models = self._named(model)
        if models[0] == "offline":
            return Observer()
        named = tuple(m for m in models if m != "offline")
        key = (self.gateway is not None, named)  # a plugin may come later than the first question
        if key not in self._askers:
            self._askers[key] = make_asker(
                self.config, named, self.ledger, gateway=self.gateway, child=self._child, now=self.clock
            )
        window = min(model_window(m, self.config) for m in named)
        able = all(is_able(self.registry.folder, m) for m in named)
        return Observer(self._askers[key], named[0], window, able)

    def away(self, agent: str) -> str:
        """Why no model can be asked for *agent* from here, for a person; "" where one can, or none is needed."""
        if self.gateway is not None or set(self.models(agent)) != {"gateway"}:
            return ""
        return MODEL_AWAY

    # --- when

    def due(self, graph: Graph) -> str | None:
        """Why what is pending should be observed now, or None."""
        options = self.config.observation
        return observation_due(graph.state(), graph.pending(), options, self.clock(), self.hindered(graph))

    def waits(self, graph: Graph) -> str:
        """Why what is pending is not observed yet, for a person; "" if nothing is."""
        options = self.config.observation
        now = self.clock().astimezone(graph.zone)
        return why_waiting(self.standing(graph), graph.pending(), options, now, self.hindered(graph))

    def standing(self, graph: Graph) -> State:
        """The state with the last failure in it: a disk that failed it may have refused to keep that."""
        state, trouble = graph.state(), self._trouble.get(graph.identity.key)
        if trouble is None or trouble.failed_ms <= state.failed_ms:
            return state
        return replace(state, failures=trouble.failures, failed_ms=trouble.failed_ms, error=trouble.error)

    def step(self, state: State) -> float:
        """Tokens that make a background step just now."""
        return step_tokens(state, self.config.observation)

    def hindered(self, graph: Graph) -> str:
        """Why *graph* is not observed at all: OMG is off, the model is away, or today's cap is reached; "" where it is."""
        if off := self.config.switched_off(graph.identity.agent):
            return f"OMG is switched off: {off}"
        if away := self.away(graph.identity.agent):
            return away
        try:
            if self.observer(graph.identity.agent).ask is not None:
                self.ledger.check(self.clock())
        except OverBudget as e:
            return str(e)
        return ""

    # --- the work

    def work(self, *, force: bool = False) -> list[Observed]:
        """
        Take in the spool and observe what is due, or with *force* all that is pending.

        A model that fails, or whatever else goes wrong, costs its graph a pause and nobody else anything; what
        failed is in the state, and is tried again. With *force* the first trouble that no state could keep is
        raised in the end. One worker at a time.
        """
        done: list[Observed] = []
        troubles: list[Exception] = []
        with self.resting():
            try:
                self.intake.take_in()
            except (OSError, Locked) as e:  # what is pending already is not what is wrong with the spool
                log.warning("the spool waits: %s", error_text(e))
                troubles.append(e)
            for who in self.registry.identities():
                if not force and self.rests(who):
                    continue
                try:
                    done += self._work_on(who, force)
                    self._trouble.pop(who.key, None)
                except Locked as e:  # who is at it is done soon
                    log.info("%s; its turns wait meanwhile", e)
                    troubles.append(e)
                except Exception as e:
                    self.note_trouble(who, e)
                    troubles.append(e)
        if force and troubles:
            raise troubles[0]
        return done

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While nobody observes for this home, here or in another process."""
        with self._working, flock(self.registry.folder / "work.lock", "the worker"):
            yield

    def _work_on(self, who: Identity, force: bool) -> list[Observed]:
        if self.config.switched_off(who.agent):
            return []
        try:  # most have nothing to do, and need not be read for that
            graph = self.registry.opened(who, keep=False, make=False)
        except NotFound:
            return []  # forgotten whole a moment ago
        self.intake.take_notes(graph, force=force)
        if who.key not in self._finished:
            if has_open_receipt(graph):
                graph = self.registry.graph(who, wait_s=30 if force else PATIENCE_S)
            self._finished.add(who.key)
        if not graph.pending():
            if who.key in self._trouble:
                graph.update(recovered)
            return []
        if self.away(who.agent):
            return []  # not the model's failure, so none is counted
        reason = "asked" if force else self.due(graph)
        if not reason:
            return []
        graph = self.registry.graph(who, wait_s=30 if force else PATIENCE_S)
        return self._observe_all(graph, reason)

    def rests(self, who: Identity) -> bool:
        """Whether something went wrong with that graph, and it is not time yet to try again."""
        trouble = self._trouble.get(who.key)
        return trouble is not None and self.clock().timestamp() < retry_at(trouble)

    def note_trouble(self, who: Identity, error: Exception) -> None:
        """What goes wrong with one graph is told and counted, and it waits as after a model's failure."""
        why = error_text(error)
        if isinstance(error, OmgError | OSError | sqlite3.Error):
            log.warning("%s: its turns wait: %s", who.key, why)
        else:
            log.exception("%s: its turns wait", who.key)
        note_failure(self._trouble.setdefault(who.key, State()), why, self.registry.now_ms())
        self.registry.tell("observation_failed", graph=who.key, error=why)
        with suppress(Exception):  # the disk that failed it may refuse this as well
            self.registry.opened(who, keep=False).update(
                partial(note_failure, error=why, at_ms=self.registry.now_ms())
            )

    def _observe_all(self, graph: Graph, reason: str) -> list[Observed]:
        """Batch by batch. A model that is down ends it; one that answers nonsense costs that conversation alone."""
        done: list[Observed] = []
        with graph.lock(30 if reason == "asked" else PATIENCE_S):
            replay_open(graph)  # of another process that died: what it observed is not pending
        began_ms, failure, state = self.registry.now_ms(), "", graph.state()
        # Where a reply was of no use, smaller batches part the turn that brings it about from the others.
        limit = max(1, self.config.observation.max_tokens_per_batch >> min(state.failures, 8))
        stuck: set[str] = set()  # conversations that failed: what came later is not observed before
        for batch in pending_batches(graph.intact(), limit):
            if batch[0].session in stuck:
                continue
            started = time.monotonic()
            try:
                done.append(self._observe(graph, batch, reason))
            except Stale as e:
                log.info("%s: %s", graph.identity.key, e)
                return done  # what is pending is looked at anew in the next round
            except OverBudget as e:
                if str(e) != state.error:
                    self._failed(graph, batch, reason, e, started)
                graph.update(partial(note_capped, error=str(e)))
                return done
            except Exception as e:
                self._failed(graph, batch, reason, e, started)
                failure = error_text(e)
                stuck.add(batch[0].session)
                if isinstance(e, OmgError | OSError | sqlite3.Error) and not isinstance(e, BadReply):
                    break  # the model, the disk or the vault: it would fail the next conversation as well
        if failure:
            graph.update(partial(note_failure, error=failure, at_ms=self.registry.now_ms()))
        else:
            graph.update(
                partial(note_completed, reason=reason, began_ms=began_ms, at_ms=self.registry.now_ms())
            )
        return done

    def _failed(
        self, graph: Graph, batch: list[Pending], reason: str, error: Exception, started: float
    ) -> None:
        foreseen = isinstance(error, OmgError | OSError | sqlite3.Error)
        why = error_text(error)
        log.warning("%s: not observed: %s", graph.identity.key, why, exc_info=None if foreseen else error)
        self.registry.tell(
            "observation_failed",
            graph=graph.identity.key,
            trigger=reason,
            error=why[:2_000],
            tokens=sum(p.tokens for p in batch),
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    def _observe(self, graph: Graph, batch: list[Pending], reason: str) -> Observed:
        agent = graph.identity.agent
        tell = self._telling(graph, reason)
        observed = observe_batch(graph, batch, self.observer(agent), self.config, tell=tell)
        log.info(
            "%s: %d messages observed, %d files written, %d dropped",
            graph.identity.key,
            observed.messages,
            len(observed.outcome.written),
            len(observed.dropped),
        )
        for why in observed.dropped:
            log.info("%s: dropped %s", graph.identity.key, why)
        return observed

    def _telling(self, graph: Graph, reason: str) -> Callable[..., None]:
        """`tell` for one batch: with whose it is, why now, and at its end what it cost."""
        before = self.ledger.today(self.clock())

        def telling(event: str, **fields: Any) -> None:
            if event == "observation_end":
                after = self.ledger.today(self.clock())
                same_day = after.calls >= before.calls
                fields |= {
                    "calls": after.calls - before.calls if same_day else after.calls,
                    "model_tokens": after.tokens - before.tokens if same_day else after.tokens,
                    "usd": round(after.usd - before.usd if same_day else after.usd, 6),
                }
            self.registry.tell(event, graph=graph.identity.key, trigger=reason, **fields)

        return telling

    def close(self) -> None:
        """Stop asking models; what they were asked about stays pending."""
        for ask in self._askers.values():
            ask.close()
        self._child.close()
