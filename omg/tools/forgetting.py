"""
omg_forget, and `/omg forget`: first what each choice would take, then the choice whose code the user writes.

    forget   the notes, the messages they came from, and whatever else came of those
    alone    the notes alone; the messages stay
    redact   the words alone, out of everything; all else stays

Each choice has a code of its own (codes.py); nothing happens until the user has written one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from ..curate.notes import forget_selection, select_to_forget
from ..errors import BadInput, NotFound
from ..forget.redacting import Redaction, select_words
from ..forget.selection import Selection, select_alone
from ..forget.words import BLANK, holds_words
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..identity import is_remembered, says_owner
from ..index.scores import parse_query
from ..inject.passages import find_said, quoted_passages
from ..inject.prompt import passage_line
from ..inject.sure import TYPICAL
from ..message.machinery import BLANKED, FORGOTTEN
from ..message.turn import Message
from ..plural import how_many
from ..text.words import Words, told_words
from ..worker.intake import Intake
from .asked import link_target, mapping_in, said_by_user
from .codes import Codes, Issued

ASK_USER = "Let the user choose: they answer with the code of their choice. Then call omg_forget with that code alone. "
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
        return forget_chosen(intake, graph, chosen, context)
    what = link_target(params.get("query") or params.get("id"))
    if not what:
        raise BadInput("omg_forget needs an `id` or a `query`, or the `code` of an earlier call")
    find = graph.index.resolve if params.get("query") else graph.index.find
    path = find(what)
    words = None if path else words_anywhere(graph, what)
    hits = [path] if path else notes_about(intake, graph, what, said=bool(words))
    if not hits and not words:
        beside = said_of(intake, graph, what, asked_in=str(message.get("id") or ""))
        raise NotFound(f"nothing is remembered about {what!r}{beside}")
    found: list[tuple[str, Selection | Redaction]] = []
    if words:
        found.append(("redact", words))
    if hits:
        found += [("alone", select_alone(graph, hits)), ("forget", select_to_forget(graph, ids=hits))]
    elif words:
        found.append(("forget", select_to_forget(graph, matching=what)))
    given = {
        choice: codes.issue(graph.identity.key, choice, hits, "" if hits and choice != "redact" else what)
        for choice, _ in found
    }
    lines = [choice_text(graph, choice, taken) for choice, taken in reversed(found)]
    lines += beyond_text([taken for _, taken in found], context)
    asked = " · ".join(f"{NAMES[choice]}: {code}" for choice, code in given.items())
    return {
        "text": "\n".join([*lines, ASK_USER + asked]),
        "details": {"code": given.get("forget"), "codes": given, "paths": list(found[-1][1].paths)},
    }


NAMES = {"forget": "forget", "alone": "only the notes", "redact": "only the words"}


def notes_about(intake: Intake, graph: Graph, query: str, *, said: bool) -> list[str]:
    """
    The notes that hold the words as they are, if there are any; else those that have most of the words. Where nobody
    *said* the words just so, half of them is enough, or a near meaning. A message said beside a note does not count.
    """
    found = graph.index.search(query, 5, now=intake.registry.clock(), walk=False)
    # a link beside is no word of it
    notes = [graph.vault.read(h.entry.path) for h in found]
    texts = {n.path: f"{n.title} {n.description} {n.full_body}" for n in notes}
    if held := [path for path, text in texts.items() if holds_words(text, query)]:
        return held
    told = told_words(query)
    least = len(told) // 2 + 1 if said else max(1, (len(told) + 1) // 2)
    near = {h.entry.path for h in found if not said and (h.cosine or 0.0) > TYPICAL}
    return [p for p, text in texts.items() if p in near or len(Words(told_words(text)).of(told)) >= least]


def said_of(intake: Intake, graph: Graph, query: str, asked_in: str) -> str:
    """Messages about *query* that no note came of, for an error's text; not the message *asked_in* itself."""
    now = intake.registry.clock()
    parsed = parse_query(query, now.astimezone(graph.zone).date())
    found = find_said(graph, parsed, [], session="", own=SessionState(), now=now)
    about = [said for said in found if said.words >= WORDS_SHARE and said.message.id != asked_in]
    told = [*map(passage_line, islice(quoted_passages(graph, parsed, about, room=SAID_TOKENS), SAID_NAMED))]
    if not told:
        return ""
    return "\n".join(["; but this was said, and can be forgotten with its very words as `query`:", *told])


def words_anywhere(graph: Graph, words: str) -> Redaction | None:
    with suppress(BadInput):
        return select_words(graph, words) or None if len(words.strip()) > 1 else None
    return None


def choice_text(graph: Graph, choice: str, what: Selection | Redaction) -> str:
    """What a choice would take, for the user to read."""
    notes = "\n".join(f"- [[{p}]] — {e.description}" for p in what.paths if (e := graph.index.entry(p)))
    files, messages = how_many(len(what.paths), "file"), how_many(len(what.messages), "message")
    if isinstance(what, Redaction):
        return f"Or only the words, replaced by {BLANK} in {files} and {messages}; all else stays."
    if choice == "alone":
        return f"Or only these notes; the messages they came from stay:\n{notes}"
    if not what.paths:
        return f"This would be forgotten: {messages} that say it; no note does."
    return f"This would be forgotten, with {messages} that it came from:\n{notes}"


def beyond_text(taken: Sequence[Selection | Redaction], context: Mapping[str, Any]) -> list[str]:
    """What cannot be reached; with its path for the owner, for it tells of their machine."""
    if says_owner(context):
        return [f"Not reached: {place}" for place in dict.fromkeys(p for what in taken for p in what.beyond)]
    return ["Not reached: the gateway's own transcript, and files that the owner sees with `omg forget`."]


def forget_chosen(intake: Intake, graph: Graph, issued: Issued, context: Mapping[str, Any]) -> dict[str, Any]:
    """Do what the user chose; what is there by now counts."""
    what: Selection | Redaction
    if issued.choice == "redact":
        what = select_words(graph, issued.words)
        told = f"{BLANKED} {BLANK} in {how_many(len(what.paths), 'file')} and {how_many(len(what.messages), 'message')}."
    elif issued.choice == "alone":
        what = select_alone(graph, issued.paths)
        told = f"{FORGOTTEN} {how_many(len(what.paths), 'note')}. The messages they came from stay."
    else:
        about: dict[str, Any] = {"ids": issued.paths} if issued.paths else {"matching": issued.words}
        what = select_to_forget(graph, **about)
        told = f"{FORGOTTEN} {how_many(len(what.paths), 'note')} and the messages they came from."
    forget_selection(intake, graph, what)
    return {"text": "\n".join([told, *beyond_text([what], context)]), "details": {"paths": list(what.paths)}}
