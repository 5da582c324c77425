"""
What a note, a change or a hint may say, and who it is held to come from.

Where only the person and the assistant spoke, what paraphrases the person's words is theirs, unless it follows the
assistant's clearly better. Where something foreign is in sight, most of what it tells must stand in the person's own
words, and nothing of it in others' words alone. One rule: to be the user's is earned, and never the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from ..text.english import common_stems
from ..text.negation import is_verb_of_ending, negations
from ..text.sentences import sentence_parts
from ..text.words import ISO_DAY, Words, told_words, word_stem
from .sight import Ground, Sight
from .statements import REPORTS

# Of the telling words of a statement, which the person said, and stated rather than asked, where something foreign is in sight.
LEAST_TOLD, LEAST_STATED = 0.5, 0.34
# Of a statement's words in the assistant's, and by how much more than in the person's.
FOLLOWS, BETTER = 0.6, 0.3
# Words of anybody's: that a page has them says nothing
COMMONPLACE = frozenset(
    map(
        word_stem,
        "region version model size city country company team group event price list name number file room page part place order change update"
        " start end open close type kind take get give make come put".split(),
    )
)


ASSISTANT = re.compile(
    r"\b(?:assistant|assistent\w{0,2}|asistente|assistente|ассистент\w{0,2}|asystent\w{0,2})\b|助手|アシスタント|비서",
    re.I,
)
# "The assistant booked …", and not "The assistant's plan is …" nor "They train by the plan that the assistant made"
ASSISTANT_FIRST = re.compile(rf"\W{{0,9}}(?:\w{{1,4}}[ '’])?(?:{ASSISTANT.pattern})(?!['’]s\b)", re.I)
# How the assistant came to say it: that nobody else has these words says nothing
PROPOSED = frozenset(
    word_stem(word)
    for word in "proposed suggested recommended advised offered made wrote drafted listed named worked gave".split()
)

# A sentence that tells of a question states nothing else.
ASKED = re.compile(
    r"^\W{0,3}(?:(?:the user|she|he|they|[A-Z][\w-]{1,30}) )?(?:asked|asks|wonder\w{0,3}|wants? to know|(?:is |was )?not sure)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A text that is to be held against what was said."""

    words: frozenset[str]
    negations: frozenset[str]
    assistants: bool  # it names the assistant
    assistant_acts: bool  # it tells what the assistant did, and not what the person made of it
    reports: bool  # it tells what somebody says
    days: frozenset[date]


def statement(text: str, beside: frozenset[str] = frozenset()) -> Statement:
    """*text*, less the words *beside* it that need no ground again."""
    return Statement(
        told_words(text) - beside,
        negations(text),
        bool(ASSISTANT.search(text)),
        bool(ASSISTANT_FIRST.match(text)),
        bool(REPORTS.search(text)),
        days_in(text),
    )


def days_in(text: str) -> frozenset[date]:
    """The days that *text* names as 2026-03-05."""
    return frozenset(day for m in ISO_DAY.finditer(text) if (day := whole_day(m[0])))


def whole_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def is_persons(said: Statement, ground: Ground, sight: Sight) -> bool:
    """Whether the person said it, going by the messages cited."""
    told = ground.said.told if said.reports and not sight.foreign else frozenset()
    if "tool" in ground.roles or tells_of_assistant(said, ground) or not (ground.states or told):
        return False
    if turns_denial_round(said, ground) or only_asked(said, ground, told):
        return False
    if sight.foreign or ground.fetched or is_of_tool_note(said, ground, sight):
        return is_told_strictly(said, ground, sight)
    return not follows_assistant(said, ground)


def tells_of_assistant(said: Statement, ground: Ground) -> bool:
    """Whether it tells what the assistant said or did, and not what the person makes of it in words they said or took up."""
    if not said.assistants or said.assistant_acts:
        return said.assistants
    words = said.words - PROPOSED
    heard = ground.own | ground.context | Words(ground.known)
    return 2 * len(heard.of(words)) <= len(words)


def turns_denial_round(said: Statement, ground: Ground) -> bool:
    """Whether it says that something is so of which the person says that it is not."""
    stated = Words(ground.said.stated | ground.accepted | ground.known)
    ending = frozenset(w for denial in ground.said.denials for w in denial if is_verb_of_ending(w))
    rest = frozenset(w for w in said.words if w not in stated)
    return bool(rest) and any(
        len(Words(denial).of(rest)) == len(rest) and not said.negations - (denial & ending)
        for denial in ground.said.denials
    )


def only_asked(said: Statement, ground: Ground, told: frozenset[str]) -> bool:
    """Whether of its words the person said some, and only in questions, or as another's word about them but *told*."""
    asked = Words(ground.said.asked | ground.said.told).of(said.words)
    return bool(asked) and not (ground.stated | Words(ground.names | told)).of(said.words)


def is_of_tool_note(said: Statement, ground: Ground, sight: Sight) -> bool:
    """Whether a note of a tool's, in sight, has words of it that the person has not."""
    own = ground.own | Words(ground.known)
    return any(w not in own and w in note.all for note in sight.tool_notes for w in said.words)


def follows_assistant(said: Statement, ground: Ground) -> bool:
    if not said.words:
        return False
    theirs = len(Words(ground.assistant).of(said.words)) / len(said.words)
    own = len((ground.own | Words(ground.known)).of(said.words)) / len(said.words)
    return theirs >= FOLLOWS and theirs > own + BETTER


def is_told_strictly(said: Statement, ground: Ground, sight: Sight) -> bool:
    own, known = ground.own, Words(ground.known)
    if foreign_words(said, ground, sight) or foreign_days(said.days, ground, sight):
        return False
    fresh = frozenset(w for w in said.words if w not in known.all)
    if not fresh:
        return bool(ground.stated.of(said.words)) or bool(ground.accepted)
    told, stated = len((own | ground.context).of(fresh)), len((ground.stated | Words(ground.names)).of(fresh))
    if ground.accepted and told == len(fresh):
        return True
    return told >= LEAST_TOLD * len(fresh) and stated >= LEAST_STATED * len(fresh)


def foreign_words(said: Statement, ground: Ground, sight: Sight) -> frozenset[str]:
    """Those of its words that others said, and the person did not."""
    own, known = ground.own, Words(ground.known)
    common = COMMONPLACE | common_stems()

    def is_foreign(word: str) -> bool:
        if word in own.all or word in known.all or word in common:
            return False
        if word in sight.others.all:  # a form of what the person said is not enough then
            return True
        return word in sight.others and word not in own and word not in known

    return frozenset(filter(is_foreign, said.words))


def foreign_days(days: Iterable[date], ground: Ground, sight: Sight) -> bool:
    """Whether one of *days* is named by others, and the person does not speak of it."""
    return any(sight.names_day(day) and not sight.speaks_of(ground, day) for day in days)


def whose(said: Statement, ground: Ground, sight: Sight) -> str:
    """Who said what the person did not: "assistant", or "tool" as soon as a tool had a part in it."""
    if "tool" in ground.roles:
        return "tool"
    theirs = len(Words(ground.assistant).of(said.words))
    fetched = max((len(words.of(said.words)) for words in (*sight.results, *sight.passed_on)), default=0)
    if not sight.foreign and not is_of_tool_note(said, ground, sight):
        return "assistant"
    return "assistant" if theirs > fetched and 2 * theirs >= len(said.words) else "tool"


def grounded_text(text: str, beside: frozenset[str], ground: Ground, sight: Sight) -> str:
    """
    *text* without the sentences that nobody said. *beside*: words that need no ground again.

    Where only the person and the assistant spoke, a sentence of the assistant's stays and is said to be.
    """
    lines, between = [], not sight.foreign and "tool" not in ground.roles
    for line in text.split("\n"):
        kept, theirs = [], False
        for sentence in sentence_parts(line):
            if sentence_stands(sentence, beside, ground, sight):
                kept.append(sentence)
                theirs = False
            elif between and is_assistants(sentence, beside, ground):
                marked = theirs or ASSISTANT.search(sentence)
                kept.append(sentence if marked else f"The assistant: {sentence}")
                theirs = True
            elif between and ASKED.search(sentence):
                kept.append(sentence)
        if kept or not line.strip():
            lines.append("".join(kept).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def is_assistants(text: str, beside: frozenset[str], ground: Ground) -> bool:
    """Whether most of what *text* tells is the assistant's; of one that names the assistant, theirs and the person's."""
    said = statement(text, beside)
    told = ground.assistant | ground.said.all if said.assistants else ground.assistant
    return bool(said.words) and 2 * len(Words(told).of(said.words)) >= len(said.words)


def sentence_stands(text: str, beside: frozenset[str], ground: Ground, sight: Sight) -> bool:
    said = statement(text, beside)
    return (not said.words and not said.days) or is_persons(said, ground, sight)
