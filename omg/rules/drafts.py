"""
Whether a statement repeats, changes or ends a note, or becomes a new one.

Known notes and notes of the present reply are treated alike; a draft without sources is an unchanged known note. Where a
statement can be read in two ways, the reading that loses nothing is taken; in doubt it becomes a note of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from ..dates.days import event_span
from ..node.markdown import slugify
from ..text.words import common_stems, denies, is_past, told_words, words_in
from .assertions import begins, holds, listed, word_lists
from .corrections import contrast, kind_of, small_word_apart

if TYPE_CHECKING:
    from ..index.store import Entry

SAME = 0.8  # of the lighter statement's words in the other: it says the same again
TWIN = 0.66  # enough for a change, beside a weak word for one, such as "now"
ALIKE_SHARE = 0.5  # both are about one thing
PLAIN_VERB = 0.4  # what a common verb counts in a likeness; a name or a noun counts 1
RELATED = 0.34  # enough for a change, beside a word such as "instead"
CHOSEN = ("preference", "decision", "identity")  # types of what something else can take the place of
ASIDES = 3  # lines a note takes in, beside its own

DISLIKED = re.compile(r"\b(?:hates?|dislikes?)\b", re.I)
FINISHED = re.compile(
    r"\b(?:done|finished|completed?|over|sent|submitted|paid|delivered|launched|shipped|handed in|took place"
    r"|went (?:really |very )?(?:well|fine|great|badly))\b",
    re.I,
)
CALLED_OFF = re.compile(
    r"(?<!not )(?<!n't )\b(?:cancell?ed|called off|fell through|(?:not|no longer) (?:going|happening))\b"
    r"|(?:n't| not) (?:happen|tak(?:e|ing) place|go(?:ing)? ahead)",
    re.I,
)
PREFERRED = re.compile(r"\bprefer(?:s|red)? .{1,200}? (?:to|over|than) (?P<old>[^,.;]+)", re.I)
REPLACED = re.compile(
    r"\b(?:from|instead of|rather than|no longer|replac(?:ed|ing)|used to|stopped|quit|gave up|over|not) (?P<old>.{1,120}?)"
    r"(?: to | with | any ?more|,|;|\.|$)",
    re.I,
)


LEANS = re.compile(
    r"(?:because|until|so|then|now|also)\b", re.I
)  # a text begins so that goes on from a sentence
IS_VALUE = re.compile(
    r"(?>(?P<subject>.*?)(?: is| are| has| have| costs?|:) )(?:now )?(?P<value>.+?)(?: now)?\.?$"
)
VALUE = re.compile(r"(?<!^)\b[A-Z]|\d")  # a name or a number, beside who it is about
COUNT = re.compile(r"\b\d+ (?:out )?of (?:the |their )?(?P<all>\d+ \w+)")  # how far something is


@dataclass(frozen=True, slots=True)
class OfflineDraft:
    """A note after this reply; `node` is the known note that it was, if any."""

    type: str
    title: str
    description: str
    who: str = ""
    day: date | None = None  # when it was said
    slot: str = ""  # as Assertion has it
    topic: str = ""
    cue: str = ""
    asides: tuple[str, ...] = ()
    priority: str = "medium"
    event: str | None = None
    loop: str | None = None
    links: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # handles of messages
    op: str = "create"
    node: str | None = None
    name: str = ""  # of a known note: the file name it was made under, which a person may have changed since
    shared: bool = False  # from a message so long that it may be somebody else's text

    @property
    def edit(self) -> dict[str, Any]:
        """As prompts/observe.md has it."""
        return {
            "op": self.op,
            "node": self.node,
            "type": self.type,
            "title": self.title,
            "description": self.description,
            "body": self.text,
            "priority": self.priority,
            "event": self.event,
            "loop": self.loop,
            "tags": [*themes(self.description), *(["shared"] if self.shared else [])],
            "links": [n for n in dict.fromkeys(self.links) if n != self.node],
            "sources": list(dict.fromkeys(self.sources)),
            "reason": self.cue,
        }

    @property
    def text(self) -> str:
        """
        What it says beside its description. The description comes first where the text would not make sense alone: "It
        was inspiring."
        """
        if not self.asides:
            return ""
        leans = begins("pointing", self.asides[0]) or LEANS.match(self.asides[0])
        return " ".join((self.description, *self.asides) if leans else self.asides)

    def can_be_on_again(self, day: date | None) -> bool:
        """Whether it is a plan that was called off before its day, which is not before *day*."""
        off = CALLED_OFF.search(self.description) or denies(self.description)
        return bool(self.loop == "done" and off and self.event and self.event[:10] >= str(day))

    def takes_place(self, told: frozenset[str]) -> bool:
        """Whether *told* names what it is: "viewing" of "House viewing", and not "lights" of "Meeting about lights"."""
        words = self.title.removeprefix("Trip to ").split()
        head = next((n for n, word in enumerate(words) if word in listed("small")), len(words))
        done = re.search(r"\b(?:is|are) (\w+)", self.description)  # "The heating is serviced on …"
        return told_words(" ".join(words[max(head - 1, 0) : head])) <= told and not (
            done and is_past(done[1])
        )

    @property
    def words(self) -> frozenset[str]:
        return told_words(f"{self.title} {self.description}") - told_words(self.who)


TELLING = 2.0  # weight of what a note says to which another of its message leads: "a trip there" says less


class OfflineDrafts:
    """The known notes and those that this reply adds. *people*: the participants, as notes name them."""

    def __init__(self, known: Mapping[str, Entry], people: Iterable[str]) -> None:
        self.known = {
            handle: OfflineDraft(
                e.type,
                e.title,
                e.description,
                day=e.updated,
                event=e.event,
                loop=e.loop,
                op="update",
                node=handle,
                name=e.id.rpartition("/")[2],
            )
            for handle, e in known.items()
            if e.status == "active"
        }
        self.all = list(self.known.values())
        self.people = tuple(people)

    def edits(self) -> list[dict[str, Any]]:
        """What is to be written, each linked to what the same message said just before it, or else just after."""
        said = [d for d in self.all if d.sources]
        edits = []
        for n, d in enumerate(said):
            near = (o for o in (*reversed(said[:n]), *said[n + 1 :]) if set(o.sources) & set(d.sources))
            other = next((o for o in near if stem_weight(o.words) >= TELLING), None)
            edits.append((replace(d, links=(*d.links, other.node or other.title)) if other else d).edit)
        return edits

    def drafts_of(self, who: str) -> Iterator[tuple[int, OfflineDraft]]:
        """Where the drafts of this reply that *who* spoke for are, the latest first."""
        return ((i, d) for i, d in reversed(list(enumerate(self.all))) if d.sources and d.who == who)

    def newest(self, who: str) -> list[tuple[int, OfflineDraft]]:
        """The drafts that are not about another than *who*, with their places: those of this reply, then the last changed."""
        found = [(i, d) for i, d in enumerate(self.all) if not self.is_about_another(d, who)]
        return sorted(found, key=lambda f: (bool(f[1].sources), f[1].day or date.min, f[0]), reverse=True)

    def open_plan_of(self, who: str) -> int | None:
        """Where *who*'s latest plan of this reply is."""
        return next((i for i, d in self.drafts_of(who) if d.loop == "open"), None)

    # --- taking in

    def add_statement(self, draft: OfflineDraft, said: str) -> int | None:
        """Add *draft*, worded from *said*, or let it change another draft. Returns its index; None if it was known already."""
        change = 2 if holds("change", said) else 1 if holds("drift", said) else 0
        dropped = dropped_words(said, change)
        i, likeness, same = self.nearest(draft, dropped, change)
        if i is None:
            return self.add(draft)
        old = self.all[i]
        if repeats_note(draft, old, likeness):
            if not old.sources:
                return None
            return self.replace_at(i, replace(old, sources=(*old.sources, *draft.sources)))
        if replaces(dropped, old) and old.type in CHOSEN:
            draft, change = replace(draft, type=old.type), 2
        new = changed_draft(old, draft, said, change=change, likeness=likeness if same else 0.0)
        if new is None:
            # Not to who someone is: "the host name" only looks like "the name".
            alike = likeness >= ALIKE_SHARE and old.type != "identity"
            near = (old.node,) if old.node and alike else ()
            return self.add(replace(draft, links=near))
        return self.replace_at(i, new)

    def add(self, draft: OfflineDraft) -> int:
        self.all.append(draft)
        return len(self.all) - 1

    def replace_at(self, i: int, draft: OfflineDraft) -> int:
        self.all[i] = draft
        return i

    def add_aside(self, i: int, text: str, source: str) -> None:
        """Let the draft at *i* say *text* as well."""
        draft = self.all[i]
        if draft.node or len(draft.asides) >= ASIDES or told_words(text) <= told_words(draft.description):
            return
        self.all[i] = replace(draft, asides=(*draft.asides, text), sources=(*draft.sources, source))

    def take_back(self, who: str) -> None:
        """Take back what *who* said last."""
        last = next((d.sources[-1] for _, d in self.drafts_of(who)), None)
        before = (self.known.get(d.node or "") if d.who == who and last in d.sources else d for d in self.all)
        self.all = [d for d in before if d]

    # --- finding

    def nearest(
        self, draft: OfflineDraft, dropped: frozenset[str], change: int
    ) -> tuple[int | None, float, bool]:
        """
        The index of the draft most similar to *draft*, the similarity, 0 to 1, and whether both are surely about the same;
        later drafts win ties. *dropped*: words of the draft that it replaces.
        """
        best, most, same = None, (False, RELATED), False
        for i, old in enumerate(self.all):
            if self.is_about_another(old, draft.who) or has_other_subject(draft, old):
                continue
            likeness = stem_overlap(draft.words, old.words - told_words(draft.who))
            least = 0.0
            if replaces(dropped, old) or moves(draft, old) or same_slot(draft, old):
                least = ALIKE_SHARE
            elif (
                change
                and draft.type == old.type == "preference"
                and draft.cue not in ("standing", "style")  # "from now on …" is one more wish
                and set(themes(old.description)) & set(themes(draft.description))
            ):
                least = RELATED
            # of two that are as like, the one with more in common
            likeness = max(likeness, least) + 0.01 * len(draft.words & old.words)
            if (found := (same_slot(draft, old), likeness)) >= most:
                best, most, same = i, found, bool(least) or is_about(draft, old, dropped)
        return best, most[1], same

    def is_about_another(self, old: OfflineDraft, who: str) -> bool:
        """Whether *old* is about another participant."""
        return any(re.match(rf"{re.escape(p)}(?:'s)?\b", old.description) for p in self.people if p != who)


def same_slot(draft: OfflineDraft, old: OfflineDraft) -> bool:
    """Whether both are about the same thing: "the rent", "their yoga class"."""
    named = slugify(draft.title) in (slugify(old.title), old.name)
    named = named or value_of(draft, draft.who)[0] == value_of(old, draft.who)[0] != ""
    return bool(draft.slot) and named and draft.type == old.type


def value_of(draft: OfflineDraft, who: str) -> tuple[str, str, str]:
    """Of "The user's car is in Oslo": its subject without *who*, "in" and "Oslo"; "" for what is not there."""
    m = IS_VALUE.match(draft.description)
    small, value = small_word_apart(m["value"] if m else "")
    subject = told_words(m["subject"] if m else "") - told_words(who)
    return " ".join(sorted(subject)), small, value


def has_other_subject(draft: OfflineDraft, old: OfflineDraft) -> bool:
    """Whether *draft* is about a thing that *old* does not name: "the new flat", where *old* is of the rent."""
    told = told_words(draft.slot) if " " in draft.slot else frozenset()
    return bool(told) and not told & old.words


def moves(draft: OfflineDraft, old: OfflineDraft) -> bool:
    """Whether *draft* gives the plan *old* another day. "The dentist moved my appointment" may be about another than "Vet appointment"."""
    named = told_words(old.title) <= draft.words or told_words(draft.topic) <= old.words
    named = named or f"{old.title} ".lower().startswith(f"{draft.title} ".lower())
    return draft.cue == "moved" and old.loop == "open" and named


def replaces(dropped: frozenset[str], old: OfflineDraft) -> bool:
    """Whether *old* is about what is *dropped*: its title says so, or it tells of little else, and has not dropped it itself."""
    shared = stem_weight((dropped & old.words) - dropped_words(old.description))
    most = shared > 0 and 2 * shared >= stem_weight(dropped)
    return most and (dropped <= told_words(old.title) or shared >= RELATED * stem_weight(old.words))


def dropped_words(text: str, change: int = 1) -> frozenset[str]:
    """What *text* says that something else takes the place of; *change* as for `changed_draft`."""
    gone = (REPLACED.search(text) if change else None) or PREFERRED.search(text)
    return told_words(gone["old"]) - {"other"} if gone else frozenset()  # "over all others" is no thing


def is_about(draft: OfflineDraft, old: OfflineDraft, dropped: frozenset[str]) -> bool:
    """Whether *old* tells of what *draft* is about; a long sentence names much beside that. *dropped* is what it leaves."""
    told = told_words(draft.title) - told_words(draft.who) - dropped
    return 2 * stem_weight(told & old.words) >= stem_weight(told)


def tells_act(told: str) -> bool:
    """Whether *told* is "sent the slides", and not "forgot to send the slides"."""
    return not re.match(r"(?!went\b)\w+ to (?!(?:the|an?|my|our|his|her|their)\b)[a-z]", told)


def is_another_occasion(draft: OfflineDraft, plan: OfflineDraft) -> bool:
    """Whether *draft* is dated after the day of *plan*, which is no deadline."""
    days, planned = event_span(draft.event), event_span(plan.event)
    due = re.search(rf"\bby {re.escape(plan.event or '')}", plan.description)
    return bool(days and planned and days[0] > planned[-1] and not due)


def negated(draft: OfflineDraft) -> bool:
    made = contrast(draft.description)
    text = made.clause if made else draft.description
    return denies(text) or bool(DISLIKED.search(text))


def repeats_note(draft: OfflineDraft, old: OfflineDraft, likeness: float) -> bool:
    """Whether *draft* says nothing that *old* does not."""
    if (
        old.loop == "open" != draft.loop
        or likeness < SAME
        or (draft.event and draft.event != old.event)
        or negated(draft) != negated(old)
        or (draft.cue == "name" and not same_slot(draft, old))  # many notes have the name, and do not say it
    ):
        return False
    return draft.words <= old.words | told_words(" ".join(old.asides))


def changed_draft(
    old: OfflineDraft, draft: OfflineDraft, said: str, *, change: int, likeness: float
) -> OfflineDraft | None:
    """
    *old* changed by *draft*; None if *draft* is about something else, or may be.

    *change*: 2 if the words say that something changed, 1 if they may, else 0.
    """
    again = bool(set(draft.sources) & set(old.sources))  # in one message people go on rather than change
    over = (draft.cue in ("past", "outcome") and tells_act(draft.topic)) or bool(FINISHED.search(said))
    over = over and not denies(said[: said.find(draft.topic)]) and not is_another_occasion(draft, old)
    over = over or draft.cue == "off" or bool(CALLED_OFF.search(said))
    named = draft.cue != "off" or told_words(draft.topic) <= old.words
    if old.loop == "open" != draft.loop and over and named and likeness >= ALIKE_SHARE:
        return with_new_words(old, replace(draft, loop="done", event=draft.event or old.event))
    if (
        old.loop == draft.loop == "open"
        and likeness >= ALIKE_SHARE
        and draft.event
        and (change or draft.cue == "moved" or not old.event)
    ):
        return with_new_words(old, draft)
    on_again = draft.loop == "open" and old.can_be_on_again(draft.day)
    if on_again and likeness >= ALIKE_SHARE and not negated(draft):
        return with_new_words(old, draft)
    if again:
        return None
    count, before = COUNT.search(draft.description), COUNT.search(old.description)
    if count and before and count["all"] == before["all"]:
        return with_new_words(old, draft)
    if same_slot(draft, old) and (
        draft.cue in ("name", "contact", "favorite", "age", "birth") or is_new_value(old, draft, change)
    ):
        return with_new_words(old, draft)
    if not may_be_new_state(old.type, draft.type):
        return None
    flipped = (
        likeness >= ALIKE_SHARE
        and negated(draft) != negated(old)
        and bool(change or old.type == draft.type == "preference")
    )
    if flipped or likeness >= (2.0, TWIN, RELATED)[change]:
        return with_new_words(old, draft)
    return None


def is_new_value(old: OfflineDraft, draft: OfflineDraft, change: int) -> bool:
    """Whether *draft* has another value for *old*: "is a Kia" of "is a Volvo", and not "is 12 years old"."""
    one_word = draft.cue == "stated" and len(told_words(draft.slot)) < 2
    if not change and (draft.cue == "due" or one_word):  # a second appointment; "the price" of something else
        return False
    (_, small, value), (_, other_small, other) = value_of(old, draft.who), value_of(draft, draft.who)
    if kind := kind_of(value):
        return kind == kind_of(other) and (small == other_small or bool(change))
    numbers = [bool(re.search(r"\d", d.description)) for d in (old, draft)]
    return bool(change or VALUE.search(draft.description)) and numbers[0] == numbers[1]


def may_be_new_state(a: str, b: str) -> bool:
    """Whether a statement of one type may be the new state of a note of the other. An episode never changes."""
    if a == b:
        return a != "episode"
    return {a, b} in ({"preference", "fact"}, {"identity", "fact"}, {"preference", "decision"})


def with_new_words(old: OfflineDraft, draft: OfflineDraft) -> OfflineDraft:
    """*old* with the words of *draft*; a note of this reply keeps its former words in the body."""
    done = draft.loop == "done"
    asides = draft.asides
    if not old.node:
        asides = (*old.asides, *asides, old.description if done else f"Until {draft.day}: {old.description}")[
            -ASIDES:
        ]
    return replace(
        draft, type=old.type, loop=draft.loop or old.loop, op=old.op, node=old.node, asides=asides, links=old.links, sources=(*old.sources, *draft.sources),
        title=old.title if old.node or done or same_slot(draft, old) else draft.title, event=draft.event or old.event,
    )  # fmt: skip


def stem_overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """The share of the lighter of two sets of stems that the other has, 0 to 1; one common word counts as chance."""
    shared = a & b
    if not shared or len(shared) < min(2, len(a), len(b)):
        return 0.0
    return stem_weight(shared) / min(stem_weight(a), stem_weight(b))


def stem_weight(stems: frozenset[str]) -> float:
    return sum(PLAIN_VERB if word in common_stems() else 1.0 for word in stems)


def themes(text: str) -> list[str]:
    """The two general topics, such as "health", that most words of *text* belong to."""
    words = {word.lower() for word in words_in(text)}
    hits = {theme: len(words.intersection(list_.split())) for theme, list_ in word_lists()["themes"].items()}
    return [theme for theme in sorted(hits, key=lambda t: -hits[t]) if hits[theme]][:2]
