"""
Words taken out of everything, and all else left as it is: each place that has them has BLANK instead.

    select_words   what has them: shown to the person first
    Redacting      the replacing, place by place (erase.py keeps the journal)

No model is asked, and nothing is derived anew. A note whose name holds the words gets another, and what leads to it
follows. Undo goes on working: a receipt's texts are changed as the notes are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import BadInput, BadNode
from ..graph.files import write_private
from ..graph.graph import Graph
from ..graph.state import State, forget_served
from ..journal import Change, Outcome, Receipt, apply_change
from ..message.turn import Message
from ..node.markdown import bare_target, link_targets, slugify
from ..node.note import amend_text, head_of, parse_node
from ..node.properties import split_head
from ..text.links import WIKILINK
from .beyond import beyond_reach, our_trash
from .places import Edit, archived_messages, change_folder, every_message, remove_derived
from .traces import Trace, message_holds, read_text
from .words import BLANK, blanked, folded_words, holds_words, slug_in_path

NewNames = Mapping[str, str]
FIXED = ("type", "priority", "status", "created", "updated", "event", "origin", "appliesTo", "generation")


@dataclass(frozen=True, slots=True)
class Redaction:
    """Where *words* are. Everything sorted."""

    words: str
    paths: tuple[str, ...] = ()  # notes and pages
    messages: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # path, or other name of a note → the one without the words
    trash: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()  # "path: why": what OMG cannot, or may not, take them out of

    def __bool__(self) -> bool:
        return bool(self.paths or self.messages or self.trash)


def select_words(graph: Graph, words: str) -> Redaction:
    """Raises BadInput for words that BLANK holds itself."""
    if not folded_words(words) or holds_words(BLANK, words):
        raise BadInput(f"{words!r} cannot be taken out of a text; give the words that are to go")
    trace = Trace(text=words)
    holding = [p for p in (*graph.vault.paths(), *graph.vault.conflicts()) if path_holds(graph, p, words)]
    paths = [path for path in holding if is_text(graph.vault.bytes(path) or b"")]
    unread = [graph.vault.file(path) for path in holding if path not in paths]
    trash = tuple(our_trash(graph, trace))
    said = every_message(graph)
    return Redaction(
        words,
        paths=tuple(sorted(paths)),
        messages=tuple(sorted({m.id for _, m in said if message_holds(m, words)})),
        renamed=tuple(sorted(new_names(graph, paths, words).items())),
        trash=trash,
        beyond=(
            *sessions_holding(graph, words),
            *(f"{file}: it is no UTF-8 text; take them out yourself" for file in unread),
            *beyond_reach(graph, trace, skip=trash),
        ),
    )


def sessions_holding(graph: Graph, words: str) -> Iterable[str]:
    """Keys of sessions say whose memory it is; they go with the session, and not by a replacement."""
    sessions = {session for session, _ in archived_messages(graph.folder / "archive")}
    sessions |= {p.turn().session for p in graph.intact()} | {graph.identity.key}
    for session in sorted(s for s in sessions if holds_words(s, words)):
        yield f"{graph.folder}: the key of a session has it; `omg forget --session {session}` takes what was said there"


def is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def path_holds(graph: Graph, path: str, words: str) -> bool:
    text = read_text(graph.vault.bytes(path))
    return holds_words(text, words) or holds_words(path, words) or slug_in_path(path, words) is not None


def redacting_from(raw: dict[str, Any]) -> Edit:
    """As the journal has it."""
    return Redacting(raw["words"], tuple(raw["paths"]), tuple(raw["trash"]), dict(raw["renamed"]))


@dataclass(frozen=True, slots=True)
class Redacting:
    """The Edit that replaces *words* by BLANK."""

    words: str
    paths: tuple[str, ...]
    trash: tuple[str, ...]
    names: NewNames

    @property
    def trace(self) -> Trace:
        return Trace(text=self.words)

    def tombstones(self, graph: Graph) -> None:
        """A message that is changed has another key; the former must not come back."""
        held = [m for _, m in every_message(graph) if message_holds(m, self.words)]
        graph.tombstones.add({m.key for m in held if m.key != m.id})

    def notes(self, graph: Graph) -> None:
        outcome = Outcome()
        for path in self.paths:
            self._note(graph, path, outcome)
        for path in self.trash:
            self._file(graph.vault.root / path)

    def _note(self, graph: Graph, path: str, outcome: Outcome) -> None:
        """In the vault; what a person wrote stays theirs, and as private."""
        data = graph.vault.bytes(path)
        if data is None:
            graph.vault.mark_not_ours(path)  # a kill may have come before its name was forgotten
            return
        if not is_text(data):
            return  # since it was selected
        before, target = data.decode("utf-8"), self.names.get(path, path)
        after, theirs = self.note(before, path), not graph.vault.ours(data)
        if target == path:
            apply_change(graph, Change(path, before, after, theirs=theirs), outcome)
            return
        # else a kill came before the removal
        if (there := graph.vault.bytes(target)) != after.encode("utf-8"):
            if there is not None and not graph.vault.ours(there):
                target, there = free_path(graph, target, ()), None  # in both places is what a person wrote
            was = None if there is None else there.decode("utf-8")
            change = Change(target, was, after, theirs=theirs, mode=graph.vault.mode(path))
            apply_change(graph, change, outcome)
        graph.vault.remove(path, data)

    def _file(self, file: Path) -> None:
        """A note that nobody but a person reads; also its name. One that is no UTF-8 text stays as it is."""
        if is_text(data := file.read_bytes()):
            text = data.decode("utf-8")
            if (clean := self.note(text, file.stem)) != text:
                write_private(file, clean)
        if holds_words(file.stem, self.words) and file.exists():
            file.rename(free_file(file.with_name(f"{slugify(self.torn(file.stem))}{file.suffix}")))

    def copy(self, folder: Path, vault: Path) -> None:
        remove_derived(folder)
        change_folder(folder, self)
        for file in sorted(vault.rglob("*.md")):
            self._file(file)

    def message(self, m: Message) -> Message:
        calls = (replace(c, name=self.log(c.name), arguments=self.log(c.arguments)) for c in m.calls)
        said = {name: self.log(getattr(m, name)) for name in ("id", "text", "sender", "sender_id", "tool")}
        return replace(m, calls=tuple(calls), **said)  # type: ignore[arg-type]

    def log(self, text: str) -> str:
        return blanked(text, self.words)

    torn = unread = log

    def receipt(self, receipt: Receipt) -> Receipt:
        changes = []
        for c in receipt.changes:
            before, after, block = (
                None if text is None else self.note(text, c.path)
                for text in (c.before, c.after, c.rebase.block)
            )
            history = c.rebase.history and self.value(c.rebase.history)
            properties = {key: self.value(value) for key, value in c.rebase.set.items()}
            rebase = replace(c.rebase, block=block, history=history, set=properties)
            path = self.names.get(c.path) or self.value(c.path)
            changes.append(replace(c, path=path, before=before, after=after, rebase=rebase))
        summary, hints = self.value(receipt.summary), self.value(receipt.hints)
        return replace(receipt, changes=tuple(changes), summary=summary, hints=hints)

    def state(self, state: State) -> None:
        for s in state.sessions.values():
            forget_served(s)
            s.mocs, s.falls = [], {}
            s.task, s.state, s.next = self.log(s.task), self.log(s.state), self.log(s.next)
        state.by_hand = {self.value(path): at for path, at in state.by_hand.items()}
        state.error = self.log(state.error)
        state.epoch += 1
        state.redactions += 1

    def uses(self, graph: Graph) -> None:
        uses = graph.uses.all()
        graph.uses.drop(lambda id: holds_words(id, self.words))
        graph.uses.adopt({self.names[id]: use for id, use in uses.items() if id in self.names})

    def keys(self, home: Path) -> None:
        """They stay."""

    # --- texts: the same text gives the same, so that a receipt and its note stay alike

    def note(self, text: str, path: str) -> str:
        """*text* of a note: its links lead to the new names, its head stays one that can be read."""
        text = WIKILINK.sub(self._link, text)
        if not holds_words(text, self.words):
            return text
        try:
            was = head_of(parse_node(text, path))
        except BadNode:
            return self.log(text)
        now = {key: self._property(key, value) for key, value in was.items()}
        text = amend_text(text, set={key: now[key] for key in was if was[key] != now[key]})
        body = split_head(text)[1]
        return text[:body] + self.log(text[body:])

    def _link(self, found: re.Match[str]) -> str:
        try:
            target = bare_target(found[1])
        except ValueError:
            return found[0]
        _, bar, label = found[1].partition("|")
        if target in self.names:
            return f"[[{self.names[target]}{bar}{self.log(label)}]]"
        if holds_words(target, self.words):  # it leads nowhere
            return self.log(label).strip() or BLANK
        return found[0]

    def _property(self, key: str, value: Any) -> Any:
        if key in FIXED:
            return value
        if key == "sources":
            return [{**s, **({"id": self.log(s["id"])} if "id" in s else {})} for s in value]
        if key in ("aliases", "tags"):
            return [name for name in value if not holds_words(str(name), self.words)] or None
        return self.value(value)

    def value(self, value: Any) -> Any:
        """A value of a head, or any other that JSON can hold."""
        if isinstance(value, str):
            return self.names.get(value) or self.log(WIKILINK.sub(self._link, value))
        if isinstance(value, list | tuple):
            return type(value)(map(self.value, value))
        if isinstance(value, dict):
            return {self.value(k): self.value(v) for k, v in value.items()}
        return value


# --- names


def new_names(graph: Graph, paths: Iterable[str], words: str) -> dict[str, str]:
    """Path, id and link target that hold *words* → what stands there instead."""
    found: dict[str, str] = {}
    for path in paths:
        if holds_words(path, words) or slug_in_path(path, words):
            found[path] = free_path(graph, path_without(path, words), found.values())
    ids = {entry.id: new for path, new in found.items() if (entry := graph.index.entry(path))}
    for path in paths:
        for target in link_targets(read_text(graph.vault.bytes(path))):
            there = graph.index.resolve(target)
            if there and holds_words(target, words):
                found.setdefault(target, found.get(there, there))
    for id, new in ids.items():
        found.setdefault(id, f"omg/{new.removeprefix('nodes/')}")
    return found


def path_without(path: str, words: str) -> str:
    """*path* with the words out of each of its names."""
    names = []
    for name in path.split("/"):
        plain = blanked(name, words)
        if plain == name and (found := slug_in_path(name, words)):
            plain = f"{name[: found.start()]}forgotten{name[found.end() :]}"
        names.append(name if plain == name else slugify(plain))
    return "/".join(names)


def free_path(graph: Graph, path: str, taken: Iterable[str]) -> str:
    found, n = path, 1
    while found in taken or graph.vault.bytes(found) is not None:
        n += 1
        found = f"{path}-{n}"
    return found


def free_file(file: Path) -> Path:
    found, n = file, 1
    while found.exists():
        n += 1
        found = file.with_name(f"{file.stem}-{n}{file.suffix}")
    return found
