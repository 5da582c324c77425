"""
Decides whose words a note holds (the user's, the assistant's or a tool's), and checks doubtful ones.

What the person's words support stays theirs. The rest becomes a note of the assistant's beside it, or the whole
edit does. Only what the person denies is dropped. `refused` names every change, without its words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Literal

from .errors import BadReply
from .graph.state import read_object, write_private
from .index.store import Entry
from .llm.replies import Ask, ModelQuestion, cut_out, instructions, object_schema, prompt_text
from .message.envelope import MEMORY_NOTES, cut_middle
from .message.turn import Message
from .plan.drafts import NEEDS_USER, PERSONS
from .plan.edits import Edit, one_line, short_title
from .text.words import split_sentences, told_words

# --- Who an edit comes from, by the messages that it cites, and what it may become then.
#
# A model never says who it comes from. What the assistant or a tool said becomes a fact or an episode, and changes no note
# of a person's. Which parts of a person's message are their own words: message/turn.py.


# How a note begins that tells what the assistant said: prompts/observe.md asks for it
ASSISTANT = "The assistant"


@dataclass(frozen=True, slots=True)
class Target:
    """The note that an edit changes. *path*: None for one of the same reply."""

    origin: str | None
    title: str
    description: str
    body: str = ""
    path: str | None = None
    said: date | None = None  # the day of its latest news


def author(message: Message) -> str:
    """Who wrote the words of *message*. A person's message that only passes something on counts as a tool's."""
    if message.role == "user" and not message.spoken:
        return "tool"
    return message.role


def origin_of(edit: Edit, cited: Sequence[Message], by_hand: Collection[Message]) -> str:
    """The origin of *edit*, computed from the *cited* messages; *by_hand* are those written into the vault's inbox."""
    authors = {author(m) for m in cited}
    if "user" in authors and not ("assistant" in authors and edit.description.startswith(ASSISTANT)):
        return "human" if all(m in by_hand for m in cited) else "user"
    return "assistant" if authors <= {"user", "assistant"} else "tool"


def is_protected(edit: Edit, target: Target | None) -> bool:
    """Whether *edit* notes a trait, wish, decision or project as the user's, or changes a note of theirs."""
    changes = edit.op != "create" and target is not None and target.origin in PERSONS
    return changes or edit.type in NEEDS_USER or edit.standing


def foreign_in_sight(messages: Sequence[Message], notes: Sequence[Entry]) -> bool:
    """Whether *messages* or *notes* contain words of a tool, a page or a third person."""
    return any(m.material and m.text not in MEMORY_NOTES for m in messages) or any(
        n.origin == "tool" for n in notes
    )


def as_others(edit: Edit, origin: str) -> Edit:
    """*edit* as a statement of the assistant or a tool: a fact or an episode, never an instruction."""
    edit = replace(edit, origin=origin, standing=False, sets=edit.sets - {"type", "standing"})
    return replace(edit, type="fact", priority="medium") if edit.type in NEEDS_USER else edit


def origin_mark(origin: str | None) -> str:
    """The mark shown on a note that does not come from a person; "" for a person's note."""
    if origin == "tool":
        return "from a tool or a page, not from the user"
    return "said by the assistant" if origin == "assistant" else ""


# --- Twenty fixed claims that tell whether the check can be put to a model; `omg doctor` asks each model once.
#
# A model that gets fewer than ENOUGH right is not asked to check; the person's own sentences are quoted instead.


ENOUGH = 19
FILE = "models.json"  # in the home: a model and the cases it was asked → how many it got right


def examine(ask: Ask) -> int:
    """Ask the model the twenty claims in four questions; returns how many it gets right. Raises ModelError."""
    right = 0
    for case in fixed_cases():
        given = [dict(c) for c in case["claims"].values()]
        expected = [c.pop("expect").split(" or ") for c in given]
        claims = [Claim(0, "head", c.pop("text"), c) for c in given]
        verdicts = verdicts_on(claims, case["said"], known=case.get("known", {}), ask=ask, agent="")
        right += sum(v in wanted for v, wanted in zip(verdicts, expected, strict=True))
    return right


@cache
def fixed_cases() -> list[dict[str, Any]]:
    file = Path(__file__).parent / "prompts" / "check-cases.json"
    return list(json.loads(file.read_text(encoding="utf-8")))


def examined(home: Path, model: str) -> int | None:
    """How many of the claims *model* got right when it was last asked; None if it never was."""
    return known_results(home).get(key_of(model))


def note_result(home: Path, model: str, right: int) -> None:
    results = known_results(home) | {key_of(model): right}
    write_private(home / FILE, json.dumps(results, indent=1))


def is_able(home: Path, model: str) -> bool:
    """Whether *model* can answer the check. A model that was never examined is trusted with it."""
    right = examined(home, model)
    return right is None or right >= ENOUGH


def known_results(home: Path) -> dict[str, int]:
    return {model: right for model, right in read_object(home / FILE).items() if isinstance(right, int)}


def key_of(model: str) -> str:
    asked = prompt_text("check") + json.dumps(fixed_cases())
    return f"{model} {hashlib.blake2b(asked.encode(), digest_size=4).hexdigest()}"


# --- The check: do a person's own words bear out what an edit would have them say?
#
# The model that is asked sees no material, nothing the assistant said but the proposal that a message answers, and nothing
# of the first model's reasons: only numbered texts, as JSON strings of limited length. Which message answers which is found
# here, never by a model. An answer that is missing, or any other word, means: not supported.


Verdict = Literal["supported", "not supported", "contradicted"]
VERDICTS = ("supported", "not supported", "contradicted")
SCHEMA = object_schema("verdicts", verdicts={"type": "object", "additionalProperties": {"type": "string"}})
# Characters of a message that is cited, of another one, of a proposal, and of a claim.
CITED_CHARS, OTHER_CHARS, PROPOSAL_CHARS, CLAIM_CHARS = 1_500, 120, 700, 700
CODE_CHARS = 400  # of each pasted piece of code
# A message longer than ANSWER_CHARS is shown without the proposal that it answers; one longer than ASSENT_CHARS with the
# end of the proposal alone, because it names what it takes up. Proposals were half of what the check is asked.
ANSWER_CHARS, ASSENT_CHARS, END_CHARS = 400, 120, 240


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
    asked: dict[str, Any] = {"said": said}
    if known:
        asked["known"] = {cut_middle(t, 200): cut_middle(n, CLAIM_CHARS) for t, n in known.items()}
    texts = [{"text": cut_middle(claim.text, CLAIM_CHARS), **claim.says} for claim in claims]
    asked["claims"] = {str(n): text for n, text in enumerate(texts, 1)}
    question = ModelQuestion(
        instructions("check", ""), json.dumps(asked, ensure_ascii=False, indent=0), SCHEMA, "check", agent
    )
    reply = ask(question)
    given = cut_out(reply.text, "verdicts", "verdicts")["verdicts"]
    if not isinstance(given, Mapping):
        raise BadReply("the answer to the check holds no `verdicts`; nothing was marked observed")
    missing, more = asked["claims"].keys() - given.keys(), given.keys() - asked["claims"].keys()
    if (missing and more) or "0" in more:  # numbered otherwise: nothing tells which is which
        return ["not supported" for _ in claims]
    return [
        given[str(n)] if given.get(str(n)) in VERDICTS and len(claim.text) <= CLAIM_CHARS else "not supported"
        for n, claim in enumerate(claims, 1)
    ]


def said_by_people(
    messages: Sequence[Message], cited: Collection[Message], zone: tzinfo
) -> list[dict[str, Any]]:
    """What people said, in order and with its day; a cited message comes with the proposal that it may answer."""
    told = []
    proposal = ""
    for m in messages:
        if m.role == "assistant" and m.text:
            proposal = m.text
        if m.role != "user":
            continue
        words = m.spoken
        if m in cited:
            assent = len(words) <= ASSENT_CHARS
            answered = cut_middle(proposal, PROPOSAL_CHARS) if assent else proposal[-END_CHARS:]
            answers = {"answers": answered} if proposal and len(words) <= ANSWER_CHARS else {}
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
    """The day and the speaker of *message*."""
    by = {"by": message.sender} if message.sender else {}
    return {"on": f"{datetime.fromtimestamp(message.timestamp / 1000, zone):%A %Y-%m-%d}", **by}


CLEARED = frozenset(("body", "tags", "event", "loop", "standing"))  # what an update may set to nothing
OF_EDIT = ("head", "sentence", "drop")  # parts of a claim
QUOTE_END = "”"
UNSAID = "the user's words do not bear it out"
NEAR = 0.6  # of a statement's words: a sentence that is quoted for it has as many
QUOTE_CHARS = 400  # of a sentence that is quoted


Settled = tuple[list[Edit], list[str]]  # the edits, and why they were changed, a line for each that was


def claims_of(edits: Sequence[Edit], targets: Mapping[int, Target], *, foreign: bool) -> list[Claim]:
    """
    What has to be borne out of *edits* that would be a person's: title and description with what they set, and what they
    take out; the sentences of a body too, where anything *foreign* is in sight that they may come from. *targets*: the
    notes that edits change, by the place of the edit.
    """
    claims: list[Claim] = []
    for place, edit in enumerate(edits):
        target = targets.get(place)
        if edit.origin not in PERSONS:
            continue
        if edit.description or edit.sets:
            claims.append(Claim(place, "head", *head_of_edit(edit, target)))
        if foreign:
            claims += [Claim(place, "sentence", one_line(s)) for s in split_sentences(edit.body) if s.strip()]
        claims += [Claim(place, "drop", sentence, {"goes": True}) for sentence in edit.drop]
    return claims


def head_of_edit(edit: Edit, target: Target | None) -> tuple[str, dict[str, str | bool | list[str]]]:
    """Title and description of *edit*, and its other claims."""
    title = edit.title or (target.title if target else "")
    text = f"{title}: {edit.description}" if edit.description else title
    says: dict[str, str | bool | list[str]] = {}
    if edit.op == "create" or "type" in edit.sets:
        says["type"] = edit.type
    if edit.event:
        says["event"] = edit.event
    if edit.standing:
        says["standing"] = True
    if edit.tags:
        says["tags"] = list(edit.tags)
    if target and edit.description and target.description:
        says["replaces"] = target.description
    if target and edit.loop == "done":
        says["ends"] = target.title
    given = {name for name in ("event", "loop", "standing") if getattr(edit, name)}
    if edit.op == "update" and (cleared := sorted((edit.sets & CLEARED) - given)):
        says["clears"] = cleared
    return text, says


def in_their_words(
    edits: Sequence[Edit], targets: Mapping[int, Target], cited: Sequence[Sequence[Message]], *, foreign: bool
) -> Settled:
    """
    *edits* of a model that cannot answer the check: protected edits (all edits if anything *foreign* is in sight)
    get a whole sentence of the person's as their text. *cited*: the messages that each edit cites.
    """
    guarded = [foreign or is_protected(e, targets.get(n)) for n, e in enumerate(edits)]
    needed = [e.origin in PERSONS and g for e, g in zip(edits, guarded, strict=True)]
    found = [quoted(e, cited[n]) if needed[n] else None for n, e in enumerate(edits)]
    made = [e if q is None else quotation_alone(q) for e, q in zip(edits, found, strict=True)]
    unsaid = {n for n, e in enumerate(found) if needed[n] and e is None}
    claims = claims_of(made, targets, foreign=foreign)
    verdicts: list[Verdict] = ["not supported" if c.of in unsaid else "supported" for c in claims]
    return settle_edits(made, targets, list(zip(claims, verdicts, strict=True)), foreign=foreign)


def quotation_alone(edit: Edit) -> Edit:
    """*edit*, whose description is a quotation, without all that its model worded itself."""
    title = short_title(edit.description.partition("“")[2].rstrip(QUOTE_END)) if edit.op == "create" else ""
    return replace(edit, title=title, body="", tags=(), drop=(), sets=edit.sets - {"title"})


def quoted(edit: Edit, cited: Sequence[Message]) -> Edit | None:
    """*edit* with the most similar sentence of a person in *cited* as its description; None if none is similar."""
    said = [(m, s) for m in cited if m.role == "user" for s in split_sentences(m.spoken)]
    words = told_words(edit.description or edit.body)
    if not words or not said:
        return None
    near, sentence = max(said, key=lambda found: len(words & told_words(found[1])))
    if len(words & told_words(sentence)) < NEAR * len(words) or len(sentence) > QUOTE_CHARS:
        return None
    who = near.sender or "The user"
    return replace(edit, description=f"{who}: “{one_line(sentence)}{QUOTE_END}")


def second_try(
    edits: Sequence[Edit], cited: Sequence[Sequence[Message]], answers: Sequence[tuple[Claim, Verdict]]
) -> dict[int, Edit]:
    """
    New notes whose title or description was not supported, by their place, reworded as a sentence of the person's,
    so that one foreign word does not lose what the person said.
    """
    failed = [c.of for c, v in answers if c.part == "head" and v == "not supported"]
    tried = {n: quoted(edits[n], cited[n]) for n in failed if edits[n].op == "create"}
    return {n: replace(e, tags=()) for n, e in tried.items() if e is not None}


def settle_edits(
    edits: Sequence[Edit],
    targets: Mapping[int, Target],
    verdicts: Sequence[tuple[Claim, Verdict]],
    *,
    foreign: bool,
) -> Settled:
    """*edits* after the *verdicts* were applied."""
    settled: list[Edit] = []
    refused: list[str] = []
    beside: list[Edit] = []
    new_place: dict[int, int] = {}  # of an edit, where it stands now
    for place, edit in enumerate(edits):
        target = targets.get(place)
        own = [(c, verdict) for c, verdict in verdicts if c.of == place and c.part in OF_EDIT]
        kept, other, why = parted(edit, target, own, foreign=foreign)
        refused += [f"edit {place + 1}: {why}"] * bool(why)
        about = new_place.get(edit.about) if edit.about is not None else None
        if kept is not None and edit.about is not None and about is None:
            kept = replace(kept, op="create", about=None) if kept.description else None
        if kept is not None:
            new_place[place] = len(settled)
            settled.append(replace(kept, about=about if kept.op != "create" else None))
        if other is not None:
            near = new_place.get(place, about)
            beside.append(replace(other, beside=() if near is None else (near,)))
    count = len(settled)
    settled = [replace(e, beside=tuple(new_place[n] for n in e.beside if n in new_place)) for e in settled]
    settled += [replace(e, beside=tuple(n for n in e.beside if n < count)) for e in beside]
    return settled, refused


def parted(
    edit: Edit, target: Target | None, own: Sequence[tuple[Claim, Verdict]], *, foreign: bool
) -> tuple[Edit | None, Edit | None, str]:
    """The supported part of *edit*, the part noted as the assistant's, and why it was split ("" if it was not)."""
    if edit.origin not in PERSONS:
        return others_edit(edit, target, foreign=foreign)
    if all(verdict == "supported" for _, verdict in own):
        return of_their_own(edit, target), None, ""
    head = next((verdict for claim, verdict in own if claim.part == "head"), "supported")
    unsaid = {claim.text for claim, verdict in own if claim.part == "sentence" and verdict != "supported"}
    denied = {claim.text for claim, verdict in own if verdict == "contradicted"}
    goes = tuple(c.text for c, verdict in own if c.part == "drop" and verdict == "supported")
    body = without_sentences(edit.body, unsaid)
    rest = [s for s in map(one_line, split_sentences(edit.body)) if s in unsaid - denied]
    if edit.op == "create" and head == "contradicted":
        return None, None, "the user says that it is not so"
    if edit.op == "create" and head != "supported":
        return as_others(edit, "assistant"), None, f"{UNSAID}: noted as the assistant's"
    if head == "supported":
        kept = replace(edit, body=body, drop=goes)
        why = f"{UNSAID} in part: that is noted as the assistant's" if rest else f"{UNSAID} in part"
        return (kept if says_anything(kept) else None), beside_note(edit, target, rest), why
    if target is not None and target.origin == "assistant":
        return as_others(edit, "assistant"), None, f"{UNSAID}: noted as the assistant's"
    said = [edit.description] if edit.description and head != "contradicted" else []
    kept = replace(
        edit,
        op="update",
        description="",
        body=body,
        drop=goes,
        sets=frozenset(),
        loop=None,
        event=None,
        tags=(),
    )
    other = beside_note(edit, target, [*said, *rest])
    return (kept if body or goes else None), other, f"{UNSAID}: the note stays, that is noted beside it"


def of_their_own(edit: Edit, target: Target | None) -> Edit:
    """*edit* as a note of the person's that links to the tool's or assistant's note which it takes up."""
    if edit.op == "create" or target is None or target.origin in PERSONS or not edit.description:
        return edit
    if target.origin == "assistant" and edit.type not in NEEDS_USER:
        return edit
    links = (*edit.links, *([target.path] if target.path else []))
    return replace(edit, op="create", target=None, about=None, title=edit.title or target.title, links=links)


def says_anything(edit: Edit) -> bool:
    return bool(edit.description or edit.body or edit.drop or edit.sets or edit.links)


def others_edit(edit: Edit, target: Target | None, *, foreign: bool) -> tuple[Edit | None, Edit | None, str]:
    """*edit* as the assistant's or a tool's; it may not change a note of a person's."""
    assert edit.origin is not None
    edit = as_others(edit, edit.origin)
    if edit.op == "create" or target is None or target.origin not in PERSONS:
        return edit, None, ""
    if edit.origin == "assistant" and not foreign and edit.body and not edit.description:
        # It is marked as theirs in the note, and changes nothing else there.
        marked = edit.body if edit.body.startswith(ASSISTANT) else f"{ASSISTANT}: {edit.body}"
        return replace(edit, body=marked, drop=(), sets=frozenset(), origin=target.origin), None, ""
    said = [edit.description] if edit.description else []
    other = beside_note(edit, target, [*said, *split_sentences(edit.body)])
    return None, other, f"a change of the user's note by the {edit.origin}: noted beside it"


def beside_note(edit: Edit, target: Target | None, sentences: Sequence[str]) -> Edit | None:
    """A second note, of the assistant's or the tool's, with the *sentences* of *edit*; None if there are none."""
    texts = [one_line(s) for s in sentences if s.strip()]
    if not texts:
        return None
    origin = "assistant" if edit.origin in PERSONS else edit.origin or "tool"
    title = target.title if target else edit.title
    links = (*edit.links, *([target.path] if target and target.path else []))
    other = replace(
        edit,
        op="create",
        target=None,
        about=None,
        title=f"{title} ({origin})",
        description=texts[0],
        body="\n".join(texts[1:]),
        drop=(),
        loop=None,
        sets=frozenset(),
        links=tuple(dict.fromkeys(links)),
        joins=True,
    )
    return as_others(other, origin)


def without_sentences(body: str, gone: set[str]) -> str:
    """*body* without the sentences in *gone*; other lines are unchanged."""
    lines: list[str] = []
    for line in body.split("\n") if gone else ():
        parts = split_sentences(line)
        kept = [part for part in parts if one_line(part) not in gone]
        if kept or not parts:
            lines.append(line if len(kept) == len(parts) else " ".join(kept))
    return "\n".join(lines).strip() if gone else body
