"""
Take something back so that no byte of it stays: note, archive, receipts, pending, snapshots, index, logs.

    select(graph, …) -> Selection       what would go: shown to the person first
    forget(graph, selection)            does it

What is to go is first written down (forgetting.json), so that a crash halfway is finished at the next start.
Afterwards a tombstone of salted hashes is all that is left, and it is honoured by import and rebuild. A note
that has other sources besides is not lost: those messages become pending again, and it is derived anew from them.

Not here: the gateway's own transcripts, which are OpenClaw's to delete; the caller says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import date

from . import inbox, maps, traces
from .damaged import FOLDER as DAMAGED
from .edit import Plan
from .errors import BadNode, NotFound
from .graph import Graph, SessionState, State, flock, write_private
from .node import parse, slugify
from .receipt import Outcome, apply
from .traces import LOG, Trace
from .turn import Message, Turn, to_json

JOURNAL = "forgetting.json"
TO_MAP = re.compile(r"\[\[mocs/[^|\]\n]*")  # where a note is filed is not what it says


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything sorted. Paths and message ids go, and with them whatever else tells of them."""

    paths: tuple[str, ...]
    messages: tuple[str, ...]
    again: tuple[str, ...] = ()  # messages that stay, of notes that go: they are observed anew
    linking: tuple[str, ...] = ()  # notes that stay, without their links to those that go
    left: tuple[
        str, ...
    ] = ()  # pages on which a person wrote the text beside what we generate: theirs to mend
    names: tuple[str, ...] = ()  # ids and former paths of the notes
    sessions: tuple[str, ...] = ()  # of the messages
    text: str = ""  # what was looked for

    def __bool__(self) -> bool:
        return bool(self.paths or self.messages)

    @property
    def trace(self) -> Trace:
        names = frozenset((*self.paths, *self.names))
        return Trace(names, frozenset(self.messages), frozenset(self.sessions), self.text.casefold())


def select(
    graph: Graph,
    *,
    paths: Iterable[str] = (),
    session: str | None = None,
    before_ms: int | None = None,
    matching: str | None = None,
) -> Selection:
    """
    What goes when these notes, and these messages, go: with a note its messages, with a message every note
    that cites it, with a note every reflection that was made of it, and of that one; with all that a topic
    listed the topic, whose name comes of them.
    """
    named = set(paths)
    messages = {s.id for p in named for s in graph.index.sources(p)}
    said = every_message(graph)
    if session is not None or before_ms is not None or matching is not None:
        messages |= {m.id for s, m in said if fits(s, m, session, before_ms, matching)}
    left: list[str] = []
    if matching is not None:
        found, left = holding(graph, matching)
        for path in found:
            cited = {s.id for s in graph.index.sources(path)}
            if not cited & messages:  # put in other words, and no message could be told by it
                messages |= cited
        named |= found
    gone = named | {p for p in graph.index.citing(sorted(messages)) if p.startswith("nodes/")}
    gone |= {p for m in messages if (p := inbox.path_of(m)) and graph.vault.bytes(p) is not None}
    former = traces.former(graph, messages)
    gone |= traces.reflecting(graph, gone | former)
    gone |= {p for p in topics(graph) if emptied(graph, p, gone) or names_it(p, matching)}
    former |= {p for p in gone if graph.vault.bytes(p) is None}
    gone -= former
    again = {s.id for p in gone for s in graph.index.sources(p)} - messages
    return Selection(
        paths=tuple(sorted(gone)),
        messages=tuple(sorted(messages)),
        again=tuple(sorted(again)),
        linking=tuple(p for p in traces.linking(graph, gone, former) if not made(graph, p)),
        left=tuple(p for p in left if p not in gone),
        names=tuple(sorted((traces.names_of(graph, gone) | former) - gone)),
        sessions=tuple(sorted({s for s, m in said if m.id in messages})),
        text=matching or "",
    )


def holding(graph: Graph, text: str) -> tuple[set[str], list[str]]:
    """The notes that hold *text*; and the generated pages that do outside of their generated part."""
    trace, notes, pages = Trace(frozenset(), frozenset(), text=text.casefold()), set(), []
    for path in (*graph.vault.paths(), *graph.vault.conflicts()):
        data = graph.vault.bytes(path)
        said = TO_MAP.sub("[[", (data or b"").decode("utf-8", errors="replace"))
        if data is None or not trace.in_words(said):
            continue
        if not made(graph, path) and (
            path.startswith(("nodes/", "reflections/")) or not graph.vault.ours(data)
        ):
            notes.add(path)
        elif made(graph, path) and trace.in_words(outside(said)):
            pages.append(path)
    return notes, pages


def topics(graph: Graph) -> list[str]:
    """The maps that the Reflector split off, as far as no person has written on them."""
    found = []
    for path in (e.path for e in graph.index.entries(type="moc") if e.path not in maps.STANDARD):
        with suppress(BadNode, NotFound):
            text = graph.vault.text(path)
            if not maps.theirs(text, path) and parse(text, path).description == maps.named(path)[1]:
                found.append(path)
    return found


def emptied(graph: Graph, topic: str, gone: set[str]) -> bool:
    listed = {e.path for e in graph.index.entries(moc=topic)}
    return bool(listed) and listed <= gone


def names_it(path: str, text: str | None) -> bool:
    return bool(text) and slugify(text or "") in path


def made(graph: Graph, path: str) -> bool:
    """Whether the page at *path* is one that we generate, at least in part."""
    entry = graph.index.entry(path)
    return path.startswith(LOG) or (entry is not None and entry.type in ("index", "now", "moc"))


def outside(page: str) -> str:
    before, _, rest = page.partition("<!-- omg:begin -->")
    return before + rest.partition("<!-- omg:end -->")[2]


def forget(graph: Graph, selection: Selection) -> None:
    """Do it. The caller holds `graph.lock()`. Raises Locked, and does nothing, while the graph is being rebuilt."""
    with flock(graph.folder / "rebuild.lock", f"the rebuilding of {graph.identity.key}", 0):
        write_private(graph.folder / JOURNAL, json.dumps(asdict(selection)))
    finish(graph)


def finish(graph: Graph) -> bool:
    """Complete a forgetting that was begun; False if none was. Every step may be repeated. The caller holds the lock."""
    journal = graph.folder / JOURNAL
    if not journal.exists():
        return False
    raw = json.loads(journal.read_text(encoding="utf-8"))
    text = raw.pop("text")
    what = Selection(**{name: tuple(values) for name, values in raw.items()}, text=text)
    trace, messages = what.trace, set(what.messages)
    if messages:
        graph.tombstones.add(messages | {m.key for _, m in every_message(graph) if m.id in messages})
    observe_again(graph, set(what.again))
    traces.unlink(graph, what.paths, trace)
    scrub_pending(graph, messages)
    traces.archive(graph.folder / "archive", messages)
    remove_notes(graph, what.paths, messages)
    traces.receipts(graph.folder / "receipts", trace)
    traces.replaced(graph, trace)
    traces.damaged(graph.folder / DAMAGED, trace)
    graph.update(lambda state: blank(state, trace))
    graph.uses.drop(lambda id: id in trace.names or trace.in_words(id))
    for name in traces.SEEN:  # they name notes, and cost a few model calls
        (graph.folder / name).unlink(missing_ok=True)
    remap(graph, trace)
    graph.vault.settle(0)
    graph.vault.compact()
    graph.index.rebuild(graph.vault, graph.folder / "archive")
    home = graph.folder.parents[1]
    traces.drops(home, trace)
    traces.logs(home, trace)
    journal.unlink()
    return True


def every_message(graph: Graph) -> list[tuple[str, Message]]:
    """`(session, message)` of the archive and of what is pending."""
    found = list(traces.archived(graph.folder / "archive"))
    for p in graph.intact():
        turn = p.turn()
        found += [(turn.session, m) for m in turn.messages]
    return found


def fits(session: str, m: Message, of: str | None, before_ms: int | None, matching: str | None) -> bool:
    return (
        (of is None or session == of)
        and (before_ms is None or m.timestamp < before_ms)
        and (matching is None or matching.casefold() in m.text.casefold() or called(m, matching))
    )


def called(m: Message, matching: str) -> bool:
    """Whether the arguments of a call that the agent made hold it."""
    return any(matching.casefold() in c.arguments.casefold() for c in m.calls)


def observe_again(graph: Graph, ids: set[str]) -> None:
    """Put archived messages back among what is pending; the archive keeps its lines, and is not doubled."""
    by_session: dict[str, list[Message]] = {}
    for session, m in traces.archived(graph.folder / "archive"):
        if m.id in ids:
            by_session.setdefault(session, []).append(m)
    for n, (session, messages) in enumerate(sorted(by_session.items())):
        turn = Turn(session, "", graph.identity.agent, "again", "", "", "", tuple(messages))
        graph.put(f"{messages[-1].timestamp:015d}-again{n}", turn)


def scrub_pending(graph: Graph, ids: set[str]) -> None:
    for p in graph.intact():
        turn = p.turn()
        kept = tuple(m for m in turn.messages if m.id not in ids)
        if not kept:
            p.file.unlink()
        elif len(kept) < len(turn.messages):
            write_private(p.file, to_json(replace(turn, messages=kept)))


def remove_notes(graph: Graph, paths: Iterable[str], messages: set[str]) -> None:
    """Take the files away. The tombstone of a note names none of the messages that stay: it may come back from those."""
    for path in paths:
        data = graph.vault.bytes(path)
        if data is None:
            continue
        try:
            node = parse(data.decode("utf-8", errors="replace"), path)
            cited = [s.id for s in node.sources if s.id in messages]
        except BadNode:
            cited = []  # whatever is in it, it goes
        if cited:
            graph.tombstones.add(cited, node.id)
        graph.vault.remove(path, data)


def blank(state: State, trace: Trace) -> None:
    """Served snapshots and hints may quote what was forgotten, and so may the words of a failure."""
    for key, s in state.sessions.items():
        s.system = ""
        if key in trace.sessions or any(trace.in_words(t) for t in (s.task, s.state, s.next)):
            state.sessions[key] = SessionState(last_ms=s.last_ms, window=s.window)
    state.error = "" if trace.in_words(state.error) else state.error
    state.epoch += 1


def remap(graph: Graph, trace: Trace) -> None:
    """Regenerate all maps without what is gone, and take its lines out of the log pages."""
    graph.index.sync(graph.vault)
    plan = Plan(graph, date.today())
    plan.maps |= {e.path for e in graph.index.entries(type="moc")}
    outcome = Outcome()
    for change in plan.map_changes():
        apply(graph, change, outcome)
    inner = maps.now(graph.state().sessions, plan.listed(maps.OPEN_LOOPS), plan.day, graph.zone)
    if (now := plan.page("now", inner, maps.page("now", inner))) is not None:
        apply(graph, now, outcome)
    traces.log_pages(graph, trace)
