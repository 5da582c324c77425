"""
Quotations: the messages that answer a prompt, each cut to the passage that does.

From the archive, found by words and through the notes that bear on the prompt; and from what other sessions of the
identity said that nobody has observed yet. Words whose note was deleted, superseded or changed by a person are not
quoted, for the note speaks then; nor is a tool's text. Not here: how passages are written down (prompt.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache, lru_cache

from ..dates.days import days_in, says_day
from ..errors import OmgError
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..index.archived import MadeNote, last_messages, latest_by_note, neighbours_by_id
from ..index.links import short_names
from ..index.search import ParsedQuery
from ..index.store import Hit
from ..message.turn import Message
from ..node.markdown import HISTORY_HEADING
from ..node.note import parse_node
from ..plan.edits import split_history, told_text
from ..secrets import redact
from ..text.characters import visible
from ..text.words import has_prefix, prefix_of, text_pieces, told_words

FOUND = 60  # messages of the archive that are looked at
NOTES = 6  # best hits whose messages are looked at, too
OF_A_NOTE = 4  # of its messages, the latest
# Of one message, at the least (a sentence or two) and the most. bench/LOG.md has the figures of longer ones.
LEAST_QUOTED, MOST_QUOTED = 300, 2_000
LOOKED_UP_AT_ONCE = 12  # whose notes are looked up in one query: about as many as there is room for
CHARS_A_TOKEN = 4
SOURCE_SHARE = 0.25  # of a note's score, added to the score of its messages
NEIGHBOURS_OF = 5  # best messages whose neighbours are looked at
NEIGHBOUR_SHARE = 0.5  # of a good message's score, given to the messages beside it
NOTED_SHARE = 0.5  # in a course, the factor for a message that a hit was made from
LEAST = 0.08  # the lowest score of a message that is quoted
WRITTEN_SHARE = (
    0.6  # weight of the share of written words: in a small archive, the index finds all words common
)
# Factors for what the assistant said, unless it is asked for. A course is told by the person's words alone.
ASSISTANT_SHARE, ASSISTANT_IN_COURSE = 0.8, 0.0
ASKS_OF_ASSISTANT = re.compile(
    r"\byou(?:['’]ve| had| have)? (?:\w{1,12} ){0,2}(?:said|told|suggested|recommended|mentioned|gave|given|wrote|written|made|listed|named"
    r"|proposed|advised|explained|showed|shown|shared|provided|came up|put together|helped)\b|\bdid you\b"
    r"|\byour (?:\w{1,12} ){0,2}(?:suggestions?|recommendations?|advice|list|plan|answer|draft|ideas?|tips?)\b"
    r"|\b(?:du|sie|ihr)\b[^.?!\n]{0,40}\b(?:gesagt|empfohlen|vorgeschlagen|genannt|geschrieben)\b",
    re.I,
)
# The least share of the best message's score that is quoted. Of a course, whatever may belong to it.
OF_BEST = {False: 0.2, True: 0.05}
# A passage is "passed on" if more than this share of it is material, and "partly passed on" from so many characters.
PASSED_ON_SHARE, PARTLY_PASSED_ON = 0.5, 20
NAME_CHARS = 60
CONTEXT_CHARS = 400  # read on either side of a passage, because the label of a secret may stand there
ANSWERED_WITHIN = 6  # messages before an answer that it may answer
WRITTEN_TERMS = 32  # of a prompt's words that are looked for in each message as it is written
OUR_NAMES = re.compile(r"(?:the )?(?:user|assistant|system|tool|omg|owner)\b", re.I)
PENDING_TOKENS = 20_000  # of what waits to be observed, the latest; a search reads it through


@dataclass(frozen=True, slots=True)
class Passage:
    """A message, or the part of it that answers. *note*: the path of one made from it, *handle* the name to open it by."""

    at_ms: int
    speaker: str
    text: str
    note: str = ""
    handle: str = ""
    passed_on: str = ""  # or "passed on", or "partly passed on": quoted, forwarded or pasted by who sent it
    waiting: bool = False  # nobody has observed it yet
    changed: bool = False  # a note says something else by now


@dataclass(slots=True)
class Said:
    """A message that may answer. *share* and *words*: how much of the question it has, as a score and as written
    words."""

    message: Message
    session: str
    share: float = 0.0
    words: float = 0.0
    noted: bool = True  # a note cites it
    part: float = 1.0  # factor of the score
    beside: float = 0.0  # added for a good note's source, or for a message beside a good one
    waiting: bool = False

    @property
    def score(self) -> float:
        share = self.words if self.waiting else min(self.share, 1.5)  # no index has what waits
        return self.part * (share + WRITTEN_SHARE * self.words + self.beside)


def find_said(
    graph: Graph,
    query: ParsedQuery,
    hits: Sequence[Hit],
    *,
    session: str,
    now: datetime,
    course: bool = False,
) -> list[Said]:
    """The messages that answer *query*, best first, without those in the context window of *session* ("": of none)."""
    own = graph.state().sessions.get(session) or SessionState()
    words = [prefix_of(term.shown.lower()) for term in query.terms][:WRITTEN_TERMS]
    role = None if assistants_share(query, "assistant", course) else "user"
    found = {said.message.id: said for said in found_in_archive(graph, query, hits, now, role)}
    found |= {said.message.id: said for said in waiting(graph)}
    for said in found.values():
        text = said.message.text.lower()
        said.words = sum(has_prefix(text, word) for word in words) / max(1, len(words))
    add_neighbours(graph, found)
    noted = graph.index.notes_by_source(found)
    paths = {hit.entry.path for hit in hits} if course else set()
    for said in found.values():
        notes = noted.get(said.message.id, ())
        said.noted = bool(notes)
        said.part = assistants_share(query, said.message.role, course)
        said.part *= NOTED_SHARE if any(n.path in paths for n in notes) else 1.0
    best = max((said.score for said in found.values()), default=0.0)
    told = [
        said
        for said in found.values()
        if said.score >= max(LEAST, OF_BEST[course] * best)
        and said.message.role != "tool"
        and said.part
        and not (said.session == session and in_window(own, said.message.timestamp))
    ]
    return sorted(told, key=lambda s: (-s.score, s.message.timestamp))


def in_window(own: SessionState, at_ms: int) -> bool:
    """Whether what was said in the session at *at_ms* still stands in its context, word for word."""
    return at_ms > own.cut_ms and at_ms >= own.raw_from_ms


def assistants_share(query: ParsedQuery, speaker: str | None, course: bool) -> float:
    """The factor for the score of messages by *speaker*, and of notes made from them."""
    if speaker != "assistant" or ASKS_OF_ASSISTANT.search(query.text):
        return 1.0
    return ASSISTANT_IN_COURSE if course else ASSISTANT_SHARE


def quoted_passages(
    graph: Graph, query: ParsedQuery, told: Sequence[Said], *, room: int
) -> Iterator[Passage]:
    """The passages of *told* that answer *query*, in that order; the longer, the fewer share *room* (tokens)."""
    chars = min(MOST_QUOTED, max(LEAST_QUOTED, room * CHARS_A_TOKEN // max(1, len(told))))
    words = [term.shown.lower() for term in query.terms]
    asked = told_words(" ".join(words))
    read = cache(graph.vault.text)  # many passages ask for the same notes
    denied: list[tuple[str, str]] = []  # notes that a person changed, and what they were made from
    near: set[str] = set()  # all notes made from what is told
    for at in range(0, len(told), LOOKED_UP_AT_ONCE):  # most are never reached: the room is spent before
        some = told[at : at + LOOKED_UP_AT_ONCE]
        made = graph.index.notes_by_source([said.message.id for said in some])
        near |= {note.path for notes in made.values() for note in notes}
        names = graph.index.ask(short_names, [(notes[0].row, notes[0].path) for notes in made.values()])
        gone = gone_of(graph, made, [said.message for said in some])
        denied += [
            (note.path, said.message.text)
            for said in some
            for note in made.get(said.message.id, ())
            if graph.vault.restated(note.path, note.hash)
        ]
        for said in some:
            notes = made.get(said.message.id, [])
            if said.message.id in gone or speak_themselves(graph, notes):
                continue
            passage = passage_of(said, words, notes[0].path if notes else "", chars)
            if notes:
                passage = replace(passage, handle=names.get(notes[0].row) or notes[0].path)
            made_before = notes_made_before(graph, said)
            if not repeats_withheld(graph, made_before, passage, asked):
                paths = {note.path for note in [*notes, *(n for told in made_before for n in told[1])]}
                text, at_ms = passage.text, passage.at_ms
                former = any(is_former(read, path, text, at_ms) for path in sorted(paths))
                former = former or any(is_denied(graph, path, was, text, at_ms) for path, was in denied)
                if not notes:  # it may repeat what another message said first
                    former = former or any(is_former(read, path, text, at_ms, True) for path in near)
                yield replace(passage, changed=True) if former else passage


def gone_of(graph: Graph, made: Mapping[str, Sequence[MadeNote]], messages: Iterable[Message]) -> set[str]:
    """Which of *messages* were forgotten, or are what a deleted note was made from; *made*: the notes made from each."""
    return graph.tombstones.gone({m.id: [note.id for note in made.get(m.id, ())] for m in messages})


def notes_made_before(graph: Graph, said: Said) -> list[tuple[Message, list[MadeNote]]]:
    """What the assistant had heard when it said *said*, and the notes made from each; nothing for a person's words."""
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
    """Whether the assistant's *passage* tells something, besides *asked*, that it heard in a message that is no
    longer quoted."""
    gone = gone_of(graph, {m.id: notes for m, notes in heard}, [m for m, _ in heard])
    withheld = [m for m, notes in heard if m.id in gone or speak_themselves(graph, notes)]
    return any(told_words(m.text) & (told_words(passage.text) - asked) for m in withheld)


def speak_themselves(graph: Graph, notes: Sequence[MadeNote]) -> bool:
    """Whether *notes*, made from one message, say something else by now: a person changed one, or none is active."""
    superseded = bool(notes) and all(note.status == "superseded" for note in notes)
    return superseded or any(graph.vault.restated(note.path, note.hash) for note in notes)


def found_in_archive(
    graph: Graph, query: ParsedQuery, hits: Sequence[Hit], now: datetime, role: str | None
) -> Iterable[Said]:
    """Messages of *role* (None: anybody) found by their words, and those that the best notes come from."""
    index = graph.index
    found = {m.id: Said(m, at, share) for m, at, share in index.search_raw(query, FOUND, now=now, role=role)}
    scores = {hit.entry.path: hit.score for hit in hits[:NOTES]}
    for path, m, session in index.ask(latest_by_note, scores, OF_A_NOTE):
        found.setdefault(m.id, Said(m, session)).beside += SOURCE_SHARE * scores[path]
    return found.values()


def add_neighbours(graph: Graph, found: dict[str, Said]) -> None:
    best = sorted((s for s in found.values() if not s.waiting), key=lambda s: -s.score)[:NEIGHBOURS_OF]
    for id, m in graph.index.ask(neighbours_by_id, [said.message.id for said in best]):
        said = found[id]
        beside = found.setdefault(m.id, Said(m, said.session))
        beside.beside += max(0.0, NEIGHBOUR_SHARE * said.score - beside.score)


def waiting(graph: Graph) -> Iterator[Said]:
    """What was said a moment ago, and nobody has observed yet."""
    read = 0
    for pending in reversed(graph.pending()):
        read += pending.tokens
        if read > PENDING_TOKENS:
            return
        turn = graph.readable(pending)
        if turn is not None:
            yield from (Said(m, turn.session, waiting=True) for m in turn.messages if m.role != "tool")


def passage_of(said: Said, words: Sequence[str], note: str, chars: int) -> Passage:
    m = said.message
    first, last = answering_span(m.text, words, chars)
    since, until = max(0, first - CONTEXT_CHARS), min(len(m.text), last + CONTEXT_CHARS)
    clean, first, last = m.text[since:until], first - since, last - since
    if cleaned(clean) != clean:  # then whole sentences are read, in which no secret is cut in two
        since, until = answering_span(m.text, words, chars + 2 * CONTEXT_CHARS)
        clean = cleaned(m.text[since:until])
        first, last = answering_span(clean, words, chars)
    part = " ".join(visible(clean[first:last]).split())
    text = f"{'… ' if since + first else ''}{part}{' …' if until < len(m.text) or last < len(clean) else ''}"
    passed_on = how_passed_on(m, since + first, since + last)
    return Passage(m.timestamp, speaker_name(m), text, note, passed_on=passed_on, waiting=said.waiting)


@lru_cache(maxsize=1024)
def cleaned(text: str) -> str:
    """*text* by today's rules: the archive has what those of its day let through."""
    return redact(text)[0]


def speaker_name(message: Message) -> str:
    """
    Who spoke, in a few words on one line. A sender who calls themselves "assistant" or "user" is shown as "user by the
    name of assistant". A person who the gateway says is not the owner is never called the user.
    """
    name = visible(cleaned(message.sender)).replace(":", " ")
    name = " ".join(name.split())[:NAME_CHARS]
    role = "somebody" if message.role == "user" and message.owner is False else message.role
    if message.role == "assistant" or not name:
        return role
    return f"{role} by the name of {name}" if OUR_NAMES.match(name) else name


def how_passed_on(m: Message, start: int, end: int) -> str:
    """Whether what *m* says from *start* to *end* is material: "passed on", "partly passed on", or ""."""
    if m.role != "user":
        return ""
    material = sum(max(0, min(end, span.end) - max(start, span.start)) for span in m.material)
    if material > PASSED_ON_SHARE * (end - start):
        return "passed on"
    return "partly passed on" if material >= PARTLY_PASSED_ON else ""


# --- the part that answers

PIECE_CHARS = 400  # what is longer is no sentence


def answering_span(text: str, words: Sequence[str], chars: int) -> tuple[int, int]:
    """The part of *text* that answers: all of it, or of a long text the sentence with most of *words*, whole, and
    those after it up to *chars*."""
    if len(text) <= chars:
        return 0, len(text)
    parts, low, stems = text_pieces(text, PIECE_CHARS), text.lower(), [prefix_of(word) for word in words]
    scores = [sum(stem in low[part.start : part.stop] for stem in stems) for part in parts]
    first = max(range(len(parts)), key=lambda n: (scores[n], -n))
    start = parts[first].start
    fitting = [part.stop for part in parts[first + 1 :] if part.stop - start <= chars]
    return start, max([parts[first].stop, *fitting])


# --- What a note said before it was changed or corrected. A quotation that says so is marked: it does not hold any more.
#
# A message that is newer than the change is never marked by it.


@dataclass(frozen=True, slots=True)
class Former:
    """What a line of a note's History says that the note does not say now."""

    words: frozenset[str]
    days: frozenset[date]
    kept: frozenset[str]  # words of the line that the note still has

    def is_repeated_by(self, text: str) -> bool:
        """Whether *text* tells it and half of what the note still says: of another key that hangs there it is no repetition."""
        return 2 * len(told_words(text) & self.kept) >= len(self.kept) and self.is_told_by(text)

    def is_told_by(self, text: str) -> bool:
        if any(says_day(text, day) for day in self.days):
            return True
        # "on Thursday" names the day, too, but not as a date: then its numbers tell
        words = {w for w in self.words if w[0].isdigit()} if self.days else self.words
        return bool(words) and 2 * len(told_words(text) & words) >= len(words)


def is_former(read: Callable[[str], str], path: str, text: str, at_ms: int, uncited: bool = False) -> bool:
    """
    Whether *text*, said at *at_ms*, tells what the note at *path* says no more. *read*: a path's text. *uncited*: the note
    does not cite it, so it has to repeat what the note said.
    """
    with suppress(OmgError, OSError):
        changed_ms, former = former_states(read(path), path)
        told = (s.kept and s.is_repeated_by(text) if uncited else s.is_told_by(text) for s in former)
        return at_ms < changed_ms and any(told)
    return False


def is_denied(graph: Graph, path: str, was: str, text: str, at_ms: int) -> bool:
    """
    Whether *text*, said at *at_ms*, repeats of *was* what a person has taken out of the note at *path*, which was made
    from *was*.
    """
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
        return at_ms < max((s.timestamp for s in node.sources), default=0)  # we have written the file since
    return False


@lru_cache(maxsize=512)
def former_states(text: str, path: str) -> tuple[int, tuple[Former, ...]]:
    """When the note *text* was last told of, and what the lines of its History say beside it."""
    # Most notes have none. Parsing their heads was a tenth of a prompt's time.
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
