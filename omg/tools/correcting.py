"""
omg_correct: a person says that something remembered is wrong or has changed.

The note says so at once where the user's own message says just that; else the correction is a proposal of the assistant's
(plan/proposals.py), until the observation of the turn finds that the user's words bear it out. Exactly one note is meant, or
none is changed; what could be meant is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from ..curate.notes import done_with, planning_under_lock, receipt_of, refuse_pages, refuse_retired
from ..dates.days import day_of_ms, says_day, span_text
from ..dates.spoken import resolve_dates
from ..errors import BadInput, NotFound
from ..graph.graph import Graph
from ..identity import is_remembered
from ..index.entries import Entry
from ..inject.passages import waiting
from ..message.drop import to_epoch_ms
from ..message.machinery import CORRECTED
from ..message.turn import Message
from ..node.fields import GENERATED, Source
from ..node.note import Node
from ..plan.bodies import as_read
from ..plan.corrections import Corrected, Correction, draft_correction, sentence_with
from ..plan.drafts import Plan
from ..plan.edits import one_line, split_history
from ..plan.proposals import correction_proposed, holds_plainly
from ..secrets import redact
from ..text.characters import visible
from ..text.sentences import sentence_spans
from ..text.words import Words, told_words
from ..worker.registry import Registry
from .asked import link_target, mapping_in, said_by_user
from .remembering import days_asked

# Notes that are looked into for the words, and that are named where none or several fit.
LOOKED_AT, NAMED = 20, 5
PROPOSED = "in a moment: [[{}]] changes once this message of the user's has been read, if it says so."
SHORTEST_NEW = 3  # words: what is shorter is a part of a sentence, and would stand there alone
FRAGMENT = (
    "write `new` as the whole sentence that is to stand there, not only what changes in it; now it says: {}"
)


def correct_tool(
    registry: Registry, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """*params*: old (a path, a title, or the words that do not hold), new (the sentence that does), when (its days)."""
    message = mapping_in(context, "userMessage")
    old = str(params.get("old") or "").strip()
    new = visible(redact(one_line(str(params.get("new") or "")))[0])
    if not old or not new:
        raise BadInput("omg_correct needs `old`, what is wrong, and `new`, the sentence that holds now")
    if not said_by_user(message) or not is_remembered(context):
        raise BadInput("omg_correct needs a message of the user in this turn as its source; there is none")
    at = to_epoch_ms(message.get("timestamp")) or registry.now_ms()
    asked = Message(str(message["id"]), "user", str(message.get("text") or ""), at)
    session, now = str(context["sessionKey"]), registry.clock()
    with planning_under_lock(graph, now) as plan:
        node, was = sentence_meant(plan, old, new, now)
        day = day_of_ms(at, graph.zone)
        event = days_asked(params.get("when")) or moved_event(node, new, day)
        made = Correction(was, new, event if event != node.event else None, node.event)
        if as_read(was) == as_read(new) and made.event is None:
            raise BadInput(f"[[{node.path}]] says so already")
        plan.day, source = day, (Source(session, asked.id, at),)
        # A sentence of the user's own may still be about something else.
        if not holds_plainly(new, asked.spoken) or not shared_words(new, was):
            path = plan.apply(correction_proposed(node, made, source))
            if path is None:
                raise BadInput(f"{plan.dropped[-1]}; nothing was written")
            done_with(graph, path, receipt_of(plan, now, f"proposed to correct {node.path}"))
            return {"text": f"{CORRECTED} {PROPOSED.format(node.path)}", "details": {"path": path}}
        done = draft_correction(plan, node.path, made, source)
        done_with(graph, done.path, receipt_of(plan, now, f"corrected {done.path}"))
    return {"text": told_of(done, made), "details": {"path": done.path}}


def told_of(done: Corrected, made: Correction) -> str:
    lines = [f"{CORRECTED} [[{done.path}]]: {made.says}", f"Before, as its history has it: {made.was}"]
    if done.left:
        lines.append("It also says, which may not hold either; correct that too, or leave it:")
        lines += [f"- {sentence}" for sentence in done.left[:NAMED]]
    return "\n".join(lines)


def moved_event(node: Node, new: str, day: date) -> str | None:
    """The days that *new* names in the place of those the note has; None where it names none, or several."""
    if node.event is None:
        return None
    named = {(w.start, w.end) for w in resolve_dates(new, day)}
    spans = {span_text(*ends) for ends in named} - {node.event}
    return spans.pop() if len(spans) == 1 else None


def sentence_meant(plan: Plan, old: str, new: str, now: datetime) -> tuple[Node, str]:
    """The note that *old* means, and what of it *new* takes the place of. Raises BadInput, NotFound, naming notes."""
    graph, name = plan.graph, link_target(old)
    if path := graph.index.resolve(name):
        return whole_note(plan, path)
    if several := graph.index.ambiguous(name):
        raise BadInput(several_text(graph, several))
    hits = [h.entry for h in graph.index.search(old, LOOKED_AT, now=now, walk=False)]
    hits = [e for e in hits if e.status != "superseded" and e.type not in GENERATED]
    notes = [plan.draft(e.path).node for e in hits]
    found = best_fits(notes, old)
    if not found and (path := graph.index.find(name)):
        return whole_note(plan, path)
    if not found:
        raise NotFound(
            none_text(graph, [e for e in hits if shared_words(f"{e.title} {e.description}", old)], old)
        )
    if len(found) > 1:
        raise BadInput(several_text(graph, [node.path for node, _ in found]))
    ((node, was),) = found
    if new.isascii() and len(new.split()) < min(SHORTEST_NEW, len(was.split())):
        raise BadInput(FRAGMENT.format(was))
    return node, was


def whole_note(plan: Plan, path: str) -> tuple[Node, str]:
    """The note at *path*, and its description. Raises BadInput where it is a page of ours, or retired."""
    refuse_pages(plan.graph, path)
    node = plan.draft(path).node
    refuse_retired(node)
    return node, node.description


def best_fits(notes: Sequence[Node], old: str) -> list[tuple[Node, str]]:
    """
    The notes that *old* fits, each with what of it is meant: by their title; else those that say just that; else those that
    have its words as they are; else those with a sentence that has all that it tells.
    """
    titled = [(n, n.description) for n in notes if as_read(n.title) == as_read(old)]
    held = [(n, was) for n in notes if (was := sentence_of(n, old))]
    same = [(n, was) for n, was in held if as_read(was).rstrip(".") == as_read(old).rstrip(".")]
    telling = [(n, was) for n in notes if (was := next(telling_sentences(n, old), ""))]
    return titled or same or held or telling


def sentence_of(node: Node, words: str) -> str:
    return sentence_with(words, node.description) or sentence_with(words, split_history(node.body)[0])


def telling_sentences(node: Node, old: str) -> Iterator[str]:
    """The sentences of *node* that tell all that *old* tells, and name its days, however they are written."""
    days = resolve_dates(old, node.updated) if node.updated else []
    for when in days:
        old = old.replace(when.phrase, " ")
    told = told_words(old)
    for text in (node.description, split_history(node.body)[0]) if told else ():
        for part in sentence_spans(text):
            said = f"{node.event or ''} {text[part]}"
            if Words(told_words(f"{node.title} {said}")).of(told) == told and all(
                says_day(said, when.start) for when in days
            ):
                yield text[part].strip()


def shared_words(text: str, old: str) -> frozenset[str]:
    """Those that tell something in *old*, and stand in *text* as well."""
    return Words(told_words(text)).of(told_words(old))


def none_text(graph: Graph, near: Sequence[Entry], old: str) -> str:
    said = f"no note says {old!r}"
    if near:
        lines = [f"- [[{e.path}]] — {e.description}" for e in near[:NAMED]]
        return "\n".join([f"{said}; name one of these by its path, if one is meant:", *lines])
    if any(2 * len(shared_words(told.message.text, old)) > len(told_words(old)) for told in waiting(graph)):
        return (
            f"{said} yet: it was said a while ago, and is noted by itself together with what the user says in this message."
            " Nothing need be done"
        )
    return said


def several_text(graph: Graph, paths: Sequence[str]) -> str:
    entries: list[Entry] = [e for p in paths[:NAMED] if (e := graph.index.entry(p))]
    lines = [f"- [[{e.path}]] — {e.description}" for e in entries]
    more = [f"and {len(paths) - NAMED} more"] if len(paths) > NAMED else []
    return "\n".join(["several notes say that; call again with the path of the one as `old`:", *lines, *more])
