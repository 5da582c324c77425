"""
Gives memory to the sessions of clients, captures what was said, and answers the tools of `omg mcp`.

A session gets two texts. `system`, the part of the memory that rarely changes, is given once for each context.
Notes relevant to a prompt are given with that prompt. A client keeps all of a hook's text in the conversation, so
OMG cannot take back a text. `system` is given again only

- after an edit
- after something was forgotten
- when much was said since the previous `system`

The person's memory and the project's memory stand side by side, each under a heading.

A mark in the spool says which transcript grew, and the transcript's size at that time. The transcript is read
READ_AFTER_S later, because a client may write the last line after its hook. The daemon reads on from the
session's offset in the transcript, and makes drops of the whole turns. What the person typed after the mark
waits for the next mark. The drop is on disk before the offset moves. After a crash, messages may be read twice;
OMG recognizes known messages by their ids.

The daemon reads what the person typed, what the assistant said, and which tools the assistant called. The daemon
leaves out

- the results of tools
- text that the client wrote in the person's place: summaries, commands, reminders, tasks for sub-agents, hook
  text
- rows of an unknown kind
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ..curate import open_note, propose_correction, propose_note, select_to_forget
from ..errors import BadInput, NotFound, OmgError, error_text
from ..graph.graph import Graph
from ..graph.state import read_object, write_private
from ..importers import transcripts
from ..importers.drops import JsonObject, Session, make_drop
from ..index.store import Hit
from ..inject.decide import Prompt, Slice, slice_for
from ..inject.passages import Passage
from ..memory import Memory
from ..message.drop import to_epoch_ms
from ..message.envelope import strip_wrapper, wrap_memory
from ..plan.pages import filed_day
from ..tools import reading
from ..tools.changing import days_of_call
from ..tools.removing import choice_text, notes_about
from ..tools.tools import status_line
from .hook import CLAUDE_CODE, CODEX, GEMINI, HOSTS, MARKS, OPENCODE, Host
from .sessions import Heartbeat, HostSession, HostSessions, heartbeats, installed_hosts

log = logging.getLogger(__name__)

# Reasons to give `system` again to a context with an older `system`, which is then wrong or far behind.
GIVEN_AGAIN = ("edit", "threshold")
TOOL_NAMES = (("omg_search", "the tool `search` of omg"), ("omg_open", "the tool `fetch` of omg"))
HEAD_CHARS = 400  # most characters of the headings and the tag around the text
TRIES = 4
PERSON, PROJECT = "What is remembered of the person", "What is remembered of this project ({})"
BEATS_EVERY_S = 60

READ_AFTER_S = 1.0  # in 32 turns of Claude Code the last line came at most 0.7 s after the hook
IDLE_S = 600  # after this time without a new line in the transcript, a session counts as over
DROP_ENTRIES = 50
REASONS = {"turn": "turn", "compact": "compaction", "end": "end", "start": "catchup"}


class HostAnswers:
    """Answers the hooks of one home's clients, and reads the transcripts that the hooks mark."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.sessions = memory, HostSessions(memory.folder)
        self.capture = Capture(memory.folder, self.sessions)
        self._begun = deque[tuple[HostSession, int]]()  # sessions of which hooks may have missed turns
        self._caught_up, self._beats_at = False, 0.0
        self._silent: list[Heartbeat] = []

    # --- questions of a hook

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """
        Answer a hook: `{host, event, session, cwd, prompt, source, transcript, size}` → `{text}`. `size` is the
        transcript's size.
        """
        host, event = HOSTS.get(str(body.get("host"))), str(body.get("event"))
        session, cwd, prompt, transcript = (
            str(body.get(key) or "") for key in ("session", "cwd", "prompt", "transcript")
        )
        found = self.sessions.find(host.name, session, cwd) if host and session else None
        if (
            not host
            or not found
            or (host.name == OPENCODE.name and transcripts.of_sub_agent(transcript, session))
        ):
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
        """
        Record that the client never got *value*, a result of `answer`, because the hook ended too early.

        The text in *value* did not reach the conversation, so a later answer gives the same text again.
        """
        found = self.sessions.find(str(value.get("host")), str(value.get("session")), "")
        if found is not None and (keys := value["given"]):
            self.sessions.update(found, given={k: v for k, v in found.given.items() if k not in keys})

    def _text(self, host: Host, found: HostSession, event: str, prompt: str) -> tuple[str, dict[str, str]]:
        """
        Return (text, hashes): the text for the client, and a hash of each part of the text.

        Later calls compare the hashes, and leave out a part that the context already has. An example of *hashes*:

            "agent:main:main"           hash of the part `system`
            "agent:main:main prompt"    hash of the notes for the prompt

        Returns ("", {}) if the text cannot be made short enough for the client.
        """
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
                # The client keeps the text of an earlier prompt. To give the same text again would only cost tokens.
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
        return slice_for(registry.opened(who), Prompt(prompt, key), self.memory.clock(), config, tell)

    # --- between questions

    def keep_up(self) -> float | None:
        """
        Read the marked transcripts, and turns that hooks missed. Returns after how many seconds to call again; None
        if no mark waits.
        """
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
        """Read the marked transcripts. Returns in how many seconds the next mark is due; None if no mark waits."""
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
        if not id or host not in HOSTS or event not in REASONS:
            log.warning(
                "the mark of a hook is damaged; its session is read when nobody has used it for ten minutes"
            )
        elif session := self.sessions.find(host, id, cwd):
            session = replace(session, transcript=transcript or session.transcript)
            size = mark.get("size")
            self.read(session, REASONS[event], size if isinstance(size, int) else None)

    def catch_up(self) -> None:
        """Read the turns that hooks missed in sessions that are over (unused for IDLE_S)."""
        for host in installed_hosts(self.home):
            for each in self.sessions.of_host(host):
                with suppress(OSError, sqlite3.Error):
                    look = Path(each.transcript).stat()
                    if look.st_size > each.offset and time.time() - look.st_mtime > IDLE_S:
                        self.read(each, "catchup", None)

    def read_missed(self, session: HostSession, size: int) -> None:
        """Read the turns that hooks missed in a session that continues, up to the offset *size* of the transcript."""
        known = self.sessions.find(session.host, session.session, session.cwd)
        if known is not None and size > known.offset:
            self.read(known, "catchup", size)

    def read(self, session: HostSession, reason: str, until: int | None) -> None:
        """
        Save the new turns of *session* as drops (files for the daemon). Only whole turns are saved.

        *until*: save only turns that begin before this offset in the transcript. With None, all new turns are saved.
        """
        path = Path(session.transcript)
        rows: list[transcripts.TranscriptRow] = []
        if session.transcript and path.is_file():
            rows = whole_turns(READERS[session.host](path, session.session, session.offset), until)
            if reason == "compaction":  # the client may compact by itself in the middle of a turn
                last = max((n for n, row in enumerate(rows) if row.begins), default=len(rows))
                rows = rows[:last]
        since = int(installed_hosts(self.home).get(session.host, {}).get("at") or 0)
        said = [row.entry for row in rows if row.entry is not None and is_since(row.entry, since)]
        if session.writes and (said or reason in ("compaction", "end")):
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


def whole_turns(
    rows: Iterator[transcripts.TranscriptRow], until: int | None
) -> list[transcripts.TranscriptRow]:
    """The *rows* before the first turn that begins at the offset *until* or later; None: all *rows*."""
    taken = []
    for row in rows:
        if until is not None and row.begins and row.start >= until:
            break
        taken.append(row)
    return taken


def is_since(entry: JsonObject, since_ms: int) -> bool:
    """Whether *entry* was said after the client was connected. `omg import` reads older entries."""
    at = to_epoch_ms(entry.get("createdAt"))
    return at is None or at >= since_ms


READERS: dict[str, transcripts.RowReader] = {
    CLAUDE_CODE.name: transcripts.read_claude_code,
    CODEX.name: transcripts.read_codex,
    OPENCODE.name: transcripts.read_opencode,
    GEMINI.name: transcripts.read_gemini,
}


# --- The tools of `omg mcp`.
#
# Each question names *person* and *project*, the identities that the server was started with; a client cannot choose
# them. An id is `person:` or `project:` with the path of a note. A note of any other graph does not exist for the client.
#
# `remember` and `correct` write proposals of the assistant (plan/corrections.py), because no message of the person stands
# behind a call. Such proposals are found and shown with a mark; `system` leaves them out until `omg confirm`.


MEMORIES = ("project", "person")  # the project's memory first, because it is nearer to the question
TOOLS = ("search", "fetch", "recent", "remember", "correct", "forget", "status", "page")
RECENT_DAYS = 7
PAGES = ("index", "now")


class McpAnswers:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`{person, project, tool, arguments}` → the tool's structured result, or `{error}` with its message."""
        if body.get("tool") not in TOOLS:
            raise BadInput(f"no tool {body.get('tool')!r}")
        try:
            result: dict[str, Any] = getattr(self, f"_{body['tool']}")(
                body, reading.mapping_in(body, "arguments")
            )
        except OmgError as e:
            return {"error": str(e)}
        return result

    def _graphs(self, body: Mapping[str, Any], *, write: bool = False) -> Iterator[tuple[str, Graph]]:
        registry = self.memory.registry
        for label in MEMORIES:
            who = registry.identity_of(str(body[label])) if body.get(label) else None
            if who is None or not (write or (registry.folder / "graphs" / who.folder).is_dir()):
                continue
            yield label, registry.graph(who) if write else registry.opened(who)

    def _meant(self, body: Mapping[str, Any], id: object) -> tuple[str, Graph, str]:
        """
        Find the memory with the note or the messages that *id* names.

        Returns (label, graph, name):
        - label: "project" or "person", the kind of the memory
        - graph: the memory
        - name: the note's name in this memory, or the day and time of messages

        Raises NotFound if no memory has the note.
        """
        label, _, name = str(id or "").partition(":")
        if label not in MEMORIES:
            label, name = "", str(id or "")
        name = reading.link_target(name)
        for found, graph in self._graphs(body):
            if label in ("", found) and (reading.SAID_AT.fullmatch(name) or graph.index.resolve(name)):
                return found, graph, name
        raise NotFound(f"no note {id!r}; `search` gives the ids")

    def _search(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        query, limit = str(given.get("query") or ""), reading.hit_limit(given.get("limit"), 8)
        found = [
            (f.score, found_item(label, graph, f))
            for label, graph in self._graphs(body)
            for f in reading.found_about(graph, query, limit, self.memory.clock())
        ]
        found.sort(key=lambda pair: -pair[0])
        return {"results": [item for _, item in found[:limit]]}

    def _fetch(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        label, graph, name = self._meant(body, given.get("id"))
        text = str(reading.open_tool(graph, {"id": name})["text"])
        if reading.SAID_AT.fullmatch(name):
            about = {"memory": label, "type": "messages", "origin": ""}
            return {**messages_item(label, name.replace("T", " "), text), "metadata": about}
        note = open_note(graph, reading.named_section(graph, name)[0]).node
        about = {"memory": label, "type": note.type, "origin": note.origin or ""}
        return {**item_of(label, note.path, note.title, text), "metadata": about}

    def _page(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return the text of the page that *given* names: "index" or "now". If *body* names several memories, the text
        has the page of each. Raises NotFound for any other name.
        """
        name = given.get("name")
        if name not in PAGES:
            raise NotFound(f"no page {name!r}; there are: {', '.join(PAGES)}")
        return text_of(f"# {label}\n\n{graph.vault.text(name)}\n" for label, graph in self._graphs(body))

    def _recent(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        days = given.get("days")
        days = days if isinstance(days, int) and 0 < days < 4000 else RECENT_DAYS
        since = self.memory.clock().date() - timedelta(days=days)
        found = [
            (day, item_of(label, entry.path, entry.title, f"{day}: {entry.description}"))
            for label, graph in self._graphs(body)
            for entry in graph.index.entries()
            if entry.path.startswith("nodes/") and (day := filed_day(entry)) and day >= since
        ]
        found.sort(key=lambda pair: pair[0], reverse=True)
        return {"results": [item for _, item in found[: reading.hit_limit(given.get("limit"), 20)]]}

    def _remember(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Propose a note in the project's memory, or in the person's if there is no project."""
        for label, graph in self._graphs(body, write=True):
            text, title, when = (str(given.get(key) or "") for key in ("text", "title", "when"))
            path = propose_note(graph, text, title, days_of_call(when), self.memory.clock())
            return proposed(label, graph, path)
        raise NotFound(
            "no memory to write to: this client serves only projects, and its folder is in no project"
        )

    def _correct(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        label, _, name = self._meant(body, given.get("id"))
        graph = dict(self._graphs(body, write=True))[label]
        path = propose_correction(graph, name, str(given.get("new") or ""), self.memory.clock())
        return proposed(label, graph, path)

    def _forget(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The notes that would be forgotten, and the command by which the person forgets them. Changes nothing."""
        what, lines, commands = str(given.get("query") or "").strip(), list[str](), list[str]()
        if not what:
            raise BadInput("forget what? give `query`, words or the id of a note")
        for label, graph in self._graphs(body):
            path = graph.index.resolve(what.removeprefix(f"{label}:"))
            paths = [path] if path else notes_about(self.memory.intake, graph, what, said=False)
            if paths:
                lines.append(choice_text(graph, "forget", select_to_forget(graph, ids=paths)))
                commands.append(f"omg forget {' '.join(paths)} --identity {graph.identity.key}")
        if not commands:
            raise NotFound(f"nothing is remembered about {what!r}")
        told = "Nothing was forgotten yet. Show the person what would be forgotten. To forget it, the person runs in a terminal: "
        return {"would_forget": "\n".join(lines), "commands": commands, "text": told + "; or ".join(commands)}

    def _status(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        lines = [f"{label}: {status_line(graph)}" for label, graph in self._graphs(body)]
        lines += [f"{b.host}: nothing kept lately" for b in heartbeats(self.memory.folder) if b.silent]
        return text_of(lines)


def text_of(lines: Iterable[str]) -> dict[str, Any]:
    return {"text": "\n".join(lines) or "Nothing is remembered yet."}


def found_item(label: str, graph: Graph, found: Hit | Passage) -> dict[str, Any]:
    if isinstance(found, Passage):
        return messages_item(label, reading.said_at(graph, found), reading.found_line(graph, found))
    return item_of(label, found.entry.path, found.entry.title, reading.found_line(graph, found))


def messages_item(label: str, at: str, text: str) -> dict[str, Any]:
    """Return the messages said *at* a day and time as an item. The space in *at* becomes "T" in the item's URL, because
    a URL holds no space."""
    item = item_of(label, at, f"What was said at {at}", text)
    return {**item, "url": item["url"].replace(" ", "T")}


def item_of(label: str, path: str, title: str, text: str) -> dict[str, Any]:
    """A note in the form that clients know from other servers' `search` and `fetch`."""
    return {"id": f"{label}:{path}", "title": title, "text": text, "url": f"omg://note/{label}/{path}"}


def proposed(label: str, graph: Graph, path: str) -> dict[str, Any]:
    command = f"omg confirm {path} --identity {graph.identity.key}"
    text = f"The note counts as the assistant's word. It becomes the person's when the person runs: {command}"
    return {"id": f"{label}:{path}", "text": text, "command": command}
