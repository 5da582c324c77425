"""
Words taken out of everything, and all else left as it is: each place that has them has BLANK instead.

    select_words   what has them: shown to the person first
    redact_words   the replacing, step by step; a crash does not stop it halfway (erase.py keeps the journal)

No model is asked, and nothing is derived anew. A note whose name holds the words gets another, and what leads to it
follows. Undo goes on working: a receipt's texts are changed as the notes are. One rule: every step may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..graph.files import write_private
from ..graph.graph import Graph
from ..graph.state import State, forget_served
from ..journal import Change, Outcome, Receipt, apply_change, read_receipt
from ..message.stored import message_from_json, message_to_json, turn_from_json, turn_to_json
from ..message.turn import Message
from ..node.markdown import slugify
from .beyond import beyond_reach, our_trash
from .copies import copies_of, joined_folders, remove_derived
from .homefiles import change_logs, text_of
from .renaming import NewNames, free_path, new_names, redacted_note, redacted_value
from .traces import Trace, archived_messages, message_holds
from .words import BLANK, blanked, folded_words, holds_words, slug_in_path


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

    @property
    def trace(self) -> Trace:
        return Trace(frozenset(), frozenset(), text=self.words)


def select_words(graph: Graph, words: str) -> Redaction:
    """Raises BadInput for words that BLANK holds itself."""
    if not folded_words(words) or holds_words(BLANK, words):
        raise BadInput(f"{words!r} cannot be taken out of a text; give the words that are to go")
    trace = Trace(frozenset(), frozenset(), text=words)
    holding = [p for p in (*graph.vault.paths(), *graph.vault.conflicts()) if path_holds(graph, p, words)]
    paths = [path for path in holding if is_text(graph.vault.bytes(path) or b"")]
    unread = [graph.vault.file(path) for path in holding if path not in paths]
    trash = tuple(our_trash(graph, trace))
    return Redaction(
        words,
        paths=tuple(sorted(paths)),
        messages=tuple(sorted({m.id for m in all_messages(graph) if message_holds(m, words)})),
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
    text = (graph.vault.bytes(path) or b"").decode("utf-8", errors="replace")
    return holds_words(text, words) or holds_words(path, words) or slug_in_path(path, words) is not None


def all_messages(graph: Graph) -> Iterable[Message]:
    for folder in (graph.folder, *joined_folders(graph)):
        yield from (m for _, m in archived_messages(folder / "archive"))
    for p in graph.intact():
        yield from p.turn().messages


# --- a graph


def redact_words(graph: Graph, what: Redaction) -> None:
    """All that belongs to the graph itself, and its copies; the caller holds the lock, and does the rest."""
    words, names = what.words, dict(what.renamed)
    graph.tombstones.add({m.key for m in all_messages(graph) if message_holds(m, words) and m.key != m.id})
    redact_turns(graph.folder / "pending", words)
    redact_archive(graph.folder / "archive", words)
    redact_notes(graph, what.paths, words, names)
    redact_receipts(graph.folder / "receipts", words, names)
    for path in what.trash:
        redact_text_file(graph.vault.root / path, words, names)
    for folder, vault in copies_of(graph, what.trace):
        remove_derived(folder)
        redact_turns(folder / "pending", words)
        redact_archive(folder / "archive", words)
        redact_receipts(folder / "receipts", words, names)
        redact_damaged(folder / "damaged", words)
        for file in sorted(vault.rglob("*.md")):
            redact_text_file(file, words, names)
    redact_damaged(graph.folder / "damaged", words)
    graph.update(lambda state: redact_state(state, words, names))
    uses = graph.uses.all()
    graph.uses.drop(lambda id: holds_words(id, words))
    graph.uses.adopt({names[id]: use for id, use in uses.items() if id in names})


def redact_notes(graph: Graph, paths: Iterable[str], words: str, names: NewNames) -> None:
    """In the vault; what a person wrote stays theirs, and as private."""
    outcome = Outcome()
    for path in paths:
        data = graph.vault.bytes(path)
        if data is None:
            graph.vault.mark_not_ours(path)  # a kill may have come before its name was forgotten
            continue
        if not is_text(data):
            continue  # since it was selected
        before = data.decode("utf-8")
        after, target = redacted_note(before, path, words, names), names.get(path, path)
        theirs = not graph.vault.ours(data)
        if target == path:
            apply_change(graph, Change(path, before, after, theirs=theirs), outcome)
            continue
        # else a kill came before the removal
        if (there := graph.vault.bytes(target)) != after.encode("utf-8"):
            if there is not None and not graph.vault.ours(there):
                target, there = free_path(graph, target, ()), None  # in both places is what a person wrote
            was = None if there is None else there.decode("utf-8")
            change = Change(target, was, after, theirs=theirs, mode=graph.vault.mode(path))
            apply_change(graph, change, outcome)
        graph.vault.remove(path, data)


def redact_archive(folder: Path, words: str) -> None:
    for file in sorted(folder.glob("*.jsonl")):
        lines = text_of(file).split("\n")
        kept = [redacted_line(line, words) for line in lines]
        if kept != lines:
            write_private(file, "\n".join(kept))


def redacted_line(line: str, words: str) -> str:
    try:
        message, session = message_from_json(line)
    except BadInput:
        return blanked(line, words)  # torn by a crash
    clean = redacted_message(message, words)
    return line if clean == message else message_to_json(clean, session)


def redacted_message(m: Message, words: str) -> Message:
    calls = (replace(c, name=blanked(c.name, words), arguments=blanked(c.arguments, words)) for c in m.calls)
    said = {name: blanked(getattr(m, name), words) for name in ("id", "text", "sender", "sender_id", "tool")}
    return replace(m, calls=tuple(calls), **said)  # type: ignore[arg-type]


def redact_turns(folder: Path, words: str) -> None:
    for file in sorted(folder.glob("*.json")):
        text = text_of(file)
        try:
            turn = turn_from_json(text)
        except BadInput:
            clean = blanked(text, words)
        else:
            messages = tuple(redacted_message(m, words) for m in turn.messages)
            left = replace(turn, messages=messages, sender=blanked(turn.sender, words))
            clean = text if left == turn else turn_to_json(left)
        if clean != text:
            write_private(file, clean)


def redact_receipts(folder: Path, words: str, names: NewNames) -> None:
    for file in sorted(folder.glob("*.json")):
        try:
            receipt = read_receipt(file)
        except BadInput:
            write_private(file, blanked(text_of(file), words))
            continue
        clean = redacted_receipt(receipt, words, names)
        if clean != receipt:
            write_private(file, clean.dumps())


def redacted_receipt(receipt: Receipt, words: str, names: NewNames) -> Receipt:
    changes = []
    for c in receipt.changes:
        before, after, block = (
            None if text is None else redacted_note(text, c.path, words, names)
            for text in (c.before, c.after, c.rebase.block)
        )
        history = c.rebase.history and redacted_value(c.rebase.history, words, names)
        properties = {key: redacted_value(value, words, names) for key, value in c.rebase.set.items()}
        rebase = replace(c.rebase, block=block, history=history, set=properties)
        path = names.get(c.path) or redacted_value(c.path, words, names)
        changes.append(replace(c, path=path, before=before, after=after, rebase=rebase))
    summary = tuple(redacted_value(line, words, names) for line in receipt.summary)
    hints = redacted_value(receipt.hints, words, names)
    return replace(receipt, changes=tuple(changes), summary=summary, hints=hints)


def redact_state(state: State, words: str, names: NewNames) -> None:
    for s in state.sessions.values():
        forget_served(s)
        s.mocs, s.falls = [], {}
        s.task, s.state, s.next = (blanked(t, words) for t in (s.task, s.state, s.next))
    state.by_hand = {redacted_value(path, words, names): at for path, at in state.by_hand.items()}
    state.error = blanked(state.error, words)
    state.epoch += 1
    state.redactions += 1


# --- other files


def redact_text_file(file: Path, words: str, names: NewNames) -> None:
    """A note that nobody but a person reads; also its name. One that is no UTF-8 text stays as it is."""
    if is_text(data := file.read_bytes()):
        text = data.decode("utf-8")
        if (clean := redacted_note(text, file.stem, words, names)) != text:
            write_private(file, clean)
    if holds_words(file.stem, words) and file.exists():
        file.rename(free_file(file.with_name(f"{slugify(blanked(file.stem, words))}{file.suffix}")))


def free_file(file: Path) -> Path:
    found, n = file, 1
    while found.exists():
        n += 1
        found = file.with_name(f"{file.stem}-{n}{file.suffix}")
    return found


def redact_damaged(folder: Path, words: str) -> None:
    for file in sorted(f for f in folder.glob("*") if f.is_file()):
        text = text_of(file)
        if (clean := blanked(text, words)) != text:
            write_private(file, clean)


def redact_home(home: Path, words: str) -> None:
    """Drops that could not be read, and logs."""
    redact_damaged(home / "spool" / "bad", words)
    change_logs(home, partial(blanked, words=words))


def redaction_from(raw: dict[str, object]) -> Redaction:
    """As the journal has it."""
    fields: dict[str, Any] = dict(raw)
    words, renamed = fields.pop("words"), tuple((a, b) for a, b in fields.pop("renamed"))
    return Redaction(words, renamed=renamed, **{name: tuple(values) for name, values in fields.items()})
