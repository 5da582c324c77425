"""
Decides whose words a note holds (the user's, the assistant's or a tool's), and checks text that would count as a
person's.

Each field of a person's note is a claim. A claim in the person's own words needs no check; any other claim enters the
note only if the check supports it. A refused claim stays in the archive, or becomes a note of the assistant's if the
assistant said it. `Refused` lists all refused claims.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from .check import Claim, Verdict
from .message.statements import SAYING, is_idle, stands_alone, statements_of
from .message.turn import Message
from .message.wording import Tokens, signs_of, tokens_of
from .node.note import Source
from .plan.drafts import NEEDS_USER, PERSONS
from .plan.edits import Edit, one_line, short_title
from .rules.kinds import TYPES, kind_of
from .rules.observer import speaker
from .text.words import cut_text, denies, split_sentences, told_words

# --- Finds an edit's origin by the messages that it cites, and limits what the edit may become.
#
# A model never decides the origin. The words of the assistant or a tool become a fact or an episode, and change no note
# of a person's. message/turn.py finds which parts of a person's message are their own words.


# the beginning of a note about the assistant's words, as prompts/observe.md asks
ASSISTANT = "The assistant"


@dataclass(frozen=True, slots=True)
class Target:
    """The note that an edit changes. *path* is None if an earlier edit of the same reply makes the note."""

    origin: str | None
    title: str
    description: str
    body: str = ""
    path: str | None = None
    said: date | None = None  # the day of the note's latest change


def author(message: Message) -> str:
    """Who wrote the words of *message*. A person's message that only quotes counts as a tool's."""
    if message.role != "user" or message.spoken:
        return message.role
    return "tool" if all(is_quote(message.text[s.start : s.end]) for s in message.material) else "user"


# Quoted lines, code, tags and comments. All other material (a chat, a mail, a calendar) may be the person's
# own list or form: the check decides.
QUOTE_MARK = re.compile(r"\s*(?:(?:[-*•–]|\d{1,2}[.)])?\s{0,4}(?:[>＞»│┃▌▏❯]|&gt;)|[<`~]|\"{3}|'{3}|!\[)")


def is_quote(material: str) -> bool:
    return QUOTE_MARK.match(material) is not None


def origin_of(edit: Edit, cited: Sequence[Message], by_hand: Collection[Message]) -> str:
    """
    The origin of *edit*, computed from the *cited* messages. *by_hand*: messages that a person wrote into the vault's
    inbox.
    """
    authors = {author(m) for m in cited}
    if "user" in authors and not ("assistant" in authors and edit.description.startswith(ASSISTANT)):
        return "human" if all(m in by_hand for m in cited) else "user"
    return "assistant" if authors <= {"user", "assistant"} else "tool"


def as_others(edit: Edit, origin: str) -> Edit:
    """*edit* as a statement of the assistant or a tool: a fact or an episode, never an instruction."""
    edit = replace(edit, origin=origin, standing=False, sets=edit.sets - {"type", "standing"})
    return replace(edit, type="fact", priority="medium") if edit.type in NEEDS_USER else edit


def origin_mark(origin: str | None) -> str:
    """The mark shown on a note that does not come from a person; "" for a person's note."""
    if origin == "tool":
        return "from a tool or a page, not from the user"
    return "said by the assistant" if origin == "assistant" else ""


def source_name(message: Message, messages: Sequence[Message]) -> str:
    """
    Return a name for the place that the text of *message* came from: "A page (example.org)".

    *message* is a tool's result, or a user's message that passes on a text. *messages* include the call of the tool.
    """
    if message.role == "user":
        return f"A text that {message.sender or 'the user'} passed on"
    calls = (c for m in messages for c in m.calls if c.id and c.id == message.call_id)
    address = next((found[1] for c in calls if (found := ADDRESS.search(c.arguments))), "")
    return f"A page ({address})" if address else f"The tool {message.tool or 'that was called'}"


LEAD_CHARS = 60  # the beginning of a text, in which the text may name its source
ADDRESS = re.compile(r"https?://(?:www\.)?([\w.-]{3,80})")


def as_claim_of(source: str, text: str) -> str:
    """*text* as a claim of *source*; unchanged if it already begins with "According to …"."""
    named = re.search(r"\(([^()]+)\)", source)
    lead = text[:LEAD_CHARS]
    if text.startswith(f"{source} says") or (SAYING.match(text) and named and named[1] in lead):
        return text
    return f"{source}: {text}" if SAYING.search(lead) else f"{source} says: {text}"


# --- Recognises a person's own words, which need no check.


NEAR = 0.6  # share of a statement's words that a sentence must have to replace the statement
HEARD = 0.4  # share of a sentence's words that must have been said, for a sentence of the assistant's
QUOTE_CHARS = 400  # longest sentence that is quoted
QUOTE_END = "”"


def as_worded(text: str, sender: str = "") -> Tokens:
    """*text* as tokens; *sender* and "I" become the same token."""
    return tokens_of(re.sub(rf"\b{re.escape(sender)}\b", "the user", text) if sender else text)


def own_statements(cited: Sequence[Message]) -> list[tuple[Message, str]]:
    """The statements that persons in *cited* make plainly: no quotations, questions, conditions or refusals."""
    return [(m, s.text) for m in cited if m.role == "user" for s in statements_of(m) if s.own]


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The persons' own statements in some messages. A text is compared with whole statements."""

    worded: Mapping[Tokens, set[str]]  # the tokens of a statement → its signs
    statements: tuple[str, ...]
    sender: str

    @classmethod
    def of(cls, cited: Sequence[Message]) -> OwnWords:
        said = own_statements(cited)
        names = {m.sender for m, _ in said}
        # In a longer text, a sentence may be quoted, denied or questioned without a sign: the check decides.
        worded = {as_worded(text, m.sender): signs_of(text) for m, text in said if stands_alone(m, text)}
        return cls(worded, tuple(text for _, text in said), names.pop() if len(names) == 1 else "")

    def hold(self, text: str) -> bool:
        """
        Whether *text* is one of the statements, word for word and sign for sign. Only the speaker's name may differ.
        """
        return self.worded.get(as_worded(text, self.sender)) == signs_of(text)


# --- The claims of an edit that would be a person's.


CLEARED = frozenset(("body", "tags", "event", "loop", "standing"))  # fields that an update may clear
PLAIN = frozenset(("type",))  # fields that need no check beside a description in the person's own words


@dataclass(frozen=True, slots=True)
class Proposed:
    """
    The edits of one reply, with the messages and notes that the edits cite and change.

    - `cited`: for each edit in turn, the messages that the edit cites
    - `targets`: index of an edit → the note that the edit changes
    - `notes`: texts of the notes that an edit may change or contradict
    """

    edits: Sequence[Edit]
    cited: Sequence[Sequence[Message]]
    targets: Mapping[int, Target]
    notes: Mapping[str, str] = field(default_factory=dict)  # path → the note's text
    said: Sequence[tuple[Source, str]] = ()  # the assistant's messages


def claims_of(proposed: Proposed) -> list[Claim]:
    """
    The claims to check in edits that would count as a person's. Text that repeats a person's own words is not
    checked.
    """
    claims: list[Claim] = []
    for place, edit in enumerate(proposed.edits):
        if edit.origin not in PERSONS:
            continue
        own, target = OwnWords.of(proposed.cited[place]), proposed.targets.get(place)
        title = edit.title or (target.title if target else "")
        text, says = head_of_edit(edit, target)
        if (edit.description or says) and not (says.keys() <= PLAIN and own.hold(text)):
            claims.append(Claim(place, "head", text, says, title))
        sentences = [one_line(s) for s in split_sentences(edit.body) if s.strip()]
        for s in sentences:
            strays = edit.op == "update" and target is not None and is_of_another(s, target)
            if strays or not own.hold(s):
                adds = {"adds_to": target.description} if strays and target else {}
                claims.append(Claim(place, "sentence", s, adds, note=title))
        claims += [Claim(place, "drop", s, {"goes": True}) for s in edit.drop]
        claims += [
            Claim(place, "doubt", proposed.notes.get(p, p), {"doubted": True}) for p in edit.contradicts
        ]
        if not titled_by(edit, target, f"{edit.description} {edit.body}", own):
            claims.append(Claim(place, "title", edit.title, {"title": True}))
    return claims


def is_only_quoted(claim: Claim, cited: Sequence[Message]) -> bool:
    """
    Whether most words of *claim* come from text that people only quote in *cited*. No check can make such words the
    person's own.
    """
    if claim.part not in ("head", "sentence", "title"):
        return False
    words = told_words(claim.text)
    quotes = [m.text[s.start : s.end] for m in cited if m.role == "user" for s in m.material]
    quoted = words & told_words("\n".join(filter(is_quote, quotes)))
    own = any(not is_idle(text) for _, text in own_statements(cited))
    return bool(quoted) and len(quoted) >= NEAR * len(words) and not own


def head_of_edit(edit: Edit, target: Target | None) -> tuple[str, dict[str, str | bool | list[str]]]:
    """
    Return what *edit* claims with its description and properties: (text, properties).

    The text is the description; without a description, the title of the changed note. The properties are by name, such
    as type, event and tags.
    """
    text = edit.description or (target.title if target else edit.title)
    says: dict[str, str | bool | list[str]] = {}
    if edit.op == "create" or "type" in edit.sets:
        says["type"] = edit.type
    if edit.event and (edit.op == "create" or "event" in edit.sets):
        says["event"] = edit.event
    if edit.standing:
        says["standing"] = True
    if edit.tags:
        says["tags"] = list(edit.tags)
    if target and edit.description and target.description:
        says["replaces"] = target.description
    if target and edit.loop == "done":
        says["ends"] = target.title
    elif edit.op == "update" and "loop" in edit.sets and edit.loop:
        says["loop"] = edit.loop
    if edit.op == "update" and "priority" in edit.sets and edit.priority != "high":
        says["priority"] = edit.priority
    given = {name for name in ("event", "loop", "standing") if getattr(edit, name)}
    if edit.op == "update" and (cleared := sorted((edit.sets & CLEARED) - given)):
        says["clears"] = cleared
    return text, says


def titled_by(edit: Edit, target: Target | None, text: str, own: OwnWords) -> bool:
    """
    Whether all words of the title that *edit* sets stand in *text*, in the note's former text, or in one of the
    person's own sentences.
    """
    words = told_words(edit.title) - {edit.type, *edit.tags}
    if edit.op == "update" and ("title" not in edit.sets or not words):
        return "title" not in edit.sets
    known = f"{target.title} {target.description} {target.body}" if target else ""
    said = (
        s for s in own.statements if edit.op == "create" or target is None or not is_of_another(s, target)
    )
    # A new note's title may leave out a "not" of its text ("Coeliac disease"), but may not add one.
    says = edit.description or (target.description if target else "")
    turned = denies(edit.title) != denies(says) and (edit.op == "update" or denies(edit.title))
    signed = signs_of(edit.title) <= signs_of(f"{text} {known}")  # not "❌ Tea"
    return signed and (
        (words <= told_words(f"{text} {known}") and not turned)
        or any(words <= told_words(s) and denies(s) == denies(edit.title) for s in said)
    )


def is_of_another(sentence: str, target: Target) -> bool:
    """
    Whether *sentence* shares no meaningful word with the note *target*.

    Such a sentence may have been meant for another note. Always False if *target* has no path yet, because another edit
    is about to make the note.
    """
    known = told_words(f"{target.title} {target.description} {target.body}")
    return target.path is not None and not known & told_words(sentence)


# --- Applies the verdicts: a supported claim enters the person's note, a refused one enters no note of theirs.


UNSAID = "the user's words do not support this"
SHOWN_CHARS = 160  # length of a refused text as the history shows it


@dataclass(slots=True)
class Settled:
    """The edits after the check, a line for each change with its reason, and the texts that were refused."""

    edits: list[Edit] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def refuse(self, place: int, why: str, texts: Sequence[str]) -> None:
        self.dropped.append(f"edit {place + 1}: {why}")
        self.refused += [f"refused “{cut_text(one_line(t), SHOWN_CHARS)}”: {why}" for t in texts if t]


Parts = tuple[Edit | None, Edit | None]  # the person's part of an edit, and a note beside it


def settle_edits(proposed: Proposed, verdicts: Sequence[tuple[Claim, Verdict]] | None) -> Settled:
    """
    The edits of *proposed* after the *verdicts*. Claims without a verdict stay. *verdicts* is None if the model
    cannot answer the check. Then an edit that would count as a person's becomes a new note that quotes one of the
    person's sentences, and changes no other note.
    """
    of_edit: dict[int, list[tuple[Claim, Verdict]]] = defaultdict(list)
    for claim, verdict in verdicts or ():
        if claim.part not in ("hint", "proposal"):
            quoted = is_only_quoted(claim, proposed.cited[claim.of])
            of_edit[claim.of].append((claim, "not supported" if quoted else verdict))
    done, beside = Settled(), list[Edit]()
    new_place: dict[int, int] = {}  # index of an edit → its present index
    for place, edit in enumerate(proposed.edits):
        if edit.origin not in PERSONS:
            kept, other = others_edit(proposed, place, done)
        elif verdicts is None:
            kept, other = quoted_alone(proposed, place, done), None
        else:
            kept, other = parted(proposed, place, of_edit[place], done)
        about = new_place.get(edit.about) if edit.about is not None else None
        if kept is not None and edit.about is not None and about is None:
            kept = replace(kept, op="create", about=None) if kept.description else None
        if kept is not None:
            new_place[place] = len(done.edits)
            done.edits.append(replace(kept, about=about if kept.op != "create" else None))
        if other is not None:
            near = new_place.get(place, about)
            beside.append(replace(other, beside=() if near is None else (near,)))
    count = len(done.edits)
    edits = [replace(e, beside=tuple(new_place[n] for n in e.beside if n in new_place)) for e in done.edits]
    done.edits = edits + [replace(e, beside=tuple(n for n in e.beside if n < count)) for e in beside]
    return done


def second_try(proposed: Proposed, answers: Sequence[tuple[Claim, Verdict]]) -> list[Claim]:
    """
    Return claims for a second check of new notes whose description was not supported.

    Each claim is the person's own statement that is most like the note. If the check supports the statement, it becomes
    the note's description. So one wrong word of the model does not cost the whole note.
    """
    failed = [c.of for c, v in answers if c.part == "head" and v == "not supported"]
    found = [
        (n, nearest_statement(edit, proposed.cited[n]))
        for n in failed
        if (edit := proposed.edits[n]).op == "create" and edit.origin in PERSONS
    ]
    return [Claim(n, "quote", quoted(*near), {"type": proposed.edits[n].type}) for n, near in found if near]


def parted(proposed: Proposed, place: int, own: Sequence[tuple[Claim, Verdict]], done: Settled) -> Parts:
    """
    Divide the edit at *place* into the person's part and a note of the assistant.

    Returns two edits:
    - the edit without the parts that the check refused; None if nothing is left
    - a new note with those refused sentences that the assistant said ("Booked."). None without such sentences, and
      None if the edit keeps its description. A sentence that the check found contradicted is never in this note.

    Each refusal is added to *done*.
    """
    edit, target = proposed.edits[place], proposed.targets.get(place)
    failed = [(c, verdict) for c, verdict in own if verdict != "supported" and c.part != "quote"]
    if not failed:
        return of_their_own(edit, target), None
    texts = [edit.description or edit.title if c.part == "head" else c.text for c, _ in failed]
    done.refuse(place, DENIED if any(verdict == "contradicted" for _, verdict in failed) else UNSAID, texts)
    refused = {(c.part, c.text) for c, _ in failed}
    parts = {part for part, _ in refused}
    kept = without_refused(edit, refused, proposed.notes)
    told = OwnWords.of(proposed.cited[place])
    if "head" in parts:
        quote = next((c.text for c, verdict in own if c.part == "quote" and verdict == "supported"), "")
        kept = without_head(kept, target, quote, told)
    if "title" in parts or not titled_by(kept, target, f"{kept.description} {kept.body}", told):
        kept = retitled(kept, target)
    # A refused sentence beside a head stays in the archive. A refused head may be what the assistant did: "Booked."
    unsaid = [c for c, verdict in failed if verdict != "contradicted" and c.part in ("head", "sentence")]
    whole = "head" in parts or not edit.description
    theirs = [edit.description if c.part == "head" else c.text for c in unsaid] if whole else []
    other = beside_note(proposed, place, theirs)
    return (of_their_own(kept, target) if says_anything(kept) else None), other


def without_refused(edit: Edit, refused: Collection[tuple[str, str]], notes: Mapping[str, str]) -> Edit:
    """
    Return *edit* without the sentences, deletions and contradictions that the check refused.

    Description and title are not looked at. *refused*: (kind of part, text) of each refused claim. *notes*: path → text
    of each note that may be contradicted.
    """
    doubts = (p for p in edit.contradicts if ("doubt", notes.get(p, p)) not in refused)
    body = without_sentences(edit.body, {text for part, text in refused if part == "sentence"})
    drop = tuple(s for s in edit.drop if ("drop", s) not in refused)
    return replace(edit, body=body, drop=drop, contradicts=tuple(doubts))


DENIED = "the user denies this"


def retitled(edit: Edit, target: Target | None) -> Edit:
    """
    Return *edit* without the model's title.

    An update keeps the note's present title. Any other edit gets a title made from its description.
    """
    if edit.op == "update":
        return replace(edit, title=target.title if target else edit.title, sets=edit.sets - {"title"})
    return replace(edit, title=short_title(edit.description))


def as_new(edit: Edit, target: Target | None, **changes: Any) -> Edit:
    """*edit* with *changes*, as a new note with a link to *target*, the note that *edit* was to change."""
    links = dict.fromkeys((*edit.links, *([target.path] if target and target.path else [])))
    made = replace(edit, op="create", target=None, about=None, drop=(), sets=frozenset(), links=tuple(links))
    return replace(made, **changes)


def without_head(edit: Edit, target: Target | None, quote: str, own: OwnWords) -> Edit:
    """
    Return *edit* without its description and properties, because the check refused the description.

    - A description that is word for word a statement in *own* becomes a new note.
    - A change of a person's note only adds text to the note; a change of any other note is dropped.
    - A new note gets *quote* as its description; without *quote*, the first sentence of its text.
    """
    plain = replace(edit, sets=frozenset(), loop=None, event=None, tags=(), standing=False, contradicts=())
    if edit.description and own.hold(edit.description):
        return as_new(plain, None, priority="medium", type=type_without_person(edit))
    plain = replace(plain, description="")
    if edit.op != "create" and target is not None:
        return replace(plain, op="update") if target.origin in PERSONS else replace(plain, body="", drop=())
    if quote:
        return replace(plain, description=quote)
    first, *rest = [*map(one_line, split_sentences(edit.body)), ""]
    body = "\n".join(filter(None, rest))
    return replace(plain, type=type_without_person(edit), priority="medium", description=first, body=body)


def quoted_alone(proposed: Proposed, place: int, done: Settled) -> Edit | None:
    """
    Return a new note that quotes the person's own words, in place of the edit at *place*.

    - The note quotes the sentence that is most like the edit. Without such a sentence, None is returned.
    - If a neighbouring sentence may change the meaning, the note quotes the neighbour, too.
    - Rules choose the note's type. If a neighbour is quoted, the note is a fact or an episode.
    """
    edit = proposed.edits[place]
    found = nearest_statement(edit, proposed.cited[place])
    if found is None:
        done.refuse(place, f"{UNSAID}, word for word", [edit.description or edit.body])
        return None
    message, statement = found
    alone = stands_alone(message, statement)
    # Words behind a colon may be another's: "Tom goes: I am vegan."
    kind = kind_of(statement)[0] if alone and ": " not in statement else ""
    made = as_new(
        replace(edit, body="", event=None, loop=None, tags=(), contradicts=()),
        proposed.targets.get(place),
        title=short_title(one_line(statement)),
        description=quoted(message, statement if alone else with_neighbours(message, statement)),
        type=TYPES.get(kind, type_without_person(edit)),
        standing=kind == "wish",
        sources=tuple(s for s in edit.sources if s.id == message.id),
    )
    if (made.description, made.type) != (edit.description, edit.type) or edit.op != "create":
        done.dropped.append(
            f"edit {place + 1}: quoted word for word, because the model often mistakes whose words are the user's"
        )
    return made


def type_without_person(edit: Edit) -> str:
    """Return the type of *edit*, or "fact" for a type that needs the person's own words."""
    return "fact" if edit.type in NEEDS_USER else edit.type


def nearest_statement(edit: Edit, cited: Sequence[Message]) -> tuple[Message, str] | None:
    """
    The person's own statement that is most like *edit*, with its message; None if none is like *edit*. The
    speakers' names do not count: "I live in Ghent" is like "Ann lives in Ghent".
    """
    said = own_statements(cited)
    words = told_words(edit.description or edit.body) - told_words(" ".join(m.sender for m, _ in said))
    if not words or not said:
        return None
    near, statement = max(said, key=lambda found: len(words & told_words(found[1])))
    if len(words & told_words(statement)) < NEAR * len(words) or len(statement) > QUOTE_CHARS:
        return None
    return near, statement


def quoted(message: Message, words: str) -> str:
    name = speaker(message)
    return f"{name[0].upper()}{name[1:]}: “{one_line(words)}{QUOTE_END}"


def with_neighbours(message: Message, statement: str) -> str:
    """
    Return *statement* with the sentence before and the sentence after in *message*.

    If the sentence before is a quotation, for example, the text begins at the person's last own sentence before the
    quotation. A text too long for a quotation is cut down to *statement*.
    """
    said = statements_of(message)
    at = next(n for n, s in enumerate(said) if s.text == statement)
    first = max(0, at - 1)
    while first and not said[first].own:
        first -= 1
    around = said[first : at + 2]
    text = message.text[around[0].start : around[-1].end]
    return text if len(text) <= QUOTE_CHARS else statement


def of_their_own(edit: Edit, target: Target | None) -> Edit:
    """
    Return *edit*, or a new note in the person's name in place of *edit*.

    The new note links to *target*. A new note is made in two cases:
    - *target* is a note of a tool.
    - *target* is a note of the assistant, and *edit* has a type that only the user's words can have, such as
      preference.
    """
    if edit.op == "update" and not says_anything(edit):  # only a link, without a source
        return replace(edit, sources=())
    if edit.op == "create" or target is None or target.origin in PERSONS or not edit.description:
        return edit
    if target.origin == "assistant" and edit.type not in NEEDS_USER:
        return edit
    return as_new(edit, target, title=edit.title or target.title)


def was_said(edit: Edit, proposed: Proposed, place: int) -> bool:
    """
    Whether the conversation has enough words of the description of *edit*.

    Words of the cited messages and of the assistant's messages count. If the description is in another language than
    the conversation, only names and numbers can match.
    """
    heard = [m.text for m in proposed.cited[place]]
    there = told_words("\n".join([*heard, *(text for _, text in proposed.said)]))
    words = told_words(edit.description)
    return len(words & there) >= HEARD * len(words)


def says_anything(edit: Edit) -> bool:
    if edit.op == "create":
        return bool(edit.description)
    return bool(edit.description or edit.body or edit.drop or edit.sets or edit.contradicts)


def others_edit(proposed: Proposed, place: int, done: Settled) -> Parts:
    """
    Limit the edit at *place* to what the assistant or a tool may change.

    Returns two edits:
    - the edit itself; None if the edit would change a person's note
    - a new note with the edit's text, to stand beside the person's note; None if the edit changes no person's note

    Both are None if the edit is the assistant's, and its description has too few words of the conversation
    (`was_said`). Each refusal is added to *done*.
    """
    edit, target = proposed.edits[place], proposed.targets.get(place)
    assert edit.origin is not None
    if edit.origin == "assistant" and edit.description and not was_said(edit, proposed, place):
        done.refuse(place, "nobody said it", [edit.description])
        return None, None
    edit = as_others(edit, edit.origin)
    if edit.op == "create" or target is None or target.origin not in PERSONS:
        return edit, None
    done.dropped.append(
        f"edit {place + 1}: the {edit.origin} may not change the user's note; noted in a separate note"
    )
    said = [edit.description] * bool(edit.description) + split_sentences(edit.body)
    return None, note_beside(edit, target, said, edit.origin or "tool")


def beside_note(proposed: Proposed, place: int, sentences: Sequence[str]) -> Edit | None:
    """
    Return a new note in the assistant's name, with the *sentences* that the assistant said.

    The check refused *sentences* as the user's words in the edit at *place*. Both must hold for each sentence in the
    note:
    - A message of the assistant has at least one word of the sentence that the user did not say.
    - Most words of the sentence are in this message or in the user's messages.

    Returns None if no sentence meets both conditions.
    """
    asked = {w for m in proposed.cited[place] if m.role == "user" for w in told_words(m.spoken)}
    told: dict[str, Source] = {}
    for sentence in sentences:
        words = told_words(sentence)
        source = max(proposed.said, key=lambda found: len(words & told_words(found[1])), default=None)
        theirs = told_words(source[1]) if source else frozenset()
        # The user's words count, too: an answer ("Booked: Friday 9:00.") may repeat some of them.
        if source and words & theirs - asked and len(words & (theirs | asked)) >= NEAR * len(words):
            told[sentence] = source[0]
    edit = replace(proposed.edits[place], sources=tuple(dict.fromkeys(told.values())))
    return note_beside(edit, proposed.targets.get(place), [*told], "assistant")


def note_beside(edit: Edit, target: Target | None, sentences: Sequence[str], origin: str) -> Edit | None:
    """
    A new note with words of the assistant or a tool about *target*, the note that *edit* was to change. The new note
    links to *target*.
    """
    texts = [one_line(s) for s in sentences if s.strip()]
    if not texts:
        return None
    if origin == "assistant" and ASSISTANT not in texts[0]:
        texts[0] = f"{ASSISTANT} said: {texts[0]}"
    other = as_new(
        replace(
            edit, loop=None, event=None if edit.origin in PERSONS else edit.event, contradicts=(), joins=True
        ),
        target,
        title=f"{target.title if target else edit.title} ({origin})",
        description=texts[0],
        body="\n".join(texts[1:]),
    )
    return as_others(other, origin)


def without_sentences(body: str, gone: set[str]) -> str:
    """*body* without the sentences in *gone*. Other lines stay unchanged."""
    lines: list[str] = []
    for line in body.split("\n") if gone else ():
        parts = split_sentences(line)
        kept = [part for part in parts if one_line(part) not in gone]
        if kept or not parts:
            lines.append(line if len(kept) == len(parts) else " ".join(kept))
    return "\n".join(lines).strip() if gone else body
