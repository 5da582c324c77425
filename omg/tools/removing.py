"""
Answers omg_forget and `/omg forget`: shows what each choice would remove, with a code, and removes what a code
confirms.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ..curate import forget_selection, is_untouched, select_to_forget, was_deleted
from ..errors import BadInput, NotFound, how_many
from ..forget.places import BLANK, Holding, holding, holds_words
from ..forget.selection import Selection, Wanted, notes_holding, said_again, select, select_words, told_before
from ..graph.graph import Graph
from ..identity import is_remembered, says_owner
from ..index.search import ALONE
from ..index.store import Entry
from ..inject.decide import TYPICAL
from ..inject.prompt import passage_line
from ..message.consent import is_code
from ..message.envelope import BLANKED, FORGOTTEN
from ..message.statements import refuses, statements_of
from ..message.turn import Message
from ..text.words import told_words
from ..worker.intake import Intake
from .reading import link_target, mapping_in, message_in, said_about, said_by_user, sent_in

# --- One-use codes: a model asks to forget, and the user confirms it by writing the code.


CODE_LIVES_S = 900  # how long a forget code is valid: long enough to read the choices


@dataclass(frozen=True, slots=True)
class Issued:
    """The choice that a forget code stands for. *key*: the key of the identity that owns the graph."""

    key: str
    at: float  # monotonic seconds
    choice: str  # forget, everything, alone or redact
    paths: tuple[str, ...]  # empty if the choice removes everything that holds *words*
    words: str = ""
    asked: tuple[str, ...] = ()  # ids of messages that only ask to forget
    by: str = ""  # the id of the sender who asked


@dataclass(slots=True)
class Codes:
    """One-use codes that confirm a forgetting, each for one identity."""

    issued: dict[str, Issued] = field(default_factory=dict)

    def issue(self, issued: Issued) -> str:
        self.issued = {c: i for c, i in self.issued.items() if issued.at - i.at < CODE_LIVES_S}
        code = secrets.token_hex(3)
        self.issued[code] = issued
        return code

    def redeem(self, code: str, key: str, message: Message | None) -> Issued:
        """
        Return the choice that *code* stands for, and let *code* expire. *message*: the user's message in the turn
        that uses *code*; None if no user speaks.

        Raises BadInput if *code* is unknown or expired, or is not the user's whole message. In the last case *code*
        stays valid.
        """
        code = code.strip().lower()
        known = self.issued.get(code)
        if known is None or known.key != key or time.monotonic() - known.at >= CODE_LIVES_S:
            raise BadInput("that code is unknown or has expired; ask again without a code for a new one")
        if message is None or not is_code(message, code) or known.by not in ("", message.sender_id):
            raise BadInput(
                "the user who asked has to write the code themselves, as their whole message: show them each choice with its code, and"
                " call again when their message is one of the codes and nothing else"
            )
        del self.issued[code]
        return known


ASK_USER = (
    "Forgetting cannot be undone. Let the user choose: they answer with the code of their choice and nothing else. Then call"
    " omg_forget with that code alone. "
)


def forget_tool(
    intake: Intake, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any], codes: Codes
) -> dict[str, Any]:
    message = mapping_in(context, "userMessage")
    if code := str(params.get("code") or "").strip():
        # In a heartbeat or a sub-agent's report, no person agrees to anything.
        theirs = is_remembered(context) and said_by_user(message)
        chosen = codes.redeem(code, graph.identity.key, sent_in(message, context) if theirs else None)
        chosen = replace(chosen, asked=(*chosen.asked, *asking(message)))
        return forget_chosen(intake, graph, chosen, context)
    meant = what_is_meant(intake, graph, params, message)
    found = choices_for(graph, meant)
    key, now, by = graph.identity.key, time.monotonic(), sent_in(message, context).sender_id
    given = {
        choice: codes.issue(
            Issued(key, now, choice, () if taken.text else tuple(meant.notes), taken.text, meant.asked, by)
        )
        for choice, taken in reversed(found.items())
    }
    lines = [choice_text(graph, choice, taken) for choice, taken in found.items()]
    again = [] if "everything" in found else said_again(graph, found["forget"], intake.registry.clock())
    lines += [
        f"Another message says the same and is kept; to forget that message, pass its exact words as `query`: {text}"
        for text in again
    ]
    if meant.alike:
        lines.append("The notes listed first were found by likeness; there may be more.")
    if said_by_user(message) and not meant.asked:
        matching = any(taken.text and not taken.redacts for taken in found.values())
        goes = matching and holds_words(str(message.get("text") or ""), meant.what)
        fate = (
            "That whole message is forgotten if the user chooses to forget everything that holds the words."
            if goes
            else "That message is kept."
        )
        lines.append(f"The message with the request to forget also says other things. {fate}")
    lines += beyond_text([*found.values()], context)
    answers = " · ".join(f"{NAMES[choice]}: {code}" for choice, code in given.items())
    return {
        "text": "\n".join([*lines, ASK_USER + answers]),
        "details": {"code": given["forget"], "codes": given, "paths": list(found["forget"].paths)},
    }


@dataclass(frozen=True, slots=True)
class Meant:
    """The notes and words that a request to forget may mean. *alike*: the *named* notes were found by likeness."""

    what: str
    named: list[str]  # the note with the name asked for, or notes like it
    holding: list[str]  # the notes that hold the words
    alike: bool
    words: Selection | None  # where the words are; None: nowhere, or the request gives a note's path
    held: Selection | None  # everything that holds the words; None if only the message that asks does
    asked: tuple[str, ...]  # id of the message that asks, if it says nothing else

    @property
    def notes(self) -> list[str]:
        return self.named or self.holding


def what_is_meant(
    intake: Intake, graph: Graph, params: Mapping[str, Any], message: Mapping[str, Any]
) -> Meant:
    """
    The notes and words that *params* name. Raises BadInput if *params* name nothing, NotFound if nothing of that name
    is remembered.
    """
    what, asked_in = link_target(params.get("query") or params.get("id")), str(message.get("id") or "")
    if not what:
        raise BadInput("omg_forget needs an `id` or a `query`, or the `code` of an earlier call")
    note = (graph.index.resolve if params.get("query") else graph.index.find)(what)
    what, note, held = note_and_places(graph, what, note or (what if was_deleted(graph, what) else None))
    words = words_anywhere(graph, held) if held else None
    notes = sorted(notes_holding(graph, held)[0]) if held and words else []
    alike = [] if note or notes else notes_about(intake, graph, what, said=bool(words))
    if alike and words and not words.paths and set(words.messages) <= {asked_in}:
        words = None  # only the asking message has the words
    all_of_it = select_to_forget(graph, matching=what, held=held) if words else None
    if not note and not alike and not all_of_it:
        beside = said_of(intake, graph, what, asked_in=asked_in)
        raise NotFound(f"nothing is remembered about {what!r}{beside}")
    return Meant(what, [note] if note else alike, notes, bool(alike), words, all_of_it, asking(message))


def note_and_places(graph: Graph, what: str, note: str | None) -> tuple[str, str | None, Holding | None]:
    """
    Find out what a request to forget *what* means.

    Returns `(words, path, places)`:
    - words: the words to search for, such as "Heron" for "everything about Heron" (see `words_meant`)
    - path: the note with this name, or None
    - places: the notes and messages that hold the words; None if *what* is the path of a note

    *note*: the path of the note, if the caller knows it. Then the words are all of *what*.
    """
    held = words_meant(graph, what) if note is None else None
    what = held.words if held else what
    note = note or graph.index.resolve(what)
    if note and "/" in what and note.rpartition("/")[2] == what.lower().rpartition("/")[2]:
        return what, note, None
    return what, note, held or holding(graph, what)


def choices_for(graph: Graph, meant: Meant) -> dict[str, Selection]:
    """Choice → the notes and messages that the choice removes. The user picks one choice."""
    found: dict[str, Selection] = {}
    if meant.named:
        found["forget"] = select_to_forget(graph, ids=meant.named)
        if meant.held and takes_more(meant.held, found["forget"], meant.asked):
            found["everything"] = meant.held
    elif meant.held:
        found["forget"] = meant.held
    if meant.notes:
        found["alone"] = select(graph, Wanted(meant.notes, alone=True))
    if meant.words:
        found["redact"] = meant.words
    return found


NAMES = {
    "forget": "forget",
    "everything": "forget everything that holds the words",
    "alone": "only the notes",
    "redact": "only the words",
}


def words_meant(graph: Graph, query: str) -> Holding:
    """
    Find the notes and messages that hold *query*, or *query* without stop words at both ends.

    "everything about Heron" becomes "Heron" if both are true:
    - No note has the longer text in its text or as its name.
    - A note has the shorter text in its text or as its name.
    """
    parts = query.split()
    told = [n for n, word in enumerate(parts) if told_words(word)]
    rest = " ".join(parts[told[0] : told[-1] + 1]) if told else ""

    def is_meant(held: Holding) -> bool:
        return bool(graph.index.resolve(held.words) or notes_holding(graph, held)[0])

    whole = holding(graph, query)
    if rest in ("", query) or is_meant(whole):
        return whole
    held = holding(graph, rest)
    return held if len(rest) > 1 and is_meant(held) else whole


def takes_more(held: Selection, other: Selection, asked: Sequence[str]) -> bool:
    """
    Whether *held* removes a note or a message that *other* leaves. The messages *asked* do not count, because they
    are removed in both cases.
    """
    return not (set(held.paths) <= set(other.paths) and set(held.messages) <= {*other.messages, *asked})


def asking(message: Mapping[str, Any]) -> tuple[str, ...]:
    """The id of the user's *message* if the message asks for something and says nothing else; otherwise nothing."""
    if not said_by_user(message):
        return ()
    said = [s.text for s in statements_of(message_in(message)) if s.governed != "passed on"]
    requests = [text for text in said if refuses(text)]
    other = [text for text in said if text not in requests and len(told_words(text)) > (not requests)]
    return () if len(other) > (not requests) else (str(message["id"]),)


def notes_about(intake: Intake, graph: Graph, query: str, *, said: bool) -> list[str]:
    """
    Find up to five notes that resemble *query*. Called if no note has the exact words of *query*.

    *said*: whether a message has the exact words of *query*. How much a note must resemble *query*:
    - If *said*, the note has more than half of the words.
    - Otherwise, half of the words or a similar meaning is enough.
    """
    found = graph.index.search(query, 5, now=intake.registry.clock(), how=ALONE)
    # titles of linked notes are not searched
    notes = [graph.vault.read(h.entry.path) for h in found]
    texts = {n.path: f"{n.title} {n.description} {n.full_body}" for n in notes}
    told = told_words(query)
    least = len(told) // 2 + 1 if said else max(1, (len(told) + 1) // 2)
    near = {h.entry.path for h in found if not said and (h.cosine or 0.0) > TYPICAL}
    return [p for p, text in texts.items() if p in near or len(told_words(text) & told) >= least]


def said_of(intake: Intake, graph: Graph, query: str, asked_in: str) -> str:
    """
    Messages about *query* that have no note, as the end of an error's text. The message with the id *asked_in* is
    left out.
    """
    told = [*map(passage_line, said_about(graph, query, [], intake.registry.clock(), asked_in))]
    if not told:
        return ""
    return "\n".join(["; but this was said. To forget a message, pass its exact words as `query`:", *told])


def words_anywhere(graph: Graph, held: Holding) -> Selection | None:
    with suppress(BadInput):
        return select_words(graph, held.words, held) or None if len(held.words.strip()) > 1 else None
    return None


# How many notes of a choice are named (the others are counted), and the mark of a note with a person's own words.
LISTED, PERSONS_OWN = 10, " (with what the user wrote in it)"


def choice_text(graph: Graph, choice: str, what: Selection) -> str:
    """What *choice* would remove or redact, as text for the user."""
    files, messages = how_many(len(what.paths), "file"), how_many(len(what.messages), "message")
    if what.redacts:
        return f"Or only the words {what.text!r}, replaced by {BLANK} in {files} and {messages}; everything else stays."
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
        return f"This would be forgotten: {messages}; no note has the words."
    elif what.text:
        begun = "Or everything" if choice == "everything" else "This would be forgotten: everything"
        notes = how_many(len(what.paths), "note")
        head = f"{begun} that holds {what.text!r}, also inside longer words, and the notes made from such messages: {notes} and {messages}:"
    else:
        head = f"This would be forgotten{f', with {messages} that it came from' * bool(what.messages)}:"
    stays = [
        f"- this part of a message goes: {gone!r}; this part stays: {left!r}" for _, left, gone in what.cut
    ]
    return "\n".join([head, *listed, *more, *stays])


def described(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f" — {entry.description}{f' ({entry.status})' if entry.status != 'active' else ''}"


def beyond_text(taken: Sequence[Selection], context: Mapping[str, Any]) -> list[str]:
    """
    The files that a forgetting cannot change. Only the owner is told their paths, because paths say something about
    the owner's machine.
    """
    left = [
        f"[[{page}]] has the words too, in text that the user wrote there: the user can remove that text."
        for page in dict.fromkeys(p for what in taken for p in what.left)
    ]
    if says_owner(context):
        beyond = dict.fromkeys(p for what in taken for p in what.beyond)
        return [*left, *(f"The text may still be in {place}" for place in beyond)]
    return [
        *left,
        "The text may still be in the gateway's own transcript, and in other files that OMG does not change. The owner"
        " can run `omg forget`, which lists these files before it removes anything.",
    ]


def forget_chosen(intake: Intake, graph: Graph, issued: Issued, context: Mapping[str, Any]) -> dict[str, Any]:
    """Forget what the user chose, in the notes as they are now."""
    what: Selection
    intake.take_in()  # otherwise notes from messages in the spool would be missed
    if issued.choice == "redact":
        what = select_words(graph, issued.words)
        told = f"{BLANKED} {BLANK} in {how_many(len(what.paths), 'file')} and {how_many(len(what.messages), 'message')}."
    elif issued.choice == "alone":
        what = select(graph, Wanted(issued.paths, alone=True))
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
