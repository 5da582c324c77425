"""
What the daemon does for the clients: it gives memory to their sessions, and captures what was said in them.

A session is given the standing text once for each context, and with each prompt the notes about it. A client keeps all of
a hook's text in the conversation, so nothing can be taken back: the standing text is given again only after an edit, after
a forgetting, or when much was said since. The person's memory and the project's stand side by side, each under its name.

A mark in the spool says which transcript grew, and its size at that time. The transcript is read READ_AFTER_S later,
because a client may write the last line after its hook, and the whole turns in it become drops, as the gateway's plugin
writes them. What the person typed after the mark waits for the next one. The drop is on disk before the offset moves;
messages that are read twice are recognized by their ids.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import error_text
from ..graph.state import read_object, write_private
from ..importers.drops import make_drop
from ..importers.readers import Session
from ..inject.decide import Slice, slice_for
from ..memory import Memory
from ..message.drop import to_epoch_ms
from ..message.envelope import strip_wrapper, wrap_memory
from .hook import HOSTS, MARKS, OPENCODE, Host
from .sessions import Heartbeat, HostSession, HostSessions, heartbeats, installed_hosts
from .transcripts import READERS, Entry, Row, of_sub_agent

log = logging.getLogger(__name__)

# Reasons to give a standing text again in a context that has an older one: that one is wrong, or far behind.
GIVEN_AGAIN = ("edit", "threshold")
TOOL_NAMES = (("omg_search", "the tool `search` of omg"), ("omg_open", "the tool `fetch` of omg"))
HEAD_CHARS = 400  # of the headings and the tag around the text
TRIES = 4
PERSON, PROJECT = "What is remembered of the person", "What is remembered of this project ({})"
BEATS_EVERY_S = 60

READ_AFTER_S = 1.0  # in 32 turns of Claude Code the last line came at most 0.7 s after the hook
IDLE_S = 600  # a transcript that was not written for so long belongs to a session that is over
DROP_ENTRIES = 50
REASONS = {"turn": "turn", "compact": "compaction", "end": "turn", "start": "catchup"}


class Serving:
    """The daemon's state for the clients of one home."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.sessions = memory, HostSessions(memory.folder)
        self.capture = Capture(memory.folder, self.sessions)
        self._begun: deque[tuple[HostSession, int]] = (
            deque()
        )  # sessions that may have turns which hooks missed
        self._caught_up, self._beats_at = False, 0.0
        self._silent: list[Heartbeat] = []

    # --- questions of a hook

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """`{host, event, session, cwd, prompt, source, transcript, size}` → `{text}`; `size` is the transcript's."""
        host, event = HOSTS.get(str(body.get("host"))), str(body.get("event"))
        session, cwd, prompt, transcript = (
            str(body.get(key) or "") for key in ("session", "cwd", "prompt", "transcript")
        )
        found = self.sessions.find(host.name, session, cwd) if host and session else None
        if not host or not found or (host.name == OPENCODE.name and of_sub_agent(transcript, session)):
            return {}
        fresh = event == "start" and body.get("source") in host.fresh
        found = replace(found, transcript=transcript or found.transcript, given={} if fresh else found.given)
        text, given = self._text(host, found, event, prompt)
        served_ms = time.time_ns() // 1_000_000 if event == "prompt" else found.served_ms
        changed = {"transcript": found.transcript, "given": {**found.given, **given}, "served_ms": served_ms}
        self.sessions.update(found, **changed)
        if event == "start" and isinstance(size := body.get("size"), int):
            self._begun.append((found, size))
        return {"text": text, "host": host.name, "session": session, "given": [*given]}

    def lost(self, value: Mapping[str, Any]) -> None:
        """The hook had ended before its answer came, so the text of that answer is in no context."""
        found = self.sessions.find(str(value.get("host")), str(value.get("session")), "")
        if found is not None and (keys := value["given"]):
            self.sessions.update(found, given={k: v for k, v in found.given.items() if k not in keys})

    def _text(self, host: Host, found: HostSession, event: str, prompt: str) -> tuple[str, dict[str, str]]:
        """The text to give, and the hash of each part that is in it, by its session key."""
        memories = ((found.person, PERSON), (found.project, PROJECT.format(found.name)))
        keys = [(key, head) for key, head in memories if key]
        if event == "prompt" and found.writes:
            self.memory.intake.runs.began(found.writes, self.memory.registry.now_ms())
        share = self.memory.config.inject.budget_tokens // max(len(keys), 1)
        for _ in range(TRIES):
            parts, given = [], {}
            for key, head in keys:
                made = self._slice(key, prompt, share)
                texts, mark = [], hash_of(made.system)
                again = found.given.get(key) != mark and made.reason in GIVEN_AGAIN
                if made.system and (key not in found.given or again):
                    texts.append(made.system)
                    given[key] = mark
                # The client keeps what an earlier prompt was given: the same text again would only cost tokens.
                if made.prompt and found.given.get(f"{key} prompt") != (mark := hash_of(made.prompt)):
                    texts.append(made.prompt)
                    given[f"{key} prompt"] = mark
                if said := "\n\n".join(map(strip_wrapper, texts)):
                    parts.append(f"# {head}\n\n{said}")
            if event == "start" or any(key in given for key, _ in keys):
                parts += map(silence_line, self._silent)
            text = "\n\n".join(parts)
            for ours, theirs in TOOL_NAMES:
                text = text.replace(ours, theirs)
            text = wrap_memory(text) if text and host.markup else text
            if len(text) <= host.limit_chars:
                return text, given
            share = int(share * (host.limit_chars - HEAD_CHARS) / len(text))
        return "", {}

    def _slice(self, key: str, prompt: str, budget: int) -> Slice:
        registry, config = self.memory.registry, self.memory.config
        who = registry.identity_of(key)
        if who is None or not (self.memory.folder / "graphs" / who.folder).is_dir():
            return Slice()
        inject = config.inject.model_copy(update={"budget_tokens": budget})
        config = config.model_copy(update={"inject": inject})
        tell = partial(registry.tell, graph=who.key)
        return slice_for(registry.opened(who), prompt, key, now=self.memory.clock(), config=config, tell=tell)

    # --- between questions

    def keep_up(self) -> float | None:
        """Capture what was marked and what hooks missed. Returns in how many seconds to call again; None: no hurry."""
        if not self._caught_up:
            self._caught_up = True
            self.sessions.drop_old()
            self.capture.catch_up()
        while self._begun:
            self.capture.read_missed(*self._begun.popleft())
        if time.monotonic() - self._beats_at > BEATS_EVERY_S or not self._beats_at:
            self._beats_at = time.monotonic()
            self._silent = [beat for beat in heartbeats(self.memory.folder) if beat.silent]
        return self.capture.take_in()


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def silence_line(beat: Heartbeat) -> str:
    return (
        f"Tell the person once: {HOSTS[beat.host].title} is used, but OMG has kept nothing of it lately;"
        " `omg doctor` says why."
    )


# --- capture


class Capture:
    """Turns transcripts that hooks marked into drops of the spool."""

    def __init__(self, home: Path, sessions: HostSessions) -> None:
        self.home, self.spool, self.sessions = home, home / "spool", sessions

    def marks(self) -> list[Path]:
        return sorted((self.spool / MARKS).glob("[!.]*.json"))

    def take_in(self) -> float | None:
        """Read what is marked. Returns in how many seconds the next mark is due; None if there is none."""
        wait = None
        for file in self.marks():
            mark = read_object(file)
            age_s = time.time() - int(mark.get("at_ms") or 0) / 1000
            if 0 <= age_s < READ_AFTER_S:
                return READ_AFTER_S - age_s
            try:
                self._take(mark)
                file.unlink(missing_ok=True)
            except (OSError, sqlite3.Error) as e:
                log.warning("%s: tried again later: %s", file.name, error_text(e))
                wait = 60.0
        return wait

    def _take(self, mark: dict[str, Any]) -> None:
        host, id, cwd, transcript, event = (
            str(mark.get(key) or "") for key in ("host", "session", "cwd", "transcript", "event")
        )
        session = self.sessions.find(host, id, cwd) if id and host in HOSTS and event in REASONS else None
        if session is not None:
            session = replace(session, transcript=transcript or session.transcript)
            size = mark.get("size")
            self.read(session, REASONS[event], size if isinstance(size, int) else None)

    def catch_up(self) -> None:
        """Read what hooks missed of sessions that are over; remove marks that were never finished."""
        for half in (self.spool / MARKS).glob(".*.json"):
            with suppress(OSError):
                if time.time() - half.stat().st_mtime > IDLE_S:
                    half.unlink()
        for host in installed_hosts(self.home):
            for each in self.sessions.of_host(host):
                with suppress(OSError, sqlite3.Error):
                    look = Path(each.transcript).stat()
                    if look.st_size > each.offset and time.time() - look.st_mtime > IDLE_S:
                        self.read(each, "catchup", None)

    def read_missed(self, session: HostSession, size: int) -> None:
        """Read what hooks missed of a session that continues, up to *size* bytes of its transcript."""
        known = self.sessions.find(session.host, session.session, session.cwd)
        if known is not None and size > known.offset:
            self.read(known, "catchup", size)

    def read(self, session: HostSession, reason: str, until: int | None) -> None:
        """Make drops of the whole turns that *session* gained and that began before *until*; None: of all."""
        path = Path(session.transcript)
        rows: list[Row] = []
        if session.transcript and path.is_file():
            rows = whole_turns(READERS[session.host](path, session.session, session.offset), until)
            if reason == "compaction":  # the client may compact by itself in the middle of a turn
                last = max((n for n, row in enumerate(rows) if row.begins), default=len(rows))
                rows = rows[:last]
        since = int(installed_hosts(self.home).get(session.host, {}).get("at") or 0)
        said = [row.entry for row in rows if row.entry is not None and said_since(row.entry, since)]
        if session.writes and (said or reason == "compaction"):
            whose = Session(session.writes, session.session, "", session.cwd)
            for n in range(0, max(len(said), 1), DROP_ENTRIES):
                drop = make_drop(whose, said[n : n + DROP_ENTRIES])
                name = f"{time.time_ns() // 1_000_000:015d}-{uuid.uuid4()}.json"
                text = json.dumps({**drop, "reason": reason, "channel": session.host})
                write_private(self.spool / name, text)
        changes: dict[str, Any] = {"transcript": session.transcript}
        if any(row.cut for row in rows):
            changes["given"] = {}
        if rows:
            changes["offset"] = rows[-1].end
        if said:
            changes["kept_ms"] = time.time_ns() // 1_000_000
        self.sessions.update(session, **changes)


def whole_turns(rows: Iterator[Row], until: int | None) -> list[Row]:
    """*rows* before the first turn that begins at *until* or later."""
    taken = []
    for row in rows:
        if until is not None and row.begins and row.start >= until:
            break
        taken.append(row)
    return taken


def said_since(entry: Entry, since_ms: int) -> bool:
    """Whether *entry* was said since the client was connected; `omg import` is for what is older."""
    at = to_epoch_ms(entry.get("createdAt"))
    return at is None or at >= since_ms
