"""
What a session of a client is given: the standing text once for each context, and what fits each prompt.

A client adds what a hook says to the conversation and keeps it there, so nothing that was given can be taken back. The
standing text of a graph is given again only after an edit or a forgetting, or when much was said since. The person's
memory and the project's stand side by side, each under its name.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..inject.decide import Slice, slice_for
from ..memory import Memory
from ..message.envelope import strip_wrapper, wrap_memory
from .capture import Capture
from .declared import HOSTS, OPENCODE, Host
from .sessions import Heartbeat, HostSession, HostSessions, heartbeats
from .transcripts import of_sub_agent

# Why a standing text is given again in a context that has an older one: what that says is wrong, or far behind.
GIVEN_AGAIN = ("edit", "threshold")
TOOL_NAMES = (("omg_search", "the tool `search` of omg"), ("omg_open", "the tool `fetch` of omg"))
HEAD_CHARS = 400  # of headings and the tag around all
TRIES = 4
PERSON, PROJECT = "What is remembered of the person", "What is remembered of this project ({})"
BEATS_EVERY_S = 60


class Serving:
    """What the daemon holds for the clients of one home."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.sessions = memory, HostSessions(memory.folder)
        self.capture = Capture(memory.folder, self.sessions)
        self._begun: deque[tuple[HostSession, int]] = deque()  # sessions to look at for what hooks missed
        self._caught_up, self._beats_at = False, 0.0
        self._silent: list[Heartbeat] = []

    # --- asked by a hook

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """`{host, event, session, cwd, prompt, source, transcript, size}` → `{text}`; `size` is the transcript's."""
        host, event = HOSTS.get(str(body.get("host"))), str(body.get("event"))
        session = str(body.get("session") or "")
        if host is None or not session:
            return {}
        fresh = event == "start" and body.get("source") in host.fresh
        transcript, now_ms = str(body.get("transcript") or ""), time.time_ns() // 1_000_000
        cwd = str(body.get("cwd") or "")
        found = self.sessions.find(host.name, session, cwd)
        if found is None or (host.name == OPENCODE.name and of_sub_agent(transcript, session)):
            return {}
        found = replace(found, transcript=transcript or found.transcript, given={} if fresh else found.given)
        text, given = self._text(host, found, event, str(body.get("prompt") or ""))
        served_ms = now_ms if event == "prompt" else found.served_ms
        changed = {"transcript": found.transcript, "given": {**found.given, **given}, "served_ms": served_ms}
        self.sessions.update(found, **changed)
        if event == "start" and isinstance(size := body.get("size"), int):
            self._begun.append((found, size))
        return {"text": text, "host": host.name, "session": session, "given": [*given]}

    def lost(self, value: Mapping[str, Any]) -> None:
        """The hook had gone before it could be answered: what it was given is in no context."""
        found = self.sessions.find(str(value.get("host")), str(value.get("session")), "")
        if found is not None and (keys := value["given"]):
            self.sessions.update(found, given={k: v for k, v in found.given.items() if k not in keys})

    def _text(self, host: Host, found: HostSession, event: str, prompt: str) -> tuple[str, dict[str, str]]:
        """What is given, and of which graphs the standing text is in it, by its hash."""
        whose = found.whose
        keys = [
            (key, head)
            for key, head in ((whose.person, PERSON), (whose.project, PROJECT.format(whose.name)))
            if key
        ]
        if event == "prompt" and whose.writes:
            self.memory.intake.runs.began(whose.writes, self.memory.registry.now_ms())
        share = self.memory.config.inject.budget_tokens // max(len(keys), 1)
        for _ in range(TRIES):
            parts, given = [], {}
            for key, head in keys:
                made = self._slice(key, prompt, share)
                mark = hashlib.sha256(made.system.encode()).hexdigest()[:16]
                again = found.given.get(key) != mark and made.reason in GIVEN_AGAIN
                # The client keeps what a prompt was given, so the same again would only cost.
                fresh = hashlib.sha256(made.prompt.encode()).hexdigest()[:16]
                texts = [made.prompt] if found.given.get(f"{key} prompt") != fresh else []
                if texts and made.prompt:
                    given[f"{key} prompt"] = fresh
                if made.system and (key not in found.given or again):
                    texts.insert(0, made.system)
                    given[key] = mark
                if said := "\n\n".join(strip_wrapper(text) for text in texts if text):
                    parts.append(f"# {head}\n\n{said}")
            if event == "start" or any(key in given for key, _ in keys):
                parts += [silence_line(beat) for beat in self._silent]
            text = "\n\n".join(parts)
            for ours, theirs in TOOL_NAMES:
                text = text.replace(ours, theirs)
            text = wrap_memory(text) if text and host.markup else text
            if len(text) <= host.limit_chars:
                return text, given
            share = int(share * (host.limit_chars - HEAD_CHARS) / len(text))
        return "", {}

    def _slice(self, key: str, prompt: str, budget: int) -> Slice:
        who = self.memory.registry.identity_of(key)
        if who is None or not (self.memory.folder / "graphs" / who.folder).is_dir():
            return Slice()
        config = self.memory.config
        config = config.model_copy(
            update={"inject": config.inject.model_copy(update={"budget_tokens": budget})}
        )
        graph = self.memory.registry.opened(who)
        tell = partial(self.memory.registry.tell, graph=who.key)
        return slice_for(graph, prompt, key, now=self.memory.clock(), config=config, tell=tell)

    # --- in the daemon's own time

    def keep_up(self) -> float | None:
        """Read what is marked and what hooks missed; returns in how many seconds to come again, None for no hurry."""
        if not self._caught_up:
            self._caught_up = True
            self.sessions.drop_old()
            self.capture.catch_up()
        while self._begun:
            session, size = self._begun.popleft()
            self.capture.read_missed(session, size)
        if time.monotonic() - self._beats_at > BEATS_EVERY_S or not self._beats_at:
            self._beats_at = time.monotonic()
            self._silent = [beat for beat in heartbeats(self.memory.folder) if beat.silent]
        return self.capture.take_in()


def silence_line(beat: Heartbeat) -> str:
    return (
        f"Tell the person once: {HOSTS[beat.host].title} is used, and OMG has kept nothing of it lately;"
        " `omg doctor` says why."
    )
