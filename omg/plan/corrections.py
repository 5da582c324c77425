"""
A sentence of a note said anew, because a person asked for it.

What it said goes to `## History` with its day. In a file that a person wrote in, the sentence and its properties change, and
every other byte stays. Which note is meant, and whether a person asked, is decided elsewhere (tools/correcting.py,
plan/proposals.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from ..dates.days import days_in, event_span, says_day
from ..errors import BadInput
from ..journal import Rebase
from ..node.fields import Source
from ..node.markdown import HISTORY_HEADING
from ..node.note import Node, head_of
from ..node.properties import load_properties, split_head
from ..text.sentences import sentence_spans
from ..text.words import told_words
from .bodies import place_of
from .drafts import PERSONS, Plan
from .edits import Edit, NoteDraft, merged_sources, short_title, split_history, with_history_lines

NEVER_SET = frozenset(("id", "origin", "links", "aliases"))  # of a file that a person wrote in


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence of a note, and what takes its place."""

    was: str
    says: str
    event: str | None = None  # day or days of what happens, if they change
    event_was: str | None = None


@dataclass(frozen=True, slots=True)
class Corrected:
    """Where it stands now, and what else the note says with words that were taken out."""

    path: str
    left: tuple[str, ...] = ()


def sentence_with(words: str, text: str) -> str:
    """The sentence of *text* that *words* stand in, or those over which they reach; "" if they do not stand there."""
    at = place_of(words, text)
    if at is None:
        return ""
    parts = [part for part in sentence_spans(text) if part.stop > at.start and part.start < at.stop]
    return text[parts[0].start : parts[-1].stop].strip() if parts else ""


def draft_correction(plan: Plan, path: str, made: Correction, sources: tuple[Source, ...]) -> Corrected:
    """Draft *made* in the note at *path*, or in one that takes its place where a tool or the assistant had made it."""
    draft = plan.draft(path)
    if draft.node.origin not in PERSONS:
        return Corrected(take_place(plan, draft.node, made, sources))
    node, line = corrected(draft.node, made, sources, plan)
    was, now = head_of(draft.node), head_of(node)
    changed = {key: value for key, value in now.items() if was.get(key) != value}
    if draft.ours:
        if holds_taken(node.title, made) and not draft.touched:
            named = Edit("update", title=short_title(made.says), description="", sets=frozenset(["title"]))
            node = plan.renamed(node, named, draft.node, stays=False)
        path = plan.rewrite(draft, node, Rebase(set=changed, history=line))
    else:
        path = amend_persons(plan, draft, made, changed, line)
    main = split_history(plan.drafts[path].node.body)[0]
    others = [main[part].strip() for part in sentence_spans(main)]
    return Corrected(path, tuple(s for s in others if s not in made.says and holds_taken(s, made)))


def corrected(old: Node, made: Correction, sources: tuple[Source, ...], plan: Plan) -> tuple[Node, str]:
    """*old* with *made* in it, and the line of its History that says what it said."""
    main, lines = split_history(old.body)
    event = made.event or old.event
    said = old.description.replace(made.was, made.says, 1)
    was = made.was if said == old.description else old.description
    told = not event_span(old.event) or any(says_day(was, day) for day in event_span(old.event) or ())
    when = f" (on {old.event})" if event != old.event and not told else ""
    line = f"- {old.updated or old.created or plan.day}: {was}{when}"
    node = replace(
        old,
        description=said,
        event=event,
        status="active" if old.status == "dormant" else old.status,
        updated=plan.day,
        sources=merged_sources(old.sources, sources),
        body=with_history_lines(main.replace(made.was, made.says, 1), (*lines, line)),
    )
    return node, line


def amend_persons(
    plan: Plan, draft: NoteDraft, made: Correction, changed: dict[str, object], line: str
) -> str:
    """The same in a file that a person wrote in: of its head only what stands there already, and the day."""
    head, start = split_head(draft.text)
    main, mark, history = draft.text[start:].partition(HISTORY_HEADING)
    if made.was not in main and made.was not in draft.node.description:
        raise BadInput(
            f"{draft.node.path}.md was written by hand, and the sentence spans lines; change it in the file"
        )
    there = load_properties(draft.text[head])
    kept = {
        key: value
        for key, value in changed.items()
        if key not in NEVER_SET and (key in there or (key == "event" and there))
    }
    text = draft.text[:start] + main.replace(made.was, made.says, 1) + mark + history
    return plan.rewrite(replace(draft, text=text), draft.node, Rebase(set=kept, history=line))


def take_place(plan: Plan, old: Node, made: Correction, sources: tuple[Source, ...]) -> str:
    """What a tool or the assistant said is corrected by a note of the person's own, and leads to it."""
    edit = Edit(
        "create",
        title=short_title(made.says),
        description=made.says,
        type=old.type,
        event=made.event or old.event,
        sources=sources,
        origin="user",
    )
    path = plan.create(edit, supersedes=(old.path,))
    if path is None:
        raise BadInput(f"{plan.dropped[-1]}; nothing was written")
    plan.mark_superseded(old.path, path)
    return path


def holds_taken(text: str, made: Correction) -> bool:
    """Whether *text* has words or days that *made* took out."""
    gone = told_words(made.was) - told_words(made.says)
    return bool(told_words(text) & gone) or any(says_day(text, day) for day in taken_days(made))


def taken_days(made: Correction) -> frozenset[date]:
    """The days that hold no more."""
    was, now = set(event_span(made.event_was) or ()), set(event_span(made.event) or ())
    return (days_in(made.was) | (was if now else set())) - days_in(made.says) - now
