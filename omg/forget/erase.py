"""
Erases a Selection or the words of a Redaction, step by step.

What is to go is first written down (forgetting.json), so that a crash halfway is finished at the next start; every
step may be repeated. Afterwards a tombstone of salted hashes is all that is left, which import and rebuild heed. A
note that has other sources besides is not lost: those messages become pending again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from ..errors import BadInput, BadNode
from ..graph.graph import Graph
from ..graph.state import State, flock, forget_served, write_private
from ..journal import Change, Outcome, Receipt, apply_change
from ..message.turn import Message, Turn, said_at
from ..node.fields import LOG_FOLDER
from ..node.markdown import bare_target, link_targets, slugify, split_head
from ..node.note import amend_text, head_of, parse_node
from ..plan.pages import MapPages
from ..text.characters import WIKILINK
from .places import (
    BLANK,
    SEEN,
    Edit,
    Trace,
    archived_messages,
    beyond_reach,
    blanked,
    change_files,
    change_folder,
    change_home,
    change_logs,
    copies_of,
    every_message,
    folded_words,
    holds_words,
    json_object,
    message_holds,
    notes_linking,
    our_trash,
    raise_mark,
    read_text,
    remove_derived,
    remove_keys,
    slug_in_path,
    went_into,
)
from .selection import Selection, is_bare, remove_graph

# --- Words taken out of everything, and all else left as it is: each place that has them has BLANK instead.
#
#     select_words   what has them: shown to the person first
#     Redacting      the replacing, place by place
#
# No model is asked, and nothing is derived anew. A note whose name holds the words gets another, and what leads to it
# follows. Undo goes on working: a receipt's texts are changed as the notes are.


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
    """Session keys say whose memory it is. They are removed with the session, never by replacing words."""
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
        """Add tombstones for the former keys of changed messages, so that the old messages do not come back."""
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
        """Remove it from a file that only people read, and from the file's name. A file that is not UTF-8 text
        stays as it is."""
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
        """The *text* of a note without the words: links lead to the new names, and the head stays readable."""
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


JOURNAL = "forgetting.json"
ANY_LINK = re.compile(rf"!?{WIKILINK.pattern}")


def forget_now(graph: Graph, selection: Selection | Redaction) -> None:
    """
    Do it; one that was begun before is finished first. The caller holds `graph.lock()`.

    Raises Locked, and does nothing, while the graph is being rebuilt.
    """
    finish_forgetting(graph)
    with flock(graph.folder / "rebuild.lock", f"the rebuilding of {graph.identity.key}", 0):
        kind = "redact" if isinstance(selection, Redaction) else "forget"
        write_private(graph.folder / JOURNAL, json.dumps({"kind": kind, **asdict(selection)}))
    finish_forgetting(graph)


def begun_paths(graph: Graph) -> frozenset[str]:
    """The notes that an unfinished forgetting removes or renames."""
    try:
        raw = json.loads((graph.folder / JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    return frozenset(raw["paths"]) | {old for old, _ in raw.get("renamed", ())}


def finish_forgetting(graph: Graph) -> bool:
    """Complete a forgetting that was begun; False if none was. Every step may be repeated. The caller holds the lock."""
    journal = graph.folder / JOURNAL
    if not journal.exists():
        return False
    raw, home = json.loads(journal.read_text(encoding="utf-8")), graph.folder.parents[1]
    erases = raw.pop("kind", "forget") != "redact"
    edit = erasure_from(raw) if erases else redacting_from(raw)
    raise_mark(home)
    change_everywhere(graph, edit)
    # Again: what was served meanwhile was rendered from the index of before.
    graph.update(blank_served)
    raise_mark(home)
    if erases and is_bare(graph, edit.trace):
        remove_graph(graph)  # and the journal with it
        change_logs(home, edit)  # a daemon may have named it meanwhile
    else:
        journal.unlink()
    return True


def erasure_from(raw: dict[str, Any]) -> Edit:
    """As the journal has it, perhaps an earlier version's."""
    text = raw.pop("text")
    what = Selection(**{name: tuple(values) for name, values in raw.items()}, text=text)
    return Erasure(what, what.trace)


def change_everywhere(graph: Graph, edit: Edit) -> None:
    """Each place in turn: the notes, the graph's folder, its copies, what is derived, the home."""
    edit.tombstones(graph)
    edit.notes(graph)
    change_folder(graph.folder, edit)
    for folder, vault in copies_of(graph, edit.trace):
        edit.copy(folder, vault)
    graph.update(edit.state)
    edit.uses(graph)
    make_anew(graph, edit.trace)
    edit.keys(graph.folder.parents[1])
    change_home(graph.folder.parents[1], graph.folder, edit)


def make_anew(graph: Graph, trace: Trace) -> None:
    """What is derived from the notes."""
    for name in SEEN:  # they name notes, and cost a few model calls
        (graph.folder / name).unlink(missing_ok=True)
    remap_pages(graph, trace)
    graph.vault.settle(0)
    graph.vault.compact()
    graph.index.rebuild(graph.vault, graph.folder / "archive")


def remap_pages(graph: Graph, trace: Trace) -> None:
    """Regenerate all maps without what is gone, and take its lines out of the log pages."""
    graph.index.sync(graph.vault)
    maps = MapPages(graph)
    maps.add_all()
    outcome = Outcome()
    for change in maps.changes():
        apply_change(graph, change, outcome)
    if (now := maps.now_change(graph.state().sessions, date.today())) is not None:
        apply_change(graph, now, outcome)
    for path in [p for p in graph.vault.paths() if p.startswith(LOG_FOLDER)]:
        text = graph.vault.text(path)
        if (kept := without_lines(text, trace)) != text:
            apply_change(graph, Change(path, text, kept), outcome)


def without_lines(text: str, trace: Trace) -> str:
    """The page *text* without the lines that tell of it."""
    kept = "".join(line for line in text.splitlines(keepends=True) if not trace.in_note(line))
    return blanked(kept, trace.text)  # over the end of a line


def blank_served(state: State) -> None:
    for s in state.sessions.values():
        forget_served(s)
    state.epoch += 1


def observe_again(graph: Graph, ids: set[str]) -> None:
    """Put archived messages back among what is pending; the archive keeps its lines, and is not doubled."""
    by_session: dict[str, list[Message]] = {}
    for session, m in archived_messages(graph.folder / "archive"):
        if m.id in ids:
            by_session.setdefault(session, []).append(m)
    for n, (session, messages) in enumerate(sorted(by_session.items())):
        turn = Turn(session, agent=graph.identity.agent, reason="again", messages=tuple(messages))
        graph.put(f"{messages[-1].timestamp:015d}-again{n}", turn)


@dataclass(frozen=True, slots=True)
class Erasure:
    """The Edit that takes a Selection away. What does not tell of it stays as it is, byte for byte."""

    what: Selection
    trace: Trace

    def tombstones(self, graph: Graph) -> None:
        if ids := set(self.what.messages):
            said = [m for _, m in every_message(graph) if m.id in ids]
            graph.tombstones.add(ids | {m.key for m in said} | {said_at(m.role, m.timestamp) for m in said})

    def notes(self, graph: Graph) -> None:
        observe_again(graph, set(self.what.again))
        self._unlink(graph)
        for path in self.what.trash:
            (graph.vault.root / path).unlink(missing_ok=True)
        for path in self.what.paths:
            self._remove(graph, path)

    def _unlink(self, graph: Graph) -> None:
        """Take what leads to the notes, and what History says of them, out of all others. Before they go."""
        gone, outcome = frozenset(self.what.paths), Outcome()
        for path in notes_linking(graph, gone, self.trace.names):
            data = graph.vault.bytes(path)
            if data is None or (before := read_text(data)).encode("utf-8") != data:
                continue
            if (after := without_links(graph, path, before, gone | self.trace.names)) != before:
                theirs = not graph.vault.ours(data)
                apply_change(graph, Change(path, before, after, theirs=theirs), outcome)

    def _remove(self, graph: Graph, path: str) -> None:
        """
        Take the file away. The tombstone of a note names none of the messages that stay: it may come back from those,
        unless it went alone.
        """
        data = graph.vault.bytes(path)
        if data is None:
            graph.vault.mark_not_ours(path)  # a kill may have come before its name was forgotten
            return
        try:
            node = parse_node(read_text(data), path)
            cited = [s.id for s in node.sources if s.id in self.trace.messages or path in self.what.alone]
        except BadNode:
            cited = []  # whatever is in it, it goes
        if cited:
            graph.tombstones.add(cited, node.id)
        graph.vault.remove(path, data)

    def copy(self, folder: Path, vault: Path) -> None:
        """Its other notes stay. Of an account that goes whole, all goes: its messages are in the living graph."""
        whole = json_object(folder / "identity.json").get("key") in self.trace.keys
        if not whole or not vault.is_relative_to(folder):  # a vault elsewhere stays
            remove_derived(folder)
            found = notes_telling(vault, self.trace)
            names = self.trace.names.union(*found.values())
            wider = replace(self, trace=replace(self.trace, names=names))
            change_folder(folder, wider)
            for file in sorted(f for f in vault.rglob("*.md") if f not in found):
                if wider.trace.in_note(text := read_text(file.read_bytes())):  # a page that we made of others
                    write_private(file, "" if file.stem == "now" else without_lines(text, wider.trace))
            for file in reversed(found):  # a crash in between leaves what leads to the others
                file.unlink()
        if whole:
            shutil.rmtree(folder)

    def message(self, m: Message) -> Message | None:
        return None if m.id in self.trace.messages else m

    def torn(self, line: str) -> None:
        """It was never promised, and nobody can say whose it is."""

    def unread(self, text: str) -> str | None:
        """It goes whole if it may tell of it: nobody can say which part does."""
        return None if self.trace.in_line(text) else text

    def receipt(self, receipt: Receipt) -> Receipt:
        """Without the changes, hints and words that tell of it; the rest of a cycle can still be undone."""
        trace = self.trace
        kept = tuple(c for c in receipt.changes if not change_tells(c, trace))
        if trace.sessions:  # Now quotes their tasks
            kept = tuple(c for c in kept if c.path != "now")
        if len(kept) < len(receipt.changes) and all(c.rebase.block is not None for c in kept):
            lines = []  # they were about that note, perhaps by its title
        else:
            lines = [line for line in receipt.summary if not trace.in_words(line)]
        summary = tuple(line for line in lines if not any(name in line for name in trace.names))
        hints = {s: h for s, h in receipt.hints.items() if s not in trace.sessions}
        return replace(receipt, changes=kept, hints=hints, summary=summary)

    def state(self, state: State) -> None:
        """Clear served snapshots, hints and error texts, because they may quote it."""
        trace = self.trace
        for key in trace.keys:
            state.sessions.pop(key, None)
        for key, s in state.sessions.items():
            forget_served(s)
            if key in trace.sessions or any(trace.in_words(t) for t in (s.task, s.state, s.next)):
                s.task = s.state = s.next = ""
                s.shared, s.mocs, s.falls, s.activated_ms = [], [], {}, 0  # what was cut, and when, stays so
            s.mocs = [path for path in s.mocs if not trace.names_path(path)]
            s.falls = {path: n for path, n in s.falls.items() if not trace.names_path(path)}
        state.by_hand = {path: at for path, at in state.by_hand.items() if not trace.names_path(path)}
        if trace.in_words(state.error) or any(key in state.error for key in trace.keys):
            state.error = ""
        state.epoch += 1

    def uses(self, graph: Graph) -> None:
        graph.uses.drop(self.trace.names_path)

    def keys(self, home: Path) -> None:
        change_files((home / "spool").glob(".*"), self.unread)  # what a killed hook left half made
        remove_keys(home, self.what.keys)

    def log(self, text: str) -> str:
        """Without the lines that name one of the notes, a session that goes whole, or the words."""
        named = replace(self.trace, messages=frozenset(), sessions=frozenset())
        kept = "".join(line for line in text.splitlines(keepends=True) if not named.in_line(line))
        return blanked(kept, self.trace.text)  # over the end of a line


def without_links(graph: Graph, path: str, text: str, gone: frozenset[str]) -> str:
    """The note *text*: links to *gone* as plain words, and without lines of its History about it."""

    def leads_there(link: str) -> bool:
        try:
            target = bare_target(link)
        except ValueError:
            return False
        return target in gone or graph.index.resolve(target) in gone

    def plain(found: re.Match[str]) -> str:
        if not leads_there(found[1]):
            return found[0]
        return found[1].partition("|")[2].strip() or "(forgotten)"

    def tells(line: str) -> bool:
        return line[2:6].isdigit() and any(map(leads_there, ANY_LINK.findall(line)))

    try:
        node = parse_node(text, path)
        names = ("links", "supersedes", "contradicts", "reflected_in")
        kept: dict[str, Any] = {n: tuple(t for t in getattr(node, n) if not leads_there(t)) for n in names}
        left = replace(node, **kept)
        if node.superseded_by and leads_there(node.superseded_by):  # what replaced it was never said
            left = replace(left, superseded_by=None, status="active")
        was, now = head_of(node), head_of(left)
        text = amend_text(text, set={k: now.get(k) for k in was if was[k] != now.get(k)})
    except BadNode:
        pass
    begin, mark, rest = text.partition("\n---") if text.startswith("---") else ("", "", text)
    lines = [line for line in rest.splitlines(keepends=True) if not (line.startswith("- ") and tells(line))]
    return begin + mark + "".join(ANY_LINK.sub(plain, line) for line in lines)


def change_tells(change: Change, trace: Trace) -> bool:
    said = (change.before, change.after, change.rebase.block, change.rebase.history, *words_in(change))
    return change.path in trace.names or any(trace.in_note(text) for text in said if text)


def words_in(change: Change) -> Iterator[str]:
    for value in change.rebase.set.values():
        yield from map(str, value if isinstance(value, list | tuple) else [value])


def notes_telling(vault: Path, trace: Trace) -> dict[Path, set[str]]:
    """The notes below *vault* that tell of it, and the pages made from them: file → its names there."""
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
