"""
Changes every text that OMG keeps: when something is forgotten or redacted, and when the doctor removes secrets.

    <graph>                  pending/, archive/, receipts/, damaged/     change_folder
    a copy of a graph        its notes and the same folders              Removal.copy
    <home>                   drops that cannot be read, logs, cursors, owners.json, temporary files     change_home

Every step may be repeated. A redaction replaces words by BLANK and changes nothing else. A note whose name holds the
words is renamed, and links to it follow. Undo still works, because the texts in receipts are changed like the notes. No
model is asked.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from ..errors import BadInput, BadNode
from ..graph.graph import Graph
from ..graph.state import GIVEN, TEMPORARY, State, forget_served, process_alive, read_object, write_private
from ..journal import Change, Outcome, Receipt, apply_change, read_receipt
from ..message.turn import (
    Message,
    Turn,
    message_from_json,
    message_to_json,
    said_at,
    turn_from_json,
    turn_to_json,
)
from ..node.markdown import bare_target, slugify, split_head
from ..node.note import LOG_FOLDER, amend_text, head_of, parse_node
from ..text.characters import WIKILINK
from ..text.words import told_words
from .places import (
    BLANK,
    SEEN,
    Trace,
    archived_messages,
    blanked,
    every_message,
    holds_words,
    notes_linking,
    read_text,
    text_of,
    went_into,
)
from .selection import Selection, free_path, is_text

LINKING = ("links", "supersedes", "superseded_by", "contradicts", "reflected_in")
FIXED = ("type", "priority", "status", "created", "updated", "event", "origin", "appliesTo")
ANY_LINK = re.compile(rf"!?{WIKILINK.pattern}")
FORGOTTEN_MARK = "forgotten.json"  # when this file changes, the plugin serves no text from before
INDEX = ("index.db", "index.db-wal", "index.db-shm", "index.db-journal")
DERIVED = ("state.json", "written.jsonl", "uses.jsonl", GIVEN, *INDEX, *SEEN)
NOTHING = Selection((), ())


@dataclass(frozen=True, slots=True)
class Removal:
    """
    How to change each text that OMG keeps.

    Forgetting removes each message, note, change and line that names something in `trace`. `said` changes the remaining
    messages. `clean` changes all other texts. Equal texts get equal results: a note's text still equals its copy in a
    receipt.
    """

    said: Callable[[Message], Message]
    clean: Callable[[str], str]
    trace: Trace = field(default_factory=Trace)
    # path or other name of a note → the new name; None if the note is removed
    names: Mapping[str, str | None] = field(default_factory=dict)
    forgets: bool = False
    redacts: bool = False
    what: Selection = NOTHING
    resolve: Callable[[str], str | None] = str  # a link's target → the path of the note that it leads to

    def tombstones(self, graph: Graph) -> None:
        """
        Add tombstones, so that no import brings back a removed or changed message.

        A tombstone is the hash of a message. A changed message gets a tombstone for its former wording.
        """
        ids = set(self.trace.messages)
        for _, m in every_message(graph):
            after = self.message(m)
            if after is None:
                ids |= {m.key, said_at(m.role, m.timestamp)}
            elif after != m and m.key != m.id:
                ids.add(m.key)
        if ids:
            graph.tombstones.add(ids)

    # --- the living vault and its .trash

    def notes(self, graph: Graph) -> None:
        outcome = Outcome()
        if self.forgets:
            observe_again(graph, set(self.what.again))
            # Links and History lines change before the notes are removed, while the links still resolve.
            for path in notes_linking(graph, self.what.paths, self.trace.names):
                self._rewrite(graph, path, outcome)
            for path in self.what.trash:
                (graph.vault.root / path).unlink(missing_ok=True)
            for path in self.what.paths:
                self._remove(graph, path, alone=path in self.what.alone)
        if self.redacts:
            for path in self.what.paths:
                self._rewrite(graph, path, outcome)
            for path in self.what.trash:
                self._file(graph.vault.root / path)

    def _remove(self, graph: Graph, path: str, *, alone: bool) -> None:
        """
        Remove the note at *path* for good. A tombstone forbids making the note again from its forgotten messages. From
        the remaining messages the note may be made again. With *alone*, the tombstone names all messages of the note.
        """
        data = graph.vault.bytes(path)
        if data is None:
            graph.vault.mark_not_ours(path)  # a kill may have come after the file was removed
            return
        try:
            node = parse_node(read_text(data), path)
            cited = [s.id for s in node.sources if s.id in self.trace.messages or alone]
        except BadNode:
            cited = []  # a note that cannot be parsed is removed, too
        if cited:
            graph.tombstones.add(cited, node.id)
        graph.vault.remove(path, data)

    def _rewrite(self, graph: Graph, path: str, outcome: Outcome) -> None:
        """
        Remove what is forgotten from the text of the note at *path*.

        A note whose path holds forgotten words is renamed. A person's text still counts as the person's, and the file
        keeps its permissions. Does nothing if the note is gone, or is no text.
        """
        data = graph.vault.bytes(path)
        if data is None and self.redacts:
            graph.vault.mark_not_ours(path)  # a kill may have come after the file was removed
        if data is None or not is_text(data):
            return  # the note was removed since the selection, or is no text
        before, target = data.decode("utf-8"), self.names.get(path) or path
        after, theirs = self.note(before, path), not graph.vault.ours(data)
        if target == path:
            if after != before:
                apply_change(graph, Change(path, before, after, theirs=theirs), outcome)
            return
        # equal: a kill came after the new file was written
        if (there := graph.vault.bytes(target)) != after.encode("utf-8"):
            if there is not None and not graph.vault.ours(there):
                target, there = free_path(graph, target, ()), None  # a person wrote a note with the new name
            was = None if there is None else there.decode("utf-8")
            change = Change(target, was, after, theirs=theirs, mode=graph.vault.mode(path))
            apply_change(graph, change, outcome)
        graph.vault.remove(path, data)

    def _file(self, file: Path) -> None:
        """
        Change the text and the name of a note's file in .trash or in an old copy of the graph.

        Files of the vault itself are changed by `notes`. A redaction does not change the content of a file that is not
        UTF-8 text.
        """
        text = read_text(data := file.read_bytes())
        if self.forgets:  # a page that we generated from other notes
            gone = "" if file.stem == "now" else without_lines(text, self.trace)
            clean = gone if self.trace.in_note(text) else text
        else:
            clean = self.note(text, file.stem) if is_text(data) else text
        if clean != text:
            write_private(file, clean)
        if self.redacts and holds_words(file.stem, self.trace.text) and file.exists():
            file.rename(free_file(file.with_name(f"{slugify(self.clean(file.stem))}{file.suffix}")))

    # --- copies of a graph, and the other files of its folder

    def copy(self, folder: Path, vault: Path) -> None:
        """
        Remove or redact the forgotten words in a copy of the graph. *vault*: the folder of the copy's notes.

        If the session that the copy belongs to is forgotten whole, *folder* is deleted.
        """
        whole = read_object(folder / "identity.json").get("key") in self.trace.keys
        if not whole or not vault.is_relative_to(folder):  # a vault outside the folder stays
            remove_derived(folder)
            found = notes_telling(vault, self.trace) if self.forgets else {}
            names = self.trace.names.union(*found.values())
            wider = replace(self, trace=replace(self.trace, names=names))
            change_folder(folder, wider)
            for file in sorted(f for f in vault.rglob("*.md") if f not in found):
                wider._file(file)
            for file in reversed(
                found
            ):  # reversed: after a crash, the file that led to the others is still there
                file.unlink()
        if whole:
            shutil.rmtree(folder)

    def message(self, m: Message) -> Message | None:
        return None if m.id in self.trace.messages else self.said(m)

    def torn(self, line: str) -> str | None:
        """
        Return the text that replaces *line*, an archive line that a crash cut short.

        A forgetting removes the line (None), because nobody can say whose message the line holds. A redaction replaces
        the words.
        """
        return None if self.forgets else self.clean(line)

    def unread(self, text: str) -> str | None:
        """
        Change a file that cannot be parsed. A forgetting removes the whole file if it may hold forgotten text,
        because nobody can say which part holds the text.
        """
        if self.forgets:
            return None if self.trace.in_line(text) else text
        return self.clean(text)

    def receipt(self, receipt: Receipt) -> Receipt:
        if self.redacts:
            changes = tuple(map(self._change, receipt.changes))
            summary, hints = self.value(receipt.summary), self.value(receipt.hints)
        else:  # a forgetting: the cycle's other changes can still be undone
            trace = self.trace
            changes = tuple(c for c in receipt.changes if not change_tells(c, trace))
            if len(changes) < len(receipt.changes) and all(c.rebase.block is not None for c in changes):
                lines = []  # the summary was about this note, perhaps by its title
            else:
                lines = [line for line in receipt.summary if not trace.in_words(line)]
            summary = tuple(line for line in lines if not any(name in line for name in trace.names))
            hints = {s: h for s, h in receipt.hints.items() if s not in trace.sessions}
        return replace(receipt, changes=changes, hints=hints, unread={}, read=(), summary=summary)

    def _change(self, c: Change) -> Change:
        before, after, block = (
            None if text is None else self.note(text, c.path) for text in (c.before, c.after, c.rebase.block)
        )
        history = c.rebase.history and self.value(c.rebase.history)
        properties = {key: self.value(value) for key, value in c.rebase.set.items()}
        rebase = replace(c.rebase, block=block, history=history, set=properties)
        return replace(c, path=self.value(c.path), before=before, after=after, rebase=rebase)

    def state(self, state: State) -> None:
        """
        Remove from *state* what may quote the forgotten words: served texts, and hints on how a conversation continues.

        - All served texts are removed, and `system` is rendered anew for each session.
        - Forgetting removes the hints of a session that lost messages, or whose hints mention what is forgotten.
        - A redaction replaces the words in the hints, and keeps the rest.
        """
        trace = self.trace
        for key in trace.keys:
            state.sessions.pop(key, None)
        unread = state.unread.items()
        state.unread = {at: ms for at, ms in unread if at.partition(" ")[2] not in trace.keys}
        for key, s in state.sessions.items():
            forget_served(s)
            quoted = self.forgets and any(trace.in_words(t) for t in (s.task, s.state, s.next))
            if key in trace.sessions or quoted:
                s.task = s.state = s.next = ""
                s.shared, s.activated_ms = [], 0  # turns that were cut from a context stay cut
            s.task, s.state, s.next = self.clean(s.task), self.clean(s.state), self.clean(s.next)
        named = ((self.names.get(path, self.clean(path)), at) for path, at in state.by_hand.items())
        state.by_hand = {path: at for path, at in named if path is not None}
        state.error = "" if any(key in state.error for key in trace.keys) else self.clean(state.error)
        state.epoch += 1
        state.redactions += self.redacts

    def uses(self, graph: Graph) -> None:
        uses = graph.uses.all()
        graph.uses.drop(self._leaves)
        graph.uses.adopt({new: uses[id] for id, new in self.names.items() if new and id in uses})

    def _leaves(self, name: str) -> bool:
        return name in self.names or self.trace.in_words(name)

    def given(self, text: str) -> str:
        """
        Return *text*, the record of recent prompts, without the lines about what is forgotten.

        A line is dropped if it names a note, message or session of `trace`, or has any word of `trace.text`.
        """
        words = told_words(self.trace.text)
        kept = (line for line in text.splitlines(keepends=True) if not self.trace.in_line(line))
        kept = (line for line in kept if not any(name in line for name in self.trace.names))
        return "".join(line for line in kept if not any(holds_words(line, word) for word in words))

    def log(self, text: str) -> str:
        """
        Return the log *text* without the lines about forgotten notes and sessions.

        A line is dropped if it names a note of `trace`, or a session that is forgotten whole. In all other lines, BLANK
        replaces the forgotten words.
        """
        named = self.trace.paths | self.trace.keys
        kept = (line for line in text.splitlines(keepends=True) if not any(name in line for name in named))
        return self.clean("".join(kept))

    # --- the text of a note

    def note(self, text: str, path: str) -> str:
        """
        Return the *text* of a note as it is after the forgetting or the redaction.

        - A link to a renamed note gets the new name. A link to a removed note becomes plain words.
        - The properties at the top of the note stay valid YAML.

        *path*: the path of the note.
        """
        if self.redacts and self._linked(text) == text and not self.trace.in_words(text):
            return text
        try:
            was = head_of(parse_node(text, path))
            now = {key: self._property(key, value) for key, value in was.items()}
            if was.get("superseded_by") and not now["superseded_by"]:
                now["status"] = "active"  # the note that replaced this note is gone
            text = amend_text(text, set={key: now[key] for key in was if was[key] != now[key]})
            body = split_head(text)[1]
        except BadNode:
            body = 0
        if self.redacts:
            return self._linked(text[:body]) + self.clean(self._linked(text[body:]))
        lines = text[body:].splitlines(keepends=True)
        return text[:body] + "".join(self._linked(line) for line in lines if not self._in_history(line))

    def _in_history(self, line: str) -> bool:
        """Whether *line* is a dated line of History about a removed note."""
        return line.startswith("- ") and line[2:6].isdigit() and self._linked(line) != line

    def _linked(self, text: str) -> str:
        return ANY_LINK.sub(self._link, text)

    def _link(self, found: re.Match[str]) -> str:
        try:
            target = bare_target(found[1])
        except ValueError:
            return found[0]
        if target not in self.names:
            target = self.resolve(target) or target
        _, bar, label = found[1].partition("|")
        if self.redacts:
            label = self.clean(label)
        if new := self.names.get(target):
            return found[0].replace(found[1], f"{new}{bar}{label}")
        if target in self.names or (
            self.redacts and self.trace.in_words(target)
        ):  # the link would lead nowhere
            return label.strip() or BLANK
        return found[0]

    def _property(self, key: str, value: Any) -> Any:
        values = [value] if isinstance(value, str) else value
        if key in LINKING and isinstance(values, list) and all(isinstance(v, str) for v in values):
            kept = [new for v in values if (new := self._linked(v)) == v or new.startswith("[[")]
            kept = self.value(kept) if self.redacts else kept
            return kept[0] if kept and isinstance(value, str) else kept or None
        if key in FIXED or not self.redacts:
            return value
        if key == "sources":
            return [{**s, **({"id": self.clean(s["id"])} if "id" in s else {})} for s in value]
        if key in ("aliases", "tags"):
            return [name for name in value if not self.trace.in_words(str(name))] or None
        return self.value(value)

    def value(self, value: Any) -> Any:
        """
        Return *value* with the forgotten words and links removed from every text inside.

        *value*: a note's property, or any JSON value. A former name of a renamed note becomes the new name.
        """
        if isinstance(value, str):
            return self.names.get(value) or self.clean(self._linked(value))
        if isinstance(value, list | tuple):
            return type(value)(map(self.value, value))
        if isinstance(value, dict):
            return {self.value(k): self.value(v) for k, v in value.items()}
        return value


def forgetting(graph: Graph, what: Selection) -> Removal:
    left = {id: text for id, text, _ in what.cut}
    return Removal(
        said=lambda m: replace(m, text=left[m.id]) if m.id in left else m,
        clean=partial(blanked, words=what.text),
        trace=what.trace,
        names=dict.fromkeys(what.trace.names),
        forgets=True,
        what=what,
        resolve=graph.index.resolve,
    )


def redacting(what: Selection) -> Removal:
    clean = partial(blanked, words=what.text)

    def said(m: Message) -> Message:
        calls = (replace(c, name=clean(c.name), arguments=clean(c.arguments)) for c in m.calls)
        texts: dict[str, Any] = {
            n: clean(getattr(m, n)) for n in ("id", "text", "sender", "sender_id", "tool")
        }
        return replace(m, calls=tuple(calls), **texts)

    return Removal(said, clean, what.trace, dict(what.renamed), redacts=True, what=what)


def free_file(file: Path) -> Path:
    files = (file if n == 1 else file.with_name(f"{file.stem}-{n}{file.suffix}") for n in count(1))
    return next(found for found in files if not found.exists())


def observe_again(graph: Graph, ids: set[str]) -> None:
    """Make archived messages pending again. The archive keeps their lines, and does not get a second copy."""
    by_session: dict[str, list[Message]] = {}
    for session, m in archived_messages(graph.folder / "archive"):
        if m.id in ids:
            by_session.setdefault(session, []).append(m)
    for n, (session, messages) in enumerate(sorted(by_session.items())):
        turn = Turn(session, agent=graph.identity.agent, reason="again", messages=tuple(messages))
        graph.put(f"{messages[-1].timestamp:015d}-again{n}", turn)


def change_tells(change: Change, trace: Trace) -> bool:
    rebase = change.rebase
    said = [change.before, change.after, rebase.block, rebase.history]
    for value in rebase.set.values():
        said += map(str, value if isinstance(value, list | tuple) else [value])
    return change.path in trace.names or any(trace.in_note(text) for text in said if text)


def notes_telling(vault: Path, trace: Trace) -> dict[Path, set[str]]:
    """
    Return the files below *vault* whose notes have to be removed.

    These notes mention what is forgotten, or are reflections made from such notes. Returns file → the path of the
    file's note in the vault, and the paths of the reflections made from the note.
    """
    files = {
        file: (path, read_text(file.read_bytes()))
        for file in sorted(vault.rglob("*.md"))
        if not (path := file.relative_to(vault).as_posix().removesuffix(".md")).startswith(LOG_FOLDER)
    }
    found: dict[Path, set[str]] = {}
    more = True
    while more:
        more = False
        for file, (path, text) in files.items():
            made = path.startswith("mocs/") or path in ("index", "now")
            if file not in found and (path in trace.names or (not made and trace.in_note(text))):
                found[file] = {path, *went_into(text, path)}
                trace = replace(trace, names=trace.names | found[file])
                more = True
    return found


def without_lines(text: str, trace: Trace) -> str:
    """The *text* of a page, without the lines that mention what is forgotten."""
    kept = "".join(line for line in text.splitlines(keepends=True) if not trace.in_note(line))
    return blanked(kept, trace.text)  # also removes words that span two lines


# --- the files of a graph or of a copy


def change_messages(folder: Path, removal: Removal) -> None:
    change_files((folder / "pending").glob("*.json"), partial(changed_turn, removal=removal))
    change_files((folder / "archive").glob("*.jsonl"), partial(changed_lines, removal=removal))


def change_folder(folder: Path, removal: Removal) -> None:
    change_messages(folder, removal)
    for file in sorted((folder / "receipts").glob("*.json")):
        try:
            receipt = read_receipt(file)
        except BadInput:
            change_file(file, removal.unread)
            continue
        if (clean := removal.receipt(receipt)) != receipt:
            write_private(file, clean.dumps())
    change_files((folder / "damaged").glob("*"), removal.unread)


def change_file(file: Path, changed: Callable[[str], str | None]) -> None:
    text = text_of(file)
    clean = changed(text)
    if clean is None:
        file.unlink(missing_ok=True)
        file.with_name(f"{file.name}.txt").unlink(missing_ok=True)  # the reason why it was set aside
    elif clean != text:
        write_private(file, clean)


def change_files(files: Iterable[Path], changed: Callable[[str], str | None]) -> None:
    for file in sorted(f for f in files if f.is_file()):
        change_file(file, changed)


def changed_turn(text: str, removal: Removal) -> str | None:
    try:
        turn = turn_from_json(text)
    except BadInput:
        return removal.unread(text)
    kept = tuple(clean for m in turn.messages if (clean := removal.message(m)) is not None)
    left = replace(turn, messages=kept, sender=blanked(turn.sender, removal.trace.text))
    if left == turn:
        return text
    return turn_to_json(left) if kept else None


def changed_lines(text: str, removal: Removal) -> str:
    changed = (changed_line(line, removal) for line in text.split("\n") if line)
    return "".join(f"{line}\n" for line in changed if line is not None)


def changed_line(line: str, removal: Removal) -> str | None:
    try:
        message, session = message_from_json(line)
    except BadInput:
        return removal.torn(line)
    clean = removal.message(message)
    if clean == message:
        return line
    return None if clean is None else message_to_json(clean, session)


def remove_derived(folder: Path) -> None:
    """
    Remove the index, the state and other derived files from *folder*, an old copy of a graph.

    They are not made again, because OMG itself never works with an old copy.
    """
    for name in DERIVED:
        (folder / name).unlink(missing_ok=True)


# --- the home


def raise_mark(home: Path) -> None:
    """
    Make OpenClaw's plugin discard the memory that it keeps from earlier prompts.

    Without this mark, the plugin would serve that memory again whenever the daemon is late.
    """
    write_private(home / FORGOTTEN_MARK, json.dumps({"at": time.time_ns() // 1_000_000}))


def change_home(home: Path, graph: Path, removal: Removal) -> None:
    """
    Remove what is forgotten or redacted from the files of *home*.

    - temporary files: deleted if their process is dead, or if they name or hold something forgotten
    - records of forgotten sessions: deleted
    - unreadable drops (files of the spool), and logs: changed; a drop may be deleted
    """
    if removal.forgets:
        change_files((home / "spool").glob(".*"), removal.unread)  # temporary files that a killed hook left
    change_files((home / "spool" / "bad").glob("*"), removal.unread)
    for file in temporary_files(home, graph):
        # The content counts too, because a new process may have the number of the dead writer.
        named = TEMPORARY.fullmatch(file.name)
        if (named and not process_alive(int(named[1]))) or removal.trace.in_line(text_of(file)):
            file.unlink(missing_ok=True)
    remove_keys(home, removal.trace.keys)
    change_logs(home, removal)


def temporary_files(home: Path, graph: Path) -> Iterable[Path]:
    for folder in (home, home / "cursors", home / "runs"):
        yield from (f for f in folder.glob(".*") if f.is_file())
    for parent in (graph, home / "joined"):
        hidden = (f for f in parent.rglob(".*") if "vault" not in f.relative_to(parent).parts)
        yield from (f for f in hidden if f.is_file())


def change_logs(home: Path, removal: Removal) -> None:
    """Edit each log in place, not by replacing the file: a daemon has the file open and keeps writing to it."""
    for file in sorted({*home.glob("omg.log*"), *home.glob("events*.jsonl"), *home.glob("writes.jsonl")}):
        text = text_of(file)
        if (clean := removal.log(text)) != text:
            with suppress(FileNotFoundError), file.open("r+", encoding="utf-8") as f:
                f.write(clean)
                f.truncate()


def remove_keys(home: Path, keys: Collection[str]) -> None:
    """
    Remove the sessions *keys* from the files that record who speaks in a session and how far the session was read.
    """
    for file in sorted((home / "cursors").glob("*.json")):
        if read_object(file).get("sessionKey") in keys:
            file.unlink()
    owners = read_object(home / "owners.json")
    left = {key: own for key, own in owners.items() if key not in keys}
    if left != owners:
        write_private(home / "owners.json", json.dumps(left))
