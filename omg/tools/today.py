"""
Answers `/omg today`, `/omg decide` and `/omg why` in five lines for any channel, and writes the notice below
a reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from ..errors import OmgError, how_many
from ..forget.selection import readable_note
from ..graph.graph import Graph
from ..graph.state import given_lately
from ..index.links import CONTRADICTION
from ..index.store import Entry, entries_where
from ..journal import Change, closed_files, readable, receipts_of, short_cycle, undone_cycles
from ..node.note import parse_node
from ..plan.corrections import is_in_doubt
from ..plan.pages import due_days, standing_loops
from ..text.words import cut_text

LINES, LINE_CHARS = 5, 160


def entry_line(entry: Entry, more: str = "") -> str:
    text = cut_text(" ".join(entry.description.split()), LINE_CHARS)
    return f"- {text}{f' ({more})' if more else ''}"


def today_text(graph: Graph, now: datetime) -> str:
    """How many notes came or changed today, the notes themselves, and what is due next."""
    today = now.astimezone(graph.zone).date()

    def is_of_today(iso: str) -> bool:
        return datetime.fromisoformat(iso).astimezone(graph.zone).date() == today

    done = [r for r in receipts_of(graph) if is_of_today(r.done or r.at)]
    paths = dict.fromkeys(c.path for r in done for c in r.changes if c.path.startswith("nodes/") and c.after)
    entries = [e for e in map(graph.index.entry, paths) if e and e.status == "active"]
    head = (
        f"Today {how_many(len(entries), 'note')} came or changed." if entries else "Nothing was noted today."
    )
    loops = standing_loops(graph.index.entries(loop="open"), today)[:2]
    lines = [entry_line(e) for e in entries[: LINES - 1 - len(loops)]]
    return "\n".join(
        [head, *lines, *(entry_line(e, f"open, due {due_days(e) or 'on no fixed day'}") for e in loops)]
    )


SAYERS = {"assistant": "The assistant", "tool": "A tool or a page"}
PROPOSES, SAYS = "proposes this; you did not say it in these words", "says this of you"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A question that only the person can answer. *why* says in words what is unsure."""

    entry: Entry
    why: str
    other: Entry | None = None  # the earlier note that contradicts *entry*, if that is the question


def doubts_of(graph: Graph) -> Iterator[Doubt]:
    """
    Yield the contradictions, the assistant's proposals, and what the assistant or a page says about the person. The page
    and `/omg decide` ask about these, in the same words.
    """
    linked = " union ".join(f"select {end} from link where kind = {CONTRADICTION}" for end in ("src", "dst"))
    found = graph.index.ask(entries_where, f"where status = 'active' and id in ({linked})", ())
    known = {entry.path: entry for entry in found.values()}
    pairs = {tuple(sorted((e.path, path))) for e in known.values() for path in e.contradicts if path in known}
    for one, two in sorted(pairs):  # a person may have written `contradicts` into one of the two notes alone
        first, last = sorted((known[one], known[two]), key=lambda e: str(e.updated or e.created or ""))
        yield Doubt(last, "These two cannot both be right.", first)
    for origin, who in SAYERS.items():
        for entry in graph.index.entries(origin=origin):
            node = readable_note(graph, entry.path)
            if node and entry.path.startswith("nodes/") and is_in_doubt(node):
                yield Doubt(entry, f"{who} {PROPOSES if node.proposes else SAYS}.")


def decide_text(graph: Graph) -> str:
    """The notes that a person should confirm or reject, and the command for each answer."""
    doubts = [doubt_line(doubt) for doubt in doubts_of(graph)]
    if not doubts:
        return "Nothing to decide: no note waits for your answer."
    head = f"{how_many(len(doubts), 'thing')} to decide; `omg ui` settles each in one tap, or here:"
    return "\n".join([head, *doubts[: LINES - 1]])


def doubt_line(doubt: Doubt) -> str:
    one, other = doubt.entry, doubt.other
    if other is None:
        return entry_line(one, f"{doubt.why} Right: /omg confirm {one.path}; wrong: /omg reject {one.path}")
    answers = f"The first is right: /omg keep {one.path}; the second: /omg keep {other.path}"
    both = f"both: /omg keep {one.path} {other.path}"
    return f"{entry_line(one)} / {entry_line(other, f'{doubt.why} {answers}; {both}')[2:]}"


def why_text(graph: Graph, session: str) -> str:
    """What the latest prompt of *session* was given, and the reason."""
    record = next((r for r in given_lately(graph.folder) if r.get("session") == session), None)
    if record is None:
        return "No prompt of this conversation was given any memory yet."
    given = given_lines(graph, record)
    quoted = how_many(len(record.get("said") or ()), "quotation")
    head = f"The last prompt was given {how_many(len(given), 'note')} chosen for it and {quoted}:"
    return "\n".join([head, *islice(given, LINES - 1)])


def given_lines(graph: Graph, record: Mapping[str, object]) -> list[str]:
    lines = []
    notes = record.get("notes")
    for note in notes if isinstance(notes, list) else ():
        with suppress(OmgError, ValueError, TypeError):
            path, _, why, place = note
            if place and (entry := graph.index.entry(str(path))):
                lines.append(entry_line(entry, str(why or "its meaning is similar")))
    return lines


NAMED = 2  # most notes, and most cycles, that a notice names


def notice_text(graph: Graph, since: float, until: float) -> str:
    """
    One line about the notes that came or changed from *since* to *until* (seconds of the epoch), with the command
    that undoes the change. "" if no note came or changed.
    """
    said, cycles, undone = dict[str, str](), list[str](), undone_cycles(graph)
    for file in closed_files(graph):
        if not since < file.stat().st_mtime <= until or not (receipt := readable(graph, file)):
            continue
        news = {c.path: text for c in receipt.changes if (text := new_words(c))}
        if receipt.kind in ("observation", "edit") and news and receipt.id not in undone:
            said |= news
            cycles.append(short_cycle(receipt.id))
    if not cycles:
        return ""
    shown = "; ".join(cut_text(text, LINE_CHARS // NAMED) for text in [*said.values()][:NAMED])
    more = f"; and {len(said) - NAMED} more" * (len(said) > NAMED)
    undo = ", ".join(f"/omg undo {cycle}" for cycle in cycles) if len(cycles) <= NAMED else "`omg history`"
    return f"noted: {shown}{more} · undo: {undo}"


def new_words(change: Change) -> str:
    """
    Return the note's description if *change* wrote or rewrote it.

    Returns "" if *change* kept the description, removed the note, or is about a page.
    """
    if change.after is None or not change.path.startswith("nodes/"):
        return ""
    after = parse_node(change.after, change.path).description
    before = parse_node(change.before, change.path).description if change.before else ""
    return "" if after == before else " ".join(after.split()).rstrip(".")
