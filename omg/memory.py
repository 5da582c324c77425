"""
`Memory`: an open home, for programs, the command line, the daemon and the doctor.

It is three parts put together: `registry` (whose graphs there are), `intake` (what comes in) and `worker` (what is
observed, and by which model). Not here: any of what they do. What a program does with a memory, it does as
the command line and the daemon would, beside them, and with the same gates.
"""

from __future__ import annotations

import datetime as dt
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

from .client import ask_daemon
from .config import Config, load_config
from .curate import OpenNote, forget_selection, open_note, select_to_forget
from .embed import Embedder, load_embedder
from .errors import BadInput, Locked
from .forget.erase import select_words
from .forget.selection import Selection
from .graph.graph import Graph
from .identity import Identity
from .importers import capture_entries, message_entries
from .index.store import Hit
from .inject.decide import Slice, preview, slice_for
from .llm.child import Child
from .llm.replies import Ask
from .message.drop import to_epoch_ms
from .node.note import Source
from .reflect.run import Progress
from .text.words import how_many
from .tools.changing import remember_note
from .worker.intake import Intake
from .worker.nights import NightDone, reflect_each
from .worker.registry import Registry
from .worker.worker import WorkDone, Worker, observe_pending

log = logging.getLogger(__name__)

MAIN = "agent:main:main"  # the owner's session
DAY_S = 86_400.0  # deadline of work in the daemon: to observe an archive of years takes many calls of a model
MISSING_VECTORS = 100  # made where none does it in the background, before a search


class Memory:
    """
    What a program remembers, and may open, read and correct.

        with Memory() as memory:
            memory.capture([{"role": "user", "content": "I prefer short answers."}])
            memory.observe()
            memory.inject("How do I like my answers?").prompt

    *home* is the state folder, or its configuration; None: the one that the environment names ($OMG_HOME). It is made
    if it is not there. *embed* makes vectors, None for none; *gateway* asks a model for "gateway" in the configuration;
    *child* is the process that asks models, where several homes share one; *clock* gives the time of day: what is written
    is dated by the messages. *on_event* is called with each line that goes into events.jsonl, as a mapping with `event`,
    in the thread that does the work; what a daemon does is told there alone. Raises ConfigError, naming key, value and
    remedy.

    Whose memory it is, a *session* says: "agent:main:main" is the owner's, and any name of yours ("alice") has a memory
    of its own, that no other name reads or writes. "alice:thread:7" is a conversation of alice's. BadInput if nobody's.

    Threads may share one; so may processes, and a daemon beside. Where another process holds a vault for longer than
    30 s, what waits for it raises Locked.
    """

    def __init__(
        self,
        home: Path | str | Config | None = None,
        *,
        embed: Embedder | Literal["configured"] | None = "configured",
        gateway: Ask | None = None,
        child: Child | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_event: Callable[[Mapping[str, Any]], object] | None = None,
    ) -> None:
        if not isinstance(home, Config):
            home = load_config(Path(home).expanduser().absolute() if home else None)
        config = home
        made = load_embedder(config.embedding.model) if embed == "configured" else embed
        self.registry = Registry(config, embed=made, clock=clock, on_event=on_event)
        self.intake = Intake(self.registry)
        self.worker = Worker(self.intake, gateway=gateway, child=child)
        # What nearly every caller needs; all else by its part.
        self.config, self.folder, self.clock = config, config.home, clock
        self.find, self.graph, self.refresh = self.registry.find, self.registry.graph, self.registry.refresh
        self.take_in, self.work = self.intake.take_in, self.worker.work

    # --- what was said

    def capture(self, messages: Iterable[Mapping[str, Any]], *, session: str = MAIN) -> int:
        """
        Take in what was said; returns how many messages were new. They are on disk then, cleaned of secrets, and wait
        to be observed.

        A message has `role` (user, assistant or tool), `content`, and maybe `timestamp` (ISO or datetime, UTC where
        it names no zone; or seconds or milliseconds since the epoch), `id` and `name` (who speaks). The same again
        adds nothing: it is known by its `id` within the session, else by its words and timestamp. One with neither is
        said now, each time. System messages are left out. Raises BadInput, and nothing is taken then.
        """
        who = self._whose(session)
        return capture_entries(
            self.intake, who, session, message_entries(messages, session, self.registry.now_ms())
        )

    def observe(self, *, force: bool = True) -> WorkDone:
        """
        Turn what is pending into notes; without *force* only what is due. The daemon does it where one is up.

        A model that fails costs no turn: what was not observed is in `waiting`, with the reason, and is tried again.
        """
        body = {"force": force}
        if (answer := handed_to_daemon(self.worker, "/work", body)) is not None:
            return cast(WorkDone, answer)
        return observe_pending(self.worker, body)

    def reflect(
        self,
        session: str | None = None,
        *,
        since: dt.date | None = None,
        dry_run: bool = False,
        progress: Callable[[str], Progress] = lambda identity: lambda done, all: None,
    ) -> list[NightDone]:
        """
        Tidy the graph of *session*, or every graph: maps, repetitions, contradictions, weeks and months. The daemon
        does it where one is up. One answer a graph; what went wrong with one is in its `error`.

        *since*: go over what was noted on or after this day again. *dry_run* asks the model and writes nothing.
        """
        who = self._known(session).identity if session else None
        asked = {"identity": who and who.key, "since": since and since.isoformat(), "dry_run": dry_run}
        if (answer := ask_daemon(self.folder, "/reflect", asked, timeout_s=DAY_S)) is not None:
            return cast(list[NightDone], answer["graphs"])
        whose = [who] if who else None
        found = reflect_each(self.worker, whose, since=since, dry_run=dry_run, progress=progress)
        return [night.value() for night in found]

    # --- what is known

    def search(self, query: str, *, session: str = MAIN, limit: int = 10) -> list[Hit]:
        """The notes that answer *query*, best first, at most *limit*; [] where nothing is remembered."""
        graph = self._read(self._whose(session))
        return graph.index.search(query, limit, now=self.clock()) if graph else []

    def open(self, name: str, *, session: str = MAIN) -> OpenNote:
        """
        The note that *name* (path, id, alias or file name) means, what links to it, and the messages it came from.

        Raises NotFound with the nearest there is, BadInput if it may be several, BadNode if it cannot be parsed.
        """
        return open_note(self._read(self._whose(session)) or self._known(session), name)

    def inject(self, prompt: str, *, session: str = MAIN, model: str = "", dry_run: bool = False) -> Slice:
        """
        What a model is to know before *prompt*: `system` for the system prompt, `prompt` to put before the message,
        and `tokens` of both, within `[inject] budget_tokens`. "" where there is nothing to say.

        `system` stays the same, byte for byte, until something calls for it anew, as `reason` says then, so that a
        prompt cache holds; *model*: another one has no cache of it. With *dry_run* nothing of this is kept. No model
        is asked.
        """
        if dry_run:
            return self.explain(prompt, session=session)[0]
        graph = self._read(self._whose(session))
        if graph is None:
            return Slice()
        tell = partial(self.registry.tell, graph=graph.identity.key)
        return slice_for(graph, prompt, session, now=self.clock(), config=self.config, model=model, tell=tell)

    def explain(self, prompt: str, *, session: str = MAIN) -> tuple[Slice, str]:
        """What `inject` would give, of which nothing is kept; and why it is nothing, or whose it is, for a person."""
        who = self._whose(session)
        note = self.registry.why_apart(who)
        if self.registry.is_unheard(session):
            who = self.registry.identity_of(session, owner=True) or who
            note = (
                f"nobody has spoken in {session} yet; this is what its owner is given there, from the first message on."
                " Anybody else gets nothing of it"
            )
        graph = self._read(who)
        given = preview(graph, prompt, session, self.clock(), self.config) if graph else Slice()
        if given.tokens:
            return given, note
        if not self.config.inject.budget_tokens:
            why = "[inject] budget_tokens is 0"
        elif graph is None or not any(e.path.startswith("nodes/") for e in graph.index.entries()):
            waits = len(graph.pending()) if graph else 0
            why = f"no notes of {who.key} yet" + (
                f", {how_many(waits, 'turn')} to be observed" if waits else ""
            )
        else:
            why = "nothing that is remembered bears on it"
        return given, f"nothing is given: {why}" + (f"; {note}" if note else "")

    # --- by hand

    def remember(
        self,
        text: str,
        *,
        said: Mapping[str, Any] | str | None = None,
        title: str = "",
        type: str = "fact",
        when: str = "",
        session: str = MAIN,
    ) -> str:
        """
        Write *text*, one line, as a note, at once and without a model; returns its path. *when*: the day or days of
        what happens, "2026-03-05" or "2026-03-05..2026-03-07".

        *said*: the user's message that asks for it, as for `capture`, or its words; it is captured, and is the note's
        source. The gates are those of omg_remember: the user vouches (origin user) only for what stands in their
        words, or in what the assistant proposed before and they took up. The rest is the assistant's, and what is said
        by nobody counts as a tool's, is marked so, and is never in `system`: of both, only facts and episodes are
        written, whatever *type* says. So it is safe to hand to a model as a tool, as long as *said* comes from your
        code and not from the model. Raises BadInput.
        """
        graph = self.graph(self._whose(session))
        message, source = {"role": "user", "content": said} if isinstance(said, str) else said, None
        if message is not None:
            if message.get("role") != "user" or not isinstance(message.get("content"), str):
                raise BadInput("`said` needs to be a message of role user, with text as its content")
            (entry,) = message_entries([message], session, self.registry.now_ms())
            capture_entries(self.intake, graph.identity, session, [entry])
            source = Source(session, entry["entryId"], to_epoch_ms(entry["createdAt"]) or 0)
        words = str(message["content"]) if message else ""
        return remember_note(self.registry, graph, text, title, type, said=words, source=source, when=when)

    def forget(
        self, *names: str, matching: str | None = None, session: str = MAIN, dry_run: bool = False
    ) -> Selection:
        """
        Forget notes and the messages they came from, for good; returns what went, or with *dry_run* what would.

        *names*: of notes, as for `open`; *matching*: every note and message that holds this text. Nothing brings it
        back, not capturing the same again, and not `omg rebuild`. Raises NotFound, BadInput.
        """
        if not names and matching is None:
            raise BadInput("forget what? name notes, or give `matching`")
        self.take_in()
        graph = self._known(session)
        self.refresh(graph)  # a note that a person has moved since goes as well
        what = select_to_forget(graph, ids=names, matching=matching)
        if what and not dry_run:
            forget_selection(self.intake, graph, what)
        return what

    def redact(self, text: str, *, session: str = MAIN, dry_run: bool = False) -> Selection:
        """
        Take *text* out of every note and message that holds it, for good, and leave all else; returns where it was, or
        with *dry_run* where it is. Raises BadInput for a text that cannot be taken out.
        """
        self.take_in()
        graph = self._known(session)
        self.refresh(graph)
        what = select_words(graph, text)
        if what and not dry_run:
            forget_selection(self.intake, graph, what)
        return what

    # --- whose

    def _whose(self, session: str) -> Identity:
        who = self.registry.identity_of(session)
        if who is None:
            raise BadInput(self.registry.why_nobodys(session))
        return who

    def _read(self, who: Identity) -> Graph | None:
        """The graph of *who*, with what people did to its files since; None if there is none yet."""
        if not (self.folder / "graphs" / who.folder).is_dir():
            return None
        graph = self.graph(who)
        with suppress(Locked, OSError, sqlite3.Error):  # somebody is at it, or the disk is full: as last read
            self.refresh(graph, wait_s=0)
            graph.index.embed(MISSING_VECTORS)
        return graph

    def _known(self, session: str) -> Graph:
        """The graph of *session*, or of its folder's name. Raises NotFound, naming those there are."""
        who = self.registry.identity_of(session)
        there = who is not None and (self.folder / "graphs" / who.folder).is_dir()
        return self.graph(who) if who and there else self.find(session)

    def close(self) -> None:
        """Stop asking models and let go of the graphs; what was asked about stays pending."""
        self.worker.close()
        self.registry.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def handed_to_daemon(worker: Worker, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    The daemon's answer to *body*; None if none is up, or if this command was told to ask another model than the daemon's,
    by a configuration that changed since the daemon was started or by `OMG_OBSERVATION_MODEL`.
    """
    found = ask_daemon(worker.registry.folder, "/health", {}, timeout_s=10)
    if found is None:
        return None
    theirs, ours = found.get("observer"), worker.models()
    if theirs != ours and not found.get("fleet"):
        log.warning(
            "the daemon observes with %s, this command was told %s and does the work itself; `omg down` stops the daemon",
            ", else ".join(theirs or ["an earlier version's model"]),
            ", else ".join(ours),
        )
        return None
    return ask_daemon(worker.registry.folder, path, dict(body), timeout_s=DAY_S)
