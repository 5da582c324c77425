"""omg_remember, omg_correct and omg_forget: what an agent may change, and on whose word."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import islice
from typing import Any

from ..curate import (
    CurationResult,
    applied,
    done_with,
    forget_selection,
    is_untouched,
    planning_under_lock,
    refuse_pages,
    refuse_retired,
    select_to_forget,
)
from ..dates.days import day_of_ms, says_day, span_text
from ..dates.rules import resolve_dates
from ..errors import BadInput, NotFound, how_many
from ..forget.erase import select_words
from ..forget.places import BLANK, holds_words
from ..forget.selection import Selection, notes_holding, said_again, select, told_before
from ..graph.graph import Graph
from ..identity import is_remembered, says_owner
from ..index.search import parse_query
from ..index.store import Entry
from ..inject.decide import TYPICAL
from ..inject.passages import find_said, quoted_passages, waiting
from ..inject.prompt import passage_line
from ..message.drop import to_epoch_ms
from ..message.envelope import BLANKED, CORRECTED, FORGOTTEN, PROPOSED, REMEMBERED
from ..message.turn import Message
from ..node.note import GENERATED, TYPES, Node, Source
from ..observe.reply import whole_days
from ..plan.corrections import (
    Corrected,
    Correction,
    correction_proposed,
    draft_correction,
    sentence_with,
    settle_proposals,
)
from ..plan.drafts import Plan
from ..plan.edits import Edit, as_read, one_line, short_title, split_history
from ..provenance import as_others
from ..rules.assertions import DEPENDENT, SUBJECT, holds, read_sentence, without_lead_in, written_sentences
from ..rules.corrections import is_fragment, is_same_but_for_value, put_in_place, says_change
from ..rules.observer import first_person
from ..rules.wording import in_third_person, title_for, with_absolute_dates
from ..secrets import redact
from ..text.characters import visible, with_labels
from ..text.words import denies, sentence_spans, split_sentences, told_words
from ..worker.intake import Intake
from ..worker.registry import Registry
from .reading import link_target, mapping_in, said_by_user

# --- One-use codes: a model asks to forget, and the user confirms it by writing the code.


CODE_LIVES_S = 900  # a forget code; long enough to read what would go, short enough to be forgotten


@dataclass(frozen=True, slots=True)
class Issued:
    """What a forget code stands for. *key*: of the identity whose graph it is."""

    key: str
    at: float  # monotonic seconds
    choice: str  # forget, everything, alone or redact
    paths: tuple[str, ...]  # none, where it is all that holds *words*
    words: str = ""
    asked: tuple[str, ...] = ()  # ids of the messages that ask for it and say nothing else


@dataclass(slots=True)
class Codes:
    """One-use codes that make a forget real, each for one identity."""

    issued: dict[str, Issued] = field(default_factory=dict)

    def issue(self, key: str, choice: str, paths: Sequence[str], words: str, asked: tuple[str, ...]) -> str:
        now = time.monotonic()
        self.issued = {c: i for c, i in self.issued.items() if now - i.at < CODE_LIVES_S}
        code = secrets.token_hex(3)
        self.issued[code] = Issued(key, now, choice, tuple(paths), words, asked)
        return code

    def redeem(self, code: str, key: str, said: str) -> Issued:
        """
        What *code* stands for. *said*: the user's own words in the turn that it is used in, "" where no user speaks.

        Raises BadInput; a code that the user has not written stays good.
        """
        code = code.strip().lower()
        known = self.issued.get(code)
        if known is None or known.key != key or time.monotonic() - known.at >= CODE_LIVES_S:
            raise BadInput("that code is unknown or has expired; ask again without a code for a new one")
        if not re.search(rf"(?<![a-z0-9]){code}(?![a-z0-9])", said.lower()):
            raise BadInput(
                "the user has to write the code themselves: show them what would go, with its codes, and call again"
                " when their message has one"
            )
        del self.issued[code]
        return known


# --- omg_remember: what the agent is asked to remember becomes a note at once.
#
# It is the user's where their own message says just that; else it is a proposal of the assistant's, until the observation of
# the turn finds that the user's words bear it out, or the user runs `omg confirm`.


AS_PROPOSAL = (
    ", as your proposal: the user did not say it in just these words. It becomes theirs once what they said bears it out,"
    " or they run `omg confirm {}`."
)
LEFT_OUT = " What looked like a password, a code or a key in it was not kept."


def remember_tool(
    registry: Registry, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes only what the user asked for in this turn; their message in the transcript is the source."""
    message = mapping_in(context, "userMessage")
    text, title, kind = (str(params.get(key) or "") for key in ("text", "title", "type"))
    if not said_by_user(message):
        raise BadInput("omg_remember needs a message of the user in this turn as its source; there is none")
    at = to_epoch_ms(message.get("timestamp")) or registry.now_ms()
    said = str(message.get("text") or "")
    source = Source(str(context["sessionKey"]), str(message["id"]), at)
    when = str(params.get("when") or "")
    done = remember_note(registry, graph, text, title, kind, said=said, source=source, when=when)
    if done.cycle is None:
        return {"text": f"[[{done.path}]] says so already.", "details": {"path": done.path}}
    waits = AS_PROPOSAL.format(done.path) if graph.vault.read(done.path).proposes else "."
    told = f"{REMEMBERED} [[{done.path}]]{waits}{LEFT_OUT * bool(redact(text)[1])}{taken_back(done)}"
    return {"text": told, "details": {"path": done.path}}


def taken_back(done: CurationResult) -> str:
    return f" `omg undo {done.cycle}` takes it back."


def remember_note(
    registry: Registry,
    graph: Graph,
    text: str,
    title: str,
    kind: str,
    *,
    said: str,
    source: Source | None,
    when: str,
) -> CurationResult:
    """
    Write *text* as a note of type *kind*, on the word of a user who *said* so in *source*. *when*: the day or days of
    what happens.

    A page may have talked a model into this. So the note is the user's only where *text* is a sentence of theirs; else
    it is the assistant's fact, which proposes to be of type *kind*. What has no source is a tool's. Raises BadInput,
    Locked.
    """
    text, title = (visible(redact(with_labels(" ".join(given.split())))[0]) for given in (text, title))
    if not text:
        raise BadInput("to remember something needs a `text`, one line")
    at = source.timestamp if source else registry.now_ms()
    day = day_of_ms(at, registry.zone)
    kind = kind if kind in TYPES else "fact"
    edit = Edit(
        op="create",
        title=title or title_of(text),
        description=text,
        type=kind,
        event=days_asked(when),
        sources=(source,) if source else (),
        origin="user",
        day=day,
    )
    spoken = redact(Message(source.id, "user", said, at).spoken)[0] if source else ""
    if source is None:
        edit = as_others(edit, "tool")
    elif holds_plainly(text, spoken, day) and names_days(spoken, edit.event, day):
        if not may_be_called(with_absolute_dates(title, day)[0], text):
            edit = replace(edit, title=title_of(text))
    else:
        edit = replace(as_others(edit, "assistant"), title=title or short_title(text), proposes=kind)
    with planning_under_lock(graph, registry.clock()) as plan:
        return applied(plan, [edit], registry.clock(), f"remembered {edit.title}")


def may_be_called(title: str, text: str) -> bool:
    """Whether *title* names what the user's *text* tells, and tells nothing by itself: "no" is not "Pay account 12345"."""
    words, told = told_words(title), told_words(text)
    return len(words - told) <= max(len(words & told), min(3, len(told) - 1))


def title_of(text: str) -> str:
    """What the rules call a note that says *text*: "Boss" for "The user's boss is Priya."; else its beginning."""
    found = read_sentence(first_person(text, "the user"))
    return (title_for(found, "") if found else "") or short_title(text)


def names_days(words: str, event: str | None, day: date) -> bool:
    """Whether *words*, said on *day*, name the days of *event*; True where there are none."""
    return event is None or any(span_text(w.start, w.end) == event for w in resolve_dates(words, day))


def days_asked(when: object) -> str | None:
    """*when* of a call as whole days; None for none. Raises BadInput for what names no day."""
    text = str(when or "").strip()
    event = whole_days(text) if text else None
    if text and event is None:
        raise BadInput(
            f"`when` is a day, a month or a year, such as 2026-03-05, or two with `..` between; not {text!r}"
        )
    return event


# --- omg_correct: a person says that something remembered is wrong or has changed.
#
# The note changes at once where the user's own message says just that, or just what changes; else the correction is a proposal of the assistant's
# (plan/corrections.py), until the observation of the turn finds that the user's words bear it out. Exactly one note is meant, or
# none is changed; what could be meant is named.


# "Remember that …", "please note: …", "and don't forget, …". What is about another's words goes on otherwise.
ASKS_TO_REMEMBER = re.compile(
    r"^(?:(?:and|also|so|ok|okay|please|can you|could you),? )*"
    r"(?:remember|memori[sz]e|note|keep in mind|don['’]t forget|write down|save)"
    r"(?: (?:this|down|please))*(?: that|[:,])? "
)
# "…, remember that.", "… Please keep it in mind."
ASKED_AFTER = re.compile(
    r"(?<!n['’]t)(?<!\bnot)(?<!\bnever),? (?:and |so |please |can you |could you )*(?:remember|memori[sz]e|note|keep|save|write|don['’]t forget)"
    r" (?:that|this|it)(?: (?:in mind|down|please))*$"
)
# "Correct your note: …", "please fix that: …". "Correct this: …" and "correct the mail: …" lead to a text that may be another's.
ASKS_TO_CORRECT = re.compile(
    r"^(?:please |can you |could you )?(?:correct|fix|change|update) (?:that|it|your (?:\w+ ){0,2}\w+)(?: please)?: "
)
# Notes that are looked into for the words, and that are named where none or several fit.
LOOKED_AT, NAMED = 20, 5
CHANGE_PROPOSED = (
    "[[{}]], which stays as it is: the user's message does not say just that. It changes once what they said bears it"
    " out, or they run `omg confirm {}`."
)
FRAGMENT = (
    "`new` is only part of a sentence, and not exactly one place in the note's is of its kind: write `new` as the whole"
    " sentence that is to stand there; now it says: {}"
)
LONGER = "[[{path}]] was written by hand, and the sentence says more: {was} Give all of it as `old`, if none of it holds"


def correct_tool(
    registry: Registry, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """*params*: old (a path, a title, or the words that do not hold), new (the sentence that does), when (its days)."""
    message = mapping_in(context, "userMessage")
    old = str(params.get("old") or "").strip()
    new = visible(redact(with_labels(one_line(str(params.get("new") or ""))))[0])
    if not old or not new:
        raise BadInput("omg_correct needs `old`, what is wrong, and `new`, the sentence that holds now")
    if not said_by_user(message) or not is_remembered(context):
        raise BadInput("omg_correct needs a message of the user in this turn as its source; there is none")
    at = to_epoch_ms(message.get("timestamp")) or registry.now_ms()
    asked = Message(str(message["id"]), "user", str(message.get("text") or ""), at)
    session, now = str(context["sessionKey"]), registry.clock()
    with planning_under_lock(graph, now) as plan:
        node, was = sentence_meant(plan, old, now)
        day = day_of_ms(at, graph.zone)
        new = whole_sentence(new, was, day)
        event = days_asked(params.get("when")) or moved_event(node, new, day)
        made = Correction(was, new, event if event != node.event else None, node.event)
        if as_read(was) == as_read(new) and made.event is None:
            raise BadInput(f"[[{node.path}]] says so already")
        plan.day, source = day, (Source(session, asked.id, at),)
        # A sentence of the user's own may still be about something else.
        about_it = shared_words(new, was) or is_same_but_for_value(was, new, day)
        named = made.event is None or names_days(asked.spoken, made.event, day)
        plain = about_it and named and holds_plainly(new, asked.spoken, day)
        moved = made.event in (None, moved_event(node, new, day))
        changed = moved and says_change(asked.spoken, was, new, day, alone=not asked.material)
        if not plain and not changed:
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


def whole_sentence(new: str, was: str, day: date) -> str:
    """*new*, or if it is only a value, *was* with it in place. Raises BadInput where nothing tells its place."""
    if not is_fragment(new, was):
        return new
    if (put := put_in_place(with_absolute_dates(new, day, ahead=True)[0], was)) is None:
        raise BadInput(FRAGMENT.format(was))
    return put


def holds_plainly(text: str, words: str, day: date) -> bool:
    """
    Whether a person who said *words* on that *day* said *text*: it is a whole sentence of theirs, to the letter but for how
    days are written and for "the user" in place of "I", and no question. An opening such as "No, " and what asks to
    remember or to correct it, in English, do not count: "Please remember that I play the cello, and that …"
    """

    def dated(sentence: str) -> str:
        return as_read(with_absolute_dates(sentence, day)[0]).rstrip(".!")

    wanted = dated(text)
    for sentence in split_sentences(words):
        said = dated(sentence)
        asked = ASKS_TO_REMEMBER.sub("", said)
        if said.endswith(("?", "？", "؟")):
            if asked == said:
                continue
            asked = asked.rstrip("?？؟")  # "Can you keep in mind that …?"
        forms = [said, asked, ASKED_AFTER.sub("", asked)]
        if forms[-1] != said:  # what they ask to remember may be two things
            forms += both_said(forms[-1])
        if sentence[0].isalpha():  # not in quotation marks, which `without_lead_in` takes off
            led = dated(without_lead_in(sentence))
            forms += [led, ASKS_TO_REMEMBER.sub("", led), ASKS_TO_CORRECT.sub("", led)]
        if wanted in forms or wanted in (in_third_person(f, "the user", "the assistant") for f in forms):
            return True
    return False


def both_said(text: str) -> Sequence[str]:
    """The two statements of *text*, "A, and that B" or "A and B"; none where the first may lend the second its sense."""
    if (join := re.search(r",? and( that)? ", text)) is None:
        return ()
    first, second = text[: join.start()], text[join.end() :]
    if not join[1] and not (SUBJECT.search(first) and SUBJECT.search(second)):
        return ()  # "fish and chips"
    # "Tom thinks I am rich and …", "I lose if Bob is …", "Ada's answer: …"
    lent = re.search(rf"\s(?:i|we|he|she|it|they|that)\b|:|\b{DEPENDENT.pattern}", first, re.I)
    if lent or denies(first) or any(holds(how, first) for how in ("introduces", "maybe")):
        return ()
    return first, second


def told_of(done: Corrected, made: Correction, written: CurationResult) -> str:
    lines = [
        f"{CORRECTED} [[{done.path}]]: {made.says}",
        f"Before, as its history has it: {made.was}{taken_back(written)}",
    ]
    if done.left:
        lines.append("It also says, which may not hold either; correct that too, or leave it:")
        lines += [f"- {sentence}" for sentence in done.left[:NAMED]]
    return "\n".join(lines)


def moved_event(node: Node, new: str, day: date) -> str | None:
    """The days in *new* that replace the note's days; None if it names none or several."""
    if node.event is None:
        return None
    named = {(w.start, w.end) for w in resolve_dates(new, day)}
    spans = {span_text(*ends) for ends in named} - {node.event}
    return spans.pop() if len(spans) == 1 else None


def sentence_meant(plan: Plan, old: str, now: datetime) -> tuple[Node, str]:
    """The note that *old* means, and its sentence. Raises BadInput, NotFound, naming notes."""
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
    more = told_words(was) - told_words(f"{node.title} {old}") and as_read(node.title) != as_read(old)
    if more and not is_untouched(graph, node.path):
        raise BadInput(LONGER.format(path=node.path, was=was))
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
            f"{said} yet: it was said a while ago, and is noted by itself together with what the user says in this message."
            " Nothing need be done"
        )
    return said


def several_text(graph: Graph, paths: Sequence[str]) -> str:
    entries: list[Entry] = [e for p in paths[:NAMED] if (e := graph.index.entry(p))]
    lines = [f"- [[{e.path}]] — {e.description}" for e in entries]
    more = [f"and {len(paths) - NAMED} more"] if len(paths) > NAMED else []
    return "\n".join(["several notes say that; call again with the path of the one as `old`:", *lines, *more])


ASK_USER = (
    "It cannot be taken back. Let the user choose: they answer with the code of their choice. Then call omg_forget with"
    " that code alone. "
)
SAID_NAMED, SAID_TOKENS = 3, 400  # messages quoted where there is no note, and what they may cost
WORDS_SHARE = 0.5  # of the words of the query: a quoted message has at least as many


def forget_tool(
    intake: Intake, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any], codes: Codes
) -> dict[str, Any]:
    message = mapping_in(context, "userMessage")
    if code := str(params.get("code") or "").strip():
        # A heartbeat, a sub-agent's report: such a turn comes later, too, and nobody has agreed in it.
        theirs = is_remembered(context) and said_by_user(message)
        said = Message("", "user", str(message.get("text") or ""), 0).spoken if theirs else ""
        chosen = codes.redeem(code, graph.identity.key, said)
        chosen = replace(chosen, asked=(*chosen.asked, *asking(message)))
        return forget_chosen(intake, graph, chosen, context)
    what = link_target(params.get("query") or params.get("id"))
    if not what:
        raise BadInput("omg_forget needs an `id` or a `query`, or the `code` of an earlier call")
    find = graph.index.resolve if params.get("query") else graph.index.find
    if (note := find(what)) is None:
        what = words_meant(graph, what)
        note = graph.index.resolve(what)
    asked = asking(message)
    by_path = note and "/" in what and note.rpartition("/")[2] == what.lower().rpartition("/")[2]
    words = None if by_path else words_anywhere(graph, what)
    held = select_to_forget(graph, matching=what) if words else None
    holding = sorted(notes_holding(graph, what)[0]) if words else []
    alike = [] if note or holding else notes_about(intake, graph, what, said=bool(words))
    if alike and words and not words.paths and set(words.messages) <= {str(message.get("id") or "")}:
        words = held = None  # only the message that asks has them
    if not note and not alike and not held:
        beside = said_of(intake, graph, what, asked_in=str(message.get("id") or ""))
        raise NotFound(f"nothing is remembered about {what!r}{beside}")
    found: dict[str, Selection] = {}
    if hits := [note] if note else alike:
        found["forget"] = select_to_forget(graph, ids=hits)
        if held and takes_more(held, found["forget"], asked):
            found["everything"] = held
    elif held:
        found["forget"] = held
    if hits := hits or holding:
        found["alone"] = select(graph, paths=hits, alone=True)
    if words:
        found["redact"] = words
    given = {
        choice: codes.issue(graph.identity.key, choice, () if taken.text else hits, taken.text, asked)
        for choice, taken in reversed(found.items())
    }
    lines = [choice_text(graph, choice, taken) for choice, taken in found.items()]
    again = [] if "everything" in found else said_again(graph, found["forget"], intake.registry.clock())
    lines += [f"Said again, and stays; with its very words as `query` it goes, too: {text}" for text in again]
    if alike:
        lines.append("The notes listed first were found by likeness; there may be more.")
    if said_by_user(message) and not asked:
        matching = any(taken.text and not taken.redacts for taken in found.values())
        goes = matching and holds_words(str(message.get("text") or ""), what)
        fate = "goes whole with everything that holds the words" if goes else "stays"
        lines.append(f"The message that asks for this says more, and {fate}.")
    lines += beyond_text([*found.values()], context)
    answers = " · ".join(f"{NAMES[choice]}: {code}" for choice, code in given.items())
    return {
        "text": "\n".join([*lines, ASK_USER + answers]),
        "details": {"code": given["forget"], "codes": given, "paths": list(found["forget"].paths)},
    }


NAMES = {
    "forget": "forget",
    "everything": "forget everything that holds the words",
    "alone": "only the notes",
    "redact": "only the words",
}


def words_meant(graph: Graph, query: str) -> str:
    """
    *query*, or without the words at its ends that carry no meaning ("everything about Heron"), if no note holds or is called
    *query* and one holds or is called the rest.
    """
    parts = query.split()
    told = [n for n, word in enumerate(parts) if told_words(word)]
    rest = " ".join(parts[told[0] : told[-1] + 1]) if told else ""
    for words in (query, rest):
        if len(words) > 1 and (graph.index.resolve(words) or notes_holding(graph, words)[0]):
            return words
    return query


def takes_more(held: Selection, other: Selection, asked: Sequence[str]) -> bool:
    """Whether *held* takes a note or a message that *other* leaves; both take the messages *asked*."""
    return not (set(held.paths) <= set(other.paths) and set(held.messages) <= {*other.messages, *asked})


def asking(message: Mapping[str, Any]) -> tuple[str, ...]:
    """The id of the user's *message*, if it is a request and says nothing else; else nothing."""
    if not said_by_user(message):
        return ()
    said = [*written_sentences(Message("", "user", str(message.get("text") or ""), 0).spoken)]
    more = any(map(read_sentence, said)) or sum(len(told_words(each)) > 1 for each in said) > 1
    return () if more else (str(message["id"]),)


def notes_about(intake: Intake, graph: Graph, query: str, *, said: bool) -> list[str]:
    """
    A few notes that have most of the words of *query*, which no note holds as they are. Where nobody *said* the words just
    so, half of them is enough, or a near meaning. A message said beside a note does not count.
    """
    found = graph.index.search(query, 5, now=intake.registry.clock(), walk=False)
    # a link beside is no word of it
    notes = [graph.vault.read(h.entry.path) for h in found]
    texts = {n.path: f"{n.title} {n.description} {n.full_body}" for n in notes}
    told = told_words(query)
    least = len(told) // 2 + 1 if said else max(1, (len(told) + 1) // 2)
    near = {h.entry.path for h in found if not said and (h.cosine or 0.0) > TYPICAL}
    return [p for p, text in texts.items() if p in near or len(told_words(text) & told) >= least]


def said_of(intake: Intake, graph: Graph, query: str, asked_in: str) -> str:
    """Messages about *query* that no note came of, for an error's text; not the message *asked_in* itself."""
    now = intake.registry.clock()
    parsed = parse_query(query, now.astimezone(graph.zone).date())
    found = find_said(graph, parsed, [], session="", now=now)
    about = [said for said in found if said.words >= WORDS_SHARE and said.message.id != asked_in]
    told = [*map(passage_line, islice(quoted_passages(graph, parsed, about, room=SAID_TOKENS), SAID_NAMED))]
    if not told:
        return ""
    return "\n".join(["; but this was said, and can be forgotten with its very words as `query`:", *told])


def words_anywhere(graph: Graph, words: str) -> Selection | None:
    with suppress(BadInput):
        return select_words(graph, words) or None if len(words.strip()) > 1 else None
    return None


# Notes of a choice that are named; of the others, how many there are, and which hold a person's own words.
LISTED, PERSONS_OWN = 10, " (with what the user wrote in it)"


def choice_text(graph: Graph, choice: str, what: Selection) -> str:
    """What a choice would take, for the user to read."""
    files, messages = how_many(len(what.paths), "file"), how_many(len(what.messages), "message")
    if what.redacts:
        return (
            f"Or only the words {what.text!r}, replaced by {BLANK} in {files} and {messages}; all else stays."
        )
    entries = [graph.index.entry(path) for path in what.paths[:LISTED]]
    written = [path for path in what.paths if not is_untouched(graph, path)]
    listed = [
        f"- [[{path}]]{described(entry)}{PERSONS_OWN * (path in written)}"
        + (f" (before: {before})" if (before := told_before(graph, path)) else "")
        for path, entry in zip(what.paths, entries, strict=False)
    ]
    more = [f"and {how_many(len(what.paths) - LISTED, 'more note')}"] if len(what.paths) > LISTED else []
    more += [f"- [[{path}]]{PERSONS_OWN}" for path in what.paths[LISTED:] if path in written]
    if choice == "alone":
        head = "Or only these notes; the messages they came from stay:"
    elif what.text and not what.paths and choice == "forget":
        return f"This would be forgotten: {messages}; no note says it."
    elif what.text:
        begun = "Or everything" if choice == "everything" else "This would be forgotten: everything"
        notes = how_many(len(what.paths), "note")
        head = f"{begun} that holds {what.text!r}, also inside longer words, and what came of it: {notes} and {messages}:"
    else:
        head = f"This would be forgotten{f', with {messages} that it came from' * bool(what.messages)}:"
    return "\n".join([head, *listed, *more])


def described(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f" — {entry.description}{f' ({entry.status})' if entry.status != 'active' else ''}"


def beyond_text(taken: Sequence[Selection], context: Mapping[str, Any]) -> list[str]:
    """What a forgetting cannot reach. Only the owner is told the path, which reveals their machine."""
    left = [
        f"[[{page}]] has it too, in what the user wrote there: they can mend it themselves."
        for page in dict.fromkeys(p for what in taken for p in what.left)
    ]
    if says_owner(context):
        beyond = dict.fromkeys(p for what in taken for p in what.beyond)
        return [*left, *(f"Not reached: {place}" for place in beyond)]
    return [
        *left,
        "Not reached: the gateway's own transcript, and files that the owner sees with `omg forget`.",
    ]


def forget_chosen(intake: Intake, graph: Graph, issued: Issued, context: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out what the user chose, on the notes as they are now."""
    what: Selection
    intake.take_in()  # else it is not known what came of messages that are on their way
    if issued.choice == "redact":
        what = select_words(graph, issued.words)
        told = f"{BLANKED} {BLANK} in {how_many(len(what.paths), 'file')} and {how_many(len(what.messages), 'message')}."
    elif issued.choice == "alone":
        what = select(graph, paths=issued.paths, alone=True)
        told = f"{FORGOTTEN} {how_many(len(what.paths), 'note')}. The messages they came from stay."
    else:
        about: dict[str, Any] = {"matching": issued.words} if issued.words else {"ids": issued.paths}
        gone = select_to_forget(graph, **about)
        asked = [id for id in issued.asked if set(graph.index.citing([id])) <= set(gone.paths)]
        what = select_to_forget(graph, **about, asked=asked)
        said = how_many(len(gone.messages), "message") if issued.words else "the messages they came from"
        told = f"{FORGOTTEN} {how_many(len(what.paths), 'note')} and {said}."
    forget_selection(intake, graph, what)
    return {"text": "\n".join([told, *beyond_text([what], context)]), "details": {"paths": list(what.paths)}}
