"""
Rewords a sentence of a note because a person asked for it.

The former sentence goes to `## History` with its day. In a file that a person edited, only the sentence and the
matching properties change. tools/changing.py decides which note is meant, and whether a person asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from ..dates.days import days_in, event_span, says_day
from ..dates.rules import resolve_dates
from ..errors import BadInput, BadNode, NotFound
from ..graph.graph import Graph
from ..index.store import Entry
from ..journal import Rebase
from ..message.consent import is_yes
from ..message.statements import FORGETTING, REMEMBERING, UNTRUE, asks, is_idle
from ..message.turn import Message
from ..node.markdown import HISTORY_HEADING, bare_target, load_properties, split_head, wikilink
from ..node.note import TYPES, Node, Source, head_of
from ..text.words import ANY_LETTER, denies, sentence_spans, stems_of, told_words
from .drafts import PERSONS, Plan
from .edits import (
    Edit,
    NoteDraft,
    as_read,
    merged_sources,
    place_of,
    short_title,
    split_history,
    unnamed_days,
    with_history_lines,
)

NEVER_SET = frozenset(
    ("id", "origin", "links", "aliases")
)  # properties that are never changed in a file that a person edited


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence of a note and the sentence that replaces it."""

    was: str
    says: str
    event: str | None = None  # the new day or days, if they change
    event_was: str | None = None


@dataclass(frozen=True, slots=True)
class Corrected:
    """
    The result of a correction.

    *path*: the corrected note. *left*: other sentences of this note with words or days that the correction replaced.
    """

    path: str
    left: tuple[str, ...] = ()


def sentence_with(words: str, text: str) -> str:
    """Return the sentence or sentences of *text* that contain *words*; "" if none does."""
    at = place_of(words, text)
    if at is None:
        return ""
    parts = [part for part in sentence_spans(text) if part.stop > at.start and part.start < at.stop]
    return text[parts[0].start : parts[-1].stop].strip() if parts else ""


def sentence_in(text: str, sentence: str) -> str:
    """Return *sentence* as written in *text*, with links; "" if *text* does not have *sentence*."""
    if sentence in text:
        return sentence
    there = sentence_with(sentence, text)
    return there if as_read(there).rstrip(".!") == as_read(sentence).rstrip(".!") else ""


def with_sentence(text: str, made: Correction) -> str:
    """
    Return *text* with the new sentence in place of the old one; unchanged if *text* does not have the old one.
    """
    there = sentence_in(text, made.was)
    return text.replace(there, made.says, 1) if there else text


def draft_correction(plan: Plan, path: str, made: Correction, sources: tuple[Source, ...]) -> Corrected:
    """
    Draft a correction of the note at *path*. *made*: the old and the new sentence.

    A note that a tool or the assistant wrote is not corrected. Instead, a new note is drafted, which replaces the
    note.
    """
    draft = plan.draft(path)
    if draft.node.origin not in PERSONS:
        return Corrected(take_place(plan, draft.node, made, sources))
    node, line = corrected(draft.node, made, sources, plan)
    was, now = head_of(draft.node), head_of(node)
    changed = {key: value for key, value in now.items() if was.get(key) != value}
    if draft.ours:
        if titled_by_corrected(node.title, made) and not draft.touched:
            named = Edit("update", title=short_title(made.says), description="", sets=frozenset(["title"]))
            node = plan.renamed(node, named, draft.node, stays=False)
        path = plan.rewrite(draft, node, Rebase(set=changed, history=line))
    else:
        path = amend_persons(plan, draft, made, changed, line)
    main = split_history(plan.drafts[path].node.body)[0]
    others = [main[part].strip() for part in sentence_spans(main)]
    return Corrected(path, tuple(s for s in others if s not in made.says and holds_taken(s, made)))


def corrected(old: Node, made: Correction, sources: tuple[Source, ...], plan: Plan) -> tuple[Node, str]:
    """
    Return *old* with the correction *made*, and a line for the note's History.

    The line has a date and the former description. If the correction leaves the description unchanged, the line has
    the replaced sentence of the text below the description instead.
    """
    main, lines = split_history(old.body)
    event = made.event or old.event
    said = with_sentence(old.description, made)
    was = made.was if said == old.description else old.description
    when = unnamed_days(old.event, was) if event != old.event else ""
    line = f"- {old.updated or old.created or plan.day}: {was}{when}"
    node = replace(
        old,
        description=said,
        event=event,
        status="active" if old.status == "dormant" else old.status,
        updated=plan.day,
        sources=merged_sources(old.sources, sources),
        body=with_history_lines(with_sentence(main, made), (*lines, line)),
    )
    return node, line


def amend_persons(
    plan: Plan, draft: NoteDraft, made: Correction, changed: dict[str, object], line: str
) -> str:
    """
    Make the correction in a file that a person edited; return the path. The file's head gets no new property
    except `event`.
    """
    head, start = split_head(draft.text)
    main, mark, history = draft.text[start:].partition(HISTORY_HEADING)
    now = with_sentence(main, made)
    if now == main and with_sentence(draft.node.description, made) == draft.node.description:
        raise BadInput(
            f"{draft.node.path}.md was written by a person, and the sentence spans several lines; change it in the file"
        )
    there = load_properties(draft.text[head])
    kept = {
        key: value
        for key, value in changed.items()
        if key not in NEVER_SET and (key in there or (key == "event" and there))
    }
    text = draft.text[:start] + now + mark + history
    return plan.rewrite(replace(draft, text=text), draft.node, Rebase(set=kept, history=line))


def take_place(plan: Plan, old: Node, made: Correction, sources: tuple[Source, ...]) -> str:
    """
    Draft a person's note that supersedes a tool's or the assistant's note. Return the path of the new note.
    """
    edit = edit_of(made, sources, "user", type=old.type)
    path = plan.create(replace(edit, event=made.event or old.event), supersedes=(old.path,))
    if path is None:
        raise BadInput(f"{plan.dropped[-1]}; nothing was written")
    plan.mark_superseded(old.path, path)
    return path


def holds_taken(text: str, made: Correction) -> bool:
    """Return whether *text* still has words or days that *made* removed."""
    gone = told_words(made.was) - told_words(made.says)
    return bool(told_words(text) & gone) or any(says_day(text, day) for day in taken_days(made))


def titled_by_corrected(title: str, made: Correction) -> bool:
    """
    Return whether *title* names a day or a word that the correction *made* changed.

    A word that the correction only left out counts as changed if the new sentence adds no word:
    - "I eat nuts and eggs" → "I eat nuts": True for the title "Eggs".
    - "My red bike is in Bonn" → "My bike is in Cologne": False for the title "Red", because "Cologne" is added.
    """
    days = taken_days(made)
    was, says = ([w for w in stems_of(text) if w in told_words(text)] for text in (made.was, made.says))
    steps = SequenceMatcher(None, was, says, autojunk=False).get_opcodes()
    replaced = {word for step, at, end, _, _ in steps if step == "replace" for word in was[at:end]}
    corrected = replaced if days or not set(says) <= set(was) else set(was)
    return bool(told_words(title) & corrected - set(says)) or any(says_day(title, day) for day in days)


def taken_days(made: Correction) -> frozenset[date]:
    """Return the days that *made* removed."""
    was, now = set(event_span(made.event_was) or ()), set(event_span(made.event) or ())
    return (days_in(made.was) | (was if now else set())) - days_in(made.says) - now


# --- A proposal is a note of the assistant's that becomes the user's once the user says the same, or confirms
# the note. The property `proposes` names what the note becomes: a note of a type, or a correction of another
# note. A correction quotes the sentence that it replaces.


TAKES_PLACE = re.compile(r"^It is to replace: “(.+)”$", re.M)


UNANSWERED_DAYS = 30  # older proposals stand at the end of "To decide", and weigh less
ABOUT_THEM = re.compile(r"\bthe user\b", re.I)


def is_in_doubt(node: Node) -> bool:
    """
    Return whether only the person can confirm *node*: a proposal, or a statement about the person from the
    assistant or a page.
    """
    return node.origin in ("assistant", "tool") and bool(node.proposes or ABOUT_THEM.search(node.description))


def proposed_notes(graph: Graph) -> Iterator[Entry]:
    """Yield the proposals that are not confirmed yet."""
    return (entry for entry in graph.index.entries(origin="assistant") if is_proposal(graph, entry))


def is_proposal(graph: Graph, entry: Entry) -> bool:
    with suppress(BadNode, NotFound):  # a person has changed or removed it since the index was made
        ours = entry.origin == "assistant" and entry.path.startswith("nodes/")
        return ours and bool(graph.vault.read(entry.path).proposes)
    return False


def accepted_proposals(graph: Graph, before: Sequence[Message], messages: Sequence[Message]) -> Iterator[str]:
    """
    Yield the paths of the proposals that a person accepts in *messages*, which follow *before*. Both are in
    order.

    A person accepts a proposal by a plain yes to the reply just before. The reply must have the whole text of
    this proposal and of no other. A proposal made after the reply is not accepted. A yes does not count if the
    reply answers another sender.
    """
    told, last = ([m for m in said if m.role != "tool" and m.text] for said in (messages, before))
    yeses, answered = [], ""  # the sender to whom the reply answers
    for a, b in pairwise([Message("", "user", "", 0), *last, *told]):
        answered = a.sender_id if a.role == "user" else answered
        if a.role == "assistant" and b.role == "user" and is_yes(b) and b in told:
            yeses += [(a, b)] * (answered in ("", b.sender_id))
    waiting = [e for e in proposed_notes(graph) if e.status == "active"] if yeses else []
    for reply, yes in yeses:
        text = as_read(reply.text)
        shown = [e.path for e in waiting if as_read(e.description).rstrip(".") in text]
        made_before = shown and all(s.id != yes.id for s in graph.index.sources(shown[0]))
        if len(shown) == 1 and made_before and offers(reply.text, graph.vault.read(shown[0]).description):
            yield shown[0]


def offers(reply: str, text: str) -> bool:
    """
    Return whether the assistant's *reply* offers to make a note of *text*, a part of *reply*.

    Both must hold:
    - The sentences next to *text* do not deny, drop or correct anything.
    - *reply* has no question, or its last question only asks for agreement: "Is that right?", "Shall I note this
      instead?"
    """
    at, spans = place_of(text, reply), sentence_spans(reply)
    if at is None:
        return False
    first, *_, last = [n for n, s in enumerate(spans) if s.stop > at.start and s.start < at.stop] * 2
    led = ANY_LETTER.search(reply[spans[first].start : at.start])
    before, after = spans[first if led else max(0, first - 1)].start, spans[last : last + 2][-1].stop
    beside = f"{reply[before : at.start]} {reply[at.stop : after]}"
    if denies(beside.replace("instead of", "")) or FORGETTING.search(beside) or UNTRUE.search(beside):
        return False
    asked = [n for n, span in enumerate(spans) if asks(reply[span])]
    question = reply[spans[asked[-1]]].replace(reply[at], "") if asked else ""
    offered = is_idle(question) or REMEMBERING.search(question) or "instead" in question
    return bool(not asked or (asked[-1] >= first - 1 and offered))


def settle_proposals(plan: Plan, paths: Iterable[str]) -> None:
    """
    Close each proposal at *paths* if a person's note now says the same.

    The proposal then counts as superseded by this note. Two kinds of proposals:
    - to correct a note: only the corrected note is looked at
    - any other: each note that *plan* changes is looked at
    """
    for path in paths:
        with suppress(NotFound, BadNode):
            node = plan.draft(path).node
            found = corrected_by(node)
            near = [found[0]] if found else [p for p, d in plan.drafts.items() if d.text != d.before]
            theirs = (
                n for n in (plan.draft(p).node for p in near) if n.origin in PERSONS and n.status == "active"
            )
            by = next((n.path for n in theirs if says_all(n, node)), None)
            if by and node.proposes and node.status == "active":
                plan.mark_superseded(path, by)


def says_all(node: Node, other: Node) -> bool:
    """Return whether *node* says what the description of *other* says, on the same days."""
    told = told_words(other.description)
    return (
        bool(told)
        and told <= told_words(f"{node.title} {node.description}")
        and denies(node.description) == denies(other.description)
        and days_said(other) <= days_said(node) | set(event_span(node.event) or ())
    )


def days_said(node: Node) -> set[date]:
    return {when.start for when in resolve_dates(node.description, node.updated)} if node.updated else set()


def correction_proposed(node: Node, made: Correction, sources: tuple[Source, ...]) -> Edit:
    """Return the edit for a new note that proposes to correct *node*. *made*: the old and the new sentence."""
    was = f"It is to replace: “{made.was}”"
    link = wikilink(node.path)
    return edit_of(made, sources, "assistant", body=was, links=(node.path,), proposes=link)


def edit_of(made: Correction, sources: tuple[Source, ...], origin: str, **more: Any) -> Edit:
    """Return the edit for a new note that says the new sentence of *made*."""
    title = short_title(made.says)
    return Edit("create", title, made.says, event=made.event, sources=sources, origin=origin, **more)


def corrected_by(node: Node) -> tuple[str, Correction] | None:
    """
    Return the path of the note that the proposal *node* corrects, and the correction; None if *node* proposes
    no correction.
    """
    found = TAKES_PLACE.search(node.body)
    if node.proposes in TYPES or found is None:
        return None
    return bare_target(node.proposes), Correction(found[1], node.description, node.event)


def take_up(plan: Plan, path: str) -> str | None:
    """
    Draft the proposal at *path* as the user's own statement.

    Returns the path of the note that now holds the statement. Returns None if the sentence to correct is no longer in
    the note: the proposal is then only marked as superseded. Raises BadInput if the note at *path* is not a proposal,
    and NotFound if the note to correct is gone.
    """
    node = plan.draft(path).node
    if not node.proposes:
        raise BadInput(f"{path} is not a proposal; there is nothing to confirm")
    if (found := corrected_by(node)) is not None:
        target, made = found
        old = plan.draft(target).node
        if not any(sentence_in(text, made.was) for text in (old.description, split_history(old.body)[0])):
            plan.mark_superseded(path, old.path)
            return None
        made = replace(made, event=made.event if made.event != old.event else None, event_was=old.event)
        done = draft_correction(plan, target, made, node.sources).path
        plan.mark_superseded(path, done)
        return done
    kind = node.proposes if node.proposes in TYPES else node.type
    path = plan.amend(
        path, origin="user", proposes="", priority="high" if node.priority == "high" else "medium"
    )
    if kind == node.type:
        return path
    update = Edit("update", node.title, "", kind, sources=node.sources, origin="user", target=path)
    return plan.update(replace(update, sets=frozenset(["type"]))) or path
