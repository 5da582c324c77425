"""
Maps that grew too long are split into topics; notes that no map lists are put on one.

One rule: a note whose links a person has edited stays where it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..index.entries import Entry
from ..node.fields import TYPES
from ..node.maptable import MOCS, OPEN_LOOPS, STANDARD, map_of, map_of_type, page_title
from ..node.markdown import generated_block, wikilink
from ..node.note import parse_node, render_node
from ..plan.pages import filed_day, new_page
from ..plural import how_many
from .snapshot import Snapshot
from .topics import TOPIC_NOTES, TopicItem, nearest_topic, split_topics


def assign_maps(snapshot: Snapshot, most: int) -> tuple[list[str], Counter[str]]:
    """
    Give each note of ours its map, and a map of more than *most* lines topics. Lines for maps split,
    and how many notes were put under which map.

    A topic keeps its name and its notes for good; notes that come later join one that they clearly belong to.
    """
    splitter = MapSplitter(snapshot, most)
    for path in sorted(snapshot.changed):
        splitter.put_on_map(path)
    done = []
    queue = [moc for moc in STANDARD if moc != OPEN_LOOPS]
    while queue:
        moc = queue.pop(0)
        if made := splitter.split_if_long(moc):
            names = ", ".join(wikilink(m, page_title(m)[0]) for m in made)
            done.append(f"Split {wikilink(moc, page_title(moc)[0])} into topics: {names}.")
        queue += splitter.topics(moc)
    snapshot.plan.maps.paths |= {*STANDARD, *splitter.members, *splitter.parents}
    return done, splitter.filed


def filed_lines(filed: Mapping[str, int]) -> list[str]:
    """The lines for notes that were put under maps: map → how many."""
    return [
        f"Filed {how_many(n, 'note')} under {wikilink(moc, page_title(moc)[0])}."
        for moc, n in sorted(filed.items())
    ]


class MapSplitter:
    """Which map lists what, while notes are being moved between maps."""

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self.snapshot, self.most = snapshot, most
        self.members: dict[str, list[Entry]] = defaultdict(list)
        self.filed: Counter[str] = Counter()
        self.parents = {t.path: moc for moc, of in snapshot.plan.maps.topics().items() for t in of}
        drafted = {map_of(e) for e in snapshot.plan.drafted().values()}
        everywhere = {*(snapshot.plan.maps.known or ()), *drafted} - {OPEN_LOOPS}
        self.members.update(snapshot.plan.maps.lists(everywhere))
        for moc in everywhere:  # a topic whose page is gone: its notes still name it
            if moc not in snapshot.entries and topic_prefix(moc) != moc:
                self.draft_page(moc, topic_prefix(moc))

    def put_on_map(self, path: str) -> None:
        """Enter its map into a changed note that names none."""
        entry = self.snapshot.entries.get(path)
        if entry and entry.type in TYPES and self.snapshot.ours(path, "links"):
            node = self.snapshot.node(path)
            if not any(target.startswith("mocs/") for target in (*node.links, *node.wikilinks)):
                self.snapshot.plan.amend(path, links=(map_of_type(entry.type), *node.links))
                self.filed[map_of_type(entry.type)] += 1

    def split_if_long(self, moc: str) -> list[str]:
        """Bring *moc* below its limit as far as that can be done; returns the topics made."""
        children = [c for c in self.topics(moc) if self.members[c]]
        long = len(self.members[moc]) + len(children) > self.most
        if moc == MOCS["reflection"][0]:
            return self.by_year(moc) if long else []
        if children:
            new = [e for e in self.members[moc] if long or e.path in self.snapshot.changed]
            self.file_under(moc, [e for e in new if self.movable(e)], children)
        if len(self.members[moc]) + len(children) <= self.most or not self.may_split_anew(moc):
            return []  # before any note is read
        movable = [e for e in self.members[moc] if self.movable(e)]
        # However many notes a person has there, half of the map is for ours: in topics they would be lost among them.
        theirs = min(len(self.members[moc]) - len(movable), self.most // 2)
        room = self.most - len(children) - theirs
        if len(movable) <= room:
            return []
        found = split_topics(
            [self.topic_item(e) for e in movable],
            max(room, TOPIC_NOTES),
            self.taken_names(moc),
            page_title(moc)[0].split(),
        )
        return [self.make_topic(moc, topic.name, topic.paths) for topic in found]

    def may_split_anew(self, moc: str) -> bool:
        """Whether splitting *moc* may come to something else than in the cycle before."""
        changed = self.snapshot.changed
        return moc in self.snapshot.plan.maps.new or any(e.path in changed for e in self.members[moc])

    def file_under(self, moc: str, new: Sequence[Entry], children: Sequence[str]) -> None:
        """Move those of *new* to a topic that clearly belong there, and that will list them."""
        if new:
            children = [c for c in children if self.has_block(c)]
            there = {topic: [self.topic_item(e) for e in self.members[topic]] for topic in children}
            homes = nearest_topic([self.topic_item(e) for e in new], there)
            self.move_notes(moc, homes)
            self.filed.update(homes.values())

    def has_block(self, topic: str) -> bool:
        """Whether the page has a block: without one it is its owner's, and shows what they want."""
        text = self.snapshot.plan.graph.vault.bytes(topic)
        return topic in self.snapshot.plan.maps.new or bool(
            text and generated_block(text.decode("utf-8", "replace")) is not None
        )

    def by_year(self, moc: str) -> list[str]:
        """Reflections are found by their time: each year that is over gets a map of its own."""
        years: dict[str, list[str]] = defaultdict(list)
        for entry in filter(self.movable, self.members[moc]):
            years[entry.path.rpartition("/")[2][:4]].append(entry.path)
        last = max(years, default="")
        return [self.make_topic(moc, year, paths) for year, paths in sorted(years.items()) if year != last]

    def make_topic(self, moc: str, name: str, paths: Iterable[str]) -> str:
        """The topic *name* of *moc*, with these notes on it."""
        topic = f"{topic_prefix(moc)}-{name}"
        if topic not in self.parents:
            self.draft_page(topic, moc)
        self.move_notes(moc, dict.fromkeys(paths, topic))
        return topic

    def draft_page(self, topic: str, moc: str) -> None:
        page = parse_node(new_page(topic, ""), topic)
        self.snapshot.plan.maps.new[topic] = render_node(replace(page, links=(moc,)))
        self.parents[topic] = moc

    def move_notes(self, moc: str, homes: Mapping[str, str]) -> None:
        """Take notes of *moc* to other maps: path → map."""
        for entry in self.members[moc]:
            if (topic := homes.get(entry.path)) is not None:
                links = [t for t in self.snapshot.node(entry.path).links if t != moc]
                self.snapshot.plan.amend(entry.path, links=(topic, *links))
                self.members[topic].append(entry)
        self.members[moc] = [e for e in self.members[moc] if e.path not in homes]

    def topics(self, moc: str) -> list[str]:
        return sorted(topic for topic, parent in self.parents.items() if parent == moc)

    def movable(self, entry: Entry) -> bool:
        return entry.path not in self.snapshot.frozen and self.snapshot.ours(entry.path, "links")

    def taken_names(self, moc: str) -> set[str]:
        """Names that a topic of *moc* cannot have, because there is a page of that name."""
        front = f"{topic_prefix(moc)}-"
        paths = {*self.parents, *self.snapshot.entries, *STANDARD}
        return {p.removeprefix(front) for p in paths if p.startswith(front)}

    def topic_item(self, entry: Entry) -> TopicItem:
        index = self.snapshot.plan.graph.index
        marks = {f"#{t}" for t in entry.tags} | {f">{t}" for t in entry.links if not t.startswith("mocs/")}
        marks |= {f"@{s.id}" for s in index.sources(entry.path)}
        day = filed_day(entry)
        return TopicItem(
            entry.path,
            entry.title,
            text=entry.description,
            marks=frozenset(marks),
            month=f"{day:%Y-%m}" if day else "",
        )


def topic_prefix(moc: str) -> str:
    """What the names of all topics below one of the standing maps begin with, however deep they are."""
    return next((s for s in STANDARD if moc.startswith(f"{s}-")), moc)
