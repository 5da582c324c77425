"""
The generated pages of one vault as they will be: maps, the index note and Now, with the drafts that are not written yet.

Not here: the text of a page (pages.py), and writing it (journal.py). One rule: only what stands between the markers is
made anew; a page without them is its owner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date

from ..errors import BadNode
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..index.entries import Entry
from ..journal import Change, Rebase
from ..node.fields import TYPES
from ..node.maptable import OPEN_LOOPS, STANDARD, map_listing, page_title
from ..node.markdown import generated_block, with_generated_block
from ..node.note import Node, parse_node
from ..node.properties import with_properties
from ..plural import how_many
from .edits import as_entry
from .mentions import MentionedNames, with_mentions
from .pages import index_block, map_block, new_page, now_block

LISTED = (*TYPES, "note", "reflection")  # what stands on a map
INDEX_LINES = 40  # of the index note; with more maps than that, topics are found on the map above them


class MapPages:
    """*drafted*: path → the notes that are about to be written, as the index will have them."""

    def __init__(self, graph: Graph, drafted: Callable[[], Mapping[str, Entry]] = dict) -> None:
        self.graph, self.drafted = graph, drafted
        self.paths: set[str] = set()  # maps to make anew
        self.new: dict[str, str] = {}  # maps that are new and more than `new_page`, their blocks empty
        # `indexed` for all maps, where the caller has read all notes anyway.
        self.known: Mapping[str, Sequence[Entry]] | None = None
        self.names: MentionedNames | None = None  # of all notes, where the caller has looked for them anyway

    def add(self, node: Node) -> None:
        """Make the maps anew that list *node*."""
        if node.type in LISTED:
            self.paths |= maps_of(as_entry(node), loop=bool(node.loop))

    def add_all(self) -> None:
        """Make all maps anew that there are."""
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

    def linked(self, text: str) -> str:
        """*text* with links to the notes that it mentions, for Now."""
        if self.names is None:
            drafts = self.drafted()
            known = (e for e in self.graph.index.entries() if e.path not in drafts)
            self.names = MentionedNames([*known, *drafts.values()])
        return with_mentions(text, self.names, ())[0]

    def changes(self) -> list[Change]:
        """The maps in `paths`, and the index note. Each is as new as the newest note on it."""
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
    """*topic* as the map above it describes it: by how much is in it, unless a person has said what is."""
    if topic.description != page_title(topic.path)[1]:
        return topic
    return replace(topic, description=how_many(count, "note"))
