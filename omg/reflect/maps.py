"""Asks a model at night what each map is about and where things stand; the answer is two or three sentences with
links.

A night asks one question, about the maps that changed last, and spends at most MAPS_TOKENS on it. The model sees only
persons' notes, and a sentence that says more than its notes is checked (check.py)."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from ..check import Claim, Evidence, check_claims
from ..dates.days import days_in
from ..errors import BadReply
from ..index.store import Entry
from ..llm.replies import TEXT, TEXTS, Ask, ModelQuestion, cut_out, instructions, object_schema
from ..node.markdown import slugify, wikilink
from ..node.note import MOCS, OPEN_LOOPS, TYPES, parse_node, render_node
from ..plan.drafts import Plan
from ..plan.edits import trust_of
from ..plan.mentions import with_link_at
from ..plan.pages import (
    filed_day,
    is_topic,
    new_page,
    newest_day,
    newest_first,
    project_of_map,
    safe_line,
)
from ..text.tokens import count_tokens
from ..text.words import denies, told_words
from .periods import cleaned_claim
from .topics import topic_prefix
from .verdicts import OR_NULL, Refusal

MAPS_TOKENS = 4_000  # the most for a night's question, its answer and their check; measured in bench/LOG.md
SHOWN_TOKENS = 1_100  # the most for the maps and notes in the question
MOST_MAPS = 8  # in one question
CHECK_TOKENS = 100  # of a check, besides its instructions, claims and notes
LEAST_NOTES, NOTES_SHOWN = 3, 8  # persons' notes of a map: the fewest to ask about it, and the most shown
# The most sentences of a map, and the most characters and notes of a sentence.
SENTENCES, SENTENCE_CHARS, NOTES_NAMED = 3, 300, 3
NAME_WORDS, NAME_CHARS = 5, 40

MAPS_SCHEMA = object_schema(
    "maps",
    maps={
        "type": "array",
        "items": object_schema(
            "map name sentences",
            map=TEXT,
            name=OR_NULL,
            sentences={"type": "array", "items": object_schema("text notes", text=TEXT, notes=TEXTS)},
        ),
    },
)


@dataclass(frozen=True, slots=True)
class ShownMap:
    """
    A map in the question to a model. *notes*: the notes shown, newest first. *unnamed*: the model may name the map.
    """

    path: str
    title: str
    notes: tuple[Entry, ...]
    unnamed: bool = False

    @property
    def digest(self) -> str:
        """A hash of what is shown. If it changes, the model is asked about the map again."""
        return hashlib.sha256("\n".join(map(note_line, self.notes)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ToldMap:
    """A model's sentences on a map, each with its notes. *name*: the name that the model gave the map, or ""."""

    shown: ShownMap
    sentences: tuple[tuple[str, tuple[Entry, ...]], ...]
    name: str = ""

    @property
    def lines(self) -> list[str]:
        """The sentences with their links, as the map shows them."""
        return [linked_sentence(text, notes) for text, notes in self.sentences]


def linked_sentence(text: str, notes: Iterable[Entry]) -> str:
    """Link *text* to *notes*: at the mention of a note, or at the end of *text* if the note is not mentioned."""
    behind = []
    for note in notes:
        linked = with_link_at(text, note.title, note.path)
        behind += [wikilink(note.path, note.title)] * (linked is None)
        text = linked or text
    return f"{text} ({', '.join(behind)})" if behind else text


def map_to_tell(path: str, title: str, entries: Iterable[Entry], *, unnamed: bool) -> ShownMap | None:
    """
    Choose the notes of the map at *path* for a question to the model.

    The newest notes by persons are chosen, at most NOTES_SHOWN. The note of the map's project comes first. Returns None
    for the maps of open loops and reflections, and if there are fewer than LEAST_NOTES notes.
    """
    if path in (OPEN_LOOPS, MOCS["reflection"][0]):
        return None
    said = [e for e in newest_first(entries) if e.type in TYPES and trust_of(e.origin) == 2]
    said.sort(key=lambda e: e.path != project_of_map(path))
    return ShownMap(path, title, tuple(said[:NOTES_SHOWN]), unnamed) if len(said) >= LEAST_NOTES else None


def newest_that_fit(maps: Iterable[ShownMap]) -> list[ShownMap]:
    """
    Choose the *maps* that fit into one question, newest first.

    A map is as new as its newest note. Of maps that are equally new, topics come before standard maps, such as Facts.
    """
    ordered = sorted(
        maps, key=lambda m: (-(newest_day(m.notes) or dt.date.min).toordinal(), not is_topic(m.path), m.path)
    )
    found: list[ShownMap] = []
    for shown in ordered[:MOST_MAPS]:
        if found and count_tokens(maps_question([*found, shown])) > SHOWN_TOKENS:
            break
        found.append(shown)
    return found


# --- what is asked


def maps_question(maps: Sequence[ShownMap]) -> str:
    """The question about *maps*. Each note is printed under its first map; later maps give only its handle."""
    handles, parts = handles_of(maps), []
    told: set[str] = set()
    for n, shown in enumerate(maps, 1):
        mark = ", to be named" if shown.unnamed else "" if is_topic(shown.path) else ", a kind of notes"
        lines = [f"# m{n}: {shown.title}{mark}"]
        lines += [f"{handles[e.path]} {note_line(e)}" for e in shown.notes if e.path not in told]
        if again := [handles[e.path] for e in shown.notes if e.path in told]:
            lines.append(f"also {', '.join(again)}")
        told |= {e.path for e in shown.notes}
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def handles_of(maps: Iterable[ShownMap]) -> dict[str, str]:
    paths = dict.fromkeys(e.path for shown in maps for e in shown.notes)
    return {path: f"e{n}" for n, path in enumerate(paths, 1)}


def note_line(entry: Entry) -> str:
    marks = ", ".join([entry.type, *["open"] * (entry.loop == "open")])
    day = entry.event or filed_day(entry) or "undated"
    return f"{day} [{marks}] {entry.title}: {entry.description}"


# --- what comes back


def tell_maps(
    maps: Sequence[ShownMap], ask: Ask, able: Callable[[str], bool], extra: str, agent: str
) -> tuple[list[ToldMap], list[Refusal]]:
    """
    Ask a model for sentences that sum up each of *maps*.

    Returns (the maps with their sentences, the refused parts of the reply). Raises ModelError.
    """
    question = ModelQuestion(
        instructions("reflect-maps", extra), maps_question(maps), MAPS_SCHEMA, purpose="maps", agent=agent
    )
    reply = ask(question)
    try:
        told = read_maps(reply.text, maps)
    except BadReply as e:
        return [], [Refusal(str(e), "tell")]
    left = MAPS_TOKENS - count_tokens(f"{question.system}{question.user}{reply.text}")
    return only_borne_out(told, ask, able, agent, left)


def read_maps(text: str, maps: Sequence[ShownMap]) -> list[ToldMap]:
    """
    Read a reply: for each of *maps*, the sentences that name notes of the map. A map that the reply leaves out has no
    sentences. Raises BadReply if the reply has no list of maps.
    """
    items = cut_out(text, "maps", "sentences")["maps"]
    if not isinstance(items, list):
        raise BadReply("the reply has no list of `maps`; it was not used")
    handles = {handle: path for path, handle in handles_of(maps).items()}
    found = {m.path: ToldMap(m, ()) for m in maps}
    for item in items:
        place = str(item.get("map", "")).strip() if isinstance(item, Mapping) else ""
        shown = next((m for n, m in enumerate(maps, 1) if place == f"m{n}"), None)
        if shown is None or found[shown.path].sentences:
            continue
        on_map = {handle: e for handle, path in handles.items() for e in shown.notes if e.path == path}
        said = item.get("sentences")
        read = [sentence_of(s, on_map) for s in (said if isinstance(said, list) else ())]
        sentences = tuple([s for s in read if s][:SENTENCES])
        found[shown.path] = ToldMap(shown, sentences, name_of(item.get("name"), shown))
    return list(found.values())


def sentence_of(item: Any, on_map: Mapping[str, Entry]) -> tuple[str, tuple[Entry, ...]] | None:
    if not isinstance(item, Mapping):
        return None
    text, named = safe_line(cleaned_claim(item.get("text"), on_map)).lstrip("#>-*+ "), item.get("notes")
    notes = dict.fromkeys(str(h).strip() for h in (named if isinstance(named, list) else ()))
    rests_on = tuple(on_map[h] for h in notes if h in on_map)[:NOTES_NAMED]
    return (text, rests_on) if rests_on and 0 < len(text) <= SENTENCE_CHARS else None


def name_of(value: Any, shown: ShownMap) -> str:
    """The name that a model gives a map, if all its words occur in the notes of the map; else ""."""
    name = " ".join(value.split()) if isinstance(value, str) and shown.unnamed else ""
    known = told_words(" ".join(f"{e.title} {e.description}" for e in shown.notes))
    fits = len(name) <= NAME_CHARS and len(name.split()) <= NAME_WORDS and bool(slugify(name))
    return name if fits and told_words(name) and told_words(name) <= known else ""


def only_borne_out(
    told: Iterable[ToldMap], ask: Ask, able: Callable[[str], bool], agent: str, left: int
) -> tuple[list[ToldMap], list[Refusal]]:
    """
    Drop the sentences that the check rejects, and the sentences whose check would take more than *left* tokens.
    Returns the other sentences, and a refusal for each that was dropped.
    """
    told = list(told)
    claims = {
        (m.shown.path, text): notes
        for m in told
        for text, notes in m.sentences
        if not has_words_of(text, notes)
    }
    refused: dict[tuple[str, str], str] = {}
    room = left - count_tokens(instructions("check", "")) - CHECK_TOKENS
    for place, notes in claims.items():
        room -= count_tokens(f"{place[1]}{' '.join(map(evidence_of, notes))}") + CHECK_TOKENS // 4
        if room < 0:
            refused[place] = "checking it would cost more tokens than a night may spend on maps"
    asked = [place for place in claims if place not in refused]
    if asked:
        known = {n.title: evidence_of(n) for place in asked for n in claims[place]}
        of = [Claim(n, "head", text) for n, (_, text) in enumerate(asked)]
        verdicts = check_claims(of, Evidence((), lambda claim: (), UTC, known), ask, able, agent)
        for place, verdict in zip(asked, verdicts or ["not supported"] * len(asked), strict=True):
            if verdict != "supported":
                refused[place] = "the notes of the map do not support this sentence"
    kept = [
        replace(m, sentences=tuple(s for s in m.sentences if (m.shown.path, s[0]) not in refused))
        for m in told
    ]
    links = {m.shown.path: wikilink(m.shown.path, m.shown.title) for m in told}
    return kept, [
        Refusal(why, "tell", notes=f"{links[path]}: {text}") for (path, text), why in refused.items()
    ]


def evidence_of(note: Entry) -> str:
    return f"{note.event or filed_day(note) or ''} {note.description}".strip()


def has_words_of(text: str, notes: Collection[Entry]) -> bool:
    """
    Whether all words and days of *text* are in *notes*.

    If *text* denies something, *notes* must deny something, too.
    """
    said = " ".join(f"{n.title} {evidence_of(n)}" for n in notes)
    same = told_words(text) <= told_words(said) and set(days_in(text)) <= set(days_in(said))
    return same and denies(text) <= denies(said)


# --- drafting


def draft_told(plan: Plan, told: Iterable[ToldMap]) -> dict[str, str]:
    """
    Put the sentences of *told* on the maps of *plan*. Returns the former and the present path of each map that got a
    name.
    """
    moved: dict[str, str] = {}
    for m in told:
        path = m.shown.path
        if m.name and (there := named_topic(plan, path, m.name)):
            moved[path] = path = there
        if m.sentences:
            plan.maps.told[path] = m.lines
    return moved


def named_topic(plan: Plan, path: str, name: str) -> str | None:
    """Draft the new topic at *path* under *name*. Returns its new path, or None if another page has that name."""
    there = f"{topic_prefix(path)}-{slugify(name)}"
    page = parse_node(plan.maps.new[path], path)
    if there != path and (plan.is_taken(there) or there in plan.maps.new):
        return None
    del plan.maps.new[path]
    plan.maps.new[there] = render_node(
        replace(parse_node(new_page(there, "", name), there), links=page.links)
    )
    plan.maps.paths = (plan.maps.paths - {path}) | {there}
    for note, draft in [*plan.drafts.items()]:
        if path in draft.node.links:
            plan.amend(note, links=tuple(there if link == path else link for link in draft.node.links))
    return there
