"""
Quotations: the messages that answer a prompt, each cut to its answering passage.

Messages come from two places:

- the archive, searched by words and through relevant notes
- other sessions of the identity, whose messages are not observed yet

Left out are

- a tool's text
- a message that was forgotten, or whose note was deleted
- a message whose notes were all superseded
- a message whose note a person changed

prompt.py renders the passages.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from difflib import SequenceMatcher
from functools import cache, lru_cache

from ..dates.days import day_of_ms, days_in, says_day
from ..errors import OmgError
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..index.archived import (
    MadeNote,
    day_start_ms,
    last_messages,
    latest_by_note,
    neighbours_by_id,
    read_rows,
    said_at,
    said_within,
)
from ..index.links import short_names
from ..index.search import ParsedQuery, parse_query
from ..index.statements import (
    FOUND,
    HEADING,
    NO_HEAD,
    Found,
    Span,
    found_share,
    heads_of,
    is_silent,
    spans_of,
)
from ..index.store import Entry, Hit
from ..message.turn import Message
from ..node.markdown import HISTORY_HEADING
from ..node.note import parse_node
from ..plan.edits import split_history, told_text
from ..secrets import redact
from ..text.characters import visible
from ..text.words import has_prefix, prefix_of, text_pieces, told_words

NOTES = 6  # best notes whose messages are looked at as well
OF_A_NOTE = 4  # latest messages of a note that are looked at
# Characters of a quotation: a shorter statement is quoted with its neighbours.
LEAST_QUOTED = {"user": 120, "assistant": 300}
MOST_QUOTED = 1_000  # characters, if few quotations share the room
CHARS_A_TOKEN = 4
LOOKED_UP_AT_ONCE = 24  # statements whose notes are looked up in one query: about as many as fit
SOURCE_SHARE = 0.25  # of a note's score, added to the score of its messages
TALK_STEPS = 2  # messages up to so many steps from a good message are raised with the good message
NEIGHBOURS_OF = 5  # best messages whose neighbours are looked at
NEIGHBOUR_SHARE = 0.5  # of a good message's score, given to the messages beside it
REPLY_SHARE = 0.8  # the same for the reply, if the assistant's words are asked for
# Score for each character of a statement, if only days are asked for: a short "ok, thanks" says little.
OF_DAY = 0.005
LEAST = 0.08  # the lowest score of a statement that is quoted
WITHIN_SHARE = 0.15  # weight of the words in the rest of the message
FURTHER = 0.7  # factor for each further statement of a message, so that other messages come before it
REPEATED = 0.7  # a statement that has this share of another statement's words repeats the other
WRITTEN_SHARE = (
    0.6  # weight of the question's words as written: in a small archive, the index takes all words for common
)
# Factors for the assistant's words, unless the question asks for these. A course begins with the person's words.
ASSISTANT_SHARE, ASSISTANT_IN_COURSE = 0.8, 0.3
CODE_SHARE = 0.5  # the factor for lines of code
ASKS_OF_ASSISTANT = re.compile(
    r"\byou(?:['’]ve| had| have)? (?:\w{1,12} ){0,2}(?:said|told|suggested|recommended|mentioned|gave|given|wrote|written|made|listed|named"
    r"|proposed|advised|explained|showed|shown|shared|provided|came up|put together|helped)\b|\bdid you\b"
    r"|\byour (?:\w{1,12} ){0,2}(?:suggestions?|recommendations?|advice|list|plan|answer|draft|ideas?|tips?)\b"
    r"|\b(?:du|sie|ihr)\b[^.?!\n]{0,40}\b(?:gesagt|empfohlen|vorgeschlagen|genannt|geschrieben)\b",
    re.I,
)
OF_BEST = 0.2  # the least share of the best statement's score that is quoted
# A passage is "passed on" if more than this share was quoted, forwarded or pasted; "partly passed on" if so many
# characters were.
PASSED_ON_SHARE, PARTLY_PASSED_ON = 0.5, 20
NAME_CHARS = 60
CONTEXT_CHARS = 400  # read on either side of a passage, because the label of a secret may stand there
# Characters read on either side of a long word, which may be part of a key with its label far above.
LONG_WORD, KEY_CHARS = re.compile(r"\S{30}"), 5_000
# The least share of a former statement's words that its note must have lost, unless it lost a number. The least
# share of the words kept in the note that a message must have.
LOST, LEAST_KEPT = 0.25, 0.25
ANSWERED_WITHIN = 6  # most messages before an answer to which the answer may refer
WRITTEN_TERMS = 32  # words of a prompt that are looked for in each message as written
# The number of best notes and statements whose later statements are looked up; the least share of words.
FOLLOWED, FOLLOWS = 2, 0.2
OUR_NAMES = re.compile(r"(?:the )?(?:user|assistant|system|tool|omg|owner)\b", re.I)
PENDING_TOKENS = 20_000  # the latest messages that wait to be observed; a search reads all of these


@dataclass(frozen=True, slots=True)
class Passage:
    """A message, or the part of the message that answers the prompt. *note*: the path of a note made from the message.
    *handle*: the name that opens this note."""

    at_ms: int
    speaker: str
    text: str
    note: str = ""
    handle: str = ""
    passed_on: str = ""  # "passed on" or "partly passed on" for quoted, forwarded or pasted words; else ""
    waiting: bool = False  # nobody has observed it yet
    changed: bool = False  # a note says something else now
    message: str = ""  # the id of the message
    start: int = 0  # place in the message
    score: float = 0.0  # up to 1, like a note's: how well the passage answers


@dataclass(slots=True)
class Said:
    """Holds a statement that may answer a prompt, with its scores. The statement is `spans[place]` of *message*."""

    message: Message
    session: str
    spans: Sequence[Span] = ()
    clean: bool = False  # by the present rules, the message holds no secret
    place: int = 0
    share: float = 0.0  # the score by words
    cosine: float = 0.0
    own: float = 0.0  # the share of the question's words that occur in the statement
    words: float = 0.0  # the share of the question's words that occur in the whole message
    part: float = 1.0  # factor of the score
    beside: float = (
        0.0  # added to the score for a good note made from the message, or a good message beside the message
    )
    waiting: bool = False
    repeated: tuple[Message, ...] = ()  # messages that say nearly the same

    @property
    def score(self) -> float:
        found = self.own if self.waiting else found_share(self.share, self.cosine)  # not indexed yet
        written = WRITTEN_SHARE * self.own + WITHIN_SHARE * self.words
        return self.part * (found + written + self.beside)

    @property
    def text(self) -> str:
        """The statement, with the headings above it."""
        spans = [*heads_of(self.spans, self.place), self.spans[self.place]]
        return "\n".join(self.message.text[span.start : span.end] for span in spans)


def find_said(
    graph: Graph,
    query: ParsedQuery,
    hits: Sequence[Hit],
    *,
    session: str,
    now: datetime,
    course: bool = False,
) -> list[Said]:
    """
    Return the statements that answer *query*, best first and without near-repeats.

    *session*: statements that are still in the context of this session are left out; "" leaves out none.
    *course*: the query asks for an order, a count or a summary, so the assistant's words count less.
    """
    own = graph.state().sessions.get(session) or SessionState()
    found = found_in_archive(graph, query, now, assistants_share(query, "assistant", course))
    words = [prefix_of(term.shown.lower()) for term in query.terms][:WRITTEN_TERMS]
    found += waiting(graph, words)
    if not query.terms:
        found = on_days(graph, query, found)
    for said in found:
        said.own, said.words = written_share(said.text, words), written_share(said.message.text, words)
    if query.terms:
        add_beside(graph, found, hits, words, bool(ASKS_OF_ASSISTANT.search(query.text)))
    else:
        for said in found:
            said.beside = OF_DAY * min(len(said.text), LEAST_QUOTED["user"])
    for said in found:
        said.part = assistants_share(query, said.message.role, course)
        if said.message.text.count("```", 0, said.spans[said.place].start) % 2:
            said.part *= CODE_SHARE
    best = max((said.score for said in found), default=0.0)
    told = [
        said
        for said in found
        if said.score >= max(LEAST, OF_BEST * best)
        and said.message.role != "tool"
        and not (said.session == session and in_window(own, said.message.timestamp))
    ]
    told.sort(key=lambda s: (-s.score, s.message.timestamp, s.place))
    return each_message_first(told_once(told))


def with_what_followed(
    graph: Graph, hits: Sequence[Hit], told: Sequence[Said], *, session: str, now: datetime
) -> list[Said]:
    """
    Return *told*, with later statements of the person on the same facts inserted.

    Only the best notes of *hits* and the best statements in *told* are looked at, FOLLOWED in all. A later statement is
    put right before the older statement: "Since I left Acme …" before "I work at Acme". If a note of *hits* has the
    older fact, the later statement is put at the beginning. Statements still in the context of *session* are not
    inserted.
    """
    own = graph.state().sessions.get(session) or SessionState()
    noted = [(h.score, h.entry.description, said_ms(h.entry, graph.zone), "") for h in hits[:FOLLOWED]]
    own_words = [s for s in told if s.message.role == "user"][:FOLLOWED]
    best = noted + [(s.score, s.text, s.message.timestamp, s.message.id) for s in own_words]
    best.sort(key=lambda b: -b[0])
    before: dict[str, list[Said]] = {}
    seen = {(s.message.id, s.place) for s in told}
    for _, text, since_ms, id in best[:FOLLOWED]:
        query = replace(parse_query(text, now.astimezone(graph.zone).date()), days=())
        found = graph.index.find_said(query, now=now, assistants=0.0, quick=True)
        found = sorted((f for f in found if f.words >= FOLLOWS), key=lambda f: -f.words)
        later: list[tuple[float, int, Found]] = []
        for at in range(
            0, len(found), LOOKED_UP_AT_ONCE
        ):  # mostly, one of the first statements was said later
            said_of = graph.index.ask(said_at, {f.row for f in found[at : at + LOOKED_UP_AT_ONCE]})
            for f in found[at : at + LOOKED_UP_AT_ONCE]:
                mid, of, at_ms = said_of.get(f.row, ("", "", 0))
                if at_ms > since_ms and (mid, f.place) not in seen:
                    later += [] if of == session and in_window(own, at_ms) else [(f.words, at_ms, f)]
            if later:
                break
        for said in read_found(graph, [max(later)[2]] if later else []):
            seen.add((said.message.id, said.place))
            before.setdefault(id, []).append(said)
    return [*before.pop("", ()), *(s for said in told for s in (*before.pop(said.message.id, ()), said))]


def said_ms(entry: Entry, zone: tzinfo) -> int:
    """Return when the statement of *entry* was last made: the end of that day, in ms. Returns 0 if the day is
    unknown."""
    day = entry.updated or entry.created or date.min
    return day_start_ms(day + timedelta(1), zone) if day > date.min else 0


def on_days(graph: Graph, query: ParsedQuery, waits: Iterable[Said]) -> list[Said]:
    """
    Return the statements that were said on the days in *query*. Looks in the archive and, for messages not
    observed yet, in *waits*.
    """
    rows = graph.index.ask(said_within, query.days, graph.zone, FOUND)
    found = [Said(*read) for read in graph.index.ask(read_rows, rows).values()]
    days = [(said, day_of_ms(said.message.timestamp, graph.zone)) for said in waits if said.waiting]
    return found + [said for said, day in days if any(w.start <= day <= w.end for w in query.days)]


def written_share(text: str, words: Sequence[str]) -> float:
    """Return the share of *words* that occur in *text*. Each of *words* is the beginning of a word, in lower case."""
    low = text.lower()
    return sum(has_prefix(low, word) for word in words) / max(1, len(words))


def told_once(told: Iterable[Said]) -> list[Said]:
    """Return *told*, best first, without near-repeats. Of statements that repeat each other, only the person's latest
    is kept, at the position of the best."""
    kept: list[tuple[Said, frozenset[str]]] = []
    having = defaultdict[str, list[int]](list)  # word → places in *kept* of statements with the word
    for said in told:
        span = said.spans[said.place]
        words = told_words(said.message.text[span.start : span.end])
        # A near-repeat shares so many words that it has one of the rarest: only the rarest words are looked up.
        rare = sorted(words, key=lambda word: len(having[word]))[: int((1 - REPEATED) * len(words)) + 1]
        near = {n for word in rare for n in having[word]}
        again = (n for n in near if repeats(words, kept[n][1]) or is_within_other(said, words, *kept[n]))
        at = min(again, default=len(kept))
        if at == len(kept):
            kept.append((said, words))
        elif not repeats(words, kept[at][1]):
            kept[at][0].repeated += (said.message,)
            continue
        else:
            other = kept[at][0]
            if precedence(said) > precedence(other):
                kept[at] = said, words
                said, other = other, said
            other.repeated += (said.message, *said.repeated)
        for word in kept[at][1]:
            having[word].append(at)
    return [said for said, _ in kept]


def repeats(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether two statements, given as their words, say nearly the same. Statements that differ in a number
    do not."""
    least = REPEATED * max(len(words), len(others), 1)
    if len(words) < least or len(others) < least or len(words & others) < least:
        return False
    return not any(word[0].isdigit() for word in words ^ others)


def is_within_other(said: Said, words: frozenset[str], other: Said, others: frozenset[str]) -> bool:
    """Return whether *other* has all *words* of *said*. Always False if *said* is a person's statement and *other*
    is older or the assistant's."""
    return words <= others and (said.message.role != "user" or precedence(said) <= precedence(other))


def precedence(said: Said) -> tuple[bool, int]:
    return said.message.role == "user", said.message.timestamp


def each_message_first(told: Sequence[Said]) -> list[Said]:
    """Return *told*, the best first. Each further statement of a message counts less, so that other messages come
    before it."""
    seen: Counter[str] = Counter()
    ranked = []
    for said in told:
        ranked.append((said.score * FURTHER ** seen[said.message.id], said))
        seen[said.message.id] += 1
    return [said for _, said in sorted(ranked, key=lambda r: -r[0])]


def in_window(own: SessionState, at_ms: int) -> bool:
    """Return whether the session's context still has a message of the time *at_ms*, word for word."""
    return at_ms > own.cut_ms and at_ms >= own.raw_from_ms


def assistants_share(query: ParsedQuery, speaker: str | None, course: bool) -> float:
    """Return the factor for the scores of *speaker*'s messages, and of notes made from those messages."""
    if speaker != "assistant" or ASKS_OF_ASSISTANT.search(query.text):
        return 1.0
    return ASSISTANT_IN_COURSE if course else ASSISTANT_SHARE


def quoted_passages(
    graph: Graph, query: ParsedQuery, told: Sequence[Said], *, room: int
) -> Iterator[Passage]:
    """Yield the passages around *told* that answer *query*, in the order of *told*. A passage ends with the
    statement that fills its equal share of *room* (tokens). A share is at most MOST_QUOTED characters, and at least
    LEAST_QUOTED. Left out are passages that must not be quoted (see the head of this module)."""
    chars = min(MOST_QUOTED, room * CHARS_A_TOKEN // max(1, len(told)))
    asked = told_words(" ".join(term.shown.lower() for term in query.terms))
    speaking = NotesOfWords(graph)
    quoted: dict[str, set[int]] = {}  # message → its statements that are quoted already
    for at in range(0, len(told), LOOKED_UP_AT_ONCE):  # the room is spent before most statements are reached
        some = told[at : at + LOOKED_UP_AT_ONCE]
        made, gone = speaking.look_up(some)
        names = graph.index.ask(short_names, [(notes[0].row, notes[0].path) for notes in made.values()])
        for said in some:
            notes = made.get(said.message.id, [])
            places = quoted.setdefault(said.message.id, set())
            if said.place in places or said.message.id in gone or speak_themselves(graph, notes):
                continue
            around = places_around(said, places, chars)
            if said.message.role == "assistant" and is_heading(said, around[-1]):
                continue  # a heading whose text below is quoted already
            passage = passage_around(said, around, places, notes[0].path if notes else "")
            places.update(around)
            if notes:
                passage = replace(passage, handle=names.get(notes[0].row) or notes[0].path)
            made_before = notes_made_before(graph, said)
            if not repeats_withheld(graph, made_before, passage, asked):
                heard = [note for _, those in made_before for note in those]
                yield replace(passage, changed=speaking.say_otherwise(passage, notes, heard))


@dataclass(slots=True)
class NotesOfWords:
    """The notes that were made from the quoted messages, and may have changed since."""

    graph: Graph
    read: Callable[[str], str] = field(init=False)  # cached, because many passages ask for the same notes
    # a note that a person changed, and its message
    denied: list[tuple[str, str]] = field(default_factory=list)
    near: set[str] = field(default_factory=set)  # all notes that have a former statement

    def __post_init__(self) -> None:
        self.read = cache(self.graph.vault.text)

    def look_up(self, some: Iterable[Said]) -> tuple[dict[str, list[MadeNote]], set[str]]:
        """Return message's id → the notes made from the message; and the ids of messages that were forgotten. Looks
        at the messages of *some* and their near-repeats."""
        messages = {m.id: m for said in some for m in (said.message, *said.repeated)}
        made: dict[str, list[MadeNote]] = self.graph.index.notes_by_source(messages)
        paths = {note.path for notes in made.values() for note in notes}
        self.near |= {path for path in paths if former_of(self.read, path)[1]}
        self.denied += [
            (note.path, message.text)
            for message in messages.values()
            for note in made.get(message.id, ())
            if self.graph.vault.restated(note.path, note.hash)
        ]
        return made, gone_of(self.graph, made, messages.values())

    def say_otherwise(self, passage: Passage, notes: Sequence[MadeNote], heard: Sequence[MadeNote]) -> bool:
        """Return whether a note contradicts *passage*. Looks at the notes made from the passage's message
        (*notes*), at notes made from the messages that it answers (*heard*), and at other notes that changed."""
        text, at_ms = passage.text, passage.at_ms
        paths = sorted({note.path for note in (*notes, *heard)})
        return (
            any(is_former(self.read, path, text, at_ms) for path in paths)
            or any(is_denied(self.graph, path, was, text, at_ms) for path, was in self.denied)
            # the passage may repeat an earlier message
            or (not notes and any(is_former(self.read, path, text, at_ms, True) for path in self.near))
        )


def places_around(said: Said, quoted: Collection[int], chars: int) -> list[int]:
    """
    Return the places of the statements to quote: the statement of *said* and, if it is shorter than *chars* or
    LEAST_QUOTED, neighbours until both lengths are reached.

    Neighbours are

    - the statement before, if a person speaks, because the person may refer to it
    - the next statements under the same heading, or under *said* if *said* is a heading

    Statements in *quoted* are not added.
    """
    spans, of_person = said.spans, said.message.role != "assistant"
    least = max(chars, LEAST_QUOTED["user" if of_person else "assistant"])
    first = last = said.place
    if of_person and first and first - 1 not in quoted and length(spans, first, last) < least:
        first -= 1
    while length(spans, first, last) < least and last + 1 < len(spans) and last + 1 not in quoted:
        if spans[last + 1].head not in (spans[said.place].head, said.place):
            break
        last += 1
    while last > said.place and is_heading(said, last):  # a heading says nothing without the text below it
        last -= 1
    return [*range(first, last + 1)]


def is_heading(said: Said, place: int) -> bool:
    """Return whether the statement at *place* is a heading with text below. A bold last line is not a heading."""
    span = said.spans[place]
    return place + 1 < len(said.spans) and bool(HEADING.match(said.message.text, span.start, span.end))


def length(spans: Sequence[Span], first: int, last: int) -> int:
    return spans[last].end - spans[first].start


def gone_of(graph: Graph, made: Mapping[str, Sequence[MadeNote]], messages: Iterable[Message]) -> set[str]:
    """Return the ids of *messages* that were forgotten, or from which a deleted note was made. *made*: message's id
    → its notes."""
    return graph.tombstones.gone({m.id: [note.id for note in made.get(m.id, ())] for m in messages})


def notes_made_before(graph: Graph, said: Said) -> list[tuple[Message, list[MadeNote]]]:
    """Return the user's messages just before the assistant's statement *said*, each with the notes made from the
    message. Returns nothing for a person's statement."""
    if said.message.role != "assistant":
        return []
    until = said.message.timestamp + 1
    before: list[Message] = graph.index.ask(last_messages, said.session, until, ANSWERED_WITHIN)
    heard = [m for m in before if m.role == "user"]
    made = graph.index.notes_by_source([m.id for m in heard])
    return [(m, made.get(m.id, [])) for m in heard]


def repeats_withheld(
    graph: Graph, heard: Sequence[tuple[Message, list[MadeNote]]], passage: Passage, asked: frozenset[str]
) -> bool:
    """Return whether the assistant's *passage* repeats words of a user's message that must not be quoted. Words in
    *asked* do not count. *heard*: the user's latest messages before *passage*, each with its notes."""
    gone = gone_of(graph, {m.id: notes for m, notes in heard}, [m for m, _ in heard])
    withheld = [m for m, notes in heard if m.id in gone or speak_themselves(graph, notes)]
    return any(told_words(m.text) & (told_words(passage.text) - asked) for m in withheld)


def speak_themselves(graph: Graph, notes: Sequence[MadeNote]) -> bool:
    """Return whether *notes*, all made from one message, have replaced its words: a person changed a note, or all
    notes are superseded."""
    superseded = bool(notes) and all(note.status == "superseded" for note in notes)
    return superseded or any(graph.vault.restated(note.path, note.hash) for note in notes)


def found_in_archive(graph: Graph, query: ParsedQuery, now: datetime, assistants: float) -> list[Said]:
    """Return the archived statements found by words and meaning. *assistants*: factor for the assistant's
    statements; 0 leaves these out."""

    def worth(f: Found) -> float:
        return found_share(f.words, f.cosine) * (assistants if f.by_assistant else 1.0)

    found = graph.index.find_said(query, now=now, assistants=assistants)
    return read_found(graph, sorted(found, key=worth, reverse=True)[:FOUND])


def read_found(graph: Graph, found: Sequence[Found]) -> list[Said]:
    """Return *found* with their messages. Messages deleted meanwhile are left out."""
    rows = graph.index.ask(read_rows, {f.row for f in found})
    return [
        Said(*rows[f.row], f.place, f.words, f.cosine)
        for f in found
        if f.row in rows and f.place < len(rows[f.row][2])
    ]


def add_beside(
    graph: Graph, found: list[Said], hits: Sequence[Hit], words: Sequence[str], of_assistant: bool
) -> None:
    """
    Raise the scores of messages close to good results, and add missing messages to *found*.

    Two kinds of messages are raised:
    - messages that the best notes in *hits* were made from
    - messages right before and after the best statements in *found*

    *words*: the query's words. *of_assistant*: the query asks what the assistant said, so the assistant's replies are
    raised more.
    """
    best: dict[str, Said] = {}
    for said in sorted((s for s in found if not s.waiting), key=lambda s: -s.score):
        best.setdefault(said.message.id, said)
    scores = {hit.entry.path: hit.score for hit in hits[:NOTES]}
    sources = graph.index.ask(latest_by_note, scores, OF_A_NOTE)
    add_best(graph, found, best, {mid: row for _, mid, row in sources}, words)
    for path, mid, _ in sources:
        if mid in best:
            best[mid].beside += SOURCE_SHARE * scores[path]
    for _ in range(TALK_STEPS):
        first = sorted(best, key=lambda id: -best[id].score)[:NEIGHBOURS_OF]
        beside = graph.index.ask(neighbours_by_id, first)
        add_best(graph, found, best, {mid: row for _, mid, row in beside}, words)
        for id, mid, _ in beside:
            if one := best.get(mid):
                share = REPLY_SHARE if of_assistant and one.message.role == "assistant" else NEIGHBOUR_SHARE
                one.beside += max(0.0, share * best[id].score - one.score)


def add_best(
    graph: Graph,
    found: list[Said],
    best: dict[str, Said],
    rows: Mapping[str, int],
    words: Sequence[str],
) -> None:
    """
    For each message of *rows* (id → row) without a statement in *best*: add the message's best statement to
    *best* and *found*.
    """
    missing = [row for mid, row in rows.items() if mid not in best]
    for read in graph.index.ask(read_rows, missing).values():
        m, low = read[0], read[0].text.lower()
        there = [word for word in words if word in low]  # only words of the message can be in its statements
        of_its = [Said(*read, n) for n in range(len(read[2]) if there else 1)]
        one = best[m.id] = max(of_its, key=lambda s: (written_share(s.text, there), -s.place))
        one.own, one.words = written_share(one.text, words), written_share(m.text, words)
        found.append(one)


def waiting(graph: Graph, words: Sequence[str] = ()) -> Iterator[Said]:
    """Yield the statements of messages that are not observed yet. With *words*, messages without any of *words* are
    left out. Only the latest PENDING_TOKENS are read, because an import leaves hundreds of messages pending."""
    read = 0
    for pending in reversed(graph.pending()):
        read += pending.tokens
        if read > PENDING_TOKENS:
            return
        if (turn := graph.readable(pending)) is None:
            continue
        for m in turn.messages:
            if not is_silent(m) and (not words or written_share(m.text, words)):
                spans = spans_of(m.text)
                yield from (Said(m, turn.session, spans, place=n, waiting=True) for n in range(len(spans)))


def passage_around(said: Said, places: Sequence[int], quoted: Collection[int], note: str) -> Passage:
    """Return the statements at *places* as a passage, with their heading if the heading is not *quoted* yet. The
    text on both sides is read as well, so that no secret is cut in two."""
    m, spans = said.message, said.spans
    first, last = spans[places[0]].start, spans[places[-1]].end
    head = spans[places[0]].head
    parts = [(first, last)]
    if head != NO_HEAD and head not in quoted and spans[head].end <= first:
        parts.insert(0, spans[head][:2])
    return Passage(
        m.timestamp,
        speaker_name(m),
        " ".join(on_one_line(m.text[a:b]) if said.clean else clean_part(m.text, a, b) for a, b in parts),
        note,
        passed_on=how_passed_on(m, first, last),
        waiting=said.waiting,
        message=m.id,
        start=first,
        score=min(1.0, said.score / (1 + WRITTEN_SHARE + WITHIN_SHARE)),
    )


def on_one_line(text: str) -> str:
    """Return *text* on one line, without invisible characters."""
    return " ".join(visible(text).split())


def clean_part(text: str, start: int, end: int) -> str:
    """Return *text* from *start* to *end* on one line, without secrets. Text on either side is read as well,
    because the label of a secret may stand there."""
    chars = CONTEXT_CHARS if LONG_WORD.search(text, start, end) is None else KEY_CHARS
    since = max(0, start - chars)
    context = text[since : end + chars]
    if (clean := cleaned(context)) == context:
        return on_one_line(text[start:end])
    words, left = ([(m.start() + since, m[0]) for m in re.finditer(r"\S+", t)] for t in (context, clean))
    part: list[str] = []
    same = SequenceMatcher(None, [w for _, w in words], [w for _, w in left], autojunk=False)
    for tag, i, j, k, n in same.get_opcodes():
        inside = [w for at, w in words[i:j] if at < end and at + len(w) > start]
        part += inside if tag == "equal" else [w for _, w in left[k:n]] if inside else []
    return visible(" ".join(part))


def passage_of(message: Message, words: Sequence[str], chars: int) -> Passage:
    """Return the part of *message* that has most of *words*, in about *chars* characters."""
    m = message
    first, last = answering_span(m.text, words, chars)
    since, until = max(0, first - CONTEXT_CHARS), min(len(m.text), last + CONTEXT_CHARS)
    clean, first, last = m.text[since:until], first - since, last - since
    if cleaned(clean) != clean:  # read whole sentences instead, so that no secret is cut in two
        since, until = answering_span(m.text, words, chars + 2 * CONTEXT_CHARS)
        clean = cleaned(m.text[since:until])
        first, last = answering_span(clean, words, chars)
    part = on_one_line(clean[first:last])
    text = f"{'… ' if since + first else ''}{part}{' …' if until < len(m.text) or last < len(clean) else ''}"
    return Passage(
        m.timestamp, speaker_name(m), text, passed_on=how_passed_on(m, since + first, since + last)
    )


@lru_cache(maxsize=1024)
def cleaned(text: str) -> str:
    """Return *text* without secrets, by today's rules for secrets. The archive was cleaned by the rules of its time."""
    return redact(text)[0]


def speaker_name(message: Message) -> str:
    """Return the speaker in a few words on one line. A sender who calls themselves "assistant" or "user" becomes
    "user by the name of assistant". If the gateway says that a sender is not the owner, the sender is never called
    the user."""
    name = visible(cleaned(message.sender)).replace(":", " ")
    name = " ".join(name.split())[:NAME_CHARS]
    role = "somebody" if message.role == "user" and message.owner is False else message.role
    if message.role == "assistant" or not name:
        return role
    return f"{role} by the name of {name}" if OUR_NAMES.match(name) else name


def how_passed_on(m: Message, start: int, end: int) -> str:
    """Return how much of *m* from *start* to *end* is quoted or forwarded: "passed on", "partly passed on", or ""."""
    if m.role != "user":
        return ""
    material = sum(max(0, min(end, span.end) - max(start, span.start)) for span in m.material)
    if material > PASSED_ON_SHARE * (end - start):
        return "passed on"
    return "partly passed on" if material >= PARTLY_PASSED_ON else ""


# --- the part that answers

PIECE_CHARS = 400  # a longer piece is not a sentence


def answering_span(text: str, words: Sequence[str], chars: int) -> tuple[int, int]:
    """Return start and end of the part of *text* that answers. A text of at most *chars* characters is returned
    whole. From a longer text: the sentence with most of *words*, and the sentences after it, up to *chars*."""
    if len(text) <= chars:
        return 0, len(text)
    parts, low, stems = text_pieces(text, PIECE_CHARS), text.lower(), [prefix_of(word) for word in words]
    scores = [sum(stem in low[part.start : part.stop] for stem in stems) for part in parts]
    first = max(range(len(parts)), key=lambda n: (scores[n], -n))
    start = parts[first].start
    fitting = [part.stop for part in parts[first + 1 :] if part.stop - start <= chars]
    return start, max([parts[first].stop, *fitting])


# --- What a note said before it was changed or corrected. A quotation that repeats former words is marked as
# outdated, but only if the quotation is older than the change.


@dataclass(frozen=True, slots=True)
class Former:
    """A line of a note's History: the line's words and days that are missing in the present note."""

    words: frozenset[str]
    days: frozenset[date]
    kept: frozenset[str]  # words of the line that the note still has

    def is_repeated_by(self, text: str, cited: bool = False) -> bool:
        """
        Return whether *text* repeats what the note said before a change. All of these must hold:

        - The note lost a day, a number, or at least the share LOST of the former line's words.
        - *text* has at least half of the words that the note kept. If *cited*, fewer words may suffice.
        - *text* has at least half of the words that the note lost, or names a lost day.

        *cited*: the note was made from the message of *text*.
        """
        told, numbers = told_words(text), {word for word in self.words if word[0].isdigit()}
        # True if the note dropped no day, no number and only few words.
        dropped = not self.days and not numbers and len(self.words) < LOST * len(self.words | self.kept)
        # A text without the kept words is about another subject.
        least = LEAST_KEPT if cited and (self.days or numbers) else 0.5
        if dropped or len(told & self.kept) < least * len(self.kept):
            return False
        # If days were dropped, only numbers count: words such as "on Thursday" may name a dropped day.
        lost = numbers if self.days else self.words
        said = bool(lost) and 2 * len(told & lost) >= len(lost)
        return said or any(says_day(text, day) for day in self.days)


def is_former(read: Callable[[str], str], path: str, text: str, at_ms: int, uncited: bool = False) -> bool:
    """
    Return whether *text* repeats what a note said before the note changed.

    - *read*: path → text of the note. *path*: the note.
    - *at_ms*: when *text* was said. If the note had already changed by then, the result is False.
    - *uncited*: the note was not made from the message of *text*. Then *text* must repeat more of the former words.
    """
    changed_ms, former = former_of(read, path)
    told = (s.is_repeated_by(text, not uncited) for s in former if s.kept or not uncited)
    return at_ms < changed_ms and any(told)


def former_of(read: Callable[[str], str], path: str) -> tuple[int, tuple[Former, ...]]:
    """Return `former_states` of the note at *path*; `(0, ())` if the note cannot be read."""
    with suppress(OmgError, OSError):
        return former_states(read(path), path)
    return 0, ()


def is_denied(graph: Graph, path: str, was: str, text: str, at_ms: int) -> bool:
    """Return whether *text*, said at *at_ms*, repeats words that a person removed from the note at *path*. *was* is
    the text of a message that the note was made from."""
    with suppress(OmgError, OSError, UnicodeDecodeError):
        data = graph.vault.bytes(path)
        if data is None:
            return False
        node = graph.vault.parse(data.decode(), path)
        kept = told_words(f"{node.description} {split_history(node.body)[0]}") & told_words(was)
        if not Former(told_words(was) - kept, frozenset(), kept).is_repeated_by(text):
            return False
        if graph.vault.reworded(data):
            return at_ms < graph.vault.file(path).stat().st_mtime * 1000
        return at_ms < max((s.timestamp for s in node.sources), default=0)  # OMG has written the file since
    return False


@lru_cache(maxsize=512)
def former_states(text: str, path: str) -> tuple[int, tuple[Former, ...]]:
    """Return the time (ms) of the note's latest source, and what its History says that the note does not say now."""
    # Most notes have no History. Parsing their heads was a tenth of a prompt's time.
    if HISTORY_HEADING not in text:
        return 0, ()
    node = parse_node(text, path)
    history = split_history(node.body)[1]
    now = f"{node.title} {node.description} {told_text(node.body)}"
    told, days = told_words(now), days_in(now)
    lines = [line.partition(": ")[2] for line in history]
    said = [(told_words(line), days_in(line)) for line in lines]
    former = [Former(words - told, on - days, words & told) for words, on in said]
    return max((s.timestamp for s in node.sources), default=0), tuple(former)
