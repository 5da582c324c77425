"""
The check: do a person's own words bear out what an edit would have them say?

The model that is asked sees no material, nothing the assistant said but the proposal that a message answers, and nothing
of the first model's reasons: only numbered texts, as JSON strings of limited length. Which message answers which is found
here, never by a model. An answer that is missing, or any other word, means: not supported.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Literal

from ..errors import BadReply
from ..llm.jsontext import cut_out, object_schema
from ..llm.question import Ask, ModelQuestion, instructions
from ..message.envelope import cut_middle
from ..message.turn import Message

Verdict = Literal["supported", "not supported", "contradicted"]
VERDICTS = ("supported", "not supported", "contradicted")
SCHEMA = object_schema("verdicts", verdicts={"type": "object", "additionalProperties": {"type": "string"}})
# Characters of a message that is cited, of another one, of a proposal, and of a claim.
CITED_CHARS, OTHER_CHARS, PROPOSAL_CHARS, CLAIM_CHARS = 1_500, 120, 700, 700
CODE_CHARS = 400  # of each pasted piece of code
ANSWER_CHARS = 400  # what is longer speaks for itself, whatever it answers


@dataclass(frozen=True, slots=True)
class Claim:
    """
    A text that is held against what the person said. *of*: the place of its edit in the reply, or of its proposal; -1 for
    how the conversation stands. *part*: "head" is title and description with what they set; else a sentence of the body,
    one that is to go, one of Task, State and Next, or a proposal.
    """

    of: int
    part: Literal["head", "sentence", "drop", "hint", "proposal"]
    text: str
    says: Mapping[str, Any] = field(default_factory=dict)  # what else is claimed: type, event, replaces, …


def verdicts_on(
    claims: Sequence[Claim],
    said: Sequence[Mapping[str, Any]],
    *,
    known: Mapping[str, str],
    ask: Ask,
    agent: str,
) -> list[Verdict]:
    """
    One verdict a claim; a claim of more than CLAIM_CHARS, which the model would not see whole, is not supported. *said*: as `said_by_people` has it. *known*: what the notes that change say now, by title.
    Raises BadReply where the answer is none, and ModelError.
    """
    asked: dict[str, Any] = {
        "said": said,
        **(
            {"known": {cut_middle(t, 200): cut_middle(n, CLAIM_CHARS) for t, n in known.items()}}
            if known
            else {}
        ),
        "claims": {
            str(n): {"text": cut_middle(claim.text, CLAIM_CHARS), **claim.says}
            for n, claim in enumerate(claims, 1)
        },
    }
    question = ModelQuestion(
        instructions("check", ""), json.dumps(asked, ensure_ascii=False, indent=0), SCHEMA, "check", agent
    )
    reply = ask(question)
    given = cut_out(reply.text, "verdicts", "verdicts")["verdicts"]
    if not isinstance(given, Mapping):
        raise BadReply("the answer to the check holds no `verdicts`; nothing was marked observed")
    if given.keys() - asked["claims"].keys():  # numbered otherwise: nothing tells which is which
        return ["not supported" for _ in claims]
    return [
        given[str(n)] if given.get(str(n)) in VERDICTS and len(claim.text) <= CLAIM_CHARS else "not supported"
        for n, claim in enumerate(claims, 1)
    ]


def said_by_people(
    messages: Sequence[Message], cited: Collection[Message], zone: tzinfo
) -> list[dict[str, Any]]:
    """What people said, in their own words and in order, with its day; of what is cited also what it may answer."""
    told = []
    proposal = ""
    for m in messages:
        if m.role == "assistant" and m.text:
            proposal = m.text
        if m.role != "user":
            continue
        words = m.spoken
        if m in cited:
            short = len(words) <= ANSWER_CHARS
            answers = {"answers": cut_middle(proposal, PROPOSAL_CHARS)} if proposal and short else {}
            quoted = "\n".join(m.text[s.start : s.end] for s in m.material if s.kind == "quote")
            about = {"about": cut_middle(quoted, PROPOSAL_CHARS)} if quoted else {}
            code = [m.text[s.start : s.end][:CODE_CHARS] for s in m.material if s.kind == "code"]
            pasted = {"pasted": code} if code else {}
            said = cut_middle(words, CITED_CHARS)
            told.append({"cited": True, **told_of(m, zone), **answers, **about, **pasted, "words": said})
        elif words:
            told.append({**told_of(m, zone), "words": cut_middle(words, OTHER_CHARS)})
        proposal = ""
    return told


def told_of(message: Message, zone: tzinfo) -> dict[str, str]:
    """On which day *message* was said, and by whom."""
    by = {"by": message.sender} if message.sender else {}
    return {"on": f"{datetime.fromtimestamp(message.timestamp / 1000, zone):%A %Y-%m-%d}", **by}
