"""omg_forget and `/omg forget`: what a forgetting would take, with a code for each choice, and what a code makes real."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ..curate import forget_selection, is_untouched, select_to_forget, was_deleted
from ..errors import BadInput, NotFound, how_many
from ..forget.places import BLANK, holds_words
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
    by: str = ""  # the id of the sender who asked


@dataclass(slots=True)
class Codes:
    """One-use codes that make a forget real, each for one identity."""

    issued: dict[str, Issued] = field(default_factory=dict)

    def issue(self, issued: Issued) -> str:
        self.issued = {c: i for c, i in self.issued.items() if issued.at - i.at < CODE_LIVES_S}
        code = secrets.token_hex(3)
        self.issued[code] = issued
        return code

    def redeem(self, code: str, key: str, message: Message | None) -> Issued:
        """
        What *code* stands for. *message*: the user's in the turn that it is used in, None where no user speaks.

        Raises BadInput; a code that is not the user's whole message stays good.
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
    "It cannot be taken back. Let the user choose: they answer with the code of their choice and nothing else. Then call"
    " omg_forget with that code alone. "
)


def forget_tool(
    intake: Intake, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any], codes: Codes
) -> dict[str, Any]:
    message = mapping_in(context, "userMessage")
    if code := str(params.get("code") or "").strip():
        # A heartbeat, a sub-agent's report: such a turn comes later, too, and nobody has agreed in it.
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
        f"This was also said elsewhere and stays; to remove it, pass its exact words as `query`: {text}"
        for text in again
    ]
    if meant.alike:
        lines.append("The notes listed first were found by likeness; there may be more.")
    if said_by_user(message) and not meant.asked:
        matching = any(taken.text and not taken.redacts for taken in found.values())
        goes = matching and holds_words(str(message.get("text") or ""), meant.what)
        fate = (
            "goes as a whole if the user chooses to forget everything that holds the words"
            if goes
            else "stays"
        )
        lines.append(f"The message that asks for this says more, and {fate}.")
    lines += beyond_text([*found.values()], context)
    answers = " · ".join(f"{NAMES[choice]}: {code}" for choice, code in given.items())
    return {
        "text": "\n".join([*lines, ASK_USER + answers]),
        "details": {"code": given["forget"], "codes": given, "paths": list(found["forget"].paths)},
    }


@dataclass(frozen=True, slots=True)
class Meant:
    """What a request to forget may mean. *alike*: the notes were found by likeness."""

    what: str
    named: list[str]  # the note of that name, or those alike
    holding: list[str]  # the notes that hold the words
    alike: bool
    words: Selection | None  # where the words are; None: nowhere, or a note is named by its path
    held: Selection | None  # all that holds the words, if it is more than the message that asks
    asked: tuple[str, ...]  # the message that asks, if it says nothing else

    @property
    def notes(self) -> list[str]:
        return self.named or self.holding


def what_is_meant(
    intake: Intake, graph: Graph, params: Mapping[str, Any], message: Mapping[str, Any]
) -> Meant:
    """What *params* name. Raises BadInput if they name nothing, NotFound if nothing of it is remembered."""
    what, asked_in = link_target(params.get("query") or params.get("id")), str(message.get("id") or "")
    if not what:
        raise BadInput("omg_forget needs an `id` or a `query`, or the `code` of an earlier call")
    find = graph.index.resolve if params.get("query") else graph.index.find
    note = find(what) or (what if was_deleted(graph, what) else None)
    if note is None:
        what = words_meant(graph, what)
        note = graph.index.resolve(what)
    by_path = note and "/" in what and note.rpartition("/")[2] == what.lower().rpartition("/")[2]
    words = None if by_path else words_anywhere(graph, what)
    holding = sorted(notes_holding(graph, what)[0]) if words else []
    alike = [] if note or holding else notes_about(intake, graph, what, said=bool(words))
    if alike and words and not words.paths and set(words.messages) <= {asked_in}:
        words = None  # only the message that asks has them
    held = select_to_forget(graph, matching=what) if words else None
    if not note and not alike and not held:
        beside = said_of(intake, graph, what, asked_in=asked_in)
        raise NotFound(f"nothing is remembered about {what!r}{beside}")
    return Meant(what, [note] if note else alike, holding, bool(alike), words, held, asking(message))


def choices_for(graph: Graph, meant: Meant) -> dict[str, Selection]:
    """Choice → what it takes; the user chooses one."""
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


def words_meant(graph: Graph, query: str) -> str:
    """
    *query*, if a note holds *query* or is called so. Else *query* without the words at its ends that carry no meaning
    ("everything about Heron"), if a note holds what is left or is called so. Else *query*.
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
    said = [s.text for s in statements_of(message_in(message)) if s.governed != "passed on"]
    requests = [text for text in said if refuses(text)]
    other = [text for text in said if text not in requests and len(told_words(text)) > (not requests)]
    return () if len(other) > (not requests) else (str(message["id"]),)


def notes_about(intake: Intake, graph: Graph, query: str, *, said: bool) -> list[str]:
    """
    A few notes that have most of the words of *query*, which no note holds as they are. Where nobody *said* the words just
    so, half of them is enough, or a near meaning. A message said beside a note does not count.
    """
    found = graph.index.search(query, 5, now=intake.registry.clock(), how=ALONE)
    # a link beside is no word of it
    notes = [graph.vault.read(h.entry.path) for h in found]
    texts = {n.path: f"{n.title} {n.description} {n.full_body}" for n in notes}
    told = told_words(query)
    least = len(told) // 2 + 1 if said else max(1, (len(told) + 1) // 2)
    near = {h.entry.path for h in found if not said and (h.cosine or 0.0) > TYPICAL}
    return [p for p, text in texts.items() if p in near or len(told_words(text) & told) >= least]


def said_of(intake: Intake, graph: Graph, query: str, asked_in: str) -> str:
    """Messages about *query* that no note came of, for an error's text; not the message *asked_in* itself."""
    told = [*map(passage_line, said_about(graph, query, [], intake.registry.clock(), asked_in))]
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
    stays = [f"- of a message that says more, this stays: {left!r}" for _, left in what.cut]
    return "\n".join([head, *listed, *more, *stays])


def described(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f" — {entry.description}{f' ({entry.status})' if entry.status != 'active' else ''}"


def beyond_text(taken: Sequence[Selection], context: Mapping[str, Any]) -> list[str]:
    """What a forgetting cannot reach. Only the owner is told the path, which reveals their machine."""
    left = [
        f"[[{page}]] has it too, in what the user wrote there: they can take it out themselves."
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
