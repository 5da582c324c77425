"""
Answers omg_search and omg_open: notes, messages word for word, and one note in full.

Results pass the same checks as the memory in a prompt. index/search.py and inject/passages.py search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from itertools import islice, zip_longest
from typing import Any

from ..curate import OpenNote, open_note
from ..dates.days import day_of_ms, span_text
from ..dates.rules import When
from ..errors import BadInput, OmgError, how_many
from ..graph.graph import Graph
from ..graph.state import mapping_in as mapping_in
from ..index.search import ParsedQuery, parse_query
from ..index.store import Entry, Hit, terms_of
from ..inject.decide import sentences_beside
from ..inject.passages import (
    Passage,
    Said,
    answering_span,
    assistants_share,
    cleaned,
    find_said,
    how_passed_on,
    passage_of,
    quoted_passages,
    speaker_name,
    waiting,
)
from ..inject.prompt import SAID_LEAD, is_of_days, is_told, is_within, name_of, passage_line
from ..message.drop import to_epoch_ms
from ..message.turn import Message
from ..node.markdown import Section, sections_of
from ..node.note import GENERATED, Node, text_below_head
from ..plan.edits import split_history, told_text
from ..plan.pages import as_opened, filed_day
from ..provenance import origin_mark
from ..text.characters import visible, with_labels
from ..text.tokens import clip_text, count_tokens
from ..text.words import cut_text, written_words
from ..worker.intake import arrived
from ..worker.registry import Registry

# --- Lenient readers of a gateway's call. None of them raises.


def link_target(value: object) -> str:
    """The name in *value*, a reference to a note: a bare name or a whole [[link|label]]."""
    return str(value or "").strip().removeprefix("[[").removesuffix("]]").split("|")[0].strip()


def said_by_user(message: Mapping[str, Any]) -> bool:
    """
    Whether a person wrote *message*. Returns False if the gateway wrote *message* in the person's name, or if *message*
    has no id.
    """
    return bool(message.get("id")) and mapping_in(message, "provenance").get("kind") in (
        None,
        "",
        "external_user",
    )


def message_in(message: Mapping[str, Any], now_ms: int = 0) -> Message:
    """The user's *message* as the hooks send it; *now_ms* replaces a missing time, or one in the future."""
    at = to_epoch_ms(message.get("timestamp")) or now_ms
    read = Message(str(message.get("id") or ""), "user", str(message.get("text") or ""), at)
    return arrived(read, now_ms) if now_ms else read


def sent_in(message: Mapping[str, Any], context: Mapping[str, Any], now_ms: int = 0) -> Message:
    """The user's *message* with its sender's id, taken from *message*, else from *context*."""
    sender = message.get("senderId") or context.get("senderId")
    return replace(message_in(message, now_ms), sender_id=str(sender or ""))


HITS = 8  # most notes of an answer, unless the call sets `limit`
SEARCH_TOKENS = {False: 1_500, True: 2_000}  # of an answer to omg_search; True: if the call sets `raw`
MORE_SAID = {
    False: "- (there are more messages: `raw` quotes them)",
    True: "- (there are more messages: narrower words, or `when`, find them)",
}
SENTENCES_CHARS = 300  # shown of a note's text, around the words asked for
SEARCHED_FOR_DAYS = 100  # hits to filter by day, because a search only ranks the days asked for higher
SAID_TOKENS, MESSAGE_CHARS = (
    1_000,
    400,
)  # shown of all messages that a note came from, and of each of these messages
BESIDE, BESIDE_TOKENS = 3, 400  # quotations beside the notes found, and the tokens they may cost
WORDS_SHARE = 0.5  # the least share of the query's words in a quotation beside the notes
LINKED = 20  # most linked notes that an answer names
LONG_TOKENS = 1_500  # of a longer text, omg_open shows the outline
LEAD_CHARS = 600  # shown of the text before the first heading
SAID_AT = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d"
)  # a day and time as said_at writes them, or with the T of a URL
MESSAGES_A_DAY = 100_000  # more than a day has, so that every message of the minute is found
WHOLE_TOKENS = 3_000  # shown of the messages of one minute


def hit_limit(value: object, default: int) -> int:
    return int(max(1, min(value, 20))) if isinstance(value, int | float) and value == value else default


def search_tool(
    registry: Registry, graph: Graph, params: Mapping[str, Any], session: str = ""
) -> dict[str, Any]:
    """
    Answer omg_search with notes, and with quotations of messages.

    A quotation that the context of *session* already shows is left out. *params*:
    - query: the words to search for
    - when: days, as a person writes them
    - limit: how many notes at most, or with `raw`, how many quotations
    - order: "time" sorts the notes by day
    - raw: return only quotations, also those that the context shows
    """
    words, when = (str(params.get(key) or "").strip() for key in ("query", "when"))
    if not words and not when:
        raise BadInput("omg_search needs a `query`, or `when`")
    now, limit = registry.clock(), hit_limit(params.get("limit"), HITS)
    query, days = parse_query(words, now.astimezone(graph.zone).date()), tuple[When, ...]()
    if when:
        days = parse_query(when, now.astimezone(graph.zone).date()).days
        if not days:
            raise BadInput(f"`when` names no day: {when!r}; write 2026-03-05, 'last week' or 'in May'")
        query = replace(query, days=days)
    raw = params.get("raw") is True
    hits = [] if raw else graph.index.search(query, SEARCHED_FOR_DAYS if when else limit, now=now)
    if when:
        hits = [hit for hit in hits if is_of_days(hit.entry, days)][:limit]
    found = find_said(graph, query, hits, session="" if raw else session, now=now)
    if when:
        found = [said for said in found if is_within(days, day_of_ms(said.message.timestamp, graph.zone))]
    if params.get("order") == "time":
        hits.sort(key=lambda h: (filed_day(h.entry) or date.min, h.entry.path))
    room = SEARCH_TOKENS[raw]
    said = quoted_passages(graph, query, persons_first(query, found), room=room)
    if raw and "limit" in params:
        said = islice(said, limit)
    text = lines_and_quotations(graph, query, hits, said, room)
    return {"text": text or nothing_text(days, when), "details": {"hits": [*map(hit_value, hits)]}}


def persons_first(query: ParsedQuery, found: Iterable[Said]) -> list[Said]:
    """*found* with the assistant's messages at the end, unless *query* asks for the assistant's words."""
    return sorted(found, key=lambda s: assistants_share(query, s.message.role, False) < 1)


def lines_and_quotations(
    graph: Graph, query: ParsedQuery, hits: Sequence[Hit], said: Iterable[Passage], room: int
) -> str:
    """
    Write a line for each of *hits*, then add details until *room* (tokens) is full.

    Details are added in this order: the sentences about *query* from the first hit's note, the first quotation from
    *said*, the sentences from the second hit's note, and so on. The quotations are printed in the order they were said.
    If a quotation does not fit, a last line tells how to find more.
    """
    more_said = MORE_SAID[not hits]
    lines = [hit_line(hit) for hit in hits]
    known = [written_words(hit.entry.description) for hit in hits]
    said = (p for p in said if not is_told(p, known))
    more, quoted, told_all = dict[int, str](), list[Passage](), True
    room -= count_tokens("\n".join([*lines, SAID_LEAD, more_said]))
    for n, passage in zip_longest(range(len(hits)), said):
        text = "" if n is None else sentences_for(graph, hits[n].entry, query)
        if n is not None and text and (cost := count_tokens(text) + 2) <= room:
            more[n], room = text, room - cost
        if passage is None:
            continue
        if (cost := count_tokens(said_line(graph, passage)) + 1) > room:
            told_all = False
            break
        quoted.append(passage)
        room -= cost
    told = [f"{line}\n  {more[n]}" if n in more else line for n, line in enumerate(lines)]
    if quoted:
        quoted.sort(key=lambda p: p.at_ms)
        told += [SAID_LEAD] * bool(hits) + [said_line(graph, p) for p in quoted]
    return "\n".join([*told, *([] if told_all else [more_said])])


def said_line(graph: Graph, passage: Passage) -> str:
    """A quotation with its day and time."""
    return f"- {said_at(graph, passage)} {passage_line(passage).removeprefix('- ')}"


def said_at(graph: Graph, passage: Passage) -> str:
    """Write the day and time of a quotation. omg_open takes this text as the name of the quotation."""
    return f"{datetime.fromtimestamp(passage.at_ms / 1000, graph.zone):%Y-%m-%d %H:%M}"


def found_about(graph: Graph, words: str, limit: int, now: datetime) -> list[Hit | Passage]:
    """The notes and quotations that answer *words*, in one ranking."""
    hits = graph.index.search(words, limit, now=now)
    found: list[Hit | Passage] = [*hits, *said_about(graph, words, hits, now, most=limit)]
    return sorted(found, key=lambda f: -f.score)[:limit]


def found_line(graph: Graph, found: Hit | Passage) -> str:
    return said_line(graph, found) if isinstance(found, Passage) else hit_line(found)


def said_about(
    graph: Graph,
    words: str,
    hits: Sequence[Hit],
    now: datetime,
    asked_in: str = "",
    most: int = BESIDE,
) -> list[Passage]:
    """
    Up to *most* quotations about *words*, each with at least half of *words*, in the order they were said. Leaves out
    quotations that say the same as one of *hits*, and the message with the id *asked_in*.
    """
    query = parse_query(words, now.astimezone(graph.zone).date())
    found = [
        said
        for said in find_said(graph, query, hits, session="", now=now)
        if said.words >= WORDS_SHARE and said.message.id != asked_in
    ]
    quoted = quoted_passages(graph, query, persons_first(query, found), room=BESIDE_TOKENS)
    known = [written_words(hit.entry.description) for hit in hits]
    return sorted(islice((p for p in quoted if not is_told(p, known)), most), key=lambda p: p.at_ms)


def sentences_for(graph: Graph, entry: Entry, query: ParsedQuery) -> str:
    """
    Return sentences about *query* from the text of *entry*.

    Sentences that repeat the description of *entry* are left out. Returns "" if the file cannot be read.
    """
    with suppress(OmgError, OSError, UnicodeDecodeError):
        text = told_text(text_below_head(graph.vault.text(entry.path)))
        text = " ".join(sentences_beside(entry.description, with_labels(text)))
        since, until = answering_span(text, [t.shown.lower() for t in query.terms], SENTENCES_CHARS)
        return f"{'… ' if since else ''}{text[since:until].strip()}{' …' if until < len(text) else ''}"
    return ""


def nothing_text(days: Iterable[When], when: str) -> str:
    """The answer when nothing was found. The answer names the searched days, because the user may mean other days."""
    spans = ", ".join(dict.fromkeys(span_text(w.start, w.end) for w in days))
    return f"Nothing found for {when!r}, which is {spans}." if when else "Nothing found."


def hit_line(hit: Hit) -> str:
    entry = hit.entry
    marks = filter(None, (*day_marks(entry.event, entry.updated), origin_mark(entry.origin)))
    return f"[[{entry.path}]] — {entry.description} ({', '.join(marks)})".removesuffix(" ()")


def day_marks(event: str | None, said: date | None) -> list[str]:
    """The days of a note, each with its meaning: happened, happens, or said."""
    ahead = event and said and event[:10] > said.isoformat()
    return [
        *([f"{'happens' if ahead else 'happened'} {event}"] if event else []),
        *([f"said {said}"] if said else []),
    ]


def said_value(graph: Graph, passage: Passage) -> dict[str, Any]:
    """A quotation as a dictionary with the keys of `hit_value`. omg_open opens the quotation by `at`."""
    return {
        "path": passage.note,
        "at": said_at(graph, passage),
        "description": passage.text,
        "score": round(passage.score, 3),
        "weak": False,
        "why": "was said",
        "origin": passage.speaker,
        "line": said_line(graph, passage),
    }


def hit_value(hit: Hit) -> dict[str, Any]:
    entry = hit.entry
    return {
        "path": entry.path,
        "description": entry.description,
        "score": round(hit.score, 3),
        "weak": hit.weak,
        "why": hit.why,
        "origin": entry.origin,
    }


def open_tool(graph: Graph, params: Mapping[str, Any]) -> dict[str, Any]:
    """
    Answer omg_open with a note's line, text, former wording, links, and the messages that the note came from, in this
    order.

    For a long text with headings, the answer is an outline. For `path#Heading`, the answer is that section. For the
    day and time of a quotation, the answer is all messages of that minute.
    """
    if at := SAID_AT.fullmatch(str(params.get("id") or "").strip()):
        return {"text": whole_messages(graph, at[0]), "details": {"at": at[0]}}
    name, heading = named_section(graph, params.get("id"))
    note = open_note(graph, name)
    details = {"path": note.node.path}
    if heading:
        return {"text": f"{note_head(note)}\n\n{section_text(note, heading)}", "details": details}
    parts = [note_head(note), *note_text(note)]
    if links := linked_text(graph, note):
        parts.append(f"Linked: {links}")
    said = quoted_sources(graph, note) or [f"- ({without_messages(note)})"]
    return {"text": "\n\n".join([*parts, "\n".join(["It was said:", *said])]), "details": details}


def whole_messages(graph: Graph, at: str) -> str:
    """The whole messages of the minute *at*, up to WHOLE_TOKENS. Raises BadInput if there are none."""
    try:
        since = datetime.fromisoformat(at).replace(tzinfo=graph.zone)
    except ValueError as e:
        raise BadInput(f"{at!r} is no day and time: {e}") from e
    of_day = ParsedQuery(at, (), (When(since.date(), since.date(), at),))
    said = [message for message, *_ in graph.index.search_raw(of_day, MESSAGES_A_DAY, now=since)][::-1]
    said += [s.message for s in waiting(graph)]
    found = [m for m in said if 0 <= m.timestamp - since.timestamp() * 1000 < 60_000]
    if not found:
        raise BadInput(f"nothing was said at {at}; a quotation of omg_search begins with its day and time")
    told = []
    for message in found:
        passed_on = how_passed_on(message, 0, len(message.text))
        lines = [f"> {line}".rstrip() for line in visible(cleaned(message.text)).splitlines()]
        told.append("\n".join([f"{speaker_name(message)}{f' ({passed_on})' if passed_on else ''}:", *lines]))
    return clip_text("\n\n".join(told), WHOLE_TOKENS)


def linked_text(graph: Graph, note: OpenNote) -> str:
    """The names of the notes linked with *note*, except for notes that the text of *note* already links to."""
    links = dict.fromkeys((*note.node.links, *note.backlinks))
    paths = [path for path in links if path not in note.node.wikilinks]
    names = [entry.handle if (entry := graph.index.entry(path)) else path for path in paths[:LINKED]]
    more = [f"and {len(paths) - LINKED} more"] if len(paths) > LINKED else []
    return ", ".join([*names, *more])


def quoted_sources(graph: Graph, note: OpenNote) -> list[str]:
    """
    Quote the messages from which *note* was made, oldest first.

    A long message is cut to the part that has most words in common with *note*. If not all messages fit, the
    assistant's messages are left out first.
    """
    words = [term.shown.lower() for term in terms_of(note.node.description)]
    passages = [passage_of(m, words, MESSAGE_CHARS) for m in note.messages]
    passages.sort(key=lambda p: p.speaker == "assistant")
    kept, room = list[Passage](), SAID_TOKENS
    for passage in passages:
        room -= count_tokens(said_line(graph, passage)) + 1
        if kept and room < 0:
            break
        kept.append(passage)
    kept.sort(key=lambda p: p.at_ms)
    left = len(passages) - len(kept)
    told = (
        [f"- ({how_many(left, 'message')} more: omg_search with `raw` finds what was said)"] if left else []
    )
    return [*(said_line(graph, p) for p in kept), *told]


def named_section(graph: Graph, value: object) -> tuple[str, str]:
    """
    The note that *value* names, and the heading after a `#`. The heading is "" if *value* has no `#`, or if
    *value* as a whole is a note's name.
    """
    name = link_target(value)
    note, _, heading = name.partition("#")
    return (name, "") if graph.index.entry(name) else (note.strip(), heading.strip())


def status_marks(node: Node) -> tuple[str, str]:
    """
    Return (status, task) of *node* in words.

    - status: "dormant", "superseded by …" and so on; "" if the note is active
    - task: "open loop" for a thing to do, "done loop" once done, "" for any other note. A superseded note has "",
      because the note that replaced it has the task.
    """
    if node.status == "superseded":
        return f"superseded by {name_of(node.superseded_by)}" if node.superseded_by else node.status, ""
    return node.status if node.status != "active" else "", f"{node.loop} loop" if node.loop else ""


def note_head(note: OpenNote) -> str:
    node = note.node
    return f"[[{node.path}]] {node.title}: {node.description} ({note_marks(node)})"


def note_marks(node: Node) -> str:
    """What a note is, in words: its type, its status, its days, whether it is still to be done, and who said it."""
    status, loop = status_marks(node)
    marks = (node.type, status, *day_marks(node.event, node.updated), loop, origin_mark(node.origin))
    return ", ".join(filter(None, marks))


def note_text(note: OpenNote) -> list[str]:
    main, before = split_history(note.node.body)
    main = as_opened(main) if note.node.type in GENERATED else main
    if count_tokens(main) > LONG_TOKENS and (sections := sections_of(main)):
        main = outline(note.node.path, main, sections)
    return [part for part in (main.strip(), "\n".join(["Before:", *before]) if before else "") if part]


def outline(path: str, text: str, sections: Sequence[Section]) -> str:
    """The text before the first heading of *text*, and the headings with the sizes of their sections."""
    lead = cut_text(text[: sections[0].start].strip(), LEAD_CHARS)
    lines = [
        f"{'  ' * (s.level - 1)}- {s.heading} ({count_tokens(text[s.start : s.end])} tokens)"
        for s in sections
    ]
    told = f"The text is long. It has these sections; `{path}#Heading` opens one of them:"
    return "\n".join([*([lead, ""] if lead else []), told, *lines])


def section_text(note: OpenNote, heading: str) -> str:
    """
    The section of *note* below *heading*, with its subsections. Raises BadInput, which names the headings of *note*.
    """
    text = note.node.body
    sections = sections_of(text)
    for section in sections:
        if section.heading.casefold() == heading.casefold():
            return text[section.start : section.end].strip()
    there = ", ".join(f"{s.heading!r}" for s in sections) or "none"
    raise BadInput(f"[[{note.node.path}]] has no heading {heading!r}; its headings are: {there}")


def without_messages(note: OpenNote) -> str:
    if note.node.sources:
        return "OMG has not read the message of this note yet"
    return (
        "OMG makes this page from the notes"
        if note.node.type in GENERATED
        else "no message is named as its source"
    )
