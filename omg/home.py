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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from . import dates, events, forget, identity, inbox, pace, rebuild
from .config import Config
from .edit import Plan
from .embed import Embedder
from .errors import BadInput, BadNode, BadReply, Locked, ModelError, NotFound, OverBudget, Stale
from .furnish import furnish
from .graph import Graph, Pending, State, flock, write_private
from .identity import Identity
from .index import Index, Synced, barred
from .llm import Ask, Asker, Child, Ledger, asker, window
from .observe import Observed, Observer, batches, observe
from .openclaw import own_memory
from .receipt import Receipt, commit, replay
from .runs import Runs
from .turn import Turn, read_drop
from .turn.redact import redact
from .turn.writes import writes
from .vault import Vault

log = logging.getLogger(__name__)

PATIENCE_S = 1.0  # how long the background waits for a vault that is locked: others' turns lie behind it

# Of one graph, which costs the others nothing: locked, on a drive that is not mounted, a turn damaged on disk.
OTHERS_TROUBLE = (Locked, NotFound, BadInput)
ENDED = ("turn", "catchup")  # reasons of a drop that comes when its run is over
AWAY = (
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
        self.zone = dates.zone(config.time.zone)
        self.ledger = Ledger(self.folder / "ledger.jsonl", config)
        self._embed, self.gateway = embed, gateway
        self._graphs: dict[str, Graph] = {}
        self._opening = threading.Lock()
        self._settling: dict[str, threading.Lock] = {}
        self._settled: set[str] = set()
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
        if channel.lower() in identity.INSIDE:
            known = self._owners().get(session)
            owner = known if owner is None else owner and known is not False
        return identity.of(
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
        # An earlier version kept a list of the owner's.
        sessions = kept if isinstance(kept, dict) else dict.fromkeys(kept, True)
        return {session: alone is True for session, alone in sessions.items()}

    def _note_speakers(self, turn: Turn) -> None:
        """Keep who speaks in a session whose form does not say. Once another was seen there, it stays a room."""
        owners = self._owners()
        alone = turn.owned and owners.get(turn.session, True)
        inside = turn.channel.lower() in identity.INSIDE
        told = inside and (turn.owned or turn.shared) and owners.get(turn.session) is not alone
        if told and identity.of(turn.session, owner=True) != identity.of(turn.session):
            write_private(self.folder / "owners.json", json.dumps({**owners, turn.session: bool(alone)}))

    def graph(self, who: Identity, *, wait_s: float = 30.0) -> Graph:
        """
        The graph of *who*, with what a crash left undone done; the vault's template is laid when it is new.

        Raises Locked if another process is at the vault for longer than *wait_s*.
        """
        graph = self.opened(who)
        if who.key in self._settled:
            return graph
        with self._settling[who.key]:
            if who.key not in self._settled:
                with graph.lock(wait_s):
                    try:
                        self._settle(graph)
                    except (OSError, sqlite3.Error) as e:
                        if not barred(e) or not graph.index.filled():
                            raise
                        log.warning(
                            "%s: the disk is full, or not to be written to (%s); shown as last read",
                            who.key,
                            e,
                        )
                        return graph
                self._settled.add(who.key)
        return graph

    def _settle(self, graph: Graph) -> None:
        rebuild.finish(graph)  # first: a cut may have left no vault where it belongs
        graph.vault.settle()
        graph.sweep()
        furnish(graph)
        replay(graph)
        synced = graph.index.sync(graph.vault)
        self._keep(graph, synced)
        if synced.changed:
            graph.update(pace.edited)  # who read before us, read less than there is
        graph.index.archive(graph.folder / "archive")
        forget.finish(graph)

    def opened(self, who: Identity) -> Graph:
        """The graph of *who* as it is, for a reader that waits for nobody: its index may be behind."""
        with self._opening:
            if who.key not in self._graphs:
                folder = self.folder / "graphs" / who.folder
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                mark = folder / "identity.json"
                if not mark.exists():
                    write_private(mark, json.dumps({"key": who.key, "scope": who.scope, "agent": who.agent}))
                vault = Vault(self.config.vaults.get(who.key, folder / "vault"), folder / "written.jsonl")
                index = Index(folder / "index.db", self._embed, self.zone)
                self._settling[who.key] = threading.Lock()
                self._graphs[who.key] = Graph(who, folder, vault, index, self.zone)
            return self._graphs[who.key]

    def identities(self) -> list[Identity]:
        """Every identity that has a graph, by key."""
        found = []
        for mark in sorted((self.folder / "graphs").glob("*/identity.json")):
            try:
                found.append(Identity(**json.loads(mark.read_text(encoding="utf-8"))))
            except (ValueError, TypeError) as e:
                log.warning("%s cannot be read (%s); that graph is left alone", mark, e)
        return sorted(found, key=lambda i: i.key)

    def graphs(self) -> Iterator[Graph]:
        for who in self.identities():
            yield self.graph(who)

    def find(self, key: str | None = None) -> Graph:
        """The graph of *key*, or of the only or first owner. Raises NotFound, naming those there are."""
        known = self.identities()
        if key is None:
            default = identity.of("agent:main:main") if not known else None
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
        for file in sorted((self.folder / "spool").glob("[0-9]*.json")):
            try:
                data = file.read_bytes()
                turn = read_drop(data, self.config.identity.members)
            except FileNotFoundError:
                continue  # another process was quicker
            except BadInput as e:
                self._set_aside(file, str(e))
                continue
            shown = writes(json.loads(data)["entries"])
            self.runs.took(turn.session, file.name, shown, self.now_ms(), over=turn.reason in ENDED)
            try:
                fresh += self._take(file.stem, turn)
            except OTHERS_TROUBLE as e:
                log.info("%s; its drop waits meanwhile", e)
                continue
            file.unlink(missing_ok=True)
        self.runs.settle(self.now_ms())
        return fresh

    def _take(self, name: str, turn: Turn) -> int:
        who = self.whose(turn)
        if who is None:
            return 0
        self._note_speakers(turn)
        graph = self.graph(who, wait_s=PATIENCE_S)
        messages = graph.unseen(turn.messages)
        if messages:
            kept = graph.put(name, Turn(**{**fields_of(turn), "messages": tuple(messages)}))
            last = max(m.timestamp for m in messages)
            graph.update(partial(pace.heard, session=turn.session, last_ms=last, tokens=kept.tokens))
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
            pressed = partial(pace.pressed, session=turn.session, reason=turn.reason, at_ms=self.now_ms())
            graph.update(partial(pressed, waiting=bool(graph.pending())))
        return len(messages)

    def _set_aside(self, file: Path, why: str) -> None:
        """A drop that cannot be read is kept, with the reason beside it, where it stops nothing."""
        bad = self.folder / "spool" / "bad"
        bad.mkdir(exist_ok=True, mode=0o700)
        write_private(bad / f"{file.stem}.txt", why)
        write_private(bad / file.name, redact(file.read_bytes().decode("utf-8", "replace"))[0])
        file.unlink()
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
            commit(graph, moves(graph, synced, self.clock()))
        if theirs or synced.removed or synced.moved:
            graph.update(pace.edited)

    # --- observing

    def models(self, agent: str = "") -> list[str]:
        """
        Who observes for *agent*, the first and then its fallbacks: its own model, else the shared one.

        Unset, it is the gateway's in a home that a gateway's plugin uses, whether or not one is up; else `offline`.
        """
        own = self.config.observation.agents.get(agent)
        return self._named((own and own.model) or self.config.observation.model)

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
            self._askers[key] = asker(
                self.config, named, self.ledger, gateway=self.gateway, child=self._child, now=self.clock
            )
        return Observer(self._askers[key], named[0], min(window(m, self.config) for m in named))

    def away(self, agent: str) -> str:
        """Why no model can be asked for *agent* from here, for a person; "" where one can, or none is needed."""
        if self.gateway is not None or set(self.models(agent)) != {"gateway"}:
            return ""
        return AWAY

    def due(self, graph: Graph) -> str | None:
        """Why what is pending should be observed now, or None."""
        options = self.config.observation
        return pace.due(graph.state(), graph.pending(), options, self.clock(), self.hindered(graph))

    def waits(self, graph: Graph) -> str:
        """Why what is pending is not observed yet, for a person; "" if nothing is."""
        options = self.config.observation
        return pace.waits(graph.state(), graph.pending(), options, self.clock(), self.hindered(graph))

    def step(self, state: State) -> float:
        """Tokens that make a background step just now."""
        return pace.step(state, self.config.observation)

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

        A model that fails costs its graph a pause and nobody else anything; what failed is in the state, and
        is tried again. One worker at a time.
        """
        done: list[Observed] = []
        with self.resting():
            self.take_in()
            for who in self.identities():
                try:
                    done += self._work_on(
                        self.graph(who, wait_s=30 if force else PATIENCE_S), force, progress
                    )
                except OTHERS_TROUBLE as e:
                    if force:
                        raise
                    log.info("%s; its turns wait meanwhile", e)
        return done

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While nobody observes for this home, here or in another process."""
        with self._working, flock(self.folder / "work.lock", "the worker"):
            yield

    def _work_on(self, graph: Graph, force: bool, progress: Callable[[int], None]) -> list[Observed]:
        memory = own_memory(self.folder, graph.identity.agent)
        if loose := inbox.take(graph, self.clock(), self._loose, self.runs.wrote, memory, force=force):
            self.tell("taken_in", graph=graph.identity.key, session=inbox.SESSION, messages=loose)
        if self.away(graph.identity.agent):
            return []  # not the model's failure, so none is counted
        reason = "asked" if force and graph.pending() else self.due(graph)
        return self._observe_all(graph, reason, progress) if reason else []

    def _observe_all(self, graph: Graph, reason: str, progress: Callable[[int], None]) -> list[Observed]:
        """Batch by batch. A model that is down ends it; one that answers nonsense costs that conversation alone."""
        done: list[Observed] = []
        with graph.lock(30 if reason == "asked" else PATIENCE_S):
            replay(graph)  # of another process that died: what it observed is not pending
        began_ms, failure, state = self.now_ms(), "", graph.state()
        # Where a reply was of no use, smaller batches part the turn that brings it about from the others.
        limit = max(1, self.config.observation.max_tokens_per_batch >> min(state.failures, 8))
        stuck: set[str] = set()  # conversations that failed: what came later is not observed before
        for batch in batches(graph.pending(), limit):
            if batch[0].session in stuck:
                continue
            started = time.monotonic()
            try:
                done.append(self._observe(graph, batch, reason))
            except Stale as e:
                log.info("%s: %s", graph.identity.key, e)
                return done  # what is pending is looked at anew in the next round
            except ModelError as e:
                over = isinstance(e, OverBudget)
                if not over or str(e) != state.error:
                    self._failed(graph, batch, reason, e, started)
                if over:
                    graph.update(partial(pace.capped, error=str(e)))
                    return done
                failure = str(e)
                stuck.add(batch[0].session)
                if not isinstance(e, BadReply):
                    break
                continue
            progress(sum(p.tokens for p in batch))
        if failure:
            graph.update(partial(pace.failed, error=failure, at_ms=self.now_ms()))
        else:
            graph.update(partial(pace.completed, reason=reason, began_ms=began_ms, at_ms=self.now_ms()))
        return done

    def _failed(
        self, graph: Graph, batch: list[Pending], reason: str, error: ModelError, started: float
    ) -> None:
        log.warning("%s: not observed: %s", graph.identity.key, error)
        self.tell(
            "observation_failed",
            graph=graph.identity.key,
            trigger=reason,
            error=str(error)[:2_000],
            tokens=sum(p.tokens for p in batch),
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    def _observe(self, graph: Graph, batch: list[Pending], reason: str) -> Observed:
        agent = graph.identity.agent
        tell = self._telling(graph, reason)
        observed = observe(graph, batch, self.observer(agent), self.config, tell=tell)
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
        events.tell(self.folder, event, self.clock(), fields)

    def forget_open(self, key: str) -> None:
        """Close a graph whose folder is about to move."""
        if graph := self._graphs.pop(key, None):
            graph.close()
            self._settled.discard(key)

    def now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)

    def hang_up(self) -> None:
        """Stop asking models; what they were asked about stays pending."""
        for ask in self._askers.values():
            ask.close()
        self._child.close()

    def close(self) -> None:
        self.hang_up()
        for graph in self._graphs.values():
            graph.close()


def fields_of(turn: Turn) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in turn.__slots__}


def moves(graph: Graph, synced: Synced, now: datetime) -> Receipt:
    """The receipt that notes former paths as aliases, so that every link still leads there."""
    plan = Plan(graph, now.astimezone(graph.zone).date())
    for old, new in synced.moved:
        with suppress(NotFound, BadNode):  # moved on, or broken, since
            aliases = plan.draft(new).node.aliases
            if old not in aliases:
                plan.amend(new, aliases=(*aliases, old))
    id = f"{now.astimezone(UTC):%Y%m%dT%H%M%S}-moved-{time.time_ns() % 10**6:06d}"
    return Receipt(id, "edit", now.astimezone(UTC).isoformat(timespec="seconds"), tuple(plan.changes()))
