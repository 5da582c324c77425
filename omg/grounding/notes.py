"""
An edit as its sources allow it: who it comes from, what of it stays, and whether it may change a note.

Not here: reading an edit (observe/reply.py), and drafting it (plan/drafts.py). One rule: what no person said becomes
no wish, decision, project or trait of theirs, and changes no note that a person's word made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from ..dates.days import event_span
from ..message.turn import Message
from ..node.fields import Source
from ..plan.bodies import with_sentences
from ..plan.drafts import NEEDS_USER
from ..plan.edits import Edit, merged_sources, one_line
from ..text.characters import visible
from ..text.words import Words, told_words
from .judge import Statement, foreign_days, foreign_words, grounded_text, is_persons, statement, whose
from .sight import PERSONS, Ground, Sight
from .statements import stated_in

SHORT_TITLE_CHARS = 60
# Of a statement's words, those that others have and the person has not, where it is noted in the person's own words.
ADDED, QUOTE_CHARS = 0.34, 300
ANSWER_CHARS = 200  # of the words in which a proposal was taken up


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the note that an edit changes."""

    origin: str | None
    type: str
    text: str  # title, description, and what of its body was shown
    path: str | None = None  # None: one of the same reply


class Ungrounded(ValueError):
    """Why an edit is not followed. For the log; no conversation text in it."""


def grounded_edit(edit: Edit, cited: Sequence[Message], sight: Sight, target: Known | None = None) -> Edit:
    """
    *edit* with its origin, and without what none of its sources says. *target*: the note that it changes. Raises
    Ungrounded where a change of a note rests on nothing.
    """
    edit = replace(
        edit, title=visible(edit.title), description=visible(edit.description), body=visible(edit.body)
    )
    known = target.text if target and target.origin in PERSONS else ""
    ground = sight.ground(cited, known)
    said = statement(edit.description or edit.body or edit.title or known)
    if not edit.description and edit.op == "update":
        return grounded_addition(edit, ground, sight, target)
    if is_persons(said, ground, sight):
        origin = "human" if ground.by_hand else "user"
        accepted = rests_on_proposal(said, ground)
        edit = with_proposals(edit, cited, sight) if accepted else edit
        kept = grounded_parts(replace(edit, origin=origin), ground, sight)
        return beside_tools_note(kept, sight, target, accepted=accepted)
    if (own := in_own_words(edit, said, cited, ground, sight, target)) is not None:
        return own
    origin = whose(said, ground, sight)
    if edit.op != "create" and (target is None or not may_change(origin, said.words, target, ground, sight)):
        raise Ungrounded(f"{edit.op} of a note, with what none of its sources says")
    made = as_others(replace(edit, origin=origin))
    return with_answer(made, cited, sight) if origin == "assistant" else made


def with_answer(edit: Edit, cited: Sequence[Message], sight: Sight) -> Edit:
    """*edit*, of what the assistant proposed, with the words in which the person took that up, and their source."""
    answers = [m for m in sight.messages if m.role == "user" and sight.answered(m) in cited]
    if not answers:
        return edit
    who = answers[-1].sender or "The user"
    told = f"{who}'s answer: “{one_line(sight.own[answers[-1]])[:ANSWER_CHARS]}”"
    body = edit.body or (edit.description if edit.op == "create" else "")
    return replace(with_sources(edit, after=answers[-1:]), body=with_sentences(body, told))


def rests_on_proposal(said: Statement, ground: Ground) -> bool:
    """Whether the person says some of it only by taking up what was proposed."""
    return bool(Words(ground.accepted).of(said.words) - Words(ground.said.all | ground.names).of(said.words))


def with_proposals(edit: Edit, cited: Sequence[Message], sight: Sight) -> Edit:
    """*edit*, of what a person says, with the proposals that they took up as its sources."""
    proposals = map(sight.answered, (m for m in cited if m.role == "user"))
    return with_sources(edit, before=[m for m in proposals if m is not None])


def with_sources(edit: Edit, before: Sequence[Message] = (), after: Sequence[Message] = ()) -> Edit:
    """*edit* with those messages of its conversation as sources, too."""
    session = edit.sources[0].session
    first, last = (
        tuple(Source(session, m.id, m.timestamp) for m in said if m.id) for said in (before, after)
    )
    return replace(edit, sources=merged_sources(first, (*edit.sources, *last)))


def in_own_words(
    edit: Edit, said: Statement, cited: Sequence[Message], ground: Ground, sight: Sight, target: Known | None
) -> Edit | None:
    """
    *edit* as a note that quotes the person, where all that it says is theirs but for a few words that others have: what a
    model adds beside a page takes nothing from what they said. None where more is not theirs.
    """
    added = foreign_words(said, ground, sight)
    rest = replace(said, words=said.words - added)
    if not added or len(added) > ADDED * len(said.words) or not is_persons(rest, ground, sight):
        return None
    people = [m for m in cited if m.role == "user"]
    stated = [s for m in people for s in stated_in(sight.own[m]) if Words(told_words(s)).of(rest.words)]
    quote = one_line(" ".join(stated))
    if len(quote) > QUOTE_CHARS or 3 * len(Words(told_words(quote)).of(rest.words)) < 2 * len(rest.words):
        return None
    own = replace(
        edit,
        op="create",
        target=None,
        description=f"{people[0].sender or 'The user'}: “{quote}”",
        links=(*edit.links, target.path) if target and target.path else edit.links,
        origin="human" if ground.by_hand else "user",
    )
    if edit.op != "create" or title_is_foreign(edit.title, own, ground, sight):
        own = replace(own, title=short_title(quote))
    return grounded_parts(own, ground, sight)


def grounded_addition(edit: Edit, ground: Ground, sight: Sight, target: Known | None) -> Edit:
    """An update without a description: what it adds, and that something is over, must have been said."""
    told = told_words(f"{edit.body} {edit.title if 'title' in edit.sets else ''}")
    said = statement(f"{edit.body} {edit.title}")
    cut = grounded_parts(replace(edit, origin="human" if ground.by_hand else "user"), ground, sight)
    if target and "title" not in cut.sets:
        cut = replace(cut, title=target.text.partition("\n")[0])
    if not (cut.body or cut.sets or cut.drop or cut.links or cut.tags):
        raise Ungrounded("update of a note, with what none of its sources says")
    if edit.body and cut.body:
        return beside_tools_note(cut, sight, target)
    if not edit.body and ground.states and "tool" not in ground.roles:
        subject = ground.stated.of(told_words(target.text if target else ""))
        if not sight.foreign or ground.accepted or subject:
            return beside_tools_note(cut, sight, target)
    origin = whose(said, ground, sight)
    if not told or target is None or not may_change(origin, told, target, ground, sight):
        raise Ungrounded("update of a note, with what none of its sources says")
    return as_others(replace(edit, origin=origin))


def may_change(origin: str, words: frozenset[str], target: Known, ground: Ground, sight: Sight) -> bool:
    """Whether what a tool or the assistant says changes *target*: no person's note, and it is said in one place."""
    if target.origin in PERSONS or target.type in NEEDS_USER:
        return False
    if origin == "assistant":
        return target.origin == "assistant" and 2 * len(Words(ground.assistant).of(words)) >= len(words)
    return any(2 * len(result.of(words)) >= len(words) for result in sight.results)


def as_others(edit: Edit, target: Known | None = None) -> Edit:
    """*edit* as what a tool or the assistant says: a fact or an episode at the most, as its *target* is."""
    if target and target.type not in NEEDS_USER:
        return replace(edit, type=target.type, sets=edit.sets - {"type"})
    edit = replace(edit, sets=edit.sets - {"type"} if edit.type in NEEDS_USER else edit.sets)
    return replace(edit, type="fact", priority="medium") if edit.type in NEEDS_USER else edit


def beside_tools_note(edit: Edit, sight: Sight, target: Known | None, *, accepted: bool = False) -> Edit:
    """
    What a person says of a tool's note is a note of its own, which leads there; so of the assistant's, beside a tool, or
    where they have *accepted* what it says.
    """
    if target is None or edit.op == "create" or target.origin in PERSONS:
        return edit
    if not edit.description:  # a title or a type alone makes it nobody else's
        return edit if not sight.foreign else as_others(replace(edit, origin=target.origin or "tool"), target)
    if target.origin == "assistant" and not sight.foreign and not accepted:
        return edit  # it stays the assistant's, brought up to date
    links = (*edit.links, target.path) if target.path else edit.links
    return replace(edit, op="create", target=None, links=links)


def grounded_parts(edit: Edit, ground: Ground, sight: Sight) -> Edit:
    """What a person said, without the title, sentences, tags and days that they did not say."""
    kept = Words(told_words(edit.description))
    title, sets = edit.title, edit.sets
    if title_is_foreign(title, edit, ground, sight):
        title = short_title(edit.description) or title
        sets -= frozenset() if edit.description else {"title"}
    gone = told_words(" ".join(edit.drop))
    unasked = sight.foreign and not ground.accepted  # then nothing goes that the person does not speak of
    drop = () if unasked and 2 * len(ground.stated.of(gone)) < len(gone) else edit.drop
    if unasked and not edit.body and 2 * len(ground.stated.of(ground.known)) < len(ground.known):
        sets -= {"body"}
    body = grounded_text(edit.body, kept.all, ground, sight) if edit.body else ""
    told = ground.own | Words(ground.known) | kept
    tags = tuple(
        tag
        for tag in edit.tags
        if not (
            sight.foreign
            and told_words(re.sub("[-_/]", " ", tag)) - told.of(told_words(re.sub("[-_/]", " ", tag)))
        )
    )
    event = edit.event
    if event and foreign_days(days_of(event), ground, sight):
        event, sets = None, sets - {"event"}
    return replace(edit, title=title, body=body, tags=tags, event=event, sets=sets, drop=drop)


def title_is_foreign(title: str, edit: Edit, ground: Ground, sight: Sight) -> bool:
    said = statement(title, told_words(edit.description))
    if not said.words:
        return False
    return bool(foreign_words(said, ground, sight)) or (
        sight.foreign and edit.op == "create" and not is_persons(statement(title), ground, sight)
    )


def origin_mark(origin: str | None) -> str:
    """What a reader is told of a note that no person's word made; "" of all others."""
    if origin == "tool":
        return "from a tool or a page, not from the user"
    return "said by the assistant" if origin == "assistant" else ""


def short_title(description: str) -> str:
    """The beginning of *description*, as a title."""
    text = (
        description
        if len(description) <= SHORT_TITLE_CHARS
        else description[:SHORT_TITLE_CHARS].rpartition(" ")[0]
    )
    return text.rstrip(" .,;:")


def days_of(event: str) -> list[date]:
    return list(dict.fromkeys(event_span(event) or ()))
