"""
Keeps every graph of one home: decides which graph a session uses, opens graphs, and records people's changes to
files.

    registry.find("agent:main:main")       the graph of a person: opened, mended after a crash, up to date with its files
    registry.refresh(graph)                record what people changed in the vault since the last look

Before a graph is returned, work that a crash interrupted is finished. Only `opened` returns a graph without this
step.
"""

from __future__ import annotations

import json
import logging
import resource
import secrets
import shutil
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from ..config import Config, configured, shipped_folder
from ..dates.days import time_zone
from ..embed import Embedder
from ..errors import BadNode, Locked, NotFound, OmgError, error_text
from ..forget.erase import begun_paths, finish_forgetting, remove_remains
from ..graph.graph import GRAPH_MARK, REMOVED_GRAPH, Graph, marked_identity, write_mark
from ..graph.state import read_object, write_private
from ..identity import INSIDE, Identity, account_of, identity_of_session, says_owner, speaker_decides
from ..index.index import Index
from ..index.rows import Synced, file_stat
from ..index.store import is_disk_barred
from ..journal import Change, Receipt, commit_receipt, new_receipt, replay_open
from ..message.turn import Turn
from ..plan.drafts import Plan
from ..plan.pages import LISTED, MapPages, maps_of
from ..vault.vault import FORMS, Vault
from .events import event_of, write_event
from .schedule import note_edited

log = logging.getLogger(__name__)

PATIENCE_S = 1.0  # longest wait of background work for a locked vault, because other graphs wait meanwhile
NEW_DAYS = 7  # how long an account counts as new; until then OMG offers to join it to another memory
MAPS_FOLLOW = 200  # if more files change at once, or a map has more notes, the maps wait for the next cycle
# GRAPHS_KEPT graphs stay open: each takes about five file descriptors, and some systems allow a process 256. A daemon keeps
# up to MOST_KEPT (0.8 MB of memory each) if their indexes have at most KEPT_BYTES in all, because sqlite caches a part of
# each.
GRAPHS_KEPT, MOST_KEPT, KEPT_BYTES = 16, 64, 250_000_000


class Registry:
    """Keeps the graphs of one home. *clock*: the time for due work and events; notes are dated by their messages."""

    def __init__(
        self,
        config: Config,
        *,
        embed: Embedder | None,
        clock: Callable[[], datetime],
        on_event: Callable[[Mapping[str, Any]], object] | None = None,
    ) -> None:
        self.config, self.folder, self.clock = config, config.home, clock
        self.on_event = on_event
        self.zone = time_zone(config.time.zone)
        self._embed = embed
        self.only: Identity | None = None  # in a home of one graph, the identity of all sessions (fleet/)
        # A graph stays open while it is in use. After that, only the most recently used graphs stay open.
        self._open: WeakValueDictionary[str, Graph] = WeakValueDictionary()
        self._kept: OrderedDict[str, Graph] = OrderedDict()
        self._bytes: dict[str, int] = {}  # graph → bytes of its index when it was opened
        self.room = GRAPHS_KEPT  # how many graphs may be kept open
        self._opening = threading.Lock()
        self._settling: dict[str, threading.Lock] = {}
        self._settled: WeakSet[Graph] = WeakSet()
        for name in ("spool", "graphs", "cursors"):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        for gone in (self.folder / "graphs").glob(f"{REMOVED_GRAPH}*"):
            remove_remains(gone)

    # --- whose

    def identity_of(
        self, session: str, *, channel: str = "", sender: str = "", owner: bool | None = None
    ) -> Identity | None:
        """
        Find the identity whose memory *session* uses.

        Returns None if *session* has no memory: its turns are not remembered, and its prompts get no notes.

        *owner*: whether only the owner speaks in *session*; None if the gateway did not say. For None, OMG looks up who
        has spoken so far in a chat of the gateway's own interface. In any other chat, None counts as False.
        """
        if channel.lower() in INSIDE:
            known = self._owners().get(session)
            owner = known if owner is None else owner and known is not False
        links, asked = self.config.identity.links, self.config.identity.members
        who = identity_of_session(
            session, links=links, channel=channel, sender=sender, owner=owner is True, asked=asked
        )
        return None if who is None or self.config.switched_off(who.agent) else self.only or who

    def asking(self, context: Mapping[str, Any], session: str | None = None) -> Identity | None:
        """
        The identity whose memory a gateway asks for; None if the session belongs to nobody. *session* replaces the
        session that *context* names.
        """
        return self.identity_of(
            str(context.get("sessionKey") or "") if session is None else session,
            channel=str(context.get("channel") or ""),
            sender=str(context.get("senderId") or ""),
            owner=says_owner(context),
        )

    def why_nobodys(self, session: str) -> str:
        """Why *session* is neither remembered nor served, for a person."""
        who = identity_of_session(session, asked=self.config.identity.members)
        if who is not None and (off := self.config.switched_off(who.agent)):
            return f"OMG is switched off for {session}: {off}"
        return f"{session!r} belongs to nobody, so it is neither remembered nor served"

    def whose(self, turn: Turn) -> Identity | None:
        """The identity whose memory *turn* goes into; None if it is nobody's."""
        return self.identity_of(turn.session, channel=turn.channel, sender=turn.sender, owner=turn.owned)

    def why_apart(self, who: Identity) -> str:
        """Why *who*, a chat in the gateway's own interface, does not share its owner's memory; "" if it does."""
        if not speaker_decides(who.key) or configured(self.folder) is None:
            return ""
        return "the gateway did not say that only the owner speaks in this chat"

    def new_account(self, who: Identity) -> str:
        """
        Tell a person how to join the account of *who* to another memory.

        Returns "" in three cases:
        - The key of *who* names no account.
        - The account was first seen more than NEW_DAYS ago.
        - No other person has a memory in this home.
        """
        account, mark = account_of(who.key), self.folder / "graphs" / who.folder / GRAPH_MARK
        age_s = self.clock().timestamp() - mark.stat().st_mtime
        if (
            not account
            or age_s > NEW_DAYS * 86_400
            or all(i == who or i.scope != "dm" for i in self.identities())
        ):
            return ""
        return (
            f"{account} is new and has a memory of its own. If this account is yours, join the two memories with"
            f" `omg identity join owner {account}`. If it belongs to another person who also writes from a second"
            f" account, join both accounts with `omg identity join NAME {account} CHANNEL:ID`. NAME is the person's"
            " name, CHANNEL:ID the second account"
        )

    def served_there(self, session: str, who: Identity) -> tuple[Identity, str]:
        """
        Return (identity, remark): whose memory is shown in *session*, and a remark for a person.

        Normally the identity is *who*, the identity of *session*. Before anybody has spoken in a chat, the owner of the
        chat is returned. The remark is "" if there is nothing to explain.
        """
        unheard = (
            speaker_decides(session)
            and session not in self._owners()
            and not (self.folder / "graphs" / who.folder).is_dir()
            and configured(self.folder) is not None
        )
        if not unheard:
            return who, self.why_apart(who)
        return self.identity_of(session, owner=True) or who, (
            f"nobody has spoken in {session} yet; this is what the owner of the chat gets with the first message."
            " Other people there get nothing from this memory"
        )

    def _owners(self) -> dict[str, bool]:
        """
        Return session → whether only the owner has spoken in the session so far.

        The sessions listed are those whose key does not name the owner.
        """
        kept = read_object(self.folder / "owners.json")
        return {session: alone is True for session, alone in kept.items()}

    def note_speakers(self, turn: Turn) -> None:
        """
        Record who speaks in a session whose key does not name its owner. Once somebody else has spoken, the session
        stays shared.
        """
        owners = self._owners()
        alone = turn.owned and owners.get(turn.session, True)
        inside = turn.channel.lower() in INSIDE
        told = inside and (turn.owned or turn.shared) and owners.get(turn.session) is not alone
        if told and speaker_decides(turn.session):
            write_private(self.folder / "owners.json", json.dumps({**owners, turn.session: bool(alone)}))

    # --- graphs

    def graph(self, who: Identity, *, wait_s: float = 30.0, keep: bool = True, make: bool = True) -> Graph:
        """
        Open the graph of *who*, up to date with its files. Work that a crash interrupted is finished, and a new vault
        gets the template. *keep* and *make*: as in `opened`.

        Raises Locked if another process holds the vault's lock for longer than *wait_s*.
        """
        graph = self.opened(who, keep=keep, make=make)
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
                        barred = "%s: the disk is full, or not to be written to (%s); shown as last read"
                        log.warning(barred, who.key, e)
                        return graph
                self._settled.add(graph)
        return graph

    def _settle(self, graph: Graph) -> None:
        graph.vault.settle()
        graph.remove_leftovers()
        graph.mend()
        lay_template(graph)
        replay_open(graph)
        synced = graph.index.sync(graph.vault)
        self._note_changes(graph, synced)
        if synced.changed:
            graph.update(note_edited)  # the memory served so far lacked these changes
        graph.index.archive(graph.folder / "archive")
        finish_forgetting(graph)

    def opened(self, who: Identity, *, keep: bool = True, make: bool = True) -> Graph:
        """
        Open the graph of *who*, without waiting for a lock. The graph's index may be out of date.

        A graph stays open while a caller uses it. Afterwards it may stay open for the next caller:
        - With *keep*, the graph stays open, and the least recently used graphs are closed until the rest has room
          (`_has_room`: the number of graphs and the size of their indexes).
        - Without *keep*, the graph stays open only if no other graph must be closed.

        Without *make*, raises NotFound if the graph does not exist any more.
        """
        dropped: list[Graph] = []
        with self._opening:
            graph = self._open.get(who.key)
            if graph is not None and not graph.is_there():
                self._kept.pop(who.key, None)  # the whole graph was forgotten, perhaps by another process
                graph = None
            if graph is None:
                if not make and not (self.folder / "graphs" / who.folder / GRAPH_MARK).exists():
                    raise NotFound(f"{who.key} has no graph any more")
                graph = self._open[who.key] = self._made(who)
                index = graph.index.file
                self._bytes[who.key] = index.stat().st_size if index.exists() else 0
            # A loop over all graphs opens them without *keep*, so that the loop closes no graph in use.
            if keep or (who.key not in self._kept and self._has_room(1)):
                self._kept[who.key] = graph
                self._kept.move_to_end(who.key, last=keep)
                while not self._has_room():
                    dropped.append(self._kept.popitem(last=False)[1])
        if dropped:  # the caller does not wait while SQLite closes another graph's index
            threading.Thread(target=dropped.clear, name="close-graphs").start()
        return graph

    def _has_room(self, more: int = 0) -> bool:
        """Whether *more* graphs may be kept open, besides those kept now."""
        count = len(self._kept) + more
        small = sum(self._bytes[key] for key in self._kept) <= KEPT_BYTES
        return count <= GRAPHS_KEPT or (count <= self.room and small)

    def _made(self, who: Identity) -> Graph:
        folder = self.folder / "graphs" / who.folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_mark(folder, who)
        vault = Vault(self.config.vaults.get(who.key, folder / "vault"), folder / "written.jsonl")
        self._settling.setdefault(who.key, threading.Lock())
        graph = Graph(who, folder, vault, Index(folder / "index.db", self._embed, self.zone), self.zone)
        # In a fleet the notes given would stay in the caches of its machines.
        graph.notes_given = self.only is None
        return graph

    def kept(self) -> list[Graph]:
        """The graphs that are kept open, the most recently used last."""
        with self._opening:
            for key in [key for key, graph in self._kept.items() if not graph.is_there()]:
                del self._kept[key]  # another process forgot the whole graph
            return list(self._kept.values())

    def identities(self) -> list[Identity]:
        """Every identity that has a graph, sorted by key."""
        found = []
        for mark in sorted((self.folder / "graphs").glob(f"[!.]*/{GRAPH_MARK}")):
            try:
                found.append(marked_identity(mark))
            except (OSError, ValueError) as e:
                log.warning("%s cannot be read (%s); that graph is left alone", mark, e)
        return sorted(found, key=lambda i: i.key)

    def graphs(self) -> Iterator[Graph]:
        """Yield every graph that can be opened. For any other graph, the log gives the reason."""
        for who in self.identities():
            try:
                graph = self.graph(who, keep=False, make=False)
            except NotFound:  # the whole graph was forgotten meanwhile
                continue
            except (OmgError, OSError, sqlite3.Error) as e:
                log.warning("%s: %s", who.key, error_text(e))
            else:
                yield graph

    def find(self, key: str | None = None) -> Graph:
        """
        The graph of *key*; without *key* the graph of the first owner, or the only graph. Raises NotFound, which
        lists the existing graphs.
        """
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

    # --- the vault as people leave it

    def refresh(self, graph: Graph, paths: list[str] | None = None, *, wait_s: float = 30.0) -> Synced:
        """Update the index from the files, and record a person's changes to the files. Takes the vault's lock."""
        with graph.lock(wait_s):
            replay_open(graph)  # else a forgetting misses notes of open receipts
            graph.vault.settle()
            if paths and not all(file_stat(graph.vault, path) for path in paths):
                paths = None  # a missing file may have moved, so scan all files
            synced = graph.index.sync(graph.vault, paths)
            self._note_changes(graph, synced)
            finish_forgetting(graph)
        return synced

    def _note_changes(self, graph: Graph, synced: Synced) -> None:
        """
        Record a person's changes: the former path of a renamed note becomes an alias, and a deleted note gets a
        tombstone. After any change by a person, the `system` slice of each session is rendered again.
        """
        ours = begun_paths(graph)  # files that an interrupted forgetting removed
        theirs = [
            p for p in synced.changed if (data := graph.vault.bytes(p)) and not graph.vault.unchanged(data)
        ]
        synced = replace(synced, moved=tuple((old, new) for old, new in synced.moved if old not in ours))
        moved = {old for old, _ in synced.moved}
        for gone in synced.removed:
            if gone.path not in moved and gone.path not in ours and gone.sources:
                graph.tombstones.add(gone.sources, gone.id)
        if synced.moved:
            commit_receipt(graph, moved_receipt(graph, synced, self.clock()))
        today = self.clock().astimezone(graph.zone).date()
        if changes := map_changes(graph, synced, today):
            commit_receipt(graph, new_receipt("edit", self.clock(), changes, name="maps"))
        if theirs or synced.removed or synced.moved:
            graph.update(note_edited)

    # --- events

    def tell(self, event: str, **fields: Any) -> None:
        """
        Write an event to events.jsonl, and pass it to `on_event`. *fields*: numbers, names and reasons, never
        conversation text.
        """
        line = event_of(event, self.clock(), fields)
        try:
            write_event(self.folder, line)
        except (OSError, Locked) as e:  # the work is done, even if its event cannot be written
            log.warning("%s is in no events.jsonl: %s", event, error_text(e))
        if self.on_event is not None:
            try:
                self.on_event(line)
            except Exception:
                log.exception("on_event failed for %s; the work goes on", event)

    def forget_open(self, key: str) -> None:
        """Close the graph of *key*, whose folder is about to move."""
        with self._opening:
            self._kept.pop(key, None)
            graph = self._open.pop(key, None)
        if graph is not None:
            graph.close()

    def now_ms(self) -> int:
        return int(self.clock().timestamp() * 1000)

    def close(self) -> None:
        for graph in list(self._open.values()):
            graph.close()


def room_for_graphs() -> int:
    """How many graphs a daemon may keep open. Each needs six file descriptors, and 256 are left for everything else."""
    return min(MOST_KEPT, max(GRAPHS_KEPT, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 256) // 6))


def map_changes(graph: Graph, synced: Synced, today: date) -> list[Change]:
    """
    The changes that update Now and the maps of written or deleted notes. Lines for deleted notes are removed from the
    maps.
    """
    maps, gone = MapPages(graph), {g.path for g in synced.removed}
    if len(synced.changed) + len(gone) > MAPS_FOLLOW:
        return []
    counts = graph.index.moc_counts()
    for entry in filter(None, map(graph.index.entry, synced.changed)):
        if entry.type in LISTED:
            maps.paths |= maps_of(entry, loop=entry.loop == "open")
            maps.paths |= {path for path in graph.index.backlinks(entry.path) if path.startswith("mocs/")}
    if gone:
        links = graph.index.dangling()
        maps.paths |= {path for path, target in links if target in gone and path.startswith("mocs/")}
    maps.paths = {path for path in maps.paths if counts.get(path, 0) <= MAPS_FOLLOW}
    return [*maps.changes(), *maps.now_changes(today)] if maps.paths else []


def moved_receipt(graph: Graph, synced: Synced, now: datetime) -> Receipt:
    """Make the receipt that adds former paths as aliases, so that every link still works."""
    plan = Plan(graph, now.astimezone(graph.zone).date())
    for old, new in synced.moved:
        with suppress(NotFound, BadNode):  # moved again or broken since
            node = plan.draft(new).node
            if old not in node.aliases:
                plan.retitle(new, replace(node, aliases=(*node.aliases, old)), old)
    followed = tuple(f"followed {old} to {new}" for old, new in synced.moved)
    return new_receipt("edit", now, plan.changes(), name="moved", summary=followed)


# --- The template of a vault: pages, forms and settings of Obsidian that a person starts with. plan/pages.py makes the pages.


STYLE = ".obsidian/snippets/omg.css"  # written first, to mark the settings of Obsidian as OMG's


def lay_template(graph: Graph, *, again: bool = False) -> None:
    """
    Add the template's missing files to a vault that is new to OMG; with *again*, to any vault.

    Existing files are never changed, and nothing is added to a person's own `.obsidian/`. After a crash, the next
    opening of the vault adds the files that are still missing.

    Raises NotFound for a vault that had notes and is empty.
    """
    root, template = graph.vault.root, shipped_folder("vault_template")
    known = (graph.folder / "written.jsonl").exists()
    if known and graph.vault.wrote("index") and next(graph.vault.paths(), None) is None:
        # Probably a drive is not mounted or a sync has not begun. It is unlikely that a person deleted everything.
        raise NotFound(
            f"{root}: the vault is empty, but had notes before. Bring the notes back; or, to begin with an empty vault,"
            f" delete {graph.folder / 'written.jsonl'}"
        )
    if known and (root / "index.md").exists() and not again:
        return
    theirs = (root / ".obsidian").exists() and not (root / STYLE).exists()
    # The index note is written last: until it exists, the next opening of the vault continues here.
    for source in sorted(
        template.rglob("*"), key=lambda p: (p == template / "index.md", p != template / STYLE, p)
    ):
        below = source.relative_to(template)
        target = root / below
        if theirs and below.parts[0] == ".obsidian":
            continue
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            path = below.with_suffix("").as_posix()
            if source.suffix == ".md" and not path.startswith((".", FORMS)):
                graph.vault.write(path, source.read_bytes(), None)
                graph.vault.remember(path, source.read_bytes())
            else:
                whole = root / f".omg-{secrets.token_hex(4)}.tmp"  # `settle` removes the file after a crash
                shutil.copyfile(source, whole)
                whole.replace(target)
