"""
Compares a text with what a person said: whether they said just that, said just what changes, or plainly agreed.

A text and a statement are compared as tokens (message/wording.py). Only statements that nothing governs count
(message/statements.py). What stands around one may only address the reader, or ask to keep it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise

import regex

from ..dates.rules import resolve_dates
from ..message.statements import (
    CONDITION,
    FIRST,
    FORGETTING,
    IDLE_MARKS,
    JOKING,
    MARK,
    POINTING,
    REMEMBERING,
    SAYING,
    SENTENCE_MARK,
    THAT,
    TRUE,
    UNTRUE,
    Statement,
    is_persons,
    statements_of,
)
from ..message.turn import Message
from ..message.wording import UNSPACED_TOKEN, USER, USERS, Tokens, is_day, tokens_of, without_s
from ..text.words import (
    ANY_LETTER,
    LIST_MARK,
    NUMBERS,
    STOP,
    WORD_OR_NUMBER,
    denies,
    english_words,
    phrases,
    stem_of,
    told_words,
    words_in,
)


def telling(tokens: Iterable[str]) -> set[str]:
    """Those of *tokens* that carry meaning. In Japanese, grammar is written in hiragana."""
    idle = STOP | {USER, USERS}
    return {t for t in tokens if t not in idle and not denies(t) and not HIRAGANA.fullmatch(t)}


@cache
def around() -> frozenset[str]:
    """Tokens that stand around a statement and add nothing."""
    return marks() | frozenset(map(without_s, english_words("around")))


@cache
def marks() -> frozenset[str]:
    """Tokens that say that something was wrong, or has changed."""
    return frozenset(map(without_s, english_words("correcting")))


@cache
def changing() -> regex.Pattern[str]:
    """What tells a change, before what holds now: "moved", "went up"."""
    found = sorted(phrases("changed"), key=len, reverse=True)
    return regex.compile(
        rf"\b(?:{'|'.join(p for p in found if not UNSPACED_TOKEN.match(p))})\b|{'|'.join(filter(UNSPACED_TOKEN.match, found))}",
        regex.I,
    )


HIRAGANA = regex.compile(r"\p{Hiragana}")


# --- The statements that count.


def own_statements(message: Message, *notes: Tokens) -> list[Statement]:
    """
    The statements that are the person's own, and questions, which may ask to remember something. A sentence that repeats one
    of the *notes* frames none: "You still think that …"
    """
    said = [s for s in statements_of(message) if s.governed in ("", "asked")]
    return [s for n, s in enumerate(said) if not is_framed(message.text, said, n, notes)]


# --- What frames a statement: who speaks, or of what text, is told by a sentence beside it.


LEAD = regex.compile(r"[:：,，、]")
BY_PERSON = regex.compile(
    r"\W*(?:(?:I|we|my|our|ich|wir|mein\w*|unser\w*|je|nous|mon|ma|mes|nos|notre|yo|mi|mis|nuestr\w+|io|mio|mia|eu|meu|minha|ik|mijn|я|мы|мо[йяи])\b|j['’]|[我私])",
    regex.I,
)
POINTS_BACK = regex.compile(rf"\W*{THAT}\b", regex.I)
CODE_MARK = regex.compile(r"[ \t]*(?:~~|//|#|--|[;%])")
FRAGMENT = 3  # words: a signature, a source, "lol jk"


def is_framed(text: str, said: Sequence[Statement], place: int, notes: Sequence[Tokens] = ()) -> bool:
    """
    Whether a sentence beside the statement at *place* may say whose words it is, or what of it holds: one before it that
    is not about the person, or one behind it that is too short to tell anything else, or points back. Forms and lists
    have no such sentences.
    """
    one = said[place]
    if CODE_MARK.match(text, text.rfind("\n", 0, one.start) + 1):
        return True
    if not (SENTENCE_MARK.search(one.text[-2:]) or FIRST.search(one.text)):
        return False
    return any(
        frames(text, other, before=n < place)
        for n, other in enumerate(said)
        if n != place and not any(repeats(tokens_of(other.text), note) for note in notes)
    )


def repeats(tokens: Tokens, note: Tokens) -> bool:
    """Whether *tokens* hold all of *note*, or tell nothing but words of it."""
    if any(tokens[n : n + len(note)] == note for n in range(len(tokens))):
        return True
    words = telling(tokens) - around()
    return bool(words) and words <= {*note}


def frames(text: str, other: Statement, *, before: bool) -> bool:
    said, line = other.text, text.rfind("\n", 0, other.start) + 1
    if LIST_MARK.match(text, line) or said.endswith(":") or MARK.match(said[-1:]):
        return False
    if (
        BY_PERSON.match(said)
        or (other.own and is_persons(said))
        or adds_nothing(said)
        or (before and only_marks(tokens_of(said)))
    ):
        return False
    if denies(said.split()[0]) and told_words(said):
        return False  # "Not Milan." says what it denies
    short = len(words_in(said)) <= FRAGMENT and VERBS.isdisjoint(words_in(said.lower()))
    if not other.own:  # a question
        return before and (short or POINTING.search(said) is not None)
    return before or short or (POINTS_BACK.match(said) is not None and not FIRST.search(said))


def adds_nothing(text: str) -> bool:
    """Whether *text* only greets, thanks, counts what comes, or says that it is true."""
    idle, serious = english_words("around") | NUMBERS.keys(), bool(JOKING.search(text)) == denies(text)
    if serious and not UNTRUE.search(text) and (JOKING.search(text) or TRUE.search(text)):
        return True
    words = (w.strip(IDLE_MARKS) for w in text.lower().split() if ANY_LETTER.search(w))
    return all(w in idle or w.isdigit() for w in words)


# --- Whether they said just that.


def says_plainly(text: str, message: Message, day: date) -> Statement | None:
    """The statement of *message* that says just *text*; None if none does."""
    wanted = tokens_of(text, day)
    for said in own_statements(message):
        if any(holds_all(part, wanted, day, asked=not said.own) for part in parts_of(said.text, day)):
            return said
    return None


def holds_all(statement: str, wanted: Tokens, day: date, *, asked: bool) -> bool:
    """Whether *statement* says *wanted*, and what stands around it only asks to keep it, or objects."""
    tokens = tokens_of(statement, day)
    size = len(wanted)
    for at in range(len(tokens) - size + 1) if size else ():
        if tokens[at : at + size] == wanted:
            before, after = tokens[:at], tokens[at + size :]
            if only_around(before) and only_around(after) and (not asked or asks_to_keep(before)):
                return True
    return False


def asks_to_keep(tokens: Sequence[str]) -> bool:
    return REMEMBERING.search(" ".join(tokens)) is not None


def only_around(tokens: Sequence[str]) -> bool:
    text = " ".join(tokens)
    idle = all(t in around() or t in (USER, USERS, "not", "do") or REMEMBERING.fullmatch(t) for t in tokens)
    if not idle or ("not" in tokens and not FORGETTING.search(text)):
        return False
    return USER not in tokens or asks_to_keep(tokens)


AND = re.compile(r",? (?:and|und|et|y|e|en) (?=(that |dass |que |che )?)")
SUBJECTS = frozenset(("he", "she", "it", "they", "we", "who", "because", "that", USER))


def parts_of(text: str, day: date) -> Iterator[str]:
    """*text*, and "A" and "B" of "A and B", where the first does not lend the second its sense."""
    yield text
    lead, *rest = LEAD.split(text, maxsplit=1)
    if rest and (is_persons(lead) or adds_nothing(lead) or only_marks(tokens_of(lead))):
        yield from parts_of(rest[0], day)
    for m in AND.finditer(text):
        first, second = text[: m.start()], text[m.end() :].removeprefix(m[1] or "")
        words = tokens_of(first, day)
        while words and words[0] in around() | {"that"}:
            words = words[1:]
        governs = (
            (SAYING.search(text) and not is_persons(text))
            or CONDITION.match(" ".join(words))
            or denies(first)
            or ":" in first
        )
        if not governs and SUBJECTS.isdisjoint(words[1:]) and len(tokens_of(second, day)) > 2:
            yield first
            yield second


# --- Whether they said just what changes: "dentist at 15:30" says that of "The dentist is at 15:00".
#
# Each word of the message is accounted for: it stands in the note's sentence, in the new one, or in the lists of words that
# object, and that tell a change. One word more ("my sister", "maybe", "travelled"), and the message may say something else.


CLAUSE = regex.compile(
    r"\s*(?:[;—–，、：]|[,:](?!\d)|\b(?:but|sondern|mais|sino|pero|maar)\b)\s*"
    r"|\s+(?=(?:instead of|rather than|(?:an)?statt|au lieu d|en vez de|en lugar de|invece di)\b)|(?<=ではなく|じゃなく|じゃなくて)"
)
ENGLISH = re.compile(r"(?:I|We|The user)\b", re.I)
# "I", and verbs that need no "I": then the sentence names nothing that it is about but the person
BARE = frozenset((USER, *"soy estoy tengo sono ho sou estou tenho jestem mam".split()))
PRONOUNS = frozenset(
    "it he she they er sie es il elle ella lui lei hij zij this that ce das eso questo".split()
)
VERBS = frozenset("is are was were am".split())
LEFT_OUT = (VERBS - {"was", "were"}) | frozenset("a an the now ist sind est es è é は".split())
# Around a word that tells a change: who made it, its auxiliary, from what to what
AGENTS = frozenset((USER, *"we they wir sie on nous".split()))
WITH_CHANGE = VERBS | frozenset(
    "have has had been got bin ist wurde ai été a ha he fue stato me from to von nach auf de à da um か ら に".split()
)
FROM = frozenset("from von da".split())
ASKING_FIRST = VERBS | frozenset("has have had did do ist sind hat wurde est sont è".split())
LATELY = timedelta(days=31)
RIGHT_BEFORE = 2  # messages: the reply, and what it answers
# Telling words that stay where the subject is put right ("No. Bert keeps the gate code."), or a name in what the person
# says of themselves: "I like Bob." leaves "I like Ann." as it is
SHARED = 3


@dataclass(slots=True)
class Change:
    """What makes one sentence of another, as tokens."""

    before: Tokens
    after: Tokens
    gone: list[str]
    come: list[str]
    replaced: set[str]  # those of `gone` in whose place others stand
    names: set[str]  # capitalised words of an English sentence
    denied: bool  # whether the new sentence says that something is not so

    @property
    def kept(self) -> set[str]:
        return telling(self.before) & telling(self.after)


def change_of(was: str, new: str, day: date) -> Change:
    before, after = tokens_of(was, day), tokens_of(new, day)
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    gone = [t for kind, i, j, _, _ in blocks if kind != "equal" for t in before[i:j]]
    come = [t for kind, _, _, i, j in blocks if kind != "equal" for t in after[i:j]]
    replaced = {t for kind, i, j, _, _ in blocks if kind == "replace" for t in before[i:j]}
    names = {w.lower() for w in words_in(was) if w[0].isupper()} if ENGLISH.match(new) else set()
    return Change(before, after, gone, come, replaced, names, denies(new))


@dataclass(slots=True)
class Said:
    """What a message says of a change so far."""

    told: list[str]  # tokens of the new sentence
    wrong: set[str]  # tokens of the old one that it takes back
    marked: bool = False  # whether it says that something was wrong, or has changed
    alone: bool = False  # whether "it" may be what the note is about
    pointed: bool = False  # whether "it" stands for what the message does not name
    whole: bool = False  # whether it says the new sentence as it is


def says_correction(was: str, new: str, message: Message, day: date, before: Sequence[Message] = ()) -> bool:
    """
    Whether *message* says that *new* holds instead of *was*: a statement says it whole, or what changes and nothing else. It
    names what *was* is about; where that is only the person, it also says that something was wrong ("no, …", "now",
    "not X"), unless a number, a day or an English name is all that changes. A message that only puts one value right
    ("no, 52") is about what was said right *before* it.
    """
    change = change_of(was, new, day)
    taken = own_statements(message, change.before, change.after)
    told = [s for s in statements_of(message) if s.governed != "passed on"]
    said = Said([], set(), alone=not message.material and change.before[:1] != (USER,))
    for statement in told:
        if statement not in taken or not statement.own or not read(statement.text, change, day, said):
            said = Said([], set())
        elif says_new(change, said) and (
            is_about(change, said) or (len(told) == 1 and is_answer(change, said, before, day))
        ):
            return True
        else:
            said = replace(said, told=[], alone=said.alone and not said.told)
    return False


def read(text: str, change: Change, day: date, said: Said) -> bool:
    """Read *text* into *said*. False if it says anything but the change, or denies it."""
    parts, bare = [*parts_of(text, day)], without_subject(change.after)
    if any(tokens_of(p, day) == bare or holds_all(p, change.after, day, asked=False) for p in parts):
        each = [tokens_of(clause, day) for clause in CLAUSE.split(text)]
        said.marked |= any(is_marked(tokens) or only_marks(tokens) for tokens in each)
        said.marked |= changing().search(text) is not None
        said.told, said.whole = [*change.after], True
        return True
    clauses = sorted(filter(None, CLAUSE.split(text)), key=denies, reverse=True)  # what is wrong first
    return all(read_clause(clause, change, day, said) for clause in clauses)


def without_subject(tokens: Tokens) -> Tokens:
    """*tokens* without "I", as languages have it whose verbs need no subject; () where there is none."""
    return tokens[2 if tokens[1:2] == ("は",) else 1 :] if tokens[:1] == (USER,) else ()


def read_clause(clause: str, change: Change, day: date, said: Said) -> bool:
    """Read one *clause* into *said*. False if it says anything but the change, or denies it."""
    found = [m[0] for m in changing().finditer(clause) if not {*tokens_of(m[0])} <= {*change.after}]
    plain = changing().sub(lambda m: " " if m[0] in found else m[0], clause)
    tokens, changed = tokens_of(plain, day), bool(found)
    left = LEFT_OUT | marks() | (WITH_CHANGE if changed else set())
    idle = around() | left | PRONOUNS | AGENTS
    if clause in marks() or only_marks(tokens) or idle.issuperset(tokens):
        said.marked |= changed or not marks().isdisjoint((*tokens, clause))
        return True
    denied = denies(plain)
    again = change.denied and not ({*change.come} <= {*tokens})
    if denied and (words := repeated(tokens, change)) and (again or words & {*change.gone}):
        said.marked |= is_marked(tokens)
        said.wrong |= words & {*change.gone}
        said.told += [t for t in change.kept if t in words]
        return True
    said.marked |= changed or is_marked(tokens)
    idle = around() if changed else marks()
    at = next((n for n, t in enumerate(tokens) if t in {*PRONOUNS, *change.after} or t not in idle), 0)
    tokens = tokens[at:]
    if (denied and not change.denied and denies(" ".join(tokens))) or tokens[0] in ASKING_FIRST:
        return False
    if tokens[0] in PRONOUNS and tokens[0] not in change.after[:1]:
        said.pointed |= not (said.told or (said.alone and tokens[0] == "it"))
        tokens = tokens[1:]
    if not change.denied and said.wrong >= telling(change.gone):
        left = left | {USERS}
    told = [t for t in tokens if t in change.come or t not in left]
    if changed:
        if any(b in change.come and a in FROM for a, b in pairwise(tokens)):
            return False
        told = without_former(told, change, day, said)
    said.told += told
    return stands_in_order(told, [*change.after], change.come)


def repeated(tokens: Sequence[str], change: Change) -> set[str]:
    """The words of the old sentence that *tokens* repeat; none if they say more."""
    stems = {stem_of(t): t for t in change.before}
    words = {stem_of(t) for t in telling(tokens) - around()}
    return {stems[w] for w in words} if words <= stems.keys() else set()


def without_former(told: list[str], change: Change, day: date, said: Said) -> list[str]:
    """
    *told* of a clause that tells a change, without who made it, when, and the value that it names as the former one, which
    stands before the new one: "We moved it from 15:00 to 15:30 yesterday." All stays where more is left out than a verb.
    """
    new = next((n for n, t in enumerate(told) if t in change.come), 0)
    former = {t for t in told[:new] if t in telling(change.gone)}
    unnamed = {t for t in change.kept - {*told} if len(t) > 2 or UNSPACED_TOKEN.match(t)}
    if former and len(unnamed) > 1:
        return told  # "I moved from Basel to Bern" does not name Anke
    said.wrong |= former
    agents = AGENTS if subject_of(change.before) in told else frozenset[str]()
    lately = range(int(f"{day - LATELY:%Y%m%d}"), int(f"{day:%Y%m%d}") + 1)
    beside = {t for t in told if t in former or t in agents or (is_day(t) and int(t) in lately)}
    return [t for t in told if t in change.after or t not in beside]


def says_new(change: Change, said: Said) -> bool:
    """Whether what was said has all that is new, and takes the place of no more than it has."""
    new = {*change.come} - LEFT_OUT - VERBS
    enough = len(telling(change.gone) - said.wrong) <= len(telling(change.come))
    return said.whole or (bool(change.come) and new <= {*said.told} and enough)


def is_about(change: Change, said: Said) -> bool:
    """Whether what was said is about the note's sentence, and may replace it."""
    kept = change.kept
    subject = subject_of(change.before)
    if said.pointed or (
        subject and subject not in change.after and subject not in said.wrong and len(kept) < SHARED
    ):
        return False
    named = bool(telling(said.told) & kept or said.wrong)
    stems = {stem_of(t) for t in change.after}
    lost = {t for t in telling([*change.replaced]) - said.wrong if stem_of(t) not in stems}
    new = {stem_of(t) for t in telling(change.come)} - {stem_of(t) for t in change.before}
    if not lost or not new or said.marked or said.wrong:
        return named or bool(telling(said.told) & {stem_of(t) for t in change.before})
    by_user = change.before[:1] == (USER,)
    if all(t[:1].isdigit() or (t in change.names and (not by_user or len(kept) >= SHARED)) for t in lost):
        return named or not kept
    subject = next((t for t in change.after if t in telling(change.after)), "")
    return change.after[0] not in BARE and subject in kept and subject in said.told


def is_answer(change: Change, said: Said, before: Sequence[Message], day: date) -> bool:
    """Whether a message that only puts one value right ("no, 52", "I meant 15:30") answers what says the wrong one."""
    gone, come = telling(change.gone), telling(change.come)
    if not said.marked or len(gone) != 1 or telling(said.told) != come or len(come) != 1:
        return False
    lately = (set(tokens_of(m.text, day)) for m in before[-RIGHT_BEFORE:])
    return any(gone <= words and change.kept & words for words in lately)


def only_marks(tokens: Sequence[str]) -> bool:
    """Whether *tokens* only object: "No.", "That is wrong.", "Sorry"."""
    idle = (
        around()
        | LEFT_OUT
        | VERBS
        | PRONOUNS
        | frozenset("not s have got correct い ま す え で し".split())
        | {USER}
    )
    return not (marks() | {"not"}).isdisjoint(tokens) and idle.issuperset(tokens)


def is_marked(clause: Tokens) -> bool:
    text = " ".join(clause)
    return bool(
        {*clause[:2]} & marks()
        or {"now", "jetzt", "maintenant", "ahora"} & {*clause}
        or "any more" in text
        or "anymore" in text
    )


def subject_of(tokens: Tokens) -> str:
    """
    Whom or what a sentence of *tokens* is about: the person, or the first word that carries meaning; "" in Japanese where
    nothing names it.
    """
    if not {"は", "が"} & {*tokens} and any(map(HIRAGANA.fullmatch, tokens)):
        return ""
    return next((t for t in tokens if t == USER or t in telling(tokens)), "")


def stands_in_order(told: Sequence[str], after: list[str], come: Sequence[str]) -> bool:
    """
    Whether the tokens *told* stand in *after* in their order, and between one of *come* and the one before it there is no
    other value of its shape and no "and": "open from 9:30" does not say "open from 8:00 to 9:30".
    """
    at = 0
    for n, token in enumerate(told):
        if token not in after[at:]:
            return False
        place = after.index(token, at)
        skipped = after[at:place] if n and token in come else []
        if n and any(t.endswith("'s") and t != USERS for t in after[at:place]):
            return False  # "my phone" is not "my sister's phone"
        if any(t in ("and", "but", "or") or shape_of(t) == shape_of(token) != "word" for t in skipped):
            return False
        at = place + 1
    return True


def shape_of(token: str) -> str:
    if not token[:1].isdigit():
        return "word"
    return "clock" if ":" in token else "day" if is_day(token) else "number"


# --- A value in place of a sentence: "15:30" for "The gym closes at 15:00."


VALUE_WORDS = 3  # what is longer is a sentence


def is_fragment(text: str, was: str) -> bool:
    """Whether *text* is only a value, and *was*, in whose place it is to stand, is a sentence."""
    words = text.split()
    return (
        text.isascii()
        and len(words) <= VALUE_WORDS < len(was.split()) + 1
        and len(words) < len(was.split())
        and not {*text.lower().split()} & {"i", "we", "is", "are", "has"}
    )


def put_in_place(value: str, was: str, day: date) -> str | None:
    """*was* with *value* in place of the one of its kind; None where not exactly one is there."""
    head, _, rest = value.strip(" .!").partition(" ")
    small, right = (head.lower(), rest) if rest and head.lower() in STOP else ("", value.strip(" .!"))
    kind = kind_of(right, day)
    phrases = [w.phrase for w in resolve_dates(was, day, ahead=True)] if kind == "day" else []
    found = [slice(at := was.find(p), at + len(p)) for p in phrases]
    words = [] if found else [slice(*m.span()) for m in WORD_OR_NUMBER.finditer(was)]
    for n, place in enumerate(words):
        before = was[words[n - 1]].lower() if n else ""
        last = n == len(words) - 1 and before in LEFT_OUT
        fits = small in ("", before) and (kind != "word" or last)
        if n and fits and kind_of(was[place], day) == kind:
            found.append(place)
    if not kind or len(found) != 1:
        return None
    right = str(resolve_dates(right, day, ahead=True)[0].start) if kind == "day" else right
    return f"{was[: found[0].start]}{right}{was[found[0].stop :]}"


def kind_of(value: str, day: date) -> str:
    """ "day", "clock", "number", "name" or "word"; "" for what is more."""
    if [when.phrase for when in resolve_dates(value, day, ahead=True)] == [value]:
        return "day"
    if " " in value:
        return ""
    if value[:1].isdigit():
        return "clock" if re.fullmatch(r"\d{1,2}[:.h]\d\d", value) else "number"
    return "name" if value[:1].isupper() else "word" if value.isalpha() and value not in STOP else ""
