"""
Where else something of what is forgotten stands, and how it is taken out there.

    links       other notes, whoever wrote them: a link to it becomes plain words, a line of history about it goes
    receipts    what they hold of it; the rest of a cycle can still be undone
    replaced    graphs that were rebuilt since, kept beside the new one
    drops       of the spool that could not be read
    logs        lines that name it

One rule: what does not tell of it stays as it is, byte for byte; and every step may be repeated.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import BadInput, BadNode, NotFound
from ..graph.files import write_private
from ..graph.graph import Graph
from ..journal import Change, Outcome, apply_change, read_receipt, readable
from ..message.stored import message_from_json
from ..message.turn import Message
from ..node.markdown import bare_target, link_targets
from ..node.note import amend_text, head_of, parse_node

ID_IN_TEXT = re.compile(r"""\bid: *["']?([^"'\n,}]+)""")  # a note's own, and those of its sources
ANY_LINK = re.compile(r"!?\[\[([^\[\]\n]*)\]\]")
LOG_PAGES = "reflections/log/"
SEEN = ("reflected.json", "reflected.open.json")  # what the Reflector has seen


@dataclass(frozen=True, slots=True)
class Trace:
    """What is to go, as a text may speak of it. `names`: paths, present and former, and ids of notes."""

    names: frozenset[str]
    messages: frozenset[str]
    sessions: frozenset[str] = frozenset()  # that had one of the messages
    text: str = ""  # casefolded

    def in_note(self, text: str) -> bool:
        """Whether a note says it: cites the messages, links to the notes, or has the words."""
        named = {found.strip() for found in ID_IN_TEXT.findall(text)} | set(link_targets(text))
        return bool(named & (self.names | self.messages)) or self.in_words(text)

    def in_words(self, text: str) -> bool:
        return bool(self.text) and self.text in text.casefold()

    def in_line(self, line: str) -> bool:
        """Whether a line of a log, or a drop as it is, names it."""
        paths = {name for name in self.names if "/" in name}  # a title such as "API" may stand in any line
        ids = paths | self.messages | self.sessions
        spelled = self.text and json.dumps(self.text)[1:-1]  # as JSON has what is not ASCII
        return (
            any(i in line for i in ids) or self.in_words(line) or bool(spelled and spelled in line.casefold())
        )


# --- notes that go as well


def reflecting(graph: Graph, gone: Collection[str]) -> set[str]:
    """
    Reflections that were made of *gone*, and those made of them: by their links, and by `reflected_in`, for a
    model may have used what it did not name. Also those that a person has deleted since.
    """
    named = {
        p: led_to(graph, link_targets(graph.vault.bytes(p).decode("utf-8", errors="replace")))  # type: ignore[union-attr]
        for p in graph.vault.paths()
        if p.startswith("reflections/") and not p.startswith(LOG_PAGES)
    }
    found: set[str] = set()
    front = set(gone)
    while front:
        into = {where for p in front for where in led_to(graph, reflected_in(graph, p))}
        front = (into | {p for p, there in named.items() if there & front}) - found - set(gone)
        found |= front
    return found


def led_to(graph: Graph, links: Iterable[str]) -> set[str]:
    return {graph.index.resolve(target) or target for target in links}


def reflected_in(graph: Graph, path: str) -> tuple[str, ...]:
    data = graph.vault.bytes(path)
    return () if data is None else went_into(data.decode("utf-8", errors="replace"), path)


def former_paths(graph: Graph, messages: Collection[str]) -> set[str]:
    """
    Paths of notes that were made of *messages*, as receipts tell, and that are there no more.
    """
    found = set()
    for file in (graph.folder / "receipts").glob("*.json"):
        receipt = readable(graph, file)
        for change in receipt.changes if receipt else ():
            said = (change.before or "") + (change.after or "")
            if not {found.strip() for found in ID_IN_TEXT.findall(said)}.isdisjoint(messages):
                found.add(change.path)
    return {p for p in found if p.startswith("nodes/") and graph.vault.bytes(p) is None}


# --- notes that stay


def unlink_notes(graph: Graph, gone: Collection[str], trace: Trace) -> None:
    """Take what leads to *gone*, and what History says of it, out of all other notes. Before *gone* goes."""
    outcome = Outcome()
    for path in notes_linking(graph, gone, trace.names):
        data = graph.vault.bytes(path)
        if data is None:
            continue
        before = data.decode("utf-8", errors="replace")
        after = without_traces(graph, path, before, gone=frozenset(gone), trace=trace)
        if after != before and before.encode("utf-8") == data:
            apply_change(graph, Change(path, before, after, theirs=not graph.vault.ours(data)), outcome)


def notes_linking(graph: Graph, gone: Collection[str], former: Collection[str] = ()) -> list[str]:
    """Notes that stay and link to one of *gone*, or to where one of *former* was."""
    found = {p for g in gone for p in graph.index.backlinks(g)}
    found |= {p for p, target in graph.index.dangling() if former and target in former}
    return sorted(p for p in found - set(gone) if not p.startswith(LOG_PAGES))


def without_traces(graph: Graph, path: str, text: str, *, gone: frozenset[str], trace: Trace) -> str:
    def leads_there(link: str) -> bool:
        try:
            target = bare_target(link)
        except ValueError:
            return False
        return target in gone or target in trace.names or graph.index.resolve(target) in gone

    def plain(found: re.Match[str]) -> str:
        if not leads_there(found[1]):
            return found[0]
        return found[1].partition("|")[2].strip() or "(forgotten)"

    try:
        node = parse_node(text, path)
        left = replace(
            node,
            links=tuple(t for t in node.links if not leads_there(t)),
            supersedes=tuple(t for t in node.supersedes if not leads_there(t)),
            reflected_in=tuple(t for t in node.reflected_in if not leads_there(t)),
        )
        if node.superseded_by and leads_there(node.superseded_by):  # what replaced it was never said
            left = replace(left, superseded_by=None, status="active")
        was, now = head_of(node), head_of(left)
        text = amend_text(text, set={k: now.get(k) for k in was if was[k] != now.get(k)})
    except BadNode:
        pass
    begin, mark, rest = text.partition("\n---") if text.startswith("---") else ("", "", text)
    lines = [
        ANY_LINK.sub(plain, line)
        for line in rest.splitlines(keepends=True)
        if not (
            line.startswith("- ") and line[2:6].isdigit() and any(map(leads_there, ANY_LINK.findall(line)))
        )
    ]
    return begin + mark + "".join(lines)


def scrub_log_pages(graph: Graph, trace: Trace) -> None:
    """The lines of `reflections/log/` that tell of it."""
    for path in [p for p in graph.vault.paths() if p.startswith(LOG_PAGES)]:
        text = graph.vault.text(path)
        kept = "".join(line for line in text.splitlines(keepends=True) if not trace.in_note(line))
        if kept != text:
            apply_change(graph, Change(path, text, kept), Outcome())


# --- a graph's folder


def scrub_receipts(folder: Path, trace: Trace) -> None:
    """Drop from every receipt in *folder* the changes, hints and words that tell of it."""
    for file in sorted(folder.glob("*.json")):
        receipt = read_receipt(file)
        kept = tuple(c for c in receipt.changes if not change_tells(c, trace))
        if trace.sessions:  # Now quotes their tasks
            kept = tuple(c for c in kept if c.path != "now")
        summary = tuple(
            line
            for line in receipt.summary
            if not trace.in_words(line) and not any(name in line for name in trace.names)
        )
        if len(kept) < len(receipt.changes) and all(c.rebase.block is not None for c in kept):
            summary = ()  # it was about that note, perhaps by its title
        hints = {s: h for s, h in receipt.hints.items() if s not in trace.sessions}
        scrubbed = replace(receipt, changes=kept, hints=hints, summary=summary)
        if scrubbed != receipt:
            write_private(file, scrubbed.dumps())


def change_tells(change: Change, trace: Trace) -> bool:
    said = (change.before, change.after, change.rebase.block, change.rebase.history, *words_in(change))
    return change.path in trace.names or any(trace.in_note(text) for text in said if text)


def words_in(change: Change) -> Iterator[str]:
    for value in change.rebase.set.values():
        yield from map(str, value if isinstance(value, list | tuple) else [value])


def archived_messages(folder: Path) -> Iterator[tuple[str, Message]]:
    """`(session, message)` of every line in the archive *folder*; one that a crash has torn was never promised."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
            with suppress(BadInput):
                message, session = message_from_json(line)
                yield session, message


def remove_archived(folder: Path, ids: Collection[str]) -> None:
    """Take messages out of the archive."""
    for file in sorted(folder.glob("*.jsonl")):
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        kept = [line for line in lines if line_stays(line, ids)]
        if kept != lines[: len(kept)] or any(lines[len(kept) :]):
            write_private(file, "".join(line + "\n" for line in kept))


def line_stays(line: str, ids: Collection[str]) -> bool:
    try:
        return message_from_json(line)[0].id not in ids
    except BadInput:
        return False


def scrub_replaced(graph: Graph, trace: Trace) -> None:
    """Graphs that `omg rebuild` replaced keep their other notes; one under construction is begun anew."""
    shutil.rmtree(graph.folder / "rebuild", ignore_errors=True)
    for old in sorted((graph.folder / "replaced").glob("*/")):
        for name in ("state.json", "written.jsonl", *SEEN):  # nobody reads them there
            (old / name).unlink(missing_ok=True)
        found = notes_telling(old / "vault", trace)
        wider = replace(trace, names=trace.names.union(*found.values()))
        scrub_receipts(old / "receipts", wider)
        for file in sorted((old / "vault").rglob("*.md")):
            text = file.read_text(encoding="utf-8", errors="replace")
            if file not in found and wider.in_note(text):  # a page that we made of others
                kept = [line for line in text.splitlines(keepends=True) if not wider.in_note(line)]
                write_private(file, "" if file.stem == "now" else "".join(kept))
        for file in reversed(found):  # a crash in between leaves what leads to the others
            file.unlink()


def notes_telling(vault: Path, trace: Trace) -> dict[Path, set[str]]:
    """The notes below *vault* that tell of it, and what was made of them in turn: file → its names there."""
    files = {
        file: (path, file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted(vault.rglob("*.md"))
        if not (path := file.relative_to(vault).as_posix().removesuffix(".md")).startswith(LOG_PAGES)
    }
    found: dict[Path, set[str]] = {}
    names, more = set(trace.names), True
    while more:
        more = False
        trace = replace(trace, names=frozenset(names))
        for file, (path, text) in files.items():
            made = path.startswith("mocs/") or path in ("index", "now")
            if file not in found and (path in names or (not made and trace.in_note(text))):
                found[file] = {path, *went_into(text, path)}
                names |= found[file]
                more = True
    return found


def went_into(text: str, path: str) -> tuple[str, ...]:
    """The reflections that the note *text* went into."""
    try:
        return parse_node(text, path).reflected_in
    except BadNode:
        return ()


def remove_damaged(folder: Path, trace: Trace) -> None:
    """What could not be read goes whole if it may tell of it: nobody can say which part does."""
    for file in sorted(f for f in folder.glob("*") if f.suffix != ".txt"):
        if trace.in_line(file.read_text(encoding="utf-8", errors="replace")):
            file.unlink()
            file.with_name(f"{file.name}.txt").unlink(missing_ok=True)


# --- the home


def remove_drops(home: Path, trace: Trace) -> None:
    """Drops set aside because they could not be read may hold it, too."""
    for file in sorted((home / "spool" / "bad").glob("*")):
        if trace.in_line(file.read_text(encoding="utf-8", errors="replace")):
            file.unlink()


def scrub_logs(home: Path, trace: Trace) -> None:
    """
    Lines of the logs that name one of the notes. In place: a daemon goes on writing to the file it has open.
    """
    names = Trace(trace.names, frozenset(), frozenset(), trace.text)
    for file in sorted({*home.glob("omg.log*"), *home.glob("events*.jsonl")}):
        text = file.read_text(encoding="utf-8", errors="replace")
        kept = "".join(line for line in text.splitlines(keepends=True) if not names.in_line(line))
        if kept != text:
            with file.open("r+", encoding="utf-8") as f:
                f.write(kept)
                f.truncate()


def all_names(graph: Graph, paths: Collection[str]) -> set[str]:
    """Every name that the notes at *paths* have or had."""
    found = set(paths)
    for path in paths:
        try:
            node = graph.vault.read(path)
        except (BadNode, NotFound):
            continue
        found |= {node.id, *node.aliases}
    return found
