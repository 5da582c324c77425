"""
All graphs of one $OMG_HOME: drops are taken in, what is due is observed.

    spool/<ms>-<uuid>.json  ─ take_in ─  graphs/<graph>/pending  ─ work ─  vault

The daemon's worker and the command line call the same functions; whoever does holds the locks. One rule:
a drop leaves the spool only when what it holds is on disk elsewhere.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from ..config.sections import Config
from ..dates.days import time_zone
from ..embed import Embedder
from ..errors import BadInput, BadNode, BadReply, Locked, NotFound, OmgError, OverBudget, Stale, error_text
from ..forget.erase import finish_forgetting
from ..graph.files import flock, write_private
from ..graph.graph import Graph
from ..graph.pending import Pending
from ..graph.state import State
from ..identity import INSIDE, Identity, identity_of_session
from ..inbox.notes import INBOX_SESSION, take_loose
from ..inbox.runs import Runs
from ..index.changes import Synced
from ..index.index import Index
from ..index.store import is_disk_barred
from ..journal import Receipt, commit_receipt, replay_open
from ..llm.asker import Asker, make_asker
from ..llm.child import Child
from ..llm.ledger import Ledger
from ..llm.question import Ask
from ..llm.windows import model_window
from ..message.drop import read_drop
from ..message.redaction import redact
from ..message.turn import Turn
from ..message.writes import writes_of
from ..observe.question import Observer
from ..observe.run import Observed, observe_batch, pending_batches
from ..openclaw.gateway import own_memory
from ..plan.drafts import Plan
from ..rebuild import finish_swap
from ..vault.vault import Vault
from .events import write_event
from .schedule import (
    note_capped,
    note_completed,
    note_edited,
    note_failure,
    note_heard,
    note_urgent,
    observation_due,
    recovered,
    retry_at,
    step_tokens,
    why_waiting,
)
from .template import lay_template

log = logging.getLogger(__name__)

PATIENCE_S = 1.0  # how long the background waits for a vault that is locked: others' turns lie behind it

GRAPHS_KEPT = 16  # graphs that stay open, some five descriptors each: a process may have no more than 256

ENDED_ERRORS = ("turn", "catchup")  # reasons of a drop that comes when its run is over

MODEL_AWAY = (
    "the Observer is the agent's own model, and no gateway lends it now; what was said waits. Start the gateway, "
    "or name another model in omg.toml, or once, as in `OMG_OBSERVATION_MODEL=offline omg observe` for the rules"
)

URGENT = ("compaction", "reset", "remember")  # reasons for which nothing waits


class Home:
    """
    *gateway* asks the agent's own model through the plugin; None: nobody does at the moment.
    *clock* gives the time of day, for what is due and for events; what is written is dated by the messages.
    """

    def __init__(
        self,
        config: Config,
        *,
        embed: Embedder | None = None,
        gateway: Ask | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.config, self.folder, self.clock = config, config.home, clock
        self.zone = time_zone(config.time.zone)
        self.ledger = Ledger(self.folder / "ledger.jsonl", config)
        self._embed, self.gateway = embed, gateway
        # A graph is open as long as somebody uses it; those used last stay open for the next one.
        self._open: WeakValueDictionary[str, Graph] = WeakValueDictionary()
        self._kept: OrderedDict[str, Graph] = OrderedDict()
        self._opening = threading.Lock()
        self._settling: dict[str, threading.Lock] = {}
        self._settled: WeakSet[Graph] = WeakSet()
        self._finished: set[str] = set()  # graphs in which no crash before our time has left a cycle open
        self._trouble: dict[
            str, State
        ] = {}  # failures by key, also in the state wherever that can be written
        self._loose: dict[Path, tuple[int, ...]] = {}  # notes of inboxes, as they were when last read
        self.runs = Runs(self.folder)
        self._working, self._taking = threading.Lock(), threading.Lock()
        self._child = Child()
        self._askers: dict[tuple[bool, tuple[str, ...]], Asker] = {}
        for name in ("spool", "graphs", "cursors"):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)

    # --- graphs

    def identity_of(
        self, session: str, *, channel: str = "", sender: str = "", owner: bool | None = None
    ) -> Identity | None:
        """
        Whose session this is; None: nobody's, it is neither remembered nor served.

        *owner*: whether the owner alone speaks; None where nobody says, and who spoke there before decides.
        """
        if channel.lower() in INSIDE:
            known = self._owners().get(session)
            owner = known if owner is None else owner and known is not False
        return identity_of_session(
            session,
            links=self.config.identity.links,
            channel=channel,
            sender=sender,
            owner=owner is True,
            asked=self.config.identity.members,
        )

    def whose(self, turn: Turn) -> Identity | None:
        """Whose memory *turn* goes into."""
        return self.identity_of(turn.session, channel=turn.channel, sender=turn.sender, owner=turn.owned)

    def _owners(self) -> dict[str, bool]:
        """Sessions of no known form, inside: whether only the owner was seen to speak there, or another as well."""
        try:
            kept = json.loads((self.folder / "owners.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        if isinstance(kept, list):  # as an earlier version kept the owner's
            kept = {session: True for session in kept if isinstance(session, str)}
        return {session: alone is True for session, alone in kept.items()} if isinstance(kept, dict) else {}

    def _note_speakers(self, turn: Turn) -> None:
        """Keep who speaks in a session whose form does not say. Once another was seen there, it stays a room."""
        owners = self._owners()
        alone = turn.owned and owners.get(turn.session, True)
        inside = turn.channel.lower() in INSIDE
        told = inside and (turn.owned or turn.shared) and owners.get(turn.session) is not alone
        if told and identity_of_session(turn.session, owner=True) != identity_of_session(turn.session):
            write_private(self.folder / "owners.json", json.dumps({**owners, turn.session: bool(alone)}))

    def graph(self, who: Identity, *, wait_s: float = 30.0, keep: bool = True) -> Graph:
        """
        The graph of *who*, up to its files and with what a crash left undone done; the vault's template is laid
        when it is new. *keep* as in `opened`.

        Raises Locked if another process is at the vault for longer than *wait_s*.
        """
        graph = self.opened(who, keep=keep)
        if graph in self._settled:
            return graph
        with self._settling[who.key]:
            if graph not in self._settled:
                with graph.lock(wait_s):
                    try:
                        self._settle(graph)
                    except (OSError, sqlite3.Error) as e:
                        if not is_disk_barred(e) or not graph.index.filled():
                            raise
                        log.warning(
                            "%s: the disk is full, or not to be written to (%s); shown as last read",
                            who.key,
                            e,
                        )
                        return graph
                self._settled.add(graph)
        return graph

    def _settle(self, graph: Graph) -> None:
        finish_swap(graph)  # first: a cut may have left no vault where it belongs
        graph.vault.settle()
        graph.sweep()
        graph.mend()
        lay_template(graph)
        replay_open(graph)
        synced = graph.index.sync(graph.vault)
        self._keep(graph, synced)
        if synced.changed:
            graph.update(note_edited)  # who read before us, read less than there is
        graph.index.archive(graph.folder / "archive")
        finish_forgetting(graph)

    def opened(self, who: Identity, *, keep: bool = True) -> Graph:
        """
        The graph of *who* as it is, for a reader that waits for nobody: its index may be behind.

        It stays open while it is used, and then if it is among the KEPT used last. Without *keep*, only where
        there is room: who goes through all graphs drives out none that is in use.
        """
        with self._opening:
            graph = self._open.get(who.key)
            if graph is None:
                graph = self._open[who.key] = self._made(who)
            longest = None
            if keep or len(self._kept) < GRAPHS_KEPT:
                self._kept[who.key] = graph
                self._kept.move_to_end(who.key)
                longest = self._kept.popitem(last=False) if len(self._kept) > GRAPHS_KEPT else None
        del longest  # here it is closed, if nobody else has it: not while others wait for `_opening`
        return graph

    def _made(self, who: Identity) -> Graph:
        folder = self.folder / "graphs" / who.folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark = folder / "identity.json"
        if not mark.exists():
            write_private(mark, json.dumps({"key": who.key, "scope": who.scope, "agent": who.agent}))
        vault = Vault(self.config.vaults.get(who.key, folder / "vault"), folder / "written.jsonl")
        self._settling.setdefault(who.key, threading.Lock())
        return Graph(who, folder, vault, Index(folder / "index.db", self._embed, self.zone), self.zone)

    def kept(self) -> list[Graph]:
        """The graphs that are held open."""
        with self._opening:
            return list(self._kept.values())

    def identities(self) -> list[Identity]:
        """Every identity that has a graph, by key."""
        found = []
        for mark in sorted((self.folder / "graphs").glob("*/identity.json")):
            try:
                found.append(marked_identity(mark))
            except (OSError, ValueError) as e:
                log.warning("%s cannot be read (%s); that graph is left alone", mark, e)
        return sorted(found, key=lambda i: i.key)

    def graphs(self) -> Iterator[Graph]:
        """Every graph that can be reached; of the others it is said why not."""
        for who in self.identities():
            try:
                graph = self.graph(who, keep=False)
            except (OmgError, OSError, sqlite3.Error) as e:
                log.warning("%s: %s", who.key, error_text(e))
            else:
                yield graph

    def find(self, key: str | None = None) -> Graph:
        """The graph of *key*, or of the only or first owner. Raises NotFound, naming those there are."""
        known = self.identities()
        if key is None:
            default = identity_of_session("agent:main:main") if not known else None
            owners = [i for i in known if i.scope == "dm" and i.key.endswith(":main")]
            chosen = owners[0] if owners else known[0] if len(known) == 1 else default
            if chosen is None:
                raise NotFound("whose graph? give --identity, one of: " + ", ".join(i.key for i in known))
            return self.graph(chosen)
        for who in known:
            if key in (who.key, who.folder):
                return self.graph(who)
        raise NotFound(f"no graph of {key!r}; there are: " + (", ".join(i.key for i in known) or "none yet"))

    # --- taking in

    def take_in(self) -> int:
        """Move every drop of the spool to the graph it belongs to; returns how many messages were new."""
        with self._taking, flock(self.folder / "intake.lock", "the spool"):
            return self._take_in()

    def _take_in(self) -> int:
        fresh = 0
        for file in self.drops():
            try:
                if (read := self._read_drop(file)) is not None:
                    turn, shown = read
                    self.runs.took(
                        turn.session, file.name, shown, self.now_ms(), over=turn.reason in ENDED_ERRORS
                    )
                    fresh += self._take(file.stem, turn)
                    file.unlink(missing_ok=True)
            except FileNotFoundError:
                continue  # another process was quicker
            except Exception as e:  # a graph that is locked, or cannot be written: no other drop waits for it
                log.info("%s: waits in the spool: %s", file.name, error_text(e))
        self.runs.settle(self.now_ms())
        return fresh

    def _read_drop(self, file: Path) -> tuple[Turn, Any] | None:
        """The turn in *file*, and what it shows of files written; None for one of no use, which is set aside."""
        try:
            if not stat.S_ISREG(file.stat().st_mode):
                raise BadInput("not a regular file")
            data = file.read_bytes()
            turn = read_drop(data, self.config.identity.members)
            return turn, writes_of(json.loads(data)["entries"])
        except BadInput as e:
            self._set_aside(file, str(e))
            return None

    def drops(self) -> list[Path]:
        """What is in the spool, oldest first; a dotfile is still being written."""
        return sorted((self.folder / "spool").glob("[!.]*.json"))

    def _take(self, name: str, turn: Turn) -> int:
        who = self.whose(turn)
        if who is None:
            return 0
        self._note_speakers(turn)
        graph = self.graph(who, wait_s=PATIENCE_S)
        messages = graph.unseen(turn.messages)
        if messages:
            kept = graph.put(name, Turn(**{**turn_fields(turn), "messages": tuple(messages)}))
            last = max(m.timestamp for m in messages)
            graph.update(partial(note_heard, session=turn.session, last_ms=last, tokens=kept.tokens))
            redacted = sum(m.redacted for m in messages)
            self.tell(
                "taken_in",
                graph=who.key,
                session=turn.session,
                messages=len(messages),
                tokens=kept.tokens,
                redacted=redacted,
            )
        if turn.reason in URGENT:
            pressed = partial(note_urgent, session=turn.session, reason=turn.reason, at_ms=self.now_ms())
            graph.update(partial(pressed, waiting=bool(graph.pending())))
        return len(messages)

    def _set_aside(self, file: Path, why: str) -> None:
        """A drop that cannot be read is kept, with the reason beside it, where it stops nothing."""
        bad = self.folder / "spool" / "bad"
        try:
            bad.mkdir(exist_ok=True, mode=0o700)
            write_private(bad / f"{file.stem}.txt", why)
            if stat.S_ISREG(file.stat().st_mode):
                write_private(bad / file.name, redact(file.read_bytes().decode("utf-8", "replace"))[0])
                file.unlink()
            else:
                file.rename(bad / file.name)
        except OSError as e:
            log.warning("%s: %s; left in the spool: %s", file.name, why, error_text(e))
        else:
            log.warning("%s: %s; moved to spool/bad", file.name, why)

    # --- the vault as people leave it

    def refresh(self, graph: Graph, paths: list[str] | None = None, *, wait_s: float = 30.0) -> Synced:
        """Bring the index up to the files; what a person did to them is kept in mind. Takes the vault's lock."""
        with graph.lock(wait_s):
            graph.vault.settle()
            synced = graph.index.sync(graph.vault, paths)
            self._keep(graph, synced)
        return synced

    def _keep(self, graph: Graph, synced: Synced) -> None:
        """A person's move becomes an alias, their deletion a tombstone, their edit a fresh `system` slice."""
        theirs = [
            p for p in synced.changed if (data := graph.vault.bytes(p)) and not graph.vault.unchanged(data)
        ]
        moved = {old for old, _ in synced.moved}
        for gone in synced.removed:
            if gone.path not in moved and gone.sources:
                graph.tombstones.add(gone.sources, gone.id)
        if synced.moved:
            commit_receipt(graph, moved_receipt(graph, synced, self.clock()))
        if theirs or synced.removed or synced.moved:
            graph.update(note_edited)

    # --- observing

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
        used = self.gateway is not None or (self.folder / "installed.json").exists()
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
        return Observer(self._askers[key], named[0], min(model_window(m, self.config) for m in named))

    def away(self, agent: str) -> str:
        """Why no model can be asked for *agent* from here, for a person; "" where one can, or none is needed."""
        if self.gateway is not None or set(self.models(agent)) != {"gateway"}:
            return ""
        return MODEL_AWAY

    def due(self, graph: Graph) -> str | None:
        """Why what is pending should be observed now, or None."""
        options = self.config.observation
        return observation_due(graph.state(), graph.pending(), options, self.clock(), self.hindered(graph))

    def waits(self, graph: Graph) -> str:
        """Why what is pending is not observed yet, for a person; "" if nothing is."""
        options = self.config.observation
        return why_waiting(self.standing(graph), graph.pending(), options, self.clock(), self.hindered(graph))

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
        """Why the model of *graph* is not asked at all: it is away, or today's cap is reached; "" where it is."""
        if away := self.away(graph.identity.agent):
            return away
        try:
            if self.observer(graph.identity.agent).ask is not None:
                self.ledger.check(self.clock())
        except OverBudget as e:
            return str(e)
        return ""

    def work(
        self, *, force: bool = False, progress: Callable[[int], None] = lambda tokens: None
    ) -> list[Observed]:
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
                self.take_in()
            except (OSError, Locked) as e:  # what is pending already is not what is wrong with the spool
                log.warning("the spool waits: %s", error_text(e))
                troubles.append(e)
            for who in self.identities():
                if not force and self.rests(who):
                    continue
                try:
                    done += self._work_on(who, force, progress)
                    self._trouble.pop(who.key, None)
                except Locked as e:  # who is at it is done soon
                    log.info("%s; its turns wait meanwhile", e)
                    troubles.append(e)
                except Exception as e:
                    self.stumbled(who, e)
                    troubles.append(e)
        if force and troubles:
            raise troubles[0]
        return done

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While nobody observes for this home, here or in another process."""
        with self._working, flock(self.folder / "work.lock", "the worker"):
            yield

    def _work_on(self, who: Identity, force: bool, progress: Callable[[int], None]) -> list[Observed]:
        graph = self.opened(who, keep=False)  # most have nothing to do, and need not be read for that
        memory = own_memory(self.folder, who.agent)
        if loose := take_loose(graph, self.clock(), self._loose, self.runs.wrote, memory, force=force):
            self.tell("taken_in", graph=who.key, session=INBOX_SESSION, messages=loose)
        if who.key not in self._finished:
            if any((graph.folder / "receipts").glob("*.open.json")):
                graph = self.graph(who, wait_s=30 if force else PATIENCE_S)
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
        graph = self.graph(who, wait_s=30 if force else PATIENCE_S)
        return self._observe_all(graph, reason, progress)

    def rests(self, who: Identity) -> bool:
        """Whether something went wrong with that graph, and it is not time yet to try again."""
        trouble = self._trouble.get(who.key)
        return trouble is not None and self.clock().timestamp() < retry_at(trouble)

    def stumbled(self, who: Identity, error: Exception) -> None:
        """What goes wrong with one graph is told and counted, and it waits as after a model's failure."""
        why = error_text(error)
        if isinstance(error, OmgError | OSError | sqlite3.Error):
            log.warning("%s: its turns wait: %s", who.key, why)
        else:
            log.exception("%s: its turns wait", who.key)
        note_failure(self._trouble.setdefault(who.key, State()), why, self.now_ms())
        self.tell("observation_failed", graph=who.key, error=why)
        with suppress(Exception):  # the disk that failed it may refuse this as well
            self.opened(who, keep=False).update(partial(note_failure, error=why, at_ms=self.now_ms()))

    def _observe_all(self, graph: Graph, reason: str, progress: Callable[[int], None]) -> list[Observed]:
        """Batch by batch. A model that is down ends it; one that answers nonsense costs that conversation alone."""
        done: list[Observed] = []
        with graph.lock(30 if reason == "asked" else PATIENCE_S):
            replay_open(graph)  # of another process that died: what it observed is not pending
        began_ms, failure, state = self.now_ms(), "", graph.state()
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
                continue
            progress(sum(p.tokens for p in batch))
        if failure:
            graph.update(partial(note_failure, error=failure, at_ms=self.now_ms()))
        else:
            graph.update(partial(note_completed, reason=reason, began_ms=began_ms, at_ms=self.now_ms()))
        return done

    def _failed(
        self, graph: Graph, batch: list[Pending], reason: str, error: Exception, started: float
    ) -> None:
        foreseen = isinstance(error, OmgError | OSError | sqlite3.Error)
        why = error_text(error)
        log.warning("%s: not observed: %s", graph.identity.key, why, exc_info=None if foreseen else error)
        self.tell(
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
            self.tell(event, graph=graph.identity.key, trigger=reason, **fields)

        return telling

    # --- events

    def tell(self, event: str, **fields: Any) -> None:
        """One line in events.jsonl: numbers, names and reasons, never conversation text."""
        try:
            write_event(self.folder, event, self.clock(), fields)
        except (OSError, Locked) as e:  # what is told of is done, whether or not it can be told
            log.warning("%s is in no events.jsonl: %s", event, error_text(e))

    def forget_open(self, key: str) -> None:
        """Close a graph whose folder is about to move."""
        with self._opening:
            self._kept.pop(key, None)
            graph = self._open.pop(key, None)
        if graph is not None:
            graph.close()

    def now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)

    def hang_up(self) -> None:
        """Stop asking models; what they were asked about stays pending."""
        for ask in self._askers.values():
            ask.close()
        self._child.close()

    def close(self) -> None:
        self.hang_up()
        for graph in list(self._open.values()):
            graph.close()


def marked_identity(mark: Path) -> Identity:
    """Whose graph it is that *mark*, an identity.json, lies in. Raises OSError, ValueError."""
    value = json.loads(mark.read_text(encoding="utf-8"))
    fields = [value.get(f) for f in ("key", "scope", "agent")] if isinstance(value, dict) else [None]
    if not all(isinstance(field, str) for field in fields):
        raise ValueError("it needs a key, a scope and an agent")
    return Identity(*fields)


def turn_fields(turn: Turn) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in turn.__slots__}


def moved_receipt(graph: Graph, synced: Synced, now: datetime) -> Receipt:
    """The receipt that notes former paths as aliases, so that every link still leads there."""
    plan = Plan(graph, now.astimezone(graph.zone).date())
    for old, new in synced.moved:
        with suppress(NotFound, BadNode):  # moved on, or broken, since
            aliases = plan.draft(new).node.aliases
            if old not in aliases:
                plan.amend(new, aliases=(*aliases, old))
    id = f"{now.astimezone(UTC):%Y%m%dT%H%M%S}-moved-{time.time_ns() % 10**6:06d}"
    return Receipt(id, "edit", now.astimezone(UTC).isoformat(timespec="seconds"), tuple(plan.changes()))
