"""Answers omg_remember and omg_correct: what an agent may change, and on whose word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from ..curate import (
    CurationResult,
    applied,
    done_with,
    is_untouched,
    planning_under_lock,
    refuse_pages,
    refuse_retired,
)
from ..dates.days import day_of_ms, says_day, span_text
from ..dates.rules import resolve_dates
from ..errors import BadInput, NotFound
from ..graph.graph import Graph
from ..identity import is_remembered
from ..index.archived import last_messages
from ..index.search import ALONE
from ..index.store import Entry
from ..inject.passages import waiting
from ..message.consent import is_yes
from ..message.envelope import CORRECTED, PROPOSED, REMEMBERED
from ..message.statements import FIRST
from ..message.turn import Message
from ..node.note import GENERATED, TYPES, Node, Source
from ..observe.reply import whole_days
from ..plan.corrections import (
    Corrected,
    Correction,
    accepted_proposals,
    correction_proposed,
    draft_correction,
    sentence_with,
    settle_proposals,
    take_up,
)
from ..plan.drafts import Plan
from ..plan.edits import Edit, as_read, one_line, short_title, split_history
from ..provenance import as_others
from ..secrets import redact
from ..text.characters import visible, with_labels
from ..text.words import sentence_spans, told_words
from ..worker.intake import Intake
from ..worker.registry import Registry
from .reading import link_target, mapping_in, said_by_user, sent_in
from .sentences import says_correction, says_plainly

# --- omg_remember: what the agent is asked to remember becomes a note at once.
#
# The note is the user's if the user's own message says the same sentence. Otherwise the note is the assistant's
# proposal, until the Observer finds that the user's words support the note, or the user runs `omg confirm`.


ABOUT_THEM = re.compile(r"^(?:The user(?:['’]s)?|My) (?=.)")
AS_PROPOSAL = (
    ", as your proposal: the user did not say it in just these words. Ask them, quoting the proposal as it is and no other"
    " proposal. The note becomes the user's if their whole answer is a yes, if their own words are found to say it, or if"
    " they run `omg confirm {}`."
)
LEFT_OUT = " What looked like a password, a code or a key in it was not kept."


def remember_tool(
    intake: Intake, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Answer the tool call omg_remember: make a note of the text that the user asked to remember.

    The note cites the user's message of this turn. Raises BadInput without such a message.
    """
    registry, message = intake.registry, mapping_in(context, "userMessage")
    note = NoteAsked(*(str(params.get(key) or "") for key in ("text", "title", "type", "when")))
    if not said_by_user(message):
        raise BadInput("omg_remember needs a message of the user in this turn as its source; there is none")
    asked, session = sent_in(message, context, registry.now_ms()), str(context["sessionKey"])
    source = Source(session, asked.id, asked.timestamp)
    if is_remembered(context) and (done := accept(intake, graph, session, asked, note.text)):
        return {"text": f"{REMEMBERED} [[{done.path}]].{taken_back(done)}", "details": {"path": done.path}}
    done = remember_note(registry, graph, note, asked.text, source)
    if done.cycle is None:
        return {"text": f"[[{done.path}]] already says this.", "details": {"path": done.path}}
    waits = AS_PROPOSAL.format(done.path) if graph.vault.read(done.path).proposes else "."
    told = f"{REMEMBERED} [[{done.path}]]{waits}{LEFT_OUT * bool(redact(note.text)[1])}{taken_back(done)}"
    return {"text": told, "details": {"path": done.path}}


def accept(intake: Intake, graph: Graph, session: str, yes: Message, text: str) -> CurationResult | None:
    """
    Make the proposal *text* the user's note. Returns None unless both hold:
    - *yes* is a plain yes.
    - The reply just before *yes* contains the whole text of this proposal, and no other proposal.
    """
    if not is_yes(yes):
        return None
    accepted = [*accepted_proposals(graph, said_before(intake, graph, session, yes), [yes])]
    if not accepted or as_read(graph.vault.read(accepted[0]).description) != as_read(text):
        return None
    with planning_under_lock(graph, intake.registry.clock()) as plan:
        if (path := take_up(plan, accepted[0])) is None:
            return None
        return done_with(plan, path, intake.registry.clock(), f"accepted {path}")


def said_before(intake: Intake, graph: Graph, session: str, message: Message) -> list[Message]:
    """
    Return the messages of *session* up to the time of *message*, oldest first.

    The newest ANSWERED messages of the archive are returned, and all pending messages. *message* itself is left out.
    """
    intake.take_in()
    turns = [turn for pending in graph.pending() if (turn := graph.readable(pending))]
    said = graph.index.ask(last_messages, session, message.timestamp, ANSWERED)
    said += [m for turn in turns if turn.session == session for m in turn.messages]
    return sorted(
        (m for m in said if m.id != message.id and m.timestamp <= message.timestamp),
        key=lambda m: m.timestamp,
    )


def taken_back(done: CurationResult) -> str:
    return f" `omg undo {done.cycle}` takes it back."


@dataclass(frozen=True, slots=True)
class NoteAsked:
    """A note to make: its sentence, its type, and the day or days of its event (*when*)."""

    text: str
    title: str
    type: str
    when: str = ""


def remember_note(
    registry: Registry, graph: Graph, asked: NoteAsked, said: str, source: Source | None
) -> CurationResult:
    """
    Write the note that a call of omg_remember asks for.

    *said*: the user's message. *source*: the place of this message in the transcript. Raises BadInput, Locked.

    A web page may have talked the model into the call. For this reason, *said* decides the origin of the note:

        tool        *source* is None, so the user's message is not in the transcript
        user        one sentence of *said* states the note's text and days
        assistant   otherwise; the note is a fact or an episode, and its `proposes` is the type asked for
    """
    text, title = (
        visible(redact(with_labels(" ".join(given.split())))[0]) for given in (asked.text, asked.title)
    )
    if not text:
        raise BadInput("a note needs a `text` of one line")
    at = source.timestamp if source else registry.now_ms()
    day = day_of_ms(at, registry.zone)
    edit = Edit(
        op="create",
        title=title or title_of(text),
        description=text,
        type=asked.type if asked.type in TYPES else "fact",
        event=days_of_call(asked.when),
        sources=(source,) if source else (),
        origin="user",
        day=day,
    )
    spoken = Message("", "user", redact(said)[0] if source else "", at)
    if source is None:
        edit = as_others(edit, "tool")
    elif says_plainly(text, spoken, day) and names_days(spoken.spoken, edit.event, day):
        if not may_be_called(title, text):
            edit = replace(edit, title=title_of(text))
    else:
        edit = replace(as_others(edit, "assistant"), title=title or title_of(text), proposes=edit.type)
    with planning_under_lock(graph, registry.clock()) as plan:
        return applied(plan, [edit], registry.clock(), f"remembered {edit.title}")


def may_be_called(title: str, text: str) -> bool:
    """
    Whether *title* says only what *text* says.

    Returns False if *title* adds too many words. "Pay account 12345" is no title for the text "no".
    """
    words, told = told_words(title), told_words(text)
    return len(words - told) <= max(len(words & told), min(3, len(told) - 1))


def title_of(text: str) -> str:
    """*text* as a title, without "The user's" or "My" at the beginning: "Sister Ada lives in Ghent"."""
    title = short_title(ABOUT_THEM.sub("", text, count=1))
    return title[:1].upper() + title[1:]


def names_days(words: str, event: str | None, day: date) -> bool:
    """Whether *words*, said on *day*, name the days of *event*; True if *event* is None."""
    return event is None or any(span_text(w.start, w.end) == event for w in resolve_dates(words, day))


def days_of_call(when: object) -> str | None:
    """The `when` of a call as whole days; None if `when` is empty. Raises BadInput if `when` names no day."""
    text = str(when or "").strip()
    event = whole_days(text) if text else None
    if text and event is None:
        raise BadInput(
            f"`when` has to be a day, a month or a year (2026-03-05), or two of them with `..` between; it is {text!r}"
        )
    return event


# --- omg_correct: a person says that something remembered is wrong or has changed.
#
# The note changes at once if the user's own message says the new sentence, or just the change. Otherwise the
# correction is the assistant's proposal (plan/corrections.py), until the Observer finds that the user's words
# support the correction. If several notes may be meant, no note is changed, and the answer names the notes.


ANSWERED = 6  # how many messages before a yes are searched for the proposal
# How many notes are searched for the words, and how many are named if no note or several notes fit.
LOOKED_AT, NAMED = 20, 5
CHANGE_PROPOSED = (
    "[[{}]], which stays as it is: the user's message does not say just that. Ask them, quoting the new sentence as it is"
    " and no other proposal. The note changes if their whole answer is a yes, if their own words are found to say it, or if"
    " they run `omg confirm {}`."
)
VALUE_WORDS = 2  # most words of a bare value; a longer text may be a sentence
ONLY_VALUE = "`new` has to be a whole sentence; the note's present sentence is: {}"
LONGER = "[[{path}]] was written by hand, and its sentence says more than `old`: {was} If all of the sentence is wrong, pass it as `old`"


def correct_tool(
    intake: Intake, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Answer omg_correct: replace a sentence of a note, or propose to. *params*: old (a path, a title, or the wrong
    words), new (the right sentence), when (the days of *new*).
    """
    registry, message = intake.registry, mapping_in(context, "userMessage")
    old = str(params.get("old") or "").strip()
    new = visible(redact(with_labels(one_line(str(params.get("new") or ""))))[0])
    if not old or not new:
        raise BadInput("omg_correct needs `old` (the wrong words) and `new` (the right sentence)")
    if not said_by_user(message) or not is_remembered(context):
        raise BadInput("omg_correct needs a message of the user in this turn as its source; there is none")
    asked, session = sent_in(message, context, registry.now_ms()), str(context["sessionKey"])
    now = registry.clock()
    if accepted := accept(intake, graph, session, asked, new):
        told = f"{CORRECTED} [[{accepted.path}]]: {new}{taken_back(accepted)}"
        return {"text": told, "details": {"path": accepted.path}}
    before = said_before(intake, graph, session, asked)
    with planning_under_lock(graph, now) as plan:
        node, was = sentence_meant(plan, old, now)
        day = day_of_ms(asked.timestamp, graph.zone)
        if len(new.split()) <= VALUE_WORDS < len(was.split()) - 1 and new.isascii() and not FIRST.search(new):
            raise BadInput(ONLY_VALUE.format(was))
        event = days_of_call(params.get("when")) or moved_event(node, new, day)
        made = Correction(was, new, event if event != node.event else None, node.event)
        if as_read(was) == as_read(new) and made.event is None:
            raise BadInput(f"[[{node.path}]] already says this")
        plan.day, source = day, (Source(session, asked.id, asked.timestamp),)
        named = made.event in (None, moved_event(node, new, day)) or names_days(asked.spoken, made.event, day)
        said = says_correction(was, new, asked, day, before)
        if not (named and said):
            path = plan.apply(correction_proposed(node, made, source))
            if path is None:
                raise BadInput(f"{plan.dropped[-1]}; nothing was written")
            written = done_with(plan, path, now, f"proposed to correct {node.path}")
            told = f"{PROPOSED} {CHANGE_PROPOSED.format(node.path, path)}{taken_back(written)}"
            return {"text": told, "details": {"path": path}}
        done = draft_correction(plan, node.path, made, source)
        settle_proposals(plan, [p for p in graph.index.backlinks(node.path) if p.startswith("nodes/")])
        written = done_with(plan, done.path, now, f"corrected {done.path}")
    return {"text": told_of(done, made, written), "details": {"path": done.path}}


def told_of(done: Corrected, made: Correction, written: CurationResult) -> str:
    lines = [
        f"{CORRECTED} [[{done.path}]]: {made.says}",
        f"The note's history keeps the former sentence: {made.was}{taken_back(written)}",
    ]
    if done.left:
        lines.append(
            "The note also has these sentences, which may be wrong, too; correct them, or leave them:"
        )
        lines += [f"- {sentence}" for sentence in done.left[:NAMED]]
    return "\n".join(lines)


def moved_event(node: Node, new: str, day: date) -> str | None:
    """The days in *new* that replace the note's days; None if *new* names none or several."""
    if node.event is None:
        return None
    named = {(w.start, w.end) for w in resolve_dates(new, day)}
    spans = {span_text(*ends) for ends in named} - {node.event}
    return spans.pop() if len(spans) == 1 else None


def sentence_meant(plan: Plan, old: str, now: datetime) -> tuple[Node, str]:
    """
    The note that *old* means, and the note's sentence to correct. Raises BadInput or NotFound; the error names the
    notes that may be meant.
    """
    graph, name = plan.graph, link_target(old)
    if path := graph.index.resolve(name):
        return whole_note(plan, path)
    if several := graph.index.ambiguous(name):
        raise BadInput(several_text(graph, several))
    hits = [h.entry for h in graph.index.search(old, LOOKED_AT, now=now, how=ALONE)]
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
    more = told_words(was) - told_words(f"{node.title} {old}") and as_read(node.title) != as_read(old)
    if more and not is_untouched(graph, node.path):
        raise BadInput(LONGER.format(path=node.path, was=was))
    return node, was


def whole_note(plan: Plan, path: str) -> tuple[Node, str]:
    """
    The note at *path*, and its description. Raises BadInput for a page that OMG generates, and for a superseded
    note.
    """
    refuse_pages(plan.graph, path)
    node = plan.draft(path).node
    refuse_retired(node)
    return node, node.description


def best_fits(notes: Sequence[Node], old: str) -> list[tuple[Node, str]]:
    """
    The notes that *old* fits, each with the sentence to correct. Four tests are tried in turn, until a note passes:
    the note has the title *old*; says just *old*; contains *old* word for word; has a sentence with all words and
    days of *old*.
    """
    titled = [(n, n.description) for n in notes if as_read(n.title) == as_read(old)]
    held = [(n, was) for n in notes if (was := sentence_of(n, old))]
    same = [(n, was) for n, was in held if as_read(was).rstrip(".") == as_read(old).rstrip(".")]
    telling = [(n, was) for n in notes if (was := next(telling_sentences(n, old), ""))]
    return titled or same or held or telling


def sentence_of(node: Node, words: str) -> str:
    return sentence_with(words, node.description) or sentence_with(words, split_history(node.body)[0])


def telling_sentences(node: Node, old: str) -> Iterator[str]:
    """The sentences of *node* that have all words and days of *old*, however the days are written."""
    days = resolve_dates(old, node.updated) if node.updated else []
    for when in days:
        old = old.replace(when.phrase, " ")
    told = told_words(old)
    for text in (node.description, split_history(node.body)[0]) if told else ():
        for part in sentence_spans(text):
            said = f"{node.event or ''} {text[part]}"
            if told <= told_words(f"{node.title} {said}") and all(
                says_day(said, when.start) for when in days
            ):
                yield text[part].strip()


def shared_words(text: str, old: str) -> frozenset[str]:
    """The words of *old* that carry meaning and occur in *text*."""
    return told_words(text) & told_words(old)


def none_text(graph: Graph, near: Sequence[Entry], old: str) -> str:
    said = f"no note says {old!r}"
    if near:
        lines = [f"- [[{e.path}]] — {e.description}" for e in near[:NAMED]]
        return "\n".join([f"{said}; name one of these by its path, if one is meant:", *lines])
    if any(2 * len(shared_words(told.message.text, old)) > len(told_words(old)) for told in waiting(graph)):
        return (
            f"{said} yet, because OMG has not read the message in which the user said this. OMG will read that message"
            " and the present message by itself; nothing has to be done"
        )
    return said


def several_text(graph: Graph, paths: Sequence[str]) -> str:
    entries: list[Entry] = [e for p in paths[:NAMED] if (e := graph.index.entry(p))]
    lines = [f"- [[{e.path}]] — {e.description}" for e in entries]
    more = [f"and {len(paths) - NAMED} more"] if len(paths) > NAMED else []
    return "\n".join(["several notes say this; call again with the path of one as `old`:", *lines, *more])
