"""
What the Reflector does without a model: repetitions, links, sleep, maps.

    repeated   notes that say the same to the letter become one        kin      what a changed note resembles
    mend       links to a former path lead to the present one again    proposed what looks like a repetition
    doze       what nobody has linked or recalled for long leaves      shelve   maps that grew too long get topics
               the maps, and comes back when it is

Each drafts on a Plan and returns lines for the log page. One rule: files that a person has touched keep
their place and their words; at the most they are superseded by one that says the same.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from .. import maps
from ..dates import span
from ..edit import Plan, split_history
from ..graph import Graph
from ..index import Entry
from ..node import PRIORITIES, TYPES, Node, parse, render, wikilink
from ..node.markdown import block
from ..uses import Uses
from . import revise, topics
from .topics import Item, alike, normal, resembles

# Notes shown with each changed one. Of ten contradictions put among the 184 notes of a LoCoMo conversation, eight
# find each other so with the static table, and all ten with MiniLM.
KIN = 3
VECTOR_BATCHES = 8  # of 256 that a night makes itself; more, after an import, is the daemon's to make
# When two notes are proposed as one: this share of their words, or this score of a search for the one by the other.
# In that conversation the two conditions name four pairs, and all four say the same in other words.
REPEATS, NEAR = 0.75, 0.6
TRUST = ("tool", "assistant", "user", "human", None)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a cycle works on. *entries*: all active and dormant notes, by path, as they were at its start."""

    plan: Plan
    entries: Mapping[str, Entry]
    changed: AbstractSet[str]  # paths of notes that no cycle has seen as they are now
    frozen: AbstractSet[str]  # paths that a person's undo put back: they stay as they are

    def node(self, path: str) -> Node:
        return self.plan.draft(path).node

    def ours(self, path: str, *properties: str) -> bool:
        """Whether the words of *path* are ours, and these *properties* of its head."""
        draft = self.plan.draft(path)
        return draft.ours and draft.theirs.isdisjoint(properties)

    def now(self) -> list[Entry]:
        """The active notes as the drafts leave them, by path."""
        found = {**self.entries, **self.plan.drafted()}
        return [found[p] for p in sorted(found) if found[p].status == "active"]


# --- repetitions


def repeated(ground: Ground) -> list[str]:
    """Merge notes of one type whose texts are the same but for case, spaces and marks."""
    same: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for e in ground.now() if ground.changed else ():
        if e.type in TYPES:
            day = e.created if e.type == "episode" else None  # what happens every week is no repetition
            same[e.type, e.loop, e.event or day, normal(e.description)].append(e.path)
    done = []
    for paths in same.values():
        if len(paths) < 2 or not any(p in ground.changed for p in paths):
            continue
        by_text: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            by_text[normal(split_history(ground.node(path).body)[0])].append(path)
        for several in by_text.values():
            done += one_of(ground, several)
    return done


def one_of(ground: Ground, paths: Sequence[str]) -> list[str]:
    """Merge *paths* into the most trusted of them; a person's own note stays, and two of theirs are theirs."""

    def standing(path: str) -> tuple[bool, int, dt.date, str]:
        node = ground.node(path)
        mine = node.pinned or ground.plan.draft(path).touched
        return not mine, -TRUST.index(node.origin), node.created or dt.date.max, path

    keep, *rest = sorted(paths, key=standing)
    done = []
    for gone in rest:
        if (
            ground.node(gone).pinned
            or not ground.ours(gone)
            or (gone in ground.frozen and keep in ground.frozen)
        ):
            continue
        revise.merge(ground.plan, keep, gone)
        done.append(f"Merged {link(ground.node(gone))} into {link(ground.node(keep))}: they said the same.")
    return done


def kin(ground: Ground, paths: Iterable[str], now: dt.datetime) -> dict[str, dict[str, float]]:
    """
    Each of *paths* → what it resembles and how much, nearest first; left out if it resembles nothing.

    What matters most comes first, happenings last, for the day's cap may come in between.
    """
    index = ground.plan.graph.index
    standing = {e.path: e for e in ground.now() if e.type in TYPES}
    wanted = [standing[path] for path in paths if path in standing]
    wanted.sort(key=lambda e: (e.type == "episode", PRIORITIES.index(e.priority), e.path))
    for _ in range(VECTOR_BATCHES if wanted else 0):
        if not index.embed():
            break
    found = {}
    for entry in wanted:
        near = {}
        for hit in index.search(f"{entry.title}. {entry.description}", 3 * KIN, now=now, walk=False):
            other = standing.get(hit.entry.path)
            if (
                other
                and other != entry
                and ("close in meaning" in hit.why or resembles(said(entry), said(other)))
            ):
                near[other.path] = hit.score
        if near:
            found[entry.path] = dict(list(near.items())[:KIN])
    return found


def said(entry: Entry) -> str:
    return f"{entry.title} {entry.description}"


def proposed(ground: Ground, near: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Pairs that look like repetitions, for a person to judge where no model does."""
    standing = {e.path: e for e in ground.now()}
    pairs: dict[tuple[str, ...], float] = {}
    for path, others in near.items():
        for other, score in others.items():
            pair = tuple(sorted((path, other)))
            pairs[pair] = max(score, pairs.get(pair, 0.0))
    lines = []
    for (a, b), score in sorted(pairs.items()):
        if a in standing and b in standing and repeats(standing[a], standing[b], score):
            lines.append(f"{wikilink(a, standing[a].title)} and {wikilink(b, standing[b].title)} look alike.")
    return lines


def repeats(a: Entry, b: Entry, score: float) -> bool:
    shared = alike(a.description, b.description)
    return a.type == b.type and a.event == b.event and (shared >= REPEATS or (shared > 0 and score >= NEAR))


# --- links


def mend(ground: Ground) -> list[str]:
    """Links in our files that lead to a note by a former path lead to its present one again."""
    astray: dict[str, dict[str, str]] = defaultdict(dict)
    for path, target, there in led_by_name(ground.plan.graph):
        if path not in ground.frozen:
            astray[path][target] = there
    done: dict[str, int] = defaultdict(int)
    for path, moved in sorted(astray.items()):
        if revise.relink(ground.plan, path, moved):
            for there in set(moved.values()):
                done[there] += 1
    return [
        f"Mended the links to {link(ground.node(there))} in {n} note{'s' * (n > 1)}."
        for there, n in sorted(done.items())
    ]


def led_by_name(graph: Graph) -> list[tuple[str, str, str]]:
    """`(path, target, there)` of links whose target looks like a path, but leads only by an alias or an id."""
    found = graph.index.detours()
    for path, target in graph.index.dangling():
        # Where nobody saw the move happen: the id was made of the path the note had at its birth.
        there = (
            graph.index.resolve(f"omg/{target.removeprefix('nodes/')}")
            if target.startswith("nodes/")
            else None
        )
        if there is not None:
            found.append((path, target, there))
    return sorted(found)


# --- sleep


def doze(ground: Ground, uses: Uses, now: dt.datetime, days: int) -> tuple[list[str], list[str]]:
    """Lines for notes that went dormant, and for those that woke."""
    since = (now - dt.timedelta(days=days)).timestamp() * 1000
    today = ground.plan.day
    slept: list[str] = []
    woke: list[str] = []
    for entry in sorted(ground.entries.values(), key=lambda e: e.path):
        if entry.type not in TYPES or entry.priority != "low" or entry.path in ground.frozen:
            continue
        idle = not entry.pinned and entry.loop != "open" and not recent(entry, uses, since, today, days)
        idle = idle and not linked(ground, entry.path)
        if idle == (entry.status == "dormant") or not ground.ours(entry.path, "status"):
            continue
        node = ground.node(entry.path)
        if node.status != entry.status:  # merged or replaced in this very cycle
            continue
        ground.plan.amend(entry.path, status="dormant" if idle else "active")
        (slept if idle else woke).append(link(node))
    return slept, woke


def recent(entry: Entry, uses: Uses, since_ms: float, today: dt.date, days: int) -> bool:
    """Whether the note was said, recalled or due within *days*; a day to come counts."""
    if uses.last_ms(entry.id) >= since_ms:
        return True
    ends = span(entry.event)
    latest = max((d for d in (entry.created, entry.updated, ends and ends[1]) if d), default=dt.date.min)
    return (today - latest).days < days


def linked(ground: Ground, path: str) -> bool:
    """Whether an active note, not one that we generate, links to it."""
    back = ground.plan.graph.index.backlinks(path)
    return any(
        (e := ground.entries.get(b)) and e.status == "active" and e.type in (*TYPES, "note") for b in back
    )


# --- maps


def shelve(ground: Ground, most: int) -> tuple[list[str], Counter[str]]:
    """
    Give each note of ours its map, and a map of more than *most* lines topics. Lines for maps split,
    and how many notes were put under which map.

    A topic keeps its name and its notes for good; notes that come later join one that they clearly belong to.
    """
    shelves = Shelves(ground, most)
    for path in sorted(ground.changed):
        shelves.attach(path)
    done = []
    queue = [moc for moc in maps.STANDARD if moc != maps.OPEN_LOOPS]
    while queue:
        moc = queue.pop(0)
        if made := shelves.tidy(moc):
            names = ", ".join(wikilink(m, maps.named(m)[0]) for m in made)
            done.append(f"Split {wikilink(moc, maps.named(moc)[0])} into topics: {names}.")
        queue += shelves.topics(moc)
    ground.plan.maps |= {*maps.STANDARD, *shelves.members, *shelves.parents}
    return done, shelves.filed


def filing(filed: Mapping[str, int]) -> list[str]:
    """The lines for notes that were put under maps: map → how many."""
    return [
        f"Filed {n} note{'s' * (n > 1)} under {wikilink(moc, maps.named(moc)[0])}."
        for moc, n in sorted(filed.items())
    ]


class Shelves:
    """Which map lists what, while notes are being moved between maps."""

    def __init__(self, ground: Ground, most: int) -> None:
        self.ground, self.most = ground, most
        self.members: dict[str, list[Entry]] = defaultdict(list)
        self.filed: Counter[str] = Counter()
        self.parents = {t.path: moc for moc, of in ground.plan.topics().items() for t in of}
        drafted = {maps.home_of(e) for e in ground.plan.drafted().values()}
        everywhere = {*(ground.plan.known or ()), *drafted} - {maps.OPEN_LOOPS}
        self.members.update(ground.plan.lists(everywhere))
        for moc in everywhere:  # a topic whose page is gone: its notes still name it
            if moc not in ground.entries and stem(moc) != moc:
                self.page(moc, stem(moc))

    def attach(self, path: str) -> None:
        """Enter its map into a changed note that names none."""
        entry = self.ground.entries.get(path)
        if entry and entry.type in TYPES and self.ground.ours(path, "links"):
            node = self.ground.node(path)
            if not any(target.startswith("mocs/") for target in (*node.links, *node.wikilinks)):
                self.ground.plan.amend(path, links=(maps.home(entry.type), *node.links))
                self.filed[maps.home(entry.type)] += 1

    def tidy(self, moc: str) -> list[str]:
        """Bring *moc* below its limit as far as that can be done; returns the topics made."""
        children = [c for c in self.topics(moc) if self.members[c]]
        long = len(self.members[moc]) + len(children) > self.most
        if moc == maps.MOCS["reflection"][0]:
            return self.by_year(moc) if long else []
        if children:
            new = [e for e in self.members[moc] if long or e.path in self.ground.changed]
            self.join(moc, [e for e in new if self.movable(e)], children)
        if len(self.members[moc]) + len(children) <= self.most or not self.news(moc):
            return []  # before any note is read
        movable = [e for e in self.members[moc] if self.movable(e)]
        # However many notes a person has there, half of the map is for ours: in topics they would be lost among them.
        theirs = min(len(self.members[moc]) - len(movable), self.most // 2)
        room = self.most - len(children) - theirs
        if len(movable) <= room:
            return []
        found = topics.split(
            [self.item(e) for e in movable],
            max(room, topics.LEAST),
            self.taken(moc),
            maps.named(moc)[0].split(),
        )
        return [self.make(moc, topic.name, topic.paths) for topic in found]

    def news(self, moc: str) -> bool:
        """Whether splitting *moc* may come to something else than in the cycle before."""
        changed = self.ground.changed
        return moc in self.ground.plan.pages or any(e.path in changed for e in self.members[moc])

    def join(self, moc: str, new: Sequence[Entry], children: Sequence[str]) -> None:
        """Move those of *new* to a topic that clearly belong there, and that will list them."""
        if new:
            children = [c for c in children if self.lists(c)]
            there = {topic: [self.item(e) for e in self.members[topic]] for topic in children}
            homes = topics.nearest([self.item(e) for e in new], there)
            self.move(moc, homes)
            self.filed.update(homes.values())

    def lists(self, topic: str) -> bool:
        """Whether the page has a block: without one it is its owner's, and shows what they want."""
        text = self.ground.plan.graph.vault.bytes(topic)
        return topic in self.ground.plan.pages or bool(
            text and block(text.decode("utf-8", "replace")) is not None
        )

    def by_year(self, moc: str) -> list[str]:
        """Reflections are found by their time: each year that is over gets a map of its own."""
        years: dict[str, list[str]] = defaultdict(list)
        for entry in filter(self.movable, self.members[moc]):
            years[entry.path.rpartition("/")[2][:4]].append(entry.path)
        last = max(years, default="")
        return [self.make(moc, year, paths) for year, paths in sorted(years.items()) if year != last]

    def make(self, moc: str, name: str, paths: Iterable[str]) -> str:
        """The topic *name* of *moc*, with these notes on it."""
        topic = f"{stem(moc)}-{name}"
        if topic not in self.parents:
            self.page(topic, moc)
        self.move(moc, dict.fromkeys(paths, topic))
        return topic

    def page(self, topic: str, moc: str) -> None:
        page = parse(maps.page(topic, ""), topic)
        self.ground.plan.pages[topic] = render(replace(page, links=(moc,)))
        self.parents[topic] = moc

    def move(self, moc: str, homes: Mapping[str, str]) -> None:
        """Take notes of *moc* to other maps: path → map."""
        for entry in self.members[moc]:
            if (topic := homes.get(entry.path)) is not None:
                links = [t for t in self.ground.node(entry.path).links if t != moc]
                self.ground.plan.amend(entry.path, links=(topic, *links))
                self.members[topic].append(entry)
        self.members[moc] = [e for e in self.members[moc] if e.path not in homes]

    def topics(self, moc: str) -> list[str]:
        return sorted(topic for topic, parent in self.parents.items() if parent == moc)

    def movable(self, entry: Entry) -> bool:
        return entry.path not in self.ground.frozen and self.ground.ours(entry.path, "links")

    def taken(self, moc: str) -> set[str]:
        """Names that a topic of *moc* cannot have, because there is a page of that name."""
        front = f"{stem(moc)}-"
        paths = {*self.parents, *self.ground.entries, *maps.STANDARD}
        return {p.removeprefix(front) for p in paths if p.startswith(front)}

    def item(self, entry: Entry) -> Item:
        index = self.ground.plan.graph.index
        marks = {f"#{t}" for t in entry.tags} | {f">{t}" for t in entry.links if not t.startswith("mocs/")}
        marks |= {f"@{s.id}" for s in index.sources(entry.path)}
        day = maps.day_of(entry)
        return Item(
            entry.path, entry.title, entry.description, frozenset(marks), f"{day:%Y-%m}" if day else ""
        )


def stem(moc: str) -> str:
    """What the names of all topics below one of the standing maps begin with, however deep they are."""
    return next((s for s in maps.STANDARD if moc.startswith(f"{s}-")), moc)


def link(node: Node) -> str:
    return wikilink(node.path, node.title)
