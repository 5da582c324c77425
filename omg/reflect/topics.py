"""Groups notes that belong together, and splits maps that have grown too long.

The same notes give the same groups on any machine. A note that fits no topic stays where it is, because nobody would
look for it on a wrong map."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations

from ..errors import how_many
from ..index.store import Entry
from ..node.markdown import generated_block, slugify, wikilink
from ..node.note import (
    MOCS,
    OPEN_LOOPS,
    STANDARD,
    TYPES,
    Node,
    map_of_type,
    page_title,
    parse_node,
    render_node,
)
from ..plan.drafts import Plan
from ..plan.pages import new_page, project_of_map
from ..text.characters import with_labels
from ..text.words import denies, stems_of, words_in

# --- The notes a cycle works on, as they were at its start, and the Plan it drafts on.


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cycle works on. *entries*: all active and dormant notes at the start of the cycle, by path."""

    plan: Plan
    entries: Mapping[str, Entry]
    changed: AbstractSet[str]  # paths of notes that are new or changed since the last cycle
    frozen: AbstractSet[str]  # paths that a person's undo restored: they stay as they are

    def node(self, path: str) -> Node:
        return self.plan.draft(path).node

    def ours(self, path: str, *properties: str) -> bool:
        """Whether OMG wrote the note at *path*, and a person changed none of its *properties*."""
        draft = self.plan.draft(path)
        return draft.ours and draft.theirs.isdisjoint(properties)

    def now(self) -> list[Entry]:
        """The active notes as drafted so far, sorted by path."""
        found = {**self.entries, **self.plan.drafted()}
        return [found[p] for p in sorted(found) if found[p].status == "active"]


def link_of(node: Node) -> str:
    return wikilink(node.path, node.title)


TOPIC_NOTES = 4  # fewest notes of a topic: a page for fewer costs a reader more time than it saves
NEIGHBOURS = 6  # edges kept for each note: enough to hold a topic together; more would make Louvain slow
# Largest share of a map's notes in one topic: a larger topic would hardly shorten the map.
LARGEST_TOPIC = 0.75
PAIRS = 200  # a feature of more notes than this is ignored
# A note joins a topic if its mean cosine to the topic's three nearest notes is at least CLEAR, and its mean
# cosine to those of the next topic is at most MARGIN times as large. With a fifth of the notes of five LoCoMo
# conversations held out, 74 % join a topic, and 97 % of these join the right one.
CLEAR, MARGIN = 0.16, 0.8


# --- the same thing said twice


def normalized(text: str) -> str:
    """*text* without differences of typing: case, spaces, punctuation, and the targets of links."""
    return " ".join(words_in(with_labels(text).casefold()))


def statement_likeness(a: str, b: str) -> float:
    """
    The share of their words that two statements have in common, from 0 to 1; 0 if their numbers differ, or if only
    one of them says "not".

    "Paid 50" and "paid 60" are two payments or a correction, but never a duplicate.
    """
    left, right = stems_of(a).keys(), stems_of(b).keys()
    if not left or not right or numbers_in(left) != numbers_in(right):
        return 0.0
    if denies(a) != denies(b):
        return 0.0
    return len(left & right) / len(left | right)


def numbers_in(stems: Iterable[str]) -> set[str]:
    return {s for s in stems if any(c.isdigit() for c in s)}


# --- topics


NAME = re.compile(r"(?<=[a-z,;] )[A-Z][^\W\d_]+")  # a capitalised word within a sentence


@dataclass(frozen=True)
class TopicItem:
    """
    The features of a note that decide its topic. *marks*: "#" and a tag, ">" and a linked path, or "@" and the id of
    a source message.
    """

    path: str
    title: str
    text: str
    marks: frozenset[str] = frozenset()

    @cached_property
    def features(self) -> frozenset[str]:
        return self.marks | stems_of(f"{self.title} {self.text}").keys()

    @cached_property
    def names(self) -> dict[str, tuple[str, float]]:
        """
        Stem → (word, weight), for naming a topic. Words of tags and titles, and names within the text, weigh twice as
        much as other words.
        """
        tags = " ".join(m[1:] for m in sorted(self.marks) if m.startswith("#"))
        texts = ((self.text, 0.5), (f"{tags} {self.title} {' '.join(NAME.findall(self.text))}", 1.0))
        return {
            key: (word, weight)
            for text, weight in texts
            for key, word in stems_of(text).items()
            if not word.isdigit() and (len(word) > 2 or not word.isascii())
        }


@dataclass(frozen=True, slots=True)
class Topic:
    name: str  # a slug
    paths: tuple[str, ...]


def split_topics(
    items: Sequence[TopicItem], taken: Collection[str] = (), known: Collection[str] = ()
) -> list[Topic]:
    """
    Split *items* into groups of notes that belong together; empty if they form no groups. A note that shares nothing
    with others is in no group. A group may be long enough to be split again.

    *taken*: names in use. *known*: words of the map's own name, which cannot name a group.
    """
    items = sorted(items, key=lambda i: i.path)
    topics, names = [], set(taken)
    for group in sorted(communities(items), key=lambda g: (-len(g), min(g))):
        name = topic_name([items[n] for n in sorted(group)], items, names, known)
        names.add(name)
        topics.append(Topic(name, tuple(items[n].path for n in sorted(group))))
    return topics


def communities(items: Sequence[TopicItem]) -> list[set[int]]:
    """
    Group the positions of *items* by the Louvain method on their nearest neighbours. Empty if one group has most of
    the notes.
    """
    from networkx import Graph
    from networkx.algorithms.community import louvain_communities

    graph = Graph()
    graph.add_weighted_edges_from(neighbour_edges(items))
    found = louvain_communities(graph, weight="weight", seed=1) if graph.number_of_edges() else []
    groups = [set(g) for g in found if len(g) >= TOPIC_NOTES]
    return groups if max(map(len, groups), default=0) <= LARGEST_TOPIC * len(items) else []


def neighbour_edges(items: Sequence[TopicItem]) -> list[tuple[int, int, float]]:
    """
    The edges from each note to its nearest others, by the cosine of their features. An edge is `(low, high, weight)`,
    with the positions of both notes in *items*.
    """
    vectors = feature_weights(items)
    holders: dict[str, list[int]] = defaultdict(list)
    for n, vector in enumerate(vectors):
        for feature in vector:
            holders[feature].append(n)
    near: dict[tuple[int, int], float] = defaultdict(float)
    for feature, held in sorted(holders.items()):
        for a, b in combinations(held, 2):
            near[a, b] += vectors[a][feature] * vectors[b][feature]
    ranked: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
    for (a, b), weight in near.items():
        ranked[a].append((-weight, a, b))
        ranked[b].append((-weight, a, b))
    kept = {(a, b): -w for found in ranked.values() for w, a, b in sorted(found)[:NEIGHBOURS]}
    return [(a, b, round(w, 6)) for (a, b), w in sorted(kept.items())]


def feature_weights(items: Sequence[TopicItem], most: int = PAIRS) -> list[dict[str, float]]:
    """
    Feature → weight, for each note. A rare feature weighs more; the weights of a note form a vector of length 1.

    Two kinds of features are left out:
    - a feature of a single note, because the feature connects nothing
    - a feature of more than 60% of the notes, or of more than *most* notes, because the feature distinguishes nothing.
      A feature of at most 2 * TOPIC_NOTES notes is kept.
    """
    counts = Counter(f for item in items for f in item.features)
    many = max(TOPIC_NOTES * 2, min(most, int(0.6 * len(items))))
    weight = {f: math.log(1 + len(items) / n) for f, n in counts.items() if 1 < n <= many}
    vectors = []
    for item in items:
        vector = {f: weight[f] for f in sorted(item.features) if f in weight}
        length = math.sqrt(sum(w * w for w in vector.values())) or 1.0
        vectors.append({f: w / length for f, w in vector.items()})
    return vectors


def nearest_topic(items: Sequence[TopicItem], topics: Mapping[str, Sequence[TopicItem]]) -> dict[str, str]:
    """
    Path of an item → key of the topic to which the item clearly belongs, judged by each topic's three nearest notes.

    Items without such a topic are left out.
    """
    keys = sorted(topics)
    everyone = [i for key in keys for i in topics[key]]
    vectors = feature_weights([*everyone, *items], most=len(everyone))
    found = {}
    for item, own in zip(items, vectors[len(everyone) :], strict=True):
        at, ranked = 0, []
        for key in keys:
            near = sorted((dot_product(own, v) for v in vectors[at : at + len(topics[key])]), reverse=True)[
                :3
            ]
            at += len(topics[key])
            ranked.append((-sum(near) / 3, key))
        ranked.sort()
        clear = bool(ranked) and -ranked[0][0] >= CLEAR
        if clear and (len(ranked) == 1 or ranked[1][0] >= MARGIN * ranked[0][0]):
            found[item.path] = ranked[0][1]
    return found


def topic_name(
    group: Sequence[TopicItem], everyone: Sequence[TopicItem], taken: Collection[str], known: Collection[str]
) -> str:
    """
    Choose a slug for *group*: the first candidate that is not in *taken*.

    The candidates, in order:
    - a tag, or the name of a linked note, that is typical of *group* (see `shared_names`)
    - one or two words that are frequent in *group* and rare elsewhere; two words stand in their usual order
    - the best word with a number

    *known*: words that cannot be the name.
    """
    inside, outside = weight_sum(group), weight_sum(everyone)
    spelled: dict[str, Counter[str]] = defaultdict(Counter)
    for item in group:
        for key, (word, _) in item.names.items():
            spelled[key][word] += 1
    dull = stems_of(" ".join(known)).keys()
    worth = {k: n / len(group) * math.log(1 + len(everyone) / outside[k]) for k, n in inside.items()}
    ranked = sorted((k for k in worth if k not in dull), key=lambda k: (-worth[k], k))
    best = [max(sorted(spelled[k].items()), key=lambda s: s[1])[0] for k in ranked[:4]] or ["topic"]
    one = [(best[0],)] if len(best) == 1 or inside[ranked[0]] >= 0.5 * len(group) else []
    pairs = (as_mostly_said(pair, group) for pair in combinations(best, 2))
    tries = [
        *((name,) for name in shared_names(group, everyone) if not stems_of(name).keys() <= dull),
        *one,
        *pairs,
        *((best[0], str(n)) for n in range(2, len(taken) + 3)),
    ]
    return next(slug for slug in (slugify(" ".join(t)) for t in tries) if slug not in taken)


NAME_WORDS = 4  # most words of a note's title that names a topic
# A mark names a group if at least this share of the group has the mark,
# and at least this share of all notes with the mark is in the group.
SHARED = 0.5


def shared_names(group: Sequence[TopicItem], everyone: Sequence[TopicItem]) -> list[str]:
    """
    Return the tags and the names of linked notes that are typical of *group*.

    Most notes in *group* have such a tag or link, and few other notes have it. The most frequent comes first.
    """
    inside, outside = (Counter(m for i in of for m in i.marks if m[0] in "#>") for of in (group, everyone))
    fitting = [m for m, n in inside.items() if n >= SHARED * len(group) and n >= SHARED * outside[m]]
    fitting.sort(key=lambda m: (-inside[m], m))
    names = [m[1:].rpartition("/")[2].replace("-", " ") for m in fitting]
    return [name for name in names if len(name.split()) <= NAME_WORDS]


def as_mostly_said(pair: tuple[str, str], group: Iterable[TopicItem]) -> tuple[str, str]:
    text = "\n".join(f"{i.title}\n{i.text}" for i in group).casefold()
    first, second = (len(re.findall(rf"\b{a}\w*\W{b}", text)) for a, b in permutations(map(re.escape, pair)))
    return pair if first >= second else (pair[1], pair[0])


def weight_sum(items: Iterable[TopicItem]) -> dict[str, float]:
    weights: dict[str, float] = defaultdict(float)
    for item in items:
        for key, (_, weight) in item.names.items():
            weights[key] += weight
    return weights


def dot_product(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return sum(w * b[f] for f, w in a.items() if f in b)


# --- Splits maps that have grown too long into topics, and puts notes on a map that no map lists yet. A note stays
# where it is if a person has edited its links.


def assign_maps(snapshot: Snapshot, most: int) -> tuple[list[str], Counter[str]]:
    """
    Put each of OMG's notes on its map, and split a map of more than *most* lines into topics. Returns a line for each
    split map, and how many notes were put on each map.

    A topic keeps its name and its notes for good. Later notes join the topic to which they clearly belong.
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
    listed = (moc for moc in snapshot.plan.maps.known or () if moc not in snapshot.entries)
    snapshot.plan.maps.paths |= {*STANDARD, *splitter.members, *splitter.parents, *listed}
    return done, splitter.filed


def filed_lines(filed: Mapping[str, int]) -> list[str]:
    """One line for each map in *filed*: how many notes were put on the map."""
    return [
        f"Filed {how_many(n, 'note')} under {wikilink(moc, page_title(moc)[0])}."
        for moc, n in sorted(filed.items())
    ]


class MapSplitter:
    """Moves notes between maps, and tracks which map lists which notes."""

    def __init__(self, snapshot: Snapshot, most: int) -> None:
        self.snapshot, self.most = snapshot, most
        self.members: dict[str, list[Entry]] = defaultdict(list)
        self.filed: Counter[str] = Counter()
        self.parents = {t.path: moc for moc, of in snapshot.plan.maps.topics().items() for t in of}
        drafted = {e.map for e in snapshot.plan.drafted().values()}
        everywhere = {*(snapshot.plan.maps.known or ()), *drafted} - {OPEN_LOOPS}
        self.members.update(snapshot.plan.maps.lists(everywhere))
        for moc in everywhere:  # a topic whose page is gone: notes still name the topic
            if moc not in snapshot.entries and topic_prefix(moc) != moc:
                self.draft_page(moc, topic_prefix(moc))

    def put_on_map(self, path: str) -> None:
        """Put the note at *path* on the map of its type, if the note names no map."""
        entry = self.snapshot.entries.get(path)
        if entry and entry.type in TYPES and self.snapshot.ours(path, "links"):
            node = self.snapshot.node(path)
            if not any(target.startswith("mocs/") for target in (*node.links, *node.wikilinks)):
                self.snapshot.plan.amend(path, links=(map_of_type(entry.type), *node.links))
                self.filed[map_of_type(entry.type)] += 1

    def split_if_long(self, moc: str) -> list[str]:
        """Split the map *moc* if it is too long. Returns the new topics."""
        children = [c for c in self.topics(moc) if self.members[c]]
        long = len(self.members[moc]) + len(children) > self.most
        if moc == MOCS["reflection"][0]:
            return self.by_year(moc) if long else []
        if children:
            new = [e for e in self.members[moc] if long or e.path in self.snapshot.changed]
            self.file_under(moc, [e for e in new if self.movable(e)], children)
        if len(self.members[moc]) + len(children) <= self.most or not self.may_split_anew(moc):
            return []  # decided before any note is read
        movable = [e for e in self.members[moc] if self.movable(e)]
        # A person's notes on the map use at most half of the limit; the other half is for OMG's notes.
        theirs = min(len(self.members[moc]) - len(movable), self.most // 2)
        room = self.most - len(children) - theirs
        if len(movable) <= room:
            return []
        found = split_topics(
            [self.topic_item(e) for e in movable],
            self.taken_names(),
            page_title(moc)[0].split(),
        )
        return [self.make_topic(moc, topic.name, topic.paths) for topic in found]

    def may_split_anew(self, moc: str) -> bool:
        """Whether splitting *moc* may give another result than in the previous cycle."""
        changed = self.snapshot.changed
        return moc in self.snapshot.plan.maps.new or any(e.path in changed for e in self.members[moc])

    def file_under(self, moc: str, new: Sequence[Entry], children: Sequence[str]) -> None:
        """Move each of *new* to the topic to which it clearly belongs, if the page of the topic can list the note."""
        if new:
            children = [c for c in children if self.has_block(c)]
            there = {topic: [self.topic_item(e) for e in self.members[topic]] for topic in children}
            homes = nearest_topic([self.topic_item(e) for e in new], there)
            self.move_notes(moc, homes)
            self.filed.update(homes.values())

    def has_block(self, topic: str) -> bool:
        """
        Whether the page *topic* has a generated block. A page without such a block is a person's, and stays as it is.
        """
        text = self.snapshot.plan.graph.vault.bytes(topic)
        return topic in self.snapshot.plan.maps.new or bool(
            text and generated_block(text.decode("utf-8", "replace")) is not None
        )

    def by_year(self, moc: str) -> list[str]:
        """
        Make a map for each year of the reflections in *moc*, except for the newest year. Returns the paths of the
        maps.
        """
        years: dict[str, list[str]] = defaultdict(list)
        for entry in filter(self.movable, self.members[moc]):
            years[entry.path.rpartition("/")[2][:4]].append(entry.path)
        last = max(years, default="")
        return [self.make_topic(moc, year, paths) for year, paths in sorted(years.items()) if year != last]

    def make_topic(self, moc: str, name: str, paths: Iterable[str]) -> str:
        """
        Move the notes at *paths* to a topic of the map *moc*.

        *name*: the last part of the topic's name. A missing topic page is created. Returns the path of the topic page.
        """
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
        """Move notes of the map *moc* to other maps. *homes*: path of a note → its new map."""
        for entry in self.members[moc]:
            if (topic := homes.get(entry.path)) is not None:
                links = [t for t in self.snapshot.node(entry.path).links if t != moc]
                self.snapshot.plan.amend(entry.path, links=(topic, *links))
                self.members[topic].append(entry)
        self.members[moc] = [e for e in self.members[moc] if e.path not in homes]

    def topics(self, moc: str) -> list[str]:
        """
        Return the paths of the topics into which the map *moc* was split.

        Maps of projects are left out: they take no notes away from *moc*.
        """
        of = (topic for topic, parent in self.parents.items() if parent == moc)
        return sorted(topic for topic in of if project_of_map(topic) not in self.snapshot.entries)

    def movable(self, entry: Entry) -> bool:
        return entry.path not in self.snapshot.frozen and self.snapshot.ours(entry.path, "links")

    def taken_names(self) -> set[str]:
        """The names of all maps. A topic cannot have one of these names, because no two maps have the same title."""
        paths = {p for p in (*self.parents, *self.snapshot.entries, *STANDARD) if p.startswith("mocs/")}
        return {slugify(page_title(p)[0]) for p in paths}

    def topic_item(self, entry: Entry) -> TopicItem:
        index = self.snapshot.plan.graph.index
        marks = {f"#{t}" for t in entry.tags} | {f">{t}" for t in entry.links if not t.startswith("mocs/")}
        marks |= {f"@{s.id}" for s in index.sources(entry.path)}
        return TopicItem(entry.path, entry.title, entry.description, frozenset(marks))


def topic_prefix(moc: str) -> str:
    """
    The standard map that *moc* is a topic of, at any depth; *moc* itself if there is none. The name of a topic begins
    with the name of its standard map.
    """
    return next((s for s in STANDARD if moc.startswith(f"{s}-")), moc)
