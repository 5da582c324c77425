"""
Decides whether a person's message says a sentence, or corrects a sentence.

A sentence and a statement of the message are compared as tokens (message/wording.py). Only plain statements count:
no condition or quotation, and no question unless it asks to remember (message/statements.py). Beside the sentence, a
statement can only have words without content, such as "please remember that".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from difflib import SequenceMatcher
from itertools import pairwise
from operator import eq

import regex

from ..message.statements import (
    BY_PERSON,
    CONDITION,
    FORGETTING,
    LEAD,
    LED,
    REMEMBERING,
    SAYING,
    UNTRUE,
    Statement,
    adds_nothing,
    is_persons,
    quotations,
    statements_of,
    unframed_statements,
)
from ..message.turn import Message
from ..message.wording import (
    HIRAGANA,
    LEFT_OUT,
    PRONOUNS,
    UNSPACED_TOKEN,
    USER,
    USERS,
    VERBS,
    Tokens,
    around,
    change_phrases,
    is_day,
    marks,
    only_marks,
    signs_of,
    telling,
    tokens_of,
)
from ..text.words import denies, stem_of, words_in

# --- Whether the person said just the text.


def says_plainly(text: str, message: Message, day: date) -> Statement | None:
    """The statement of *message* that says just *text*; None if none does."""
    if not signs_of(text) <= signs_of(message.text):
        return None
    wanted = tokens_of(text, day)
    for said in unframed_statements(message):
        if any(holds_all(part, wanted, day, asked=not said.own) for part in parts_of(said.text, day)):
            return said
    return None


def holds_all(statement: str, wanted: Tokens, day: date, *, asked: bool) -> bool:
    """
    Whether *statement* says *wanted*, and nothing beyond *wanted*.

    Around *wanted*, two kinds of words are allowed:
    - a request such as "please remember that"; with *asked*, this request is required
    - a "no" to something said earlier
    """
    tokens = tokens_of(statement, day)
    for at, end in places_of(wanted, tokens):
        before, after = without_no(tokens[:at], wanted), tokens[end:]
        question = before and before[-1] in ASKING_FIRST and wanted[0] in BEHIND_NO  # "Can I park here"
        alone = only_around(before) and only_around(after) and MORE.isdisjoint(after)
        if alone and not question and (not asked or asks_to_keep(before)):
            return True
    return False


# Behind these words, the verb stands at the end. A main clause has at most LONGEST_SUBJECT tokens before its verb.
VERB_LAST = frozenset(("dass", "daß", "dat"))
LONGEST_SUBJECT = 4


def places_of(wanted: Tokens, tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Yield where *tokens* say *wanted*: word for word, or as a subordinate clause ("dass ich Linkshänder bin")."""
    size = len(wanted)
    yield from (
        (n, n + size) for n in range(len(tokens) - size + 1) if size and tokens[n : n + size] == wanted
    )
    for n, token in enumerate(tokens, 1):
        for clause in verb_last(wanted) if token in VERB_LAST else ():
            if tokens[n : n + len(clause)] == clause:
                yield n, n + len(clause)


def verb_last(wanted: Tokens) -> Iterator[Tokens]:
    """Yield *wanted* as it may stand in a subordinate clause: "Ich stehe um acht auf" as "ich um acht aufstehe"."""
    for n in range(1, min(LONGEST_SUBJECT + 1, len(wanted) - 1)):
        verb, rest, last = wanted[n], (*wanted[:n], *wanted[n + 1 : -1]), wanted[-1]
        if not denies(verb):
            yield from ((*rest, last, verb), (*rest, verb, last), (*rest, last + verb))


def asks_to_keep(tokens: Sequence[str]) -> bool:
    return REMEMBERING.search(" ".join(tokens)) is not None


# Tokens that begin a sentence's subject. In "No I live in Ghent" the "no" objects; in "No vivo en Madrid" it denies.
BEHIND_NO = frozenset((USER, USERS, *"the he she it they er sie elle hij zij".split()))

# Words that change the value before them: "I earn 50 more", "Je fume plus"
MORE = frozenset(("more", "longer", "mehr", "plu", "più", "mai", "meer", "больше"))


def without_no(before: Tokens, after: Sequence[str]) -> Tokens:
    """
    Remove a final "no" from *before* if this "no" only answers something said earlier.

    *before*: the tokens in front of a statement. *after*: the tokens of the statement.
    - "No I live in Ghent": removed, because the statement begins with a subject.
    - "No vivo en Madrid": kept, because the "no" denies the statement.
    """
    objects = before[-1:] and before[-1] in marks() and denies(before[-1])
    return before[:-1] if objects and after and after[0] in BEHIND_NO else before


def only_around(tokens: Sequence[str]) -> bool:
    """
    Whether *tokens* neither add to a statement nor deny it. *tokens* stand next to the statement, without punctuation
    in between.
    """
    text = " ".join(tokens)
    rest = [t for t in REMEMBERING.sub(" ", text).split() if t not in around() | {USER, USERS, "do"}]
    if denies(text) or UNTRUE.search(text):
        if not FORGETTING.search(text):
            return False  # "No como carne", "I smoke no longer"
        rest = [t for t in rest if not (denies(t) or FORGETTING.fullmatch(t))]  # "don't forget that …"
    return not rest and (USER not in tokens or asks_to_keep(tokens))


AND = re.compile(r"(,?) (?:and|und|et|y|e|en) (?=(that |dass |que |che )?)")
SUBJECTS = frozenset(("he", "she", "it", "they", "we", "who", "because", "that", USER))


def parts_of(text: str, day: date) -> Iterator[str]:
    """
    Yield *text*, and the parts of *text* that the person states:
    - the words after the first colon or comma, if the words before add nothing ("By the way, …")
    - the words after the first colon or comma, if the words before say that the person speaks ("I told her: …")
    - a quotation of the person's own words (I told her "I …")
    - "A" and "B" of "A and B", unless the sense of "B" depends on "A". "B" counts only after a comma, or if the person
      is the subject of "A", or if both are built alike
    """
    yield text
    lead, *rest = LEAD.split(text, maxsplit=1)
    led = bool(rest and LED.match(rest[0].lstrip()))  # "Es stimmt nicht, dass …"
    if rest and (is_persons(lead) or (not led and (adds_nothing(lead) or only_marks(tokens_of(lead))))):
        yield from parts_of(rest[0], day)
    for quote in quotations(text) if BY_PERSON.match(text) else ():  # I told her "I …"
        if is_persons(text[: quote.start]) and adds_nothing(text[quote.end :]):
            yield text[quote.start + 1 : quote.end - 1]
    for m in AND.finditer(text):
        first, second = text[: m.start()], text[m.end() :].removeprefix(m[2] or "")
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
            # "My sister is Ada and my brother is Tom", but not "My ex thinks Ann is rude and I am worthless"
            alike = sum(map(eq, words, tokens_of(second, day))) > 1
            if m[1] or alike or words[:1] == (USER,):
                yield second


# --- Whether the person said just the change: "dentist at 15:30" changes "The dentist is at 15:00".
#
# Each word of the message has to stand in the note's sentence, in the new sentence, or in the lists of words
# that object or tell a change. With one more word ("my sister", "maybe", "travelled"), the message may say
# something else.


# The beginning of a clause that denies its words; "Das Treffen findet am Freitag statt" does not.
INSTEAD = regex.compile(
    r"(?:instead of|rather than|(?:an)?statt|au lieu d\w{0,2}|en (?:vez|lugar) del?|invece d\w+)\b(?=\W+\w)",
    regex.I,
)
CLAUSE = regex.compile(
    r"\s*(?:[;—–，、：]|[,:](?!\d)|\b(?:but|sondern|mais|sino|pero|maar)\b)\s*"
    rf"|\s+(?={INSTEAD.pattern})|(?<=ではなく|じゃなく|じゃなくて)"
)
ENGLISH = re.compile(r"(?:I|We|The user)\b", re.I)
IS = VERBS | frozenset("ist sind est es è é".split())
PLACES = frozenset("in at on en à".split())  # prepositions before the place where somebody is
# Words around a verb of change: the person who made the change, auxiliaries, "from" and "to"
AGENTS = frozenset((USER, *"we they wir sie on nous".split()))
WITH_CHANGE = VERBS | frozenset(
    "have has had been got bin ist wurde ai été a ha he fue stato me from to von nach auf de à da um か ら に".split()
)
FROM = frozenset("from von da".split())
ASKING_FIRST = VERBS | frozenset(
    "has have had did do can could will would ist sind hat wurde est sont è".split()
)
LATELY = timedelta(days=31)
RIGHT_BEFORE = 2  # messages: the reply, and the message before the reply
# The least number of unchanged words with meaning, if the correction changes the subject ("No. Bert keeps the
# gate code.") or a name in a sentence about the person: "I like Bob." does not change "I like Ann."
SHARED = 3


@dataclass(slots=True)
class Change:
    """The difference of two sentences, as tokens. *gone*: those only in *before*; *come*: those only in *after*."""

    before: Tokens
    after: Tokens
    gone: list[str]
    come: list[str]
    replaced: set[str]  # tokens of `gone` that tokens of `come` replace
    names: set[str]  # capitalised words of an English sentence
    alike: bool  # whether `gone` and `come` both have a name, or both have none
    denied: bool  # whether the new sentence is a denial

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
    alike = has_name(was, gone) == has_name(new, come)
    return Change(before, after, gone, come, replaced, names, alike, denies(new))


def has_name(text: str, tokens: Sequence[str]) -> bool:
    """Whether one of *tokens* begins with a capital letter in *text*."""
    return any(w[0].isupper() and not {*tokens_of(w)}.isdisjoint(tokens) for w in words_in(text))


@dataclass(slots=True)
class Said:
    """What a message has said about a change so far."""

    told: list[str]  # tokens of the new sentence
    wrong: set[str]  # tokens of the old sentence that the message takes back
    marked: bool = False  # whether the message says that something was wrong, or has changed
    alone: bool = False  # whether "it" may be the note's subject
    pointed: bool = False  # whether "it" stands for something that the message does not name
    whole: bool = False  # whether the message says the new sentence word for word


def says_correction(was: str, new: str, message: Message, day: date, before: Sequence[Message] = ()) -> bool:
    """
    Whether *message* says that *new* is true in place of *was*.

    All of these must hold:
    - One statement of *message* says all of *new*, or only what changes.
    - This statement names the subject of *was*.
    - This statement, or one before it, takes *was* back ("no, …", "now", "not X"). This is not needed if `is_about` is
      sure without such words, for example if only a number changes.

    The new value alone ("no, 52") is enough if one of the messages *before* has the old value.
    """
    change = change_of(was, new, day)
    if not change.after or not signs_of(new) <= signs_of(f"{was} {message.text}"):
        return False
    taken = unframed_statements(message, change.before, change.after)
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
    """Record in *said* what *text* says about the change. False if *text* says anything else, or denies the change."""
    parts, bare = [*parts_of(text, day)], without_subject(change.after) or change.after
    if any(tokens_of(p, day) == bare or holds_all(p, change.after, day, asked=False) for p in parts):
        each = [tokens_of(clause, day) for clause in CLAUSE.split(text)]
        said.marked |= any(is_marked(tokens) or only_marks(tokens) for tokens in each)
        said.marked |= change_phrases().search(text) is not None
        said.told, said.whole = [*change.after], True
        return True
    clauses = sorted(filter(None, CLAUSE.split(text)), key=lambda c: not (INSTEAD.match(c) or denies(c)))
    return all(read_clause(clause, change, day, said) for clause in clauses)  # denials first


def without_subject(tokens: Tokens) -> Tokens:
    """*tokens* without the leading "I" that some languages leave out; () if there is no leading "I"."""
    return tokens[2 if tokens[1:2] == ("は",) else 1 :] if tokens[:1] == (USER,) else ()


def read_clause(clause: str, change: Change, day: date, said: Said) -> bool:
    """
    Record in *said* what one *clause* says about the change. False if *clause* says anything else, or denies the
    change.
    """
    found = [m[0] for m in change_phrases().finditer(clause) if not {*tokens_of(m[0])} <= {*change.after}]
    plain = change_phrases().sub(lambda m: " " if m[0] in found else m[0], INSTEAD.sub("", clause))
    tokens, changed = tokens_of(plain, day), bool(found)
    idle = around() | left_out(changed) | PRONOUNS | AGENTS
    if clause in marks() or only_marks(tokens) or idle.issuperset(tokens):
        said.marked |= changed or not marks().isdisjoint((*tokens, clause))
        return True
    instead = INSTEAD.match(clause) is not None
    denied = instead or denies(plain)
    again = change.denied and not ({*change.come} <= {*tokens})
    if denied and (words := repeated(tokens, change)) and (again or words & {*change.gone}):
        said.marked |= is_marked(tokens)
        said.wrong |= words & {*change.gone}
        said.told += [t for t in change.kept if t in words]
        return True
    said.marked |= changed or is_marked(tokens)
    opened = without_opening(tokens, change, changed)
    rest = without_no(tokens[: len(tokens) - len(opened)], opened) + opened
    if instead or (denied and not change.denied and denies(" ".join(rest))) or opened[0] in ASKING_FIRST:
        return False
    return read_state(opened, change, day, said, changed)


def left_out(changed: bool) -> frozenset[str]:
    """Tokens that add nothing to a clause. *changed*: the clause says that something changed."""
    return LEFT_OUT | (marks() - MORE) | (WITH_CHANGE if changed else frozenset())


def without_opening(tokens: Tokens, change: Change, changed: bool) -> Tokens:
    """*tokens* without an objection or a request for a change at the beginning."""
    idle = around() if changed else marks()
    at = next((n for n, t in enumerate(tokens) if t in {*PRONOUNS, *change.after} or t not in idle), 0)
    return tokens[at:]


def read_state(tokens: Tokens, change: Change, day: date, said: Said, changed: bool) -> bool:
    """
    Record in *said* a clause that states how things are now. *changed*: the clause says that something changed.
    Returns False if the clause says anything that is not in the new sentence.
    """
    if tokens[0] in PRONOUNS and tokens[0] not in change.after[:1]:
        said.pointed |= not (said.told or (said.alone and tokens[0] == "it"))
        tokens = tokens[1:]
    left = left_out(changed)
    if not change.denied and said.wrong >= telling(change.gone):
        left |= {USERS}
    told = [t for t in tokens if t in change.come or t not in left]
    if changed:
        if any(b in change.come and a in FROM for a, b in pairwise(tokens)):
            return False
        told = without_former(told, change, day, said)
    said.told += told
    return stands_in_order(told, [*change.after], change.come)


def repeated(tokens: Sequence[str], change: Change) -> set[str]:
    """The words of the old sentence that *tokens* repeat. Empty if *tokens* contain any other word of meaning."""
    stems = {stem_of(t): t for t in change.before}
    words = {stem_of(t) for t in telling(tokens) - around()}
    return {stems[w] for w in words} if words <= stems.keys() else set()


def without_former(told: list[str], change: Change, day: date, said: Said) -> list[str]:
    """
    *told* without the words about the change itself. *told*: the tokens of a clause such as "We moved it from 15:00
    to 15:30 yesterday.", which says that something changed. Dropped are
    - who made the change ("We")
    - the day of the change ("yesterday")
    - the former value before the new value ("15:00")

    Nothing is dropped if *told* names the former value, but lacks two or more of the words that the old and the new
    sentence share.
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
    """
    Whether the message says the new sentence.

    True in two cases:
    - The message says the new sentence word for word.
    - The message says all new words, and at most as many old words disappear as new words come. "blue" may stand in for
      "red", but not for "dark red". Old words that the message denies ("not red") are not counted.
    """
    new = {*change.come} - LEFT_OUT - VERBS
    enough = len(telling(change.gone) - said.wrong) <= len(telling(change.come))
    return said.whole or (bool(change.come) and new <= {*said.told} and enough)


def is_about(change: Change, said: Said) -> bool:
    """Whether the message is about the note's sentence, and may replace the sentence."""
    if said.pointed or is_of_another(change, said):
        return False
    named = bool(telling(said.told) & change.kept or said.wrong)
    stems = {stem_of(t) for t in change.after}
    lost = {t for t in telling([*change.replaced]) - said.wrong if stem_of(t) not in stems}
    new = {stem_of(t) for t in telling(change.come)} - {stem_of(t) for t in change.before}
    if not lost or not new or said.marked or said.wrong:
        return named or bool(telling(said.told) & {stem_of(t) for t in change.before})
    return named or not change.kept if are_values(lost, change) else is_of_the_subject(change, said)


def are_values(lost: Collection[str], change: Change) -> bool:
    """
    Whether each word that a correction removes from a sentence is a number or a name.

    *lost*: the removed words. In a sentence about the user, names count only if at least SHARED words stay unchanged.
    """
    names = change.names if change.before[:1] != (USER,) or len(change.kept) >= SHARED else ()
    return all(t[:1].isdigit() or t in names for t in lost)


def is_of_the_subject(change: Change, said: Said) -> bool:
    """
    Whether the new sentence may replace the old one, because both have one subject. All of these must hold:

    - The message names the subject, and the subject is not the user.
    - The sentences share at least SHARED words, or cannot both be true (`is_only_one`).
    """
    subject = next((t for t in change.after if t in telling(change.after)), "")
    own = change.after[0] != USER and subject in change.kept and subject in said.told
    return own and (len(change.kept) >= SHARED or is_only_one(change))


def is_only_one(change: Change) -> bool:
    """
    Whether the old and the new value cannot both be true.

    - True for what somebody or something is: "My boss is Priya."
    - True for where somebody is: "Ada lives in Bruges."
    - False for anything else: "Ann speaks German."
    """
    pairs = enumerate(zip(change.before, change.after, strict=False))
    same = change.before[: next((n for n, (was, new) in pairs if was != new), 0)]
    role = same[-1:] and same[-1] in IS and not {USERS, "the"}.isdisjoint(same[:2])
    where = tuple(t for t in same if t != "the")[-1:]
    return change.alike and bool(role or (where and where[0] in PLACES))


def is_of_another(change: Change, said: Said) -> bool:
    """
    Whether the new sentence has another subject than the old one, and the message does not correct the
    subject.
    """
    subject = subject_of(change.before)
    return bool(subject) and subject not in {*change.after, *said.wrong} and len(change.kept) < SHARED


def is_answer(change: Change, said: Said, before: Sequence[Message], day: date) -> bool:
    """
    Whether the message gives only the new value ("no, 52"), after a message with the old value.

    Looks at the last RIGHT_BEFORE messages in *before*. The message with the old value must also have a word that both
    sentences share.
    """
    gone, come = telling(change.gone), telling(change.come)
    if not said.marked or len(gone) != 1 or telling(said.told) != come or len(come) != 1:
        return False
    lately = (set(tokens_of(m.text, day)) for m in before[-RIGHT_BEFORE:])
    return any(gone <= words and change.kept & words for words in lately)


def is_marked(clause: Tokens) -> bool:
    lately = {"now", "jetzt", "maintenant", "ahora", "anymore"} & {*clause}
    return bool({*clause[:2]} & marks() or lately or "any more" in " ".join(clause))


def subject_of(tokens: Tokens) -> str:
    """
    The subject of a sentence of *tokens*: the person, or the first word that carries meaning. "" for a Japanese
    sentence without a subject.
    """
    if not {"は", "が"} & {*tokens} and any(map(HIRAGANA.fullmatch, tokens)):
        return ""
    return next((t for t in tokens if t == USER or t in telling(tokens)), "")


def stands_in_order(told: Sequence[str], after: list[str], come: Sequence[str]) -> bool:
    """
    Whether the new sentence *after* has the tokens *told* in this order.

    Other tokens may stand between two tokens of *told*, except:
    - the owner of a thing: "my phone" is not "my sister's phone"
    - "and", "but" or "or", if a new word (one of *come*) follows
    - a number before a new number, and likewise for days and times: "open from 9:30" is not "open from 8:00 to 9:30"
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
