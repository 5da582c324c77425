"""
The generated text of maps, the index note and Now.

    map_block     one map: the notes it lists       now_block    open loops, and what conversations are about
    index_block   all maps                          new_page     a whole new file around such a block

Pure functions: the same entries give the same bytes on any day and in any order, so no text says "today" or
"overdue". Generated text never links to `index` or `now`: if a whole workspace is opened as the vault, other
files may have these names.
"""

from __future__ import annotations

import hashlib
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
from ..node.markdown import (
    BEGIN,
    END,
    TOLD,
    generated_block,
    link_targets,
    slugify,
    wikilink,
    with_generated_block,
    with_properties,
)
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
from ..text.characters import without_citations
from .edits import as_entry, trust_of
from .mentions import MentionedNames, with_mentions

BY_MONTH = {MOCS["episode"][0], MOCS["decision"][0]}  # newest first, under the names of the months
NOTHING_YET = "Nothing yet."
YOURS = "%% Between the two omg lines this page is written anew; everything above and below them is yours. %%"
RETRIEVAL_RULE = """\
A line says what a note is about; open the note only when the line is not enough. The links in a note's text
lead to what the note depends on. Its sources lead to the words it was made from. If two notes
contradict each other, the newer one is right."""

MANY = 10  # notes; a map with more notes has headings
KEEP_DAYS = 7  # after so many days without mention, a task is left out
NEXT_DAYS = 1  # a planned reply that is older would lead a new talk back to the old subject
NOW_LOOPS = 20  # open loops on Now; the map of open loops has all

# an open loop that is longer past is shown only on its map
OVERDUE_DAYS = 14


def week_of(day: date) -> str:
    """Return the path of the page on the week of *day*."""
    year, week, _ = day.isocalendar()
    return f"reflections/{year}-W{week:02}"


def filed_day(entry: Entry) -> date | None:
    """Return the day under which *entry* is filed: the first day of its event, else the day it was said."""
    days = event_span(entry.event)
    return days[0] if days else entry.created or entry.updated


# --- Topics: maps that do not belong to a type. A project's topic lists the notes that link to the project;
# the maps of the notes' types list these notes as well. If the Reflector splits a topic off a long map, the
# topic's notes leave that map.


PROJECTS = "nodes/project/"
TOPIC_NOTES = 3  # a topic gets a page if it has this many notes besides the project itself; for fewer, a page does not help
ABOUT_NAMED = 3  # most notes that the line on a topic names


def is_topic(path: str) -> bool:
    return path.startswith("mocs/") and path not in STANDARD


def map_of_project(path: str) -> str:
    """Return the path of the map for the project at *path*, even if there is no such map."""
    return f"mocs/moc-{path.removeprefix(PROJECTS)}"


def project_of_map(path: str) -> str:
    """Return the path of the project whose map would be at *path*."""
    return f"{PROJECTS}{path.removeprefix('mocs/moc-')}"


def about_topic(path: str, entries: Sequence[Entry]) -> str:
    """
    Return one line about the topic at *path*, made without a model.

    A project's topic gets the project's description. Any other topic gets the titles of its newest notes. Returns "" if
    no note of the topic tells what a person said.
    """
    said = [e for e in newest_first(entries) if trust_of(e.origin) == 2 and e.type != "moc"]
    project = next((e for e in said if e.path == project_of_map(path)), None)
    return project.description if project else "; ".join(e.title for e in said[:ABOUT_NAMED])


# --- What a model wrote on a map at night: one sentence a line at the top of the block, then a hash of each
# sentence's notes. When the map is made anew, a sentence is left out if one of its notes has changed or gone.


def told_block(sentences: Sequence[str], on_map: Mapping[str, Entry]) -> str:
    """
    Return *sentences* as their map shows them, each with links to the notes that it is based on; "" without
    sentences.
    """
    marks = " ".join(mark_of(sentence, on_map) for sentence in sentences)
    return "\n".join([*sentences, f"%% told {marks} %%"]) if sentences else ""


def told_sentences(block: str, on_map: Mapping[str, Entry]) -> list[str]:
    """
    Return the sentences in *block* whose notes are all *on_map* and unchanged since the sentence was written.
    """
    found = TOLD.match(block)
    told = zip(found[1].splitlines(), found[2].split(), strict=False) if found else ()
    return [sentence for sentence, mark in told if mark == mark_of(sentence, on_map)]


def mark_of(sentence: str, on_map: Mapping[str, Entry]) -> str:
    notes = [on_map.get(target) for target in link_targets(sentence)]
    if not notes or None in notes:
        return "none"
    said = "\n".join(f"{n.path} {n.status} {n.description}" for n in notes if n)
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def standing_of(page: str) -> str:
    """
    Return the sentences that a model wrote on *page* about the topic, without links; "" if no model wrote on
    *page*.
    """
    found = TOLD.match(generated_block(page) or "")
    return " ".join(map(without_citations, found[1].splitlines())) if found else ""


# --- the blocks


def map_block(path: str, entries: Iterable[Entry], told: str = "") -> str:
    """
    Return the block of the map at *path*: sentences that a model wrote (*told*), then topics (maps among
    *entries*), then notes.
    """
    entries = list({e.path: e for e in entries}.values())
    topics = [e for e in entries if e.type == "moc"]
    notes = [e for e in entries if e.type != "moc"]
    count = f"{how_many(len(notes), 'note')}."
    mapped = {e.path for e in topics}
    notes = [
        e for e in notes if map_of_project(e.path) not in mapped
    ]  # a project with a map is listed as the map
    if path == OPEN_LOOPS:
        parts = list(by_due_day(notes))
    elif path == MOCS["reflection"][0]:
        parts = [listing_lines(sorted(notes, key=lambda e: e.path, reverse=True))]
    elif is_topic(path):
        parts = list(by_standing(path, notes))
    elif path in BY_MONTH or len(notes) > MANY:
        parts = list(by_month(notes))
    else:
        parts = [listing_lines(newest_first(notes))]
    if topics:
        parts.insert(0, "### Topics\n\n" + listing_lines(sorted(topics, key=title_key)))
    if not entries:
        return NOTHING_YET
    return "\n\n".join([part for part in (told, count, *parts) if part])


def newest_first(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(sorted(entries, key=title_key), key=lambda e: filed_day(e) or date.min, reverse=True)


def by_standing(path: str, entries: list[Entry]) -> Iterator[str]:
    """
    Yield the notes of a topic in sections: its project; open loops, by day; decisions; all other notes, newest
    first.
    """
    rest = [e for e in entries if e.path != project_of_map(path)]
    yield listing_lines(e for e in entries if e not in rest)
    loops = [e for e in in_due_order(rest) if e.loop == "open"]
    decided = [e for e in newest_first(rest) if e.type == "decision" and e not in loops]
    others = [e for e in newest_first(rest) if e not in (*loops, *decided)]
    yield from (
        f"### {heading}\n\n{listing_lines(of, day=day)}"
        for heading, of, day in (
            ("Open", loops, due_days),
            ("Decided", decided, filed_day),
            ("So far", others, filed_day),
        )
        if of
    )


def title_key(entry: Entry) -> tuple[str, str]:
    return entry.title.casefold(), entry.path


def by_month(entries: list[Entry]) -> Iterator[str]:
    """Yield a section for each month, the newest first; undated notes come last."""
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
    """Return *entries* sorted by due day. Undated entries follow, newest first."""
    entries = sorted(entries, key=lambda e: e.path)
    entries.sort(key=lambda e: e.created or date.min, reverse=True)
    return sorted(entries, key=lambda e: due_day(e) or date.max)


def standing_loops(loops: Iterable[Entry], today: date) -> list[Entry]:
    """
    Return the open loops still to be done, by due day; loops without a day come last.

    A loop that was due more than OVERDUE_DAYS ago is left out.
    """
    spans = ((e, event_span(e.event)) for e in in_due_order(loops))
    return [e for e, days in spans if days is None or (today - days[1]).days <= OVERDUE_DAYS]


def due_day(entry: Entry) -> date | None:
    """Return the first day on which *entry* is due; None without a day."""
    days = event_span(entry.event)
    return days[0] if days else None


def due_days(entry: Entry) -> str:
    """Return the day, or the first and last day, on which *entry* is due; "" without a day."""
    days = event_span(entry.event)
    return days_text(days) if days else ""


def listing_lines(entries: Iterable[Entry], day: Callable[[Entry], object] = lambda _: None) -> str:
    return "\n".join(f"- {at} {listed_line(e)}" if (at := day(e)) else f"- {listed_line(e)}" for e in entries)


def listed_line(entry: Entry) -> str:
    """Return `[[path|title]] — description`, without a description that only repeats the title."""
    link, said = wikilink(entry.path, safe_line(entry.title).replace("`", " ")), safe_line(entry.description)
    return link if said.rstrip(".").casefold() == entry.title.rstrip(".").casefold() else f"{link} — {said}"


def safe_line(text: str) -> str:
    """Return *text* on one line, without comments or a lone backtick, which would hide the lines below."""
    text = re.sub("%(?=%)", "% ", " ".join(text.split()).replace("<!--", "<! --"))
    return text if re.fullmatch(r"[^`]*(?:`[^`]+`[^`]*)*", text) else text.replace("`", "'")


def index_block(counts: Mapping[str, int], topics: Iterable[Entry] = ()) -> str:
    """
    Return the block of the index note.

    *counts*: path of a map → the number of notes on the map. Only the largest of *topics* are listed; other
    maps list all topics.
    """
    lines = [map_line(path, *page_title(path), counts.get(path, 0)) for path in STANDARD]
    largest = sorted(topics, key=lambda t: (-counts[t.path], t.path))[:TOP_TOPICS]
    if largest:
        shown = (map_line(t.path, t.title, t.description, counts[t.path]) for t in largest)
        lines += ["", "### Topics", "", *shown]
    return "\n".join([*lines, "", "### Finding something", "", RETRIEVAL_RULE])


def map_line(path: str, title: str, about: str, count: int) -> str:
    return f"- {wikilink(path, safe_line(title))}{f' ({count})' if count else ''} — {safe_line(about)}"


# --- Now


def now_block(
    sessions: Mapping[str, SessionState],
    loops: Iterable[Entry],
    today: date,
    zone: tzinfo,
    linked: Callable[[str], str] = lambda text: text,
) -> str:
    """
    Return the block of the Now note: open loops, then each conversation with a task, the latest first.

    *linked* adds links to the notes that a text mentions. Left out: tasks last mentioned more than KEEP_DAYS before
    *today*, and plans long past.
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
    Return `(name, text)` of the task, state and planned reply of *session* that still hold.

    *shared*: only those that other sessions may see. A planned reply holds until the conversation goes on, or
    for a day. A state holds as long as its task.
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
    """Return a session key in readable form: "agent:main:telegram:direct:111" → "telegram direct 111"."""
    parts = session.replace(":main:thread:import-", ":imported:").split(":")
    return " ".join(parts[2:] if parts[0] == "agent" and len(parts) > 2 else parts)


def as_opened(page: str) -> str:
    """
    Return the text of a generated *page* for an agent, without the lines meant for the vault's owner or for
    OMG.
    """
    return "\n".join(
        line for line in page.splitlines() if line not in (YOURS, BEGIN, END) and line[:7] != "%% told"
    )


# --- whole pages


def new_page(path: str, block: str, title: str = "", above: str = "") -> str:
    """
    Return a new file at *path* around *block*, with a line that tells the vault's owner which part they may
    edit.

    *title*: the title of a topic, if the path does not show it. *above*: the map that the topic belongs to.
    """
    named, purpose = page_title(path)
    kind = path if path in ("index", "now") else "moc"
    id = "omg/" + path.removeprefix("mocs/").replace("moc-", "moc/", 1)
    body = f"# {title or named}\n\n{YOURS}\n\n{BEGIN}\n{END}"
    node = Node(path, id, purpose, kind, links=(above,) * bool(above), body=body)
    return with_generated_block(render_node(node), block)


def persons_words(text: str, path: str) -> str:
    """
    Return what a person wrote on the generated page *text*.

    Left out are the properties, the title, the text between OMG's two markers, and the line that explains the markers.
    Returns "" if the page has markers, but not exactly one pair, because nobody can say which text is OMG's. On a page
    without markers, the whole text is the person's.
    """
    if generated_block(text) is not None:
        whole = with_generated_block(text, "")
    elif BEGIN in text or END in text:
        return ""
    else:
        whole = text
    node, title = parse_node(whole, path), page_title(path)[0]
    # A topic's title may have other letters than its path, but no other words.
    named = node.heading if slugify(node.heading) == slugify(title) else title
    ours = {"", f"# {named}", YOURS, BEGIN, END}
    return "\n".join(kept for kept in node.full_body.splitlines() if kept.strip() not in ours)


# --- The generated pages of one vault, including drafts that are not written yet: maps, the index note and Now. Only
# the text between the markers is made anew; a page without markers belongs to its owner. journal.py writes the pages.


LISTED = (*TYPES, "note", "reflection")  # the types that a map lists
TOP_TOPICS = 4  # in the index; with the maps of types, twelve lines


class MapPages:
    """
    The generated pages of one vault.

    *drafted*: a function that returns the notes about to be written, as a mapping from path to index entry.
    """

    def __init__(self, graph: Graph, drafted: Callable[[], Mapping[str, Entry]] = dict) -> None:
        self.graph, self.drafted = graph, drafted
        self.paths: set[str] = set()  # maps to make anew
        self.new: dict[str, str] = {}  # path → text of maps that are new, with an empty block
        # Replaces `indexed` if the caller has read all notes.
        self.known: Mapping[str, Sequence[Entry]] | None = None
        self.names: MentionedNames | None = None  # the names of all notes, once they were read
        self.told: dict[str, Sequence[str]] = {}  # map → sentences that a model wrote on it now

    def add(self, node: Node) -> None:
        """Mark the maps that list *node* to be regenerated."""
        if node.type in LISTED:
            self.paths |= maps_of(as_entry(node), loop=bool(node.loop))

    def add_all(self) -> None:
        """Mark all maps to be regenerated."""
        self.paths |= {e.path for e in self.graph.index.entries(type="moc")}

    # --- which notes

    def listed(self, moc: str) -> list[Entry]:
        """Return the notes that *moc* lists once the drafts are written."""
        return self.lists((moc,))[moc]

    def lists(self, mocs: Iterable[str]) -> dict[str, list[Entry]]:
        """Return map → the notes that the map lists once the drafts are written, for each of *mocs*."""
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
        """Return the active notes that *moc* lists before the drafts are written."""
        index = self.graph.index
        if moc == OPEN_LOOPS:
            return index.entries(loop="open")
        entries, project = index.entries(moc=moc), project_of_map(moc)
        if is_topic(moc) and (of := index.entry(project)) and of.status == "active":
            entries += [of, *(e for e in index.entries(links_to=project) if moc in maps_of(e, loop=False))]
        return entries

    def topics(self) -> dict[str, list[Entry]]:
        """
        Return map → its topics, which are the maps below this map.

        - A project's map is below the map that lists the project.
        - Any other topic is below the first map to which the topic's page links.
        """
        pages = {e.path: e for e in self.graph.index.entries(type="moc") if e.path not in STANDARD}
        pages |= {path: as_entry(parse_node(text, path)) for path, text in self.new.items()}
        projects = {e.path: e.map for e in self.graph.index.entries(type="project")}
        found: dict[str, list[Entry]] = {}
        for path, page in sorted(pages.items()):
            above = projects.get(project_of_map(path)) or above_topic(page)
            if above is not None:
                found.setdefault(above, []).append(page)
        return found

    def counts(self) -> dict[str, int]:
        """Return map → the number of active notes that the map lists before the drafts are written."""
        index, loops = self.graph.index, [e for e in self.indexed(OPEN_LOOPS) if e.type in LISTED]
        projects = {map_of_project(path): n for path, n in index.project_counts(TYPES).items()}
        return {**projects, **index.moc_counts(), OPEN_LOOPS: len(loops)}

    # --- changes

    def change(
        self, path: str, inner: str, whole: str, head: Mapping[str, object] | None = None
    ) -> Change | None:
        """
        Return the change that puts *inner* into the generated block of *path*; None if nothing changes.

        The properties *head* are set in the page's head, except properties that a person wrote. *whole* is the
        text of the page if the page does not exist yet.
        """
        now = self.graph.vault.bytes(path)
        before = None if now is None else now.decode("utf-8", errors="replace")
        if now is None or before is None:
            after = whole
        elif generated_block(before) is None or self.graph.vault.read_only(path):
            # The owner removed the markers, or locked the file: OMG leaves the page alone.
            return None
        else:
            after = with_generated_block(before, inner)
        if after == before:  # a new day alone is not a change
            head = {key: value for key, value in (head or {}).items() if key == "description"}
        if head:
            with suppress(BadNode):  # a person's head that cannot be read stays as it is
                theirs = self.graph.vault.theirs(now) if now else ()
                after = with_properties(after, {key: head[key] for key in head if key not in theirs})
        if after == before:
            return None
        return Change(path, before, after, Rebase(block=inner))

    def text(self, path: str) -> str:
        """Return the present text of the page at *path*; "" if there is no page."""
        return (self.graph.vault.bytes(path) or b"").decode("utf-8", errors="replace")

    def now_change(self, sessions: Mapping[str, SessionState], today: date) -> Change | None:
        """
        Return the change of the Now page; None if the page stays as it is.

        The page lists the tasks of *sessions*, and the loops (things to do) that are open once the drafts are written.
        """
        inner = now_block(sessions, self.listed(OPEN_LOOPS), today, self.graph.zone, self.linked)
        return self.change("now", inner, new_page("now", inner))

    def now_changes(self, today: date) -> list[Change]:
        """
        Return the change of the page Now, which lists open loops (things to do).

        Returns [] unless the plan opens, changes or closes a loop.
        """
        loops = OPEN_LOOPS in self.paths
        change = self.now_change(self.graph.state().sessions, today) if loops else None
        return [change] if change else []

    def anew(self, today: date) -> list[Change]:
        """Return the changes that regenerate all maps, the index note and the Now note."""
        self.add_all()
        now = [self.now_change(self.graph.state().sessions, today)]
        return [*self.changes(), *filter(None, now)]

    def linked(self, text: str) -> str:
        """Return *text* of the Now note with links to the notes that it mentions."""
        if self.names is None:
            drafts = self.drafted()
            known = (e for e in self.graph.index.entries() if e.path not in drafts)
            self.names = MentionedNames([*known, *drafts.values()])
        return with_mentions(text, self.names, ())[0]

    def changes(self) -> list[Change]:
        """
        Return the changes of the maps in `paths`, of the maps above them, and of the index note.

        Each page has the day of its newest note. The map of a removed project is deleted, unless a person wrote
        on that map.
        """
        topics = self.topics()
        self.paths |= {above for above, of in topics.items() if self.paths & {t.path for t in of}}
        listed = self.lists(self.paths)
        gone = sorted(
            moc for moc, entries in listed.items() if is_topic(moc) and not self.stays(moc, entries)
        )
        for moc in gone:
            del listed[moc]
        self.draft_first_pages(listed, topics)
        counts = {**self.counts(), **{moc: len(entries) for moc, entries in listed.items()}}
        told = {moc: self.still_told(moc, entries) for moc, entries in listed.items()}
        below = {
            moc: [
                replace(t, description=self.about(t, told.get(t.path, ()), listed.get(t.path)))
                for t in of
                if t.path not in gone and counts.get(t.path)
            ]
            for moc, of in topics.items()
        }
        pages = {t.path: t for of in below.values() for t in of}
        changes = [self.removal(moc) for moc in gone]
        for moc, entries in listed.items():
            sized = [with_size(t, counts[t.path]) for t in below.get(moc, ())]
            changes.append(self.map_change(moc, [*sized, *entries], told[moc], pages.get(moc)))
        if listed:
            changes.append(self.index_change(counts, pages.values()))
        return [c for c in changes if c is not None]

    def draft_first_pages(
        self, listed: Mapping[str, Sequence[Entry]], topics: dict[str, list[Entry]]
    ) -> None:
        """Draft a page for each topic in *listed* that has no page, and add the page to *topics*."""
        for moc, entries in listed.items():
            if is_topic(moc) and moc not in self.new and self.graph.vault.bytes(moc) is None:
                self.new[moc] = self.first_page(moc, entries)
                page = as_entry(parse_node(self.new[moc], moc))
                above = next((e.map for e in entries if e.path == project_of_map(moc)), "")
                topics.setdefault(above, []).append(page)

    def map_change(
        self, moc: str, entries: Sequence[Entry], told: Sequence[str], page: Entry | None
    ) -> Change | None:
        """
        Return the change of the map *moc*, which lists *entries*; None if nothing changes.

        *told*: a model's sentences for the top of the map. *page*: the entry of a topic's map, which has the
        description; None for a standard map, such as Facts.
        """
        notes = [e for e in entries if e.type != "moc"]
        inner = map_block(moc, entries, told_block(told, {e.path: e for e in notes}))
        head: dict[str, object] = {"updated": newest_day(notes)}
        if page:
            head["description"] = page.description
        return self.change(
            moc, inner, with_generated_block(self.new.get(moc) or new_page(moc, ""), inner), head
        )

    def index_change(self, counts: Mapping[str, int], topics: Iterable[Entry]) -> Change | None:
        """Return the change of the index note."""
        inner, drafts = index_block(counts, topics), self.drafted()
        days = (self.graph.index.newest_day(LISTED, but=drafts), newest_day(drafts.values()))
        head = {"updated": max(filter(None, days), default=None)}
        return self.change("index", inner, new_page("index", inner), head)

    def stays(self, topic: str, entries: Sequence[Entry]) -> bool:
        """
        Return whether *topic* has, or gets, a page.

        A project's topic gets a page if it has enough notes, and keeps the page as long as the project exists.
        """
        if any(e.map == topic for e in entries):
            return True
        page = self.graph.vault.bytes(topic)
        if not any(e.path == project_of_map(topic) for e in entries):
            return page is not None and not self.is_of_project(topic)
        return page is not None or len(entries) > TOPIC_NOTES

    def is_of_project(self, topic: str) -> bool:
        """Return whether the page at *topic* was made for a project, and no person wrote on it."""
        text, above = self.text(topic), MOCS["project"][0]
        with suppress(BadNode):
            if not topic.startswith(f"{above}-") and above in parse_node(text, topic).links:
                return not persons_words(text, topic)
        return False

    def removal(self, topic: str) -> Change | None:
        text = self.text(topic)
        return Change(topic, text, None) if text else None

    def first_page(self, topic: str, entries: Sequence[Entry]) -> str:
        project = next((e for e in entries if e.path == project_of_map(topic)), None)
        if project is None:
            return new_page(topic, "")
        title = project.title if slugify(project.title) == slugify(page_title(topic)[0]) else ""
        return new_page(topic, "", title, MOCS["project"][0])

    def still_told(self, moc: str, entries: Sequence[Entry]) -> Sequence[str]:
        """
        Return the sentences for the top of *moc*: new sentences of the model, else former sentences whose notes
        are unchanged.
        """
        if moc in self.told:
            return self.told[moc]
        return told_sentences(generated_block(self.text(moc)) or "", {e.path: e for e in entries})

    def about(self, topic: Entry, told: Sequence[str], entries: Sequence[Entry] | None) -> str:
        """
        Return the line on *topic*: a person's line, else the first sentence in *told*, else a line made by
        rule.

        *told* are the sentences that a model wrote. If *entries* is None, the page is not regenerated and keeps
        its line.
        """
        page = self.graph.vault.bytes(topic.path) if entries is not None else None
        if entries is None or (page is not None and "description" in self.graph.vault.theirs(page)):
            return topic.description
        return without_citations(told[0]) if told else about_topic(topic.path, entries) or topic.description


def above_topic(page: Entry) -> str | None:
    """
    Return the map that a topic belongs to: the first map that its page links to; None if there is no such link.
    """
    return next((t for t in page.links if t.startswith("mocs/") and t != page.path), None)


def newest_day(entries: Iterable[Entry]) -> date | None:
    """Return the latest day on which an active note among *entries* changed."""
    return max(
        (day for e in entries if e.status == "active" and (day := e.updated or e.created)), default=None
    )


def maps_of(entry: Entry, *, loop: bool) -> set[str]:
    """Return the maps that list *entry*. With *loop*, also the map of open loops."""
    home = map_listing(entry.path, entry.type, entry.links)
    about = (entry.path, *entry.links) if entry.type in TYPES else ()
    projects = {map_of_project(path) for path in about if path.startswith(PROJECTS)}
    return {*([home] if home else []), *([OPEN_LOOPS] if loop else []), *projects}


def with_size(topic: Entry, count: int) -> Entry:
    """
    Return *topic* as its parent map lists it: with the number of notes.

    The description becomes "3 notes: …", with the topic's own description if there is one.
    """
    size = how_many(count, "note")
    known = topic.description != page_title(topic.path)[1]
    return replace(topic, description=f"{size}: {topic.description}" if known else size)
