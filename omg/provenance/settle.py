"""
What becomes of the edits of one reply once the check has answered.

What the person's words bear out goes on as theirs. The rest is not lost: it becomes a note of the assistant's beside it, or
the whole edit does. Only what the person denies is dropped. Whatever is changed is told in `refused`, without its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..message.turn import Message
from ..plan.drafts import NEEDS_USER, PERSONS
from ..plan.edits import Edit, one_line, short_title
from ..text.sentences import split_sentences
from ..text.words import told_words
from .authors import ASSISTANT, Target, as_others, is_protected
from .check import Claim, Verdict

CLEARED = frozenset(("body", "tags", "event", "loop", "standing"))  # what an update may set to nothing
OF_EDIT = ("head", "sentence", "drop")  # parts of a claim
QUOTE_END = "”"
UNSAID = "the user's words do not bear it out"
NEAR = 0.6  # of a statement's words: a sentence that is quoted for it has as many
QUOTE_CHARS = 400  # of a sentence that is quoted


@dataclass(slots=True)
class Settled:
    edits: list[Edit] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # why, one line for each edit that was changed


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
    """Title and description of *edit*, and what it claims beside them."""
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
    *edits* of a model that the check cannot be put to: what is protected, and all where anything *foreign* is in sight,
    quotes a sentence of the person's, whole. *cited*: the messages that each edit cites.
    """
    needed = [
        e.origin in PERSONS and (foreign or is_protected(e, targets.get(n))) for n, e in enumerate(edits)
    ]
    found = [quoted(e, cited[n]) if needed[n] else None for n, e in enumerate(edits)]
    made = [e if q is None else quotation_alone(q) for e, q in zip(edits, found, strict=True)]
    unsaid = {n for n, e in enumerate(found) if needed[n] and e is None}
    claims = claims_of(made, targets, foreign=foreign)
    return settle_edits(
        made,
        targets,
        [(c, "not supported" if c.of in unsaid else "supported") for c in claims],
        foreign=foreign,
    )


def quotation_alone(edit: Edit) -> Edit:
    """*edit*, whose description is a quotation, without anything that its model worded beside it."""
    title = short_title(edit.description.partition("“")[2].rstrip(QUOTE_END)) if edit.op == "create" else ""
    return replace(edit, title=title, body="", tags=(), drop=(), sets=edit.sets - {"title"})


def quoted(edit: Edit, cited: Sequence[Message]) -> Edit | None:
    """*edit* with the sentence of a person in *cited* that its description is nearest to; None where none is near."""
    said = [(m, s) for m in cited if m.role == "user" for s in split_sentences(m.spoken)]
    words = told_words(edit.description or edit.body)
    near = max(said, key=lambda found: len(words & told_words(found[1])), default=None)
    if (
        not words
        or near is None
        or len(words & told_words(near[1])) < NEAR * len(words)
        or len(near[1]) > QUOTE_CHARS
    ):
        return None
    who = near[0].sender or "The user"
    return replace(edit, description=f"{who}: “{one_line(near[1])}{QUOTE_END}")


def second_try(
    edits: Sequence[Edit], cited: Sequence[Sequence[Message]], answers: Sequence[tuple[Claim, Verdict]]
) -> dict[int, Edit]:
    """
    New notes whose head was not supported, by their place, in the person's own words: one word of somebody else's in a
    description takes nothing from what a person said.
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
    """*edits* as the *verdicts* leave them."""
    settled = Settled()
    beside: list[Edit] = []
    new_place: dict[int, int] = {}  # of an edit, where it stands now
    for place, edit in enumerate(edits):
        target = targets.get(place)
        own = [(c, verdict) for c, verdict in verdicts if c.of == place and c.part in OF_EDIT]
        kept, other, why = parted(edit, target, own, foreign=foreign)
        settled.refused += [f"edit {place + 1}: {why}"] * bool(why)
        about = new_place.get(edit.about) if edit.about is not None else None
        if kept is not None and edit.about is not None and about is None:
            kept = replace(kept, op="create", about=None) if kept.description else None
        if kept is not None:
            new_place[place] = len(settled.edits)
            settled.edits.append(replace(kept, about=about if kept.op != "create" else None))
        if other is not None:
            near = new_place.get(place, about)
            beside.append(replace(other, beside=() if near is None else (near,)))
    count = len(settled.edits)
    settled.edits = [
        replace(e, beside=tuple(new_place[n] for n in e.beside if n in new_place)) for e in settled.edits
    ]
    settled.edits += [replace(e, beside=tuple(n for n in e.beside if n < count)) for e in beside]
    return settled


def parted(
    edit: Edit, target: Target | None, own: Sequence[tuple[Claim, Verdict]], *, foreign: bool
) -> tuple[Edit | None, Edit | None, str]:
    """What goes on as *edit*, what is noted beside it as the assistant's, and why; "" where nothing was changed."""
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
    """*edit*, where a person takes up what a tool's note says or decides on the assistant's: a note that leads there."""
    if edit.op == "create" or target is None or target.origin in PERSONS or not edit.description:
        return edit
    if target.origin == "assistant" and edit.type not in NEEDS_USER:
        return edit
    links = (*edit.links, *([target.path] if target.path else []))
    return replace(edit, op="create", target=None, about=None, title=edit.title or target.title, links=links)


def says_anything(edit: Edit) -> bool:
    return bool(edit.description or edit.body or edit.drop or edit.sets or edit.links)


def others_edit(edit: Edit, target: Target | None, *, foreign: bool) -> tuple[Edit | None, Edit | None, str]:
    """An edit of what the assistant or a tool said: it changes no note of a person's."""
    assert edit.origin is not None
    edit = as_others(edit, edit.origin)
    if edit.op == "create" or target is None or target.origin not in PERSONS:
        return edit, None, ""
    if edit.origin == "assistant" and not foreign and edit.body and not edit.description:
        # It stands in the note as what it is, and changes nothing else there.
        marked = edit.body if edit.body.startswith(ASSISTANT) else f"{ASSISTANT}: {edit.body}"
        return replace(edit, body=marked, drop=(), sets=frozenset(), origin=target.origin), None, ""
    said = [edit.description] if edit.description else []
    other = beside_note(edit, target, [*said, *split_sentences(edit.body)])
    return None, other, f"a change of the user's note by the {edit.origin}: noted beside it"


def beside_note(edit: Edit, target: Target | None, sentences: Sequence[str]) -> Edit | None:
    """A note beside the one of *edit* that says *sentences*, as the assistant's or the tool's; None where there are none."""
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
    """*body* without the sentences in *gone*; the lines of the rest stay as they are."""
    if not gone:
        return body
    return "\n".join(kept_lines(body, gone)).strip()


def kept_lines(body: str, gone: set[str]) -> Iterator[str]:
    for line in body.split("\n"):
        parts = split_sentences(line)
        kept = [part for part in parts if one_line(part) not in gone]
        if len(kept) == len(parts):
            yield line
        elif kept:
            yield " ".join(part.strip() for part in kept)
