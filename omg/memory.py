"""
`Memory`: an open home, for programs, the command line, the daemon and the doctor.

    capture    importers/taking.py ─ worker/intake.py ─▶ pending/     takes messages in, cleaned
    observe    worker/worker.py ─ observe/run.py ─▶ vault/            turns become notes
    reflect    worker/nights.py ─ reflect/run.py ─▶ vault/            tidies the notes, at night
    inject     index/ ─ inject/decide.py ─▶ a Slice                   the memory for one prompt

A Memory joins three parts: `registry` (the graphs), `intake` (takes turns in) and `worker` (observes turns). A program may
use a home while the command line and the daemon use the same home.
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
from .errors import BadInput, BadNode, Locked, NotFound, error_text, how_many
from .forget.selection import Selection, select_words
from .graph.graph import Graph
from .identity import Identity
from .importers import capture_entries, message_entries
from .index.store import Hit
from .inject.decide import Prompt, Slice, preview, slice_for
from .llm.child import Child
from .llm.replies import Ask
from .message.drop import to_epoch_ms
from .node.note import Source
from .tools.changing import NoteAsked, remember_note
from .worker.intake import Intake
from .worker.nights import NightDone, reflect_each
from .worker.registry import Registry
from .worker.worker import DAY_S, WorkDone, Worker, handed_to_daemon, observe_pending

log = logging.getLogger(__name__)

MAIN = "agent:main:main"  # the owner's session
# errors of a full or failing disk; the last two are those of a vault or page that cannot be read
DISK_FAILS = (OSError, sqlite3.OperationalError, NotFound, BadNode)
MISSING_VECTORS = 100  # vectors made before a search, if no daemon makes them in the background


class Memory:
    """
    A program's memory: conversations become notes, which a person can open, read and correct.

        with Memory() as memory:
            memory.capture([{"role": "user", "content": "I prefer short answers."}])
            memory.observe()
            memory.inject("How do I like my answers?").prompt

    *home* is the state folder, or a configuration; None means the folder that $OMG_HOME names. A missing folder is made.
    *embed* makes vectors; None means no vectors. *gateway* answers for the model "gateway" of the configuration. *child* is
    the process that asks models, for homes that share one process. *clock* gives the present time; notes are dated by their
    messages. *on_event* is called with each event of events.jsonl, as a mapping with `event`, in the thread that does the
    work. A daemon's work does not call *on_event*. Raises ConfigError, which names the key, the value and the remedy.

    A *session* names the memory to use. "agent:main:main" is the owner's. Any other name ("alice") has its own memory, which
    no other name can read or write. "alice:thread:7" is one of alice's conversations. Methods raise BadInput for a session
    that belongs to nobody.

    Several threads may use one Memory. Several processes and a daemon may use one home. A method raises Locked if another
    process locks a vault for longer than 30 s.
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
        # What nearly every caller needs. The parts have the rest.
        self.config, self.folder, self.clock = config, config.home, clock
        self.find, self.graph, self.refresh = self.registry.find, self.registry.graph, self.registry.refresh
        self.take_in, self.work = self.intake.take_in, self.worker.work

    # --- what was said

    def capture(self, messages: Iterable[Mapping[str, Any]], *, session: str = MAIN) -> int:
        """
        Store *messages*, without secrets, until they are observed. Return the number of new messages.

        A message has `role` (user, assistant or tool) and `content`. It may have `timestamp` (ISO text or a datetime, UTC
        if without a zone; or seconds or milliseconds since the epoch), `id`, and `name` (the speaker). Known messages are
        ignored: OMG recognizes a message by its `id` within the session, else by its words and timestamp. A message without
        `id` and `timestamp` counts as said now. System messages are left out. If a message is malformed, raises BadInput and
        stores nothing.
        """
        who = self._whose(session)
        return capture_entries(
            self.intake, who, session, message_entries(messages, session, self.registry.now_ms())
        )

    def observe(self, *, force: bool = True) -> WorkDone:
        """
        Make notes of the pending turns; without *force* only of those that are due. If a daemon runs, it does the work.

        No turn is lost if a model fails: `waiting` in the result lists the turns that were not observed, with the reason.
        These turns are tried again later.
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
    ) -> list[NightDone]:
        """
        Tidy the notes of *session*, or of every session. Return one result for each graph; `error` in a result
        says what failed.

        - Updates the maps.
        - Merges repeated notes, and looks for contradictions.
        - Writes the pages of past weeks and months.

        If a daemon runs, the daemon does the work. *since*: also look again at the notes written on or after this
        day. *dry_run*: ask the model, but write nothing.
        """
        who = self._known(session).identity if session else None
        asked = {"identity": who and who.key, "since": since and since.isoformat(), "dry_run": dry_run}
        if (answer := ask_daemon(self.folder, "/reflect", asked, timeout_s=DAY_S)) is not None:
            return cast(list[NightDone], answer["graphs"])
        whose = [who] if who else None
        return [*reflect_each(self.worker, whose, since=since, dry_run=dry_run)]

    # --- what is known

    def search(self, query: str, *, session: str = MAIN, limit: int = 10) -> list[Hit]:
        """Return the notes that answer *query*, best first, at most *limit*; [] if nothing is remembered."""
        graph = self._read(self._whose(session))
        return graph.index.search(query, limit, now=self.clock()) if graph else []

    def open(self, name: str, *, session: str = MAIN) -> OpenNote:
        """
        Return the note that *name* (path, id, alias or file name) means, with the notes that link to it and the messages
        that it was made from.

        Raises NotFound, with the nearest name; BadInput if several notes fit; BadNode if the note cannot be parsed.
        """
        return open_note(self._read(self._whose(session)) or self._known(session), name)

    def inject(self, prompt: str, *, session: str = MAIN, model: str = "", dry_run: bool = False) -> Slice:
        """
        Return the memory for one prompt: `system` for the system prompt, `prompt` to put before the message, and the
        `tokens` of both, within `[inject] budget_tokens`. Both texts may be "". No model is asked.

        `system` stays the same, byte for byte, so that prompt caches work. If `system` is new, `reason` says why. *model*:
        the model that gets the prompt; a new model has no cache to keep. *dry_run*: record nothing. On a full or failing
        disk, OMG logs the error, records nothing, and returns the memory if it can be read.
        """
        if dry_run:
            return self.explain(prompt, session=session)[0]
        try:
            if (graph := self._read(self._whose(session))) is None:
                return Slice()
            tell, now = partial(self.registry.tell, graph=graph.identity.key), self.clock()
            return slice_for(graph, Prompt(prompt, session, model), now, self.config, tell)
        except DISK_FAILS as e:
            log.warning("nothing of this prompt's memory could be recorded: %s", error_text(e))
        with suppress(*DISK_FAILS):
            return self.explain(prompt, session=session)[0]
        return Slice()

    def explain(self, prompt: str, *, session: str = MAIN) -> tuple[Slice, str]:
        """Return what `inject` would return, but record nothing. Also return a remark for a person: why the memory is empty,
        or whose memory it is."""
        who, note = self.registry.served_there(session, self._whose(session))
        graph = self._read(who)
        given = preview(graph, prompt, session, self.clock(), self.config) if graph else Slice()
        if given.tokens:
            return given, note
        if not self.config.inject.budget_tokens:
            why = "[inject] budget_tokens is 0"
        elif graph and any(e.path.startswith("nodes/") for e in graph.index.entries()):
            why = "no note is about this prompt"
        else:
            waits = len(graph.pending()) if graph else 0
            why = f"no notes of {who.key} yet" + f", {how_many(waits, 'turn')} to be observed" * bool(waits)
        return given, "; ".join(filter(None, (f"nothing is given: {why}", note)))

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
        Write *text*, one line, as a note, at once and without a model. Return the note's path. Raises BadInput if an
        argument cannot be used.

        - *said*: the user's message that asks for the note: a message as in `capture`, or only the text of the message.
          The message is captured and becomes the note's source.
        - *when*: the day or days of the event, "2026-03-05" or "2026-03-05..2026-03-07".

        The note's origin depends on *said*:

        - "user" if a sentence in the user's message says exactly *text*, and the message names the days of *when*
        - "assistant" for any other message, until the user confirms the note
        - "tool" without *said*

        A note of origin "assistant" or "tool" becomes a fact or an episode, whatever *type* says. Prompts name the
        origin of such a note, and the system prompt never holds such a fact. If a model calls this method as a tool,
        your code must take *said* from the conversation, never from the model's arguments.
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
        note = NoteAsked(text, title, type, when)
        return remember_note(self.registry, graph, note, words, source).path

    def forget(
        self, *names: str, matching: str | None = None, session: str = MAIN, dry_run: bool = False
    ) -> Selection:
        """
        Forget notes and the messages that they were made from, for good. Return what was forgotten; with *dry_run*, only
        return what would be.

        *names*: names of notes, as for `open`. *matching*: forget every note and message that contains this text. Capturing
        the messages again, or `omg rebuild`, brings nothing back. Raises NotFound, BadInput.
        """
        if not names and matching is None:
            raise BadInput("forget what? name notes, or give `matching`")
        return self._take_out(session, dry_run, partial(select_to_forget, ids=names, matching=matching))

    def redact(self, text: str, *, session: str = MAIN, dry_run: bool = False) -> Selection:
        """
        Remove *text* from every note and message that contains it, for good, and leave the rest. Return the notes and
        messages with *text*; with *dry_run*, change nothing. Raises BadInput for a text that cannot be removed.
        """
        return self._take_out(session, dry_run, partial(select_words, words=text))

    def _take_out(self, session: str, dry_run: bool, chosen: Callable[[Graph], Selection]) -> Selection:
        self.take_in()
        graph = self._known(session)
        self.refresh(graph)  # finds notes that a person has moved
        what = chosen(graph)
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
        """Return the graph of *who*, up to date with its files; None if *who* has no graph yet."""
        if not (self.folder / "graphs" / who.folder).is_dir():
            return None
        graph = self.graph(who)
        # If another process has the lock, or the disk is full, use the graph as last read.
        with suppress(Locked, OSError, sqlite3.Error):
            self.refresh(graph, wait_s=0)
            graph.index.embed(MISSING_VECTORS)
        return graph

    def _known(self, session: str) -> Graph:
        """Return the graph of *session*, which may also be the name of a graph's folder. Raises NotFound, which lists all
        graphs."""
        who = self.registry.identity_of(session)
        there = who is not None and (self.folder / "graphs" / who.folder).is_dir()
        return self.graph(who) if who and there else self.find(session)

    def close(self) -> None:
        """Stop asking models and close the graphs. Turns that were being observed stay pending."""
        self.worker.close()
        self.registry.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
