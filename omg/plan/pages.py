"""
The generated text of maps, the index note and Now.

    map_block     one map of content: the notes it lists    now_block    open loops, and what each conversation is about
    index_block   the maps there are                        new_page     a whole new file around such a block

Pure functions: the same entries give the same bytes on any day and in any order, so no text says "today" or "overdue".
Generated text never links to `index` or `now`: such bare names lead elsewhere when a whole workspace is opened as the vault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, tzinfo
from itertools import groupby

from ..dates.days import day_of_ms, days_text, event_span
from ..dates.rules import MONTHS
from ..errors import BadNode, how_many
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..index.store import Entry
from ..journal import Change, Rebase
from ..node.markdown import BEGIN, END, generated_block, wikilink, with_generated_block, with_properties
from ..node.markdown import generated_block as block_of
from ..node.note import (
    MOCS,
    OPEN_LOOPS,
    STANDARD,
    TYPES,
    Node,
    map_listing,
    page_title,
    parse_node,
    render_node,
)
from .edits import as_entry
from .mentions import MentionedNames, with_mentions

BY_MONTH = {MOCS["episode"][0], MOCS["decision"][0]}  # newest first, under the names of the months
NOTHING_YET = "Nothing yet."
YOURS = "%% Between the two omg lines this page is written anew; everything above and below them is yours. %%"
RETRIEVAL_RULE = """\
A line says what a note is about; open the note only when the line is not enough. Links in its text lead to
what it depends on, its sources to the words it was made from. Of two notes that disagree, the newer holds."""

MANY = 10  # notes; a longer map has headings
KEEP_DAYS = 7  # after a week without mention, a task is no longer what a conversation is about
NEXT_DAYS = 1  # an older planned reply would only steer a new talk back
NOW_LOOPS = 20  # on Now; all of them are on their own map

# a plan this long past (dates/days.py) stays on its map and is shown nowhere else
OVERDUE_DAYS = 14


def week_of(day: date) -> str:
    """The page on the week of *day*."""
    year, week, _ = day.isocalendar()
    return f"reflections/{year}-W{week:02}"


def filed_day(entry: Entry) -> date | None:
    """The day *entry* is filed under: when it happened, else when it was said."""
    days = event_span(entry.event)
    return days[0] if days else entry.created or entry.updated


# --- the blocks


def map_block(path: str, entries: Iterable[Entry]) -> str:
    """The block of the map at *path*. Maps among the entries come first, as its topics."""
    entries = list({e.path: e for e in entries}.values())
    topics = [e for e in entries if e.type == "moc"]
    notes = [e for e in entries if e.type != "moc"]
    if path == OPEN_LOOPS:
        parts = list(by_due_day(notes))
    elif path in BY_MONTH or len(notes) > MANY:
        parts = list(by_month(notes))
    elif path == MOCS["reflection"][0]:
        parts = [listing_lines(sorted(notes, key=lambda e: e.path, reverse=True))]
    else:
        parts = [listing_lines(sorted(notes, key=title_key))]
    if topics:
        parts.insert(0, "### Topics\n\n" + listing_lines(sorted(topics, key=title_key)))
    if not entries:
        return NOTHING_YET
    count = f"{how_many(len(notes), 'note')}."
    return "\n\n".join([count, *(part for part in parts if part)])


def title_key(entry: Entry) -> tuple[str, str]:
    return entry.title.casefold(), entry.path


def by_month(entries: list[Entry]) -> Iterator[str]:
    """Newest first, with a heading for each month; undated notes at the end."""
    dated = sorted(
        ((filed_day(e) or date.min, e.path, e) for e in entries), reverse=True, key=lambda d: d[:2]
    )
    for month, group in groupby(dated, key=lambda d: month_name(filed_day(d[2]))):
        yield f"### {month}\n\n" + listing_lines((e for _, _, e in group), day=filed_day)


def month_name(day: date | None) -> str:
    return f"{MONTHS[day.month - 1]} {day.year}" if day else "Undated"


def by_due_day(entries: list[Entry]) -> Iterator[str]:
    dated = [e for e in in_due_order(entries) if due_day(e)]
    if len(dated) <= MANY:
        yield listing_lines(dated, day=due_days)
    else:
        for month, group in groupby(dated, key=lambda e: month_name(due_day(e))):
            yield f"### {month}\n\n" + listing_lines(group, day=due_days)
    if undated := in_due_order(entries)[len(dated) :]:
        yield "### Without a day\n\n" + listing_lines(undated)


def in_due_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sorted by due day; undated entries follow, newest first."""
    entries = sorted(entries, key=lambda e: e.path)
    entries.sort(key=lambda e: e.created or date.min, reverse=True)
    return sorted(entries, key=lambda e: due_day(e) or date.max)


def standing_loops(loops: Iterable[Entry], today: date) -> list[Entry]:
    """The loops still to be done, by due day, undated last; those long past are left out."""
    spans = ((e, event_span(e.event)) for e in in_due_order(loops))
    return [e for e, days in spans if days is None or (today - days[1]).days <= OVERDUE_DAYS]


def due_day(entry: Entry) -> date | None:
    """The day on which what is due begins."""
    days = event_span(entry.event)
    return days[0] if days else None


def due_days(entry: Entry) -> str:
    """The day, or the first and last day, on which something is due."""
    days = event_span(entry.event)
    return days_text(days) if days else ""


def listing_lines(entries: Iterable[Entry], day: Callable[[Entry], object] = lambda _: None) -> str:
    return "\n".join(f"- {at} {listed_line(e)}" if (at := day(e)) else f"- {listed_line(e)}" for e in entries)


def listed_line(entry: Entry) -> str:
    """`[[path|title]] — description`, without a description that only repeats the title."""
    link, said = wikilink(entry.path, safe_line(entry.title).replace("`", " ")), safe_line(entry.description)
    return link if said.rstrip(".").casefold() == entry.title.rstrip(".").casefold() else f"{link} — {said}"


def safe_line(text: str) -> str:
    """*text* on one line, without comments or a lone backtick, which would hide the lines below."""
    text = re.sub("%(?=%)", "% ", " ".join(text.split()).replace("<!--", "<! --"))
    return text if re.fullmatch(r"[^`]*(?:`[^`]+`[^`]*)*", text) else text.replace("`", "'")


def index_block(counts: Mapping[str, int]) -> str:
    """The block of the index note. *counts*: a map's path → how many notes it lists."""
    lines = [map_line(path, counts.get(path, 0)) for path in STANDARD]
    topics = sorted(path for path in counts if path not in STANDARD)
    if topics:
        lines += ["", "### Topics", "", *(map_line(path, counts[path]) for path in topics)]
    return "\n".join([*lines, "", "### Finding something", "", RETRIEVAL_RULE])


def map_line(path: str, count: int) -> str:
    title, purpose = page_title(path)
    return f"- {wikilink(path, title)}{f' ({count})' if count else ''} — {purpose}"


# --- Now


def now_block(
    sessions: Mapping[str, SessionState],
    loops: Iterable[Entry],
    today: date,
    zone: tzinfo,
    linked: Callable[[str], str] = lambda text: text,
) -> str:
    """
    The block of the Now note: open loops, then each conversation that has a task, the latest first. *linked* links the
    notes that a task or state mentions.

    What was said of a task more than KEEP_DAYS before *today* is left out, and so are plans long past.
    """
    every, parts = in_due_order(loops), []
    shown = standing_loops(every, today)[:NOW_LOOPS]
    if every:
        lines = [listing_lines(shown, day=due_days)] * bool(shown)
        if left := len(every) - len(shown):
            said = f"and {left} more in" if shown else f"{left} long past, in"
            lines.append(f"- {said} {wikilink(OPEN_LOOPS, 'Open loops')}")
        parts.append("### Open loops\n\n" + "\n".join(lines))
    for key, session in latest_first(sessions):
        if hints := hints_that_hold(session, today, zone, shared=True):
            at = datetime.fromtimestamp(session.at_ms / 1000, zone)
            lines = [f"- **{name}:** {linked(text)}" for name, text in hints]
            parts.append(f"### {session_title(key)}\n\n*As of {at:%Y-%m-%d %H:%M}*\n\n" + "\n".join(lines))
    return "\n\n".join(parts) or NOTHING_YET


def latest_first(sessions: Mapping[str, SessionState]) -> list[tuple[str, SessionState]]:
    return sorted(sessions.items(), key=lambda s: (-s[1].at_ms, s[0]))


def hints_that_hold(
    session: SessionState, today: date, zone: tzinfo, *, shared: bool = False
) -> list[tuple[str, str]]:
    """
    `(name, text)` of the hints of *session* that still hold; with *shared*, those that other sessions may see.

    A planned reply holds until the talk goes on or a day has passed. A state holds as long as its task.
    """
    age = (today - day_of_ms(session.at_ms, zone)).days if session.at_ms else KEEP_DAYS + 1
    if age > KEEP_DAYS:
        return []
    next = session.next if age <= NEXT_DAYS and session.last_ms <= session.at_ms else ""
    state = session.state if session.task.strip() else ""
    found = (("task", "Task", session.task), ("state", "State", state), ("next", "Next reply", next))
    return [
        (name, safe_line(text))
        for key, name, text in found
        if text.strip() and (key in session.shared or not shared)
    ]


def session_title(session: str) -> str:
    """A session key as a person reads it: "agent:main:telegram:direct:111" → "telegram direct 111"."""
    parts = session.replace(":main:thread:import-", ":imported:").split(":")
    return " ".join(parts[2:] if parts[0] == "agent" and len(parts) > 2 else parts)


# --- whole pages


def new_page(path: str, block: str) -> str:
    """A new file at *path* around *block*, and a line that tells its owner which part is theirs."""
    title, purpose = page_title(path)
    kind = path if path in ("index", "now") else "moc"
    id = "omg/" + path.removeprefix("mocs/").replace("moc-", "moc/", 1)
    body = f"# {title}\n\n{YOURS}\n\n{BEGIN}\n{END}"
    return with_generated_block(render_node(Node(path, id, purpose, kind, body=body)), block)


def persons_words(text: str, path: str) -> str:
    """
    What a person wrote on the page *text*: all but its head, its block, and what `new_page` puts there.

    Nothing of a page whose markers are broken: what we once wrote there cannot be told from their words.
    """
    if block_of(text) is not None:
        whole = with_generated_block(text, "")
    elif BEGIN in text or END in text:
        return ""
    else:
        whole = text
    ours = {"", f"# {page_title(path)[0]}", YOURS, BEGIN, END}
    return "\n".join(
        kept for kept in parse_node(whole, path).full_body.splitlines() if kept.strip() not in ours
    )


# --- The generated pages of one vault as they will be: maps, the index note and Now, with the drafts that are not written yet.
#
# Not here: writing it (journal.py). Only what stands between the markers is
# made anew; a page without them is its owner's.


LISTED = (*TYPES, "note", "reflection")  # what stands on a map
INDEX_LINES = 40  # of the index note; with more maps than that, topics are found on the map above them


class MapPages:
    """*drafted*: path → index entry of each note that is about to be written."""

    def __init__(self, graph: Graph, drafted: Callable[[], Mapping[str, Entry]] = dict) -> None:
        self.graph, self.drafted = graph, drafted
        self.paths: set[str] = set()  # maps to make anew
        self.new: dict[str, str] = {}  # maps that are new and more than `new_page`, their blocks empty
        # `indexed` for all maps, where the caller has read all notes anyway.
        self.known: Mapping[str, Sequence[Entry]] | None = None
        self.names: MentionedNames | None = None  # of all notes, where the caller has looked for them anyway

    def add(self, node: Node) -> None:
        """Regenerate the maps that list *node*."""
        if node.type in LISTED:
            self.paths |= maps_of(as_entry(node), loop=bool(node.loop))

    def add_all(self) -> None:
        """Regenerate all maps."""
        self.paths |= {e.path for e in self.graph.index.entries(type="moc")}

    # --- which notes

    def listed(self, moc: str) -> list[Entry]:
        """The notes that *moc* lists once the drafts are written."""
        return self.lists((moc,))[moc]

    def lists(self, mocs: Iterable[str]) -> dict[str, list[Entry]]:
        """`listed` for each of *mocs*, in their order."""
        drafts, found = self.drafted(), {}
        for moc in sorted(mocs):
            entries = self.indexed(moc) if self.known is None else self.known.get(moc, ())
            found[moc] = [e for e in entries if e.path not in drafts and e.type in LISTED]
        for entry in drafts.values():
            if entry.status == "active" and entry.type in LISTED:
                for moc in maps_of(entry, loop=entry.loop == "open") & found.keys():
                    found[moc].append(entry)
        return {moc: sorted(entries, key=lambda e: e.path) for moc, entries in found.items()}

    def indexed(self, moc: str) -> list[Entry]:
        """The active notes that *moc* lists before the drafts."""
        index = self.graph.index
        return index.entries(loop="open") if moc == OPEN_LOOPS else index.entries(moc=moc)

    def topics(self) -> dict[str, list[Entry]]:
        """Map → the maps that were split off it: those that link to it before any other map."""
        pages = {e.path: e for e in self.graph.index.entries(type="moc") if e.path not in STANDARD}
        pages |= {path: as_entry(parse_node(text, path)) for path, text in self.new.items()}
        found: dict[str, list[Entry]] = {}
        for path, page in sorted(pages.items()):
            parent = next((t for t in page.links if t.startswith("mocs/") and t != path), None)
            if parent is not None:
                found.setdefault(parent, []).append(page)
        return found

    def counts(self) -> dict[str, int]:
        """Map → active notes it lists, before the drafts."""
        loops = [e for e in self.indexed(OPEN_LOOPS) if e.type in LISTED]  # on their own maps as well
        return {**self.graph.index.moc_counts(), OPEN_LOOPS: len(loops)}

    # --- changes

    def change(
        self, path: str, inner: str, whole: str, head: Mapping[str, object] | None = None
    ) -> Change | None:
        """
        The change that puts *inner* into the generated block of *path*, and the properties *head* into its head; *whole*
        is the page if there is none.
        """
        now = self.graph.vault.bytes(path)
        before = None if now is None else now.decode("utf-8", errors="replace")
        if before is None:
            after = whole
        elif generated_block(before) is None or self.graph.vault.read_only(path):
            # Its owner took the markers out, or locked the file: the page is theirs now.
            return None
        else:
            after = with_generated_block(before, inner)
        if after == before:
            return None
        if head:
            with suppress(BadNode):  # a person's head that cannot be read stays as it is
                after = with_properties(after, head)
        return Change(path, before, after, Rebase(block=inner))

    def now_change(self, sessions: Mapping[str, SessionState], today: date) -> Change | None:
        """The Now note with what *sessions* are about, and the loops that will be open."""
        inner = now_block(sessions, self.listed(OPEN_LOOPS), today, self.graph.zone, self.linked)
        return self.change("now", inner, new_page("now", inner))

    def now_changes(self, today: date) -> list[Change]:
        """The Now note, if a note that is or was an open loop changes."""
        loops = OPEN_LOOPS in self.paths
        change = self.now_change(self.graph.state().sessions, today) if loops else None
        return [change] if change else []

    def anew(self, today: date) -> list[Change]:
        """The changes of all maps, the index and the Now note."""
        self.add_all()
        now = [self.now_change(self.graph.state().sessions, today)]
        return [*self.changes(), *filter(None, now)]

    def linked(self, text: str) -> str:
        """*text* with links to the notes that it mentions, for Now."""
        if self.names is None:
            drafts = self.drafted()
            known = (e for e in self.graph.index.entries() if e.path not in drafts)
            self.names = MentionedNames([*known, *drafts.values()])
        return with_mentions(text, self.names, ())[0]

    def changes(self) -> list[Change]:
        """The changes of the maps in `paths` and of the index note. Each is dated as the newest note on it."""
        listed = self.lists(self.paths)
        counts = {**self.counts(), **{moc: len(entries) for moc, entries in listed.items()}}
        topics = self.topics()
        changes = []
        for moc, entries in listed.items():
            below = [with_size(t, counts[t.path]) for t in topics.get(moc, ()) if counts.get(t.path)]
            inner = map_block(moc, [*below, *entries])
            whole = self.new[moc] if moc in self.new else new_page(moc, "")
            head = {"updated": newest_day(entries)}
            changes.append(self.change(moc, inner, with_generated_block(whole, inner), head))
        if listed:
            small = {t.path for of in topics.values() for t in of} if len(counts) > INDEX_LINES else set()
            shown = {moc: n for moc, n in counts.items() if moc in STANDARD or (n and moc not in small)}
            inner = index_block(shown)
            drafts = self.drafted()
            days = (self.graph.index.newest_day(LISTED, but=drafts), newest_day(drafts.values()))
            head = {"updated": max(filter(None, days), default=None)}
            changes.append(self.change("index", inner, new_page("index", inner), head))
        return [c for c in changes if c is not None]


def newest_day(entries: Iterable[Entry]) -> date | None:
    """The day of the note that was changed last, of the active ones among *entries*."""
    return max(
        (day for e in entries if e.status == "active" and (day := e.updated or e.created)), default=None
    )


def maps_of(entry: Entry, *, loop: bool) -> set[str]:
    """The maps that list *entry*; *loop*: that of the open loops as well."""
    home = map_listing(entry.path, entry.type, entry.links)
    return {*([home] if home else []), *([OPEN_LOOPS] if loop else [])}


def with_size(topic: Entry, count: int) -> Entry:
    """*topic* as the map above it describes it: by its number of notes, unless a person has described it."""
    if topic.description != page_title(topic.path)[1]:
        return topic
    return replace(topic, description=how_many(count, "note"))
