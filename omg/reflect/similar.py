"""Merges repeated notes, finds similar notes for a model to compare, mends links, and marks unused notes as dormant.

A note that a person has changed keeps its words, and is superseded only by a note that says the same."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, zip_longest

from ..dates.days import event_span
from ..errors import how_many
from ..graph.graph import Graph
from ..graph.state import NEVER, Uses
from ..index.search import ALONE
from ..index.store import Entry, Hit
from ..journal import Rebase
from ..node.markdown import wikilink
from ..node.note import TYPES, Node
from ..observe.twins import LIKE, likeness
from ..plan.corrections import UNANSWERED_DAYS, is_in_doubt, says_all
from ..plan.drafts import Plan
from ..plan.edits import (
    ORIGIN_ORDER,
    TOOK_OVER,
    former_state,
    fresh_sentences,
    higher_priority,
    merged_sources,
    one_line,
    split_history,
    trust_of,
    weaker_origin,
    with_history_lines,
)
from ..plan.mentions import MentionedNames, link_names
from ..text.characters import with_labels
from ..text.words import common_stems, denies, stems_of, words_in
from .topics import Snapshot, link_of, normalized, statement_likeness

# --- Changes to existing notes: merge, supersede, close a loop, mend links. Each function drafts on a Plan; the
# caller decides whether the change is allowed. A superseded note leaves the maps and stays on disk. The History of its
# successor names the superseded note and its date.


def merge_notes(plan: Plan, keep: str, gone: str, description: str = "", *, asked: bool = False) -> None:
    """
    Merge the note *gone* into the note *keep*, which then supersedes *gone*.

    *description*: replaces the description of *keep*, if given. The History of *keep* gets each sentence that only
    *gone* has. Prompts show these sentences in two cases:
    - A person *asked* for the merge.
    - A person edited *keep*.

    *keep* also gets the sources, tags, links and History of *gone*, unless *gone* is less trusted.
    """
    draft, other = plan.draft(keep), plan.draft(gone).node
    node = draft.node
    main, lines = split_history(node.body)
    more = fresh_sentences(f"{node.description}\n{main}\n{other.description}", split_history(other.body)[0])
    lead = TOOK_OVER if asked or not draft.ours else ""  # else *description* covers *gone*
    line = taken_line(plan, other, node, one_line(f"{other.description} {with_labels(more)}"), lead)
    said = one_line(description)
    if said and said != node.description:
        lines = (*lines, former_state(node, node.event, plan.day))
        main = said if one_line(main) == node.description else f"{said}\n\n{main}"
        node = replace(node, description=said, origin=weaker_origin(node.origin, other.origin))
    # A less trusted note must not make a person's note newer or more important, and must not close a person's plan.
    if trust_of(other.origin) >= trust_of(node.origin):
        lines = (*lines, *split_history(other.body)[1])
        links = (target for target in other.links if not target.startswith("mocs/") and target != keep)
        node = replace(
            node,
            priority=higher_priority(node.priority, other.priority),
            loop=loop_of(node, other),
            standing=node.standing or (other.standing and says_all(node, other)),
            event=node.event or other.event,
            sources=merged_sources(node.sources, other.sources),
            reflected_in=tuple(dict.fromkeys((*node.reflected_in, *other.reflected_in))),
            links=tuple(dict.fromkeys((*node.links, *links))),
            tags=tuple(dict.fromkeys((*node.tags, *other.tags))),
        )
    body = with_history_lines(main, tuple(sorted({*lines, line})))
    plan.rewrite(draft, replace(taking_over(node, other), body=body), Rebase(history=line))
    plan.mark_superseded(gone, keep)


def taking_over(node: Node, other: Node) -> Node:
    """*node*, with *other* added to the notes that it supersedes."""
    return replace(
        node,
        supersedes=tuple(dict.fromkeys((*node.supersedes, other.path))),
    )


def supersede_note(plan: Plan, old: str, successor: str) -> None:
    """
    Let the note *successor* replace the note *old*, which was true before. *old* leaves the maps. Each note gets a
    History line that links to the other note.
    """
    draft, other = plan.draft(successor), plan.draft(old).node
    node, line = draft.node, taken_line(plan, other, draft.node, other.description)
    main, lines = split_history(node.body)
    if trust_of(other.origin) >= trust_of(node.origin):
        node = replace(node, priority=higher_priority(node.priority, other.priority))
    body = with_history_lines(main, tuple(sorted({*lines, line})))
    plan.rewrite(draft, replace(taking_over(node, other), body=body), Rebase(history=line))
    plan.mark_superseded(old, successor)
    add_line(plan, old, f"- {said_day(plan, node)}: replaced by {wikilink(successor, node.title)}")


def add_line(plan: Plan, path: str, line: str, **changes: str) -> None:
    """Add *line* to the History of the note at *path*, and set its properties to *changes*."""
    draft = plan.draft(path)
    main, lines = split_history(draft.node.body)
    node = replace(draft.node, body=with_history_lines(main, (*lines, line)), **changes)  # type: ignore[arg-type]
    plan.rewrite(draft, node, Rebase(history=line))


def close_loop(plan: Plan, path: str, told: Node | None) -> None:
    """
    Close the plan or promise in the note at *path*, and write the reason to the History.

    *told*: the note about how the plan ended, or None.
    """
    because = f", going by {wikilink(told.path, told.title)}" if told else ""
    line = f"- {plan.day}: closed, as its day {plan.draft(path).node.event} is past{because}"
    add_line(plan, path, line, loop="done")


def taken_line(plan: Plan, node: Node, into: Node, said: str, lead: str = "") -> str:
    """
    Return the line about *node* for the History of *into*, the note that replaces *node*. *said*: the words of *node*.
    *lead*: text before these words.

    If *node* is less trusted than *into*:
    - Words of the assistant are marked as the assistant's.
    - Words of a tool are left out. The line has only the day and a link.
    """
    day, where = said_day(plan, node), wikilink(node.path, node.title)
    if trust_of(node.origin) >= trust_of(into.origin):
        return f"- {day}: {lead}{said} ({where})"
    return f"- {day}: {where}" if node.origin == "tool" else f"- {day}: the assistant, in {where}: {said}"


def said_day(plan: Plan, node: Node) -> str:
    return (node.updated or node.created or plan.day).isoformat()


def loop_of(a: Node, b: Node) -> str | None:
    """
    Return the value of `loop` ("open", "done" or None) for two merged notes.

    If both notes have a value, the note with the newer message decides.
    """
    if a.loop is None or b.loop is None:
        return a.loop or b.loop
    return max(a, b, key=lambda n: max((s.timestamp for s in n.sources), default=0)).loop


# SIMILAR_SHOWN notes are compared with each changed note, out of HITS that the search finds. Ten contradictions were put
# among the 184 notes of a LoCoMo conversation: in eight pairs each note was among the other's three nearest with the
# static table, in ten with MiniLM.
SIMILAR_SHOWN, HITS = 4, 9
# Two notes are compared if they share at least ALIKE of their words, weighted by rarity, or score CLOSE by meaning.
ALIKE, CLOSE = 0.1, 0.12
ALIKE_THOUGH_LINKED = 0.3  # in place of ALIKE, if one of the two notes links to the other
TELLS_SUBJECT = math.log(10)  # a word that more than a tenth of the notes have does not name a subject
COUNTED = 2_000  # about how many notes are read to count how rare a word is
# Two notes are proposed to a person as a repetition if they share REPEATS of their words. HALF of their words are enough
# if a search for one note finds the other with the score NEAR. See bench/LOG.md.
REPEATS, HALF, NEAR = 0.75, 0.5, 0.6
VECTOR_BATCHES = 8  # batches of 256 vectors that a night makes; the daemon makes the rest, as after an import


def merge_repeated(snapshot: Snapshot) -> list[str]:
    """Merge notes of one type whose texts differ only in case, spaces and punctuation. Returns lines for the log."""
    same: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for e in snapshot.now() if snapshot.changed else ():
        if e.type in TYPES:
            # two events in the same words are not a repetition
            day = e.created if e.type == "episode" else None
            same[e.type, e.loop, e.event or day, normalized(e.description)].append(e.path)
    done = []
    for paths in same.values():
        if len(paths) < 2 or not any(p in snapshot.changed for p in paths):
            continue
        by_text: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            by_text[normalized(split_history(snapshot.node(path).body)[0])].append(path)
        for several in by_text.values():
            done += merge_into_one(snapshot, several)
    return done


def merge_into_one(snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
    """Merge *paths* into the most trusted of them. A note that a person edited or pinned is never merged into another."""

    def rank(path: str) -> tuple[bool, int, dt.date, str]:
        node = snapshot.node(path)
        mine = node.pinned or snapshot.plan.draft(path).touched
        return not mine, -ORIGIN_ORDER.index(node.origin), node.created or dt.date.max, path

    keep, *rest = sorted(paths, key=rank)
    done = []
    for gone in rest:
        undone = {gone, keep} <= snapshot.frozen
        if undone or snapshot.node(gone).pinned or not snapshot.ours(gone):
            continue
        if trust_of(snapshot.node(gone).origin) > trust_of(snapshot.node(keep).origin):
            continue  # a person's note is never merged into a less trusted note, even if a person edited the latter
        merge_notes(snapshot.plan, keep, gone)
        done.append(
            f"Merged {link_of(snapshot.node(gone))} into {link_of(snapshot.node(keep))}: they said the same."
        )
    return done


class NotesAlike:
    """Finds the active notes that resemble a note."""

    def __init__(self, snapshot: Snapshot, now: dt.datetime) -> None:
        self.index, self.now = snapshot.plan.graph.index, now
        self.active = {e.path: e for e in snapshot.now() if e.type in TYPES}
        self.warm = False

    @cached_property
    def rarity(self) -> dict[str, float]:
        """Word stem → weight. A stem that few notes have weighs more. Counted over a sample of the notes."""
        some = list(self.active.values())[:: 1 + len(self.active) // COUNTED]
        counts = Counter(stem for e in some for stem in stems_of(statement_of(e)))
        return {stem: math.log((1 + len(some)) / n) for stem, n in counts.items()}

    def likeness(self, a: Entry, b: Entry) -> float:
        """The share of words that the statements of two notes have in common, from 0 to 1. Rare words count more."""
        left, right = (stems_of(statement_of(e)).keys() for e in (a, b))
        if all(
            map(str.isdigit, left & right)
        ):  # two notes may share a bare number by chance: "Rent 2", "Maya 2"
            return 0.0
        return self.worth(left & right) / self.worth(left | right)

    def worth(self, stems: Iterable[str]) -> float:
        most = math.log(1 + min(len(self.active), COUNTED))
        return sum(self.rarity.get(stem, most) for stem in stems)

    def to(self, entry: Entry) -> dict[Entry, float]:
        """The notes that resemble *entry*, nearest first, each with its score in the search."""
        for _ in range(0 if self.warm else VECTOR_BATCHES):
            if not self.index.embed():
                break
        self.warm = True
        asked = dict.fromkeys((statement_of(entry, ". "), self.telling(entry)))
        search = partial(self.index.search, k=HITS, now=self.now, how=ALONE)
        near: dict[Entry, float] = {}
        for hit in chain(*zip_longest(*map(search, asked))):
            other = hit and self.active.get(hit.entry.path)
            if other and other != entry and other not in near and self.may_be_one(entry, other, hit):
                near[other] = hit.score
        return dict(list(near.items())[:SIMILAR_SHOWN])

    def telling(self, entry: Entry) -> str:
        """The words of *entry* that name its subject, without common verbs and without names that many notes have."""
        words = ((word, stems_of(word).keys()) for word in words_in(statement_of(entry)))
        told = [w for w, own in words if not own & common_stems() and self.worth(own) > TELLS_SUBJECT]
        return " ".join(told) or statement_of(entry)

    def may_be_one(self, entry: Entry, other: Entry, hit: Hit) -> bool:
        """
        Whether one of two notes may repeat, replace or contradict the other. False if only one of them is a tool's
        note.
        """
        if (entry.origin == "tool") != (other.origin == "tool"):
            return False
        alike = self.likeness(entry, other)
        if alike < ALIKE and not ("close in meaning" in hit.why and hit.score >= CLOSE):
            return False
        # If one links to the other, the Observer saw both and kept them apart. If each links to the other, they
        # contradict each other.
        told_apart = (entry.path in other.links) != (other.path in entry.links)
        if told_apart and alike < ALIKE_THOUGH_LINKED:
            return False
        return alike >= REPEATS or not are_two_happenings(entry, other)


def similar_notes(alike: NotesAlike, paths: Iterable[str]) -> dict[str, dict[str, float]]:
    """
    Find the notes to compare with each note of *paths*.

    Returns path → {path of a similar note: score}. The most important notes of *paths* come first, and notes about
    events last. The similar notes of each note are in order of nearness. Notes without similar notes are left out.
    """
    wanted = [alike.active[path] for path in paths if path in alike.active]
    # the cap on a day's cost may stop the questions to the model early
    wanted.sort(key=lambda e: (e.type == "episode", e.rank, e.path))
    found = {
        e.path: {other.path: score for other, score in alike.to(e).items() if may_disagree(e, other)}
        for e in wanted
    }
    return {path: near for path, near in found.items() if near}


def may_disagree(a: Entry, b: Entry) -> bool:
    """
    Whether to ask a model about two similar notes. The model says if the notes repeat or contradict each other.

    True in two cases:
    - The notes share at least LIKE of their words.
    - Only one of the notes says "not".
    """
    one, two = statement_of(a), statement_of(b)
    # Measured on five chats: true for 186 of 526 similar pairs, among them 12 of the 13 pairs that really disagreed.
    return likeness(one, two) >= LIKE or denies(one) != denies(two)


def are_two_happenings(a: Entry, b: Entry) -> bool:
    """Whether the notes tell of events on different days. Then neither repeats or replaces the other."""
    if not a.type == b.type == "episode" or "open" in (a.loop, b.loop):
        return False
    one, other = event_span(a.event), event_span(b.event)
    return bool(one and other and (one[1] < other[0] or other[1] < one[0]))


def statement_of(entry: Entry, between: str = " ") -> str:
    return f"{entry.title}{between}{entry.description}"


def proposed_pairs(snapshot: Snapshot, near: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One line for each pair of *near* that looks like a repetition, for a person to judge."""
    active = {e.path: e for e in snapshot.now()}
    pairs: dict[tuple[str, ...], float] = {}
    for path, others in near.items():
        for other, score in others.items():
            pair = tuple(sorted((path, other)))
            pairs[pair] = max(score, pairs.get(pair, 0.0))
    lines = []
    for (a, b), score in sorted(pairs.items()):
        if a in active and b in active and looks_repeated(active[a], active[b], score):
            lines.append(f"{wikilink(a, active[a].title)} and {wikilink(b, active[b].title)} look alike.")
    return lines


def looks_repeated(a: Entry, b: Entry, score: float) -> bool:
    """Whether two notes may say the same, even if their types differ."""
    shared = statement_likeness(a.description, b.description)
    return a.event == b.event and (shared >= REPEATS or (shared >= HALF and score >= NEAR))


# --- Upkeep: mends links by a former path, links mentions of notes, and marks unused notes of low priority dormant or
# active.


READ_WHOLE = 1_000  # up to so many notes, the bodies of all are read for mentions

# --- links


def mend_links(snapshot: Snapshot) -> list[str]:
    """
    Correct OMG's links that use a former path of a note. A link to a deleted note becomes plain text. Returns lines
    for the log.
    """
    astray: dict[str, dict[str, str | None]] = defaultdict(dict)
    for path, target, there in links_astray(snapshot.plan.graph):
        if path not in snapshot.frozen:
            astray[path][target] = there
    done: dict[str, int] = defaultdict(int)
    for path, moved in sorted(astray.items()):
        if snapshot.plan.relink(path, moved):
            for there in {there or "" for there in moved.values()}:
                done[there] += 1
    gone = done.pop("", 0)
    return [
        *[
            f"Mended the links to {link_of(snapshot.node(there))} in {how_many(n, 'note')}."
            for there, n in sorted(done.items())
        ],
        *[f"Took links to deleted notes out of {how_many(gone, 'note')}."] * bool(gone),
    ]


def link_mentions_by_night(snapshot: Snapshot) -> list[str]:
    """
    Link each of OMG's notes to the notes that it mentions, whether these are older or newer.

    Returns the paths of the changed notes.
    """
    active = [e for e in snapshot.now() if e.type in TYPES]
    wanted = [e for e in active if e.path not in snapshot.frozen and e.path in snapshot.entries]
    if len(active) > READ_WHOLE:  # in a large vault, open only the files that have something to link
        names = MentionedNames(active)
        wanted = [
            e for e in wanted if {p for _, p in names.found_in(e.description, e.path)} - {e.path, *e.links}
        ]
    return link_names(snapshot.plan, [e.path for e in wanted], active)


def links_astray(graph: Graph) -> list[tuple[str, str, str | None]]:
    """
    Find links that still use an old path of their target.

    Returns `(path, target, there)` for each link: the note with the link, the old path, and the present path. *there*
    is None if OMG wrote the target and the target was deleted.
    """
    found: list[tuple[str, str, str | None]] = [*graph.index.detours()]
    for path, target in graph.index.dangling():
        # A move that OMG did not see: the id still has the path under which the note was made.
        name = target.removeprefix("nodes/")
        there = graph.index.resolve(f"omg/{name}") if name != target else None
        if there or (name != target and graph.vault.wrote(target) and graph.vault.bytes(target) is None):
            found.append((path, target, there))
    return sorted(found, key=lambda link: link[:2])


# --- dormant notes


def mark_dormant(snapshot: Snapshot, now: dt.datetime, days: int) -> tuple[list[str], list[str]]:
    """
    Make a note of low priority dormant after *days* without use, and active again after a use. Returns links to the
    notes that became dormant, and to those that became active.
    """
    since = (now - dt.timedelta(days=days)).timestamp() * 1000
    today, uses = snapshot.plan.day, snapshot.plan.graph.uses
    dormant: list[str] = []
    woken: list[str] = []
    for entry in sorted(snapshot.entries.values(), key=lambda e: e.path):
        if entry.type not in TYPES or entry.priority != "low" or entry.path in snapshot.frozen:
            continue
        idle = (
            not entry.pinned
            and not entry.standing
            and entry.loop != "open"
            and not is_recent(entry, uses, since_ms=since, today=today, days=days)
        )
        idle = idle and not is_linked(snapshot, entry.path)
        if idle == (entry.status == "dormant") or not snapshot.ours(entry.path, "status"):
            continue
        node = snapshot.node(entry.path)
        if node.status != entry.status:  # this cycle has merged or replaced the note
            continue
        snapshot.plan.amend(entry.path, status="dormant" if idle else "active")
        (dormant if idle else woken).append(link_of(node))
    return dormant, woken


def mark_unanswered(snapshot: Snapshot) -> list[str]:
    """
    Give a low priority to each note in doubt that the person has not confirmed for UNANSWERED_DAYS. Returns a line
    for each such note.
    """
    since, lines = snapshot.plan.day - dt.timedelta(days=UNANSWERED_DAYS), []
    for path, entry in sorted(snapshot.entries.items()):
        said = entry.updated or entry.created
        if entry.origin not in ("assistant", "tool") or entry.priority == "low" or not said or said >= since:
            continue
        node = snapshot.node(path)
        if path in snapshot.frozen or not snapshot.ours(path, "priority") or not is_in_doubt(node):
            continue
        if node.status == "active":
            snapshot.plan.amend(path, priority="low")
            lines.append(
                f"{link_of(node)} has low priority now: nobody confirmed the note for {UNANSWERED_DAYS} days."
            )
    return lines


def is_recent(entry: Entry, uses: Uses, *, since_ms: float, today: dt.date, days: int) -> bool:
    """Whether the note was recalled since *since_ms*, was said or due in the last *days*, or is due in the future."""
    if uses.all().get(entry.id, NEVER)[1] >= since_ms:
        return True
    ends = event_span(entry.event)
    latest = max((d for d in (entry.created, entry.updated, ends and ends[1]) if d), default=dt.date.min)
    return (today - latest).days < days


def is_linked(snapshot: Snapshot, path: str) -> bool:
    """Whether an active note links to *path*. Pages that OMG generates do not count."""
    back = snapshot.plan.graph.index.backlinks(path)
    return any(
        (e := snapshot.entries.get(b)) and e.status == "active" and e.type in (*TYPES, "note") for b in back
    )
