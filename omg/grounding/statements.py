"""
What a person's own words state, ask and deny; and what they accept of what the assistant proposed.

Rough, and in doubt against the statement: a note that is held to be nobody's is still there. Not here: which words are
a person's own (offline/quoted.py). One rule: a question states nothing, and "I never moved" does not state that they did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..text.negation import denies
from ..text.sentences import split_sentences
from ..text.words import told_words

READ_CHARS = 6_000  # characters at each end of a message that are taken apart
DASH = re.compile(r"\s[—–-]{1,2}\s|—")
JOINT = re.compile(
    r"[,;:،，；]\s{0,9}(?!\d)|\s(?:so|but|because|since|and (?=(?:I|we|you|he|she|it|they|my|our|is|are|can|what)\b)|und|aber|weil|mais|pero"
    r"|mas|ma|но|але)\s"
    r"|\s(?=(?:without|ohne|sans|sin|senza|sem|zonder|utan|uden|bez|без)\s)",  # what stands before is so
    re.I,
)
ASKING = re.compile(
    r"\W{0,9}(?:(?:and|or|so|ok|okay|hey|hi|btw|but|well|und|et|y|e|а|и)\W{1,3}){0,2}"
    r"(?:what(?:'s|s| is| are| was| were| do| does| did| if| next| about| time| should| would| could| can| has| have)"
    r"|who(?:'s|s| is| are| was| did| has)|where(?:'s|s| is| are| do| does| did| can)|when(?:'s| is| are| do| does| did| will| can)"
    r"|why|how(?!ever)|which|whose|should (?:I|we)|am I|do (?:I|you|we|they|people)|does|did (?:I|you|we|he|she|they|it)|is (?:it|there|he|she|that|this)"
    r"|are (?:there|you|we|they|these|those)|was|were|any|have you|has|suppose|imagine|(?:I|we) wonder|wondering|whether|if (?:I|we) (?:were|had|\w+ed)"
    r"|(?:I'm |I am )?not sure|would you (?:recommend|say|think|advise|suggest)"
    r"|was|wer|wann|wo|wie|warum|welche\w{0,2}|ob|soll ich|quoi|qui|que|quand|où|comment|pourquoi|combien|est-ce|qu'est"
    r"|qué|quién|cuándo|dónde|cómo|cuánto|cosa|chi|quando|dove|come|что|кто|где|когда|как|почему|сколько)\b",
    re.I,
)
# "can you …" asks for something; what it is asked for is a fact, unless it asks whether something is one
REQUEST = re.compile(
    r"\W{0,9}(?:\w{1,9},?\s)?(?:can|could|will|would|can't) (?:you|u)\b(?!.{0,60}\b(?:if|whether|what|who|how|why|when|where|which|tell|say"
    r"|recommend|think|advise|suggest|explain|check|see|look)\b)",
    re.I,
)
# "…, shouldn't I?": asks what stands before it
TAG_QUESTION = re.compile(
    r"\s*(?:(?:is|are|am|was|were|do|does|did|have|has|had|can|could|should|would|will|must)(?:n't)? (?:I|we|it|that|they|he|she)(?: not)?"
    r"|right|correct|no|oder|nicht wahr|n'est-ce pas|verdad)\W*$",
    re.I,
)
QUESTION_MARK = re.compile(r"[?？؟]\W{0,9}$")
DENIAL = re.compile(
    r"\W{0,9}(?:(?:no|nope),?\s)?(?:(?:I|we|he|she|they|it|that|this) ?(?:did|do|does|is|was|were|have|has|wo|ca|am|'s|s) ?n[o']?t?"
    r"|(?:that|it|this)(?:'s| is| was) (?:wrong|false|nonsense|not|a lie|gossip|untrue)|not true|nonsense|(?:das )?stimmt nicht|c'est faux|no es verdad|неправда)",
    re.I,
)
# "that portal claims I moved": another's word about them, and theirs only as that ("the portal claims that they moved")
HEARSAY = re.compile(
    r"(?<!\bi )(?<!\bwe )\b(?:claim|pretend|allege|say|insist|write|think|state|report|behaupte|sag|schreib)\w{0,4}(?: here| there)?,?"
    r" (?:that |dass )?(?:I|I'm|I've|we|we're|my|our|you|ich|wir)\b",
    re.I,
)
REPORTS = re.compile(
    r"\b(?:claim|pretend|allege|say|said|insist|write|wrote|think|thought|told|report|behaupte|sag|schreib|schrieb)\w{0,4}\b"
    r"|\b(?:according to|laut|selon|según|secondo|segundo)\s",
    re.I,
)
YES = re.compile(
    r"\W{0,9}(?:(?:oh|ah|well|hm|then)\W{1,3})?(?:yes|yep|yeah|yup|ya|sure|ok|okay|okey|k|please|pls|agreed|perfect|right|exactly|correct|absolutely|definitely"
    r"|of course|go (?:ahead|for it|on)|do (?:it|that|so)|let's|sounds|love it|good (?:idea|plan|call)|great (?:idea|plan)|convinced|fine|deal|works|works for me"
    r"|I (?:agree|accept)|both|neither|none|all of them|the (?:first|second|third|last|former|latter|other|\w{1,20})\b|first|second|third|option|it is|that one|done"
    r"|ja|jawohl|gern\w?|bitte|klar|einverstanden|genau|mach\w?|passt|oui|d'accord|volontiers|parfait|s[ií]|claro|vale|de acuerdo|va bene|certo|sim|isso"
    r"|tak|jasne|да|давай|хорошо|конечно|так|evet|tamam|ναι|نعم|أجل|حسن\w?|موافق|כן|בטח|بله|हाँ|हां|ठीक|có|vâng|được|ya|iya|baik|kyllä|joo"
    r"|好|可以|行|要|嗯|对|是的|同意|没问题|はい|うん|お願い|ええ|네|예|그래|좋아|ได้|ครับ|ค่ะ)(?![a-zà-ÿ])",
    re.I,
)
PROPOSING = re.compile(
    r"[?？؟]|\b(?:shall|should|could|would|suggest\w{0,3}|propos\w{1,3}|recommend\w{0,3}|let's|how about|what about|try|I'd|want me|option\w?|idea|why not|we can"
    r"|ich würde|soll\w{0,2}|könnte\w{0,2}|vorschlag\w{0,2}|wie wäre|je propose|on pourrait|podría\w{0,2}|propongo|sugiero|предлага\w{1,3}|можно)\b",
    re.I,
)
# What an assistant holds to be known of them, and nobody told it
CLAIMED = re.compile(
    r"\W{0,9}(?:noted|got it|understood|saved|remembered|recorded|i(?:'ll| will|'ve| have)? (?:remember|note|save|record|update|store)\w{0,2}"
    r"|as you (?:told|said|like|want|prefer|know|mention)|since you(?:'ve| have| are|'re)?|you (?:told|said|always|never|prefer|like|love|hate|are|have|were|decided|allow\w{0,2})"
    r"|you're|you've|your \w{1,20} (?:is|are)|notiert|vermerkt|c'est noté|noté|anotado|записал\w?|as (?:the|your) (?:page|mail|document|profile))\b",
    re.I,
)
SHORT_ANSWER = 12  # words; what is longer speaks for itself


@dataclass(frozen=True, slots=True)
class SaidWords:
    """The telling words of what a person stated, denied, asked, and told as another's word about them."""

    stated: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    denials: tuple[frozenset[str], ...] = field(default=())  # those of each clause that denies
    states: bool = False  # whether anything is stated at all

    @property
    def all(self) -> frozenset[str]:
        return self.stated | self.denied | self.asked | self.told

    def __or__(self, other: SaidWords) -> SaidWords:
        return SaidWords(
            self.stated | other.stated,
            self.denied | other.denied,
            self.asked | other.asked,
            self.told | other.told,
            self.denials + other.denials,
            self.states or other.states,
        )


def ends_of(text: str) -> str:
    return text if len(text) <= 2 * READ_CHARS else f"{text[:READ_CHARS]}\n{text[-READ_CHARS:]}"


def sentences_of(text: str) -> list[str]:
    parts = (part.strip() for sentence in split_sentences(ends_of(text)) for part in DASH.split(sentence))
    return [part for part in parts if part]


def what_is_said(text: str) -> SaidWords:
    """What a person's own *text* states, denies and asks."""
    said = SaidWords()
    sentences = sentences_of(text.replace("’", "'"))
    for n, sentence in enumerate(sentences):
        taken_back = n + 1 < len(sentences) and is_denial(sentences[n + 1])
        for clause, asks in clauses_of(sentence):
            words = told_words(clause)
            if asks:
                said |= SaidWords(asked=words)
            elif HEARSAY.search(clause):
                said |= SaidWords(told=words, denials=(words,) if denies(clause) else ())
            elif taken_back or denies(clause):
                said |= SaidWords(denied=words, denials=(words,), states=not taken_back)
            else:
                said |= SaidWords(stated=words, states=True)
    return said


def stated_in(text: str) -> list[str]:
    """The sentences of a person's own *text* in which they state something themselves."""
    return [sentence for sentence in sentences_of(text) if what_is_said(sentence).states]


def is_denial(sentence: str) -> bool:
    return len(sentence.split()) <= 5 and bool(DENIAL.match(sentence))


def clauses_of(sentence: str) -> Iterator[tuple[str, bool]]:
    """The clauses of *sentence*, and whether each asks."""
    parts = [part for part in JOINT.split(sentence) if part and part.strip()]
    marked = bool(QUESTION_MARK.search(sentence))
    asking = False
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        asking = bool(ASKING.match(part)) or (asking and marked) or (marked and last)
        asking = asking or (marked and n == len(parts) - 2 and bool(TAG_QUESTION.match(parts[-1])))
        yield part, asking and not REQUEST.match(part)


def accepts(reply: str, proposal: str) -> bool:
    """Whether a person's own *reply* takes up what the assistant proposed: "yes", "the second one", an answer."""
    if not reply.strip() or (not PROPOSING.search(proposal) and not YES.match(reply)):
        return False
    if YES.match(reply):
        return not QUESTION_MARK.search(reply.strip().partition("\n")[0])
    asked = QUESTION_MARK.search(proposal.strip()) or "?" in proposal
    return bool(asked) and len(reply.split()) <= SHORT_ANSWER and what_is_said(reply).states


# "'You owe me 40.' True, I do": what they quote is so; "the date's right": and so is the day that they were just told
AFFIRMED = re.compile(
    r"(?:^|[.!;,:\n]\s?)(?:true|I (?:do|did|am|was|have|will)(?= *(?:[.,;!]|$)))\b"
    r"|\b(?:it|that|this|he|she)(?:'s| is) (?:true|right|correct)\b"
    r"|\b(?:told|said|wrote|answered)(?: \w{1,20}){0,2} yes\b|\b(?:stimmt|c'est vrai|es verdad|è vero|это правда)",
    re.I,
)
DAY_AFFIRMED = re.compile(
    r"\b(?:date|day|time|Datum|Termin)s?(?:'s| is| are) (?:right|correct|true)|\b(?:Datum|Termin) stimmt",
    re.I,
)


def affirms(text: str, what: re.Pattern[str]) -> bool:
    """Whether a person's own *text* states that *what* they quote, or were told, is so."""
    return any(
        what.search(clause) and not asks and not denies(clause)
        for sentence in sentences_of(text)
        for clause, asks in clauses_of(sentence)
    )


# "The page says that …": who says yes to it says that it is there, and not that they want it
PASSED_ON = re.compile(
    r"\baccording to\b|\blaut\b|\bselon\b|\bsegún\b"
    r"|(?<!\bI )(?<!\bI'd )(?<!\bwe )\b(?:says|states|claims|recommends|advises|suggests|asks|wants|tells|sagt|dit|dice)\b",
    re.I,
)


def proposal_in(text: str, *, strict: bool) -> str:
    """
    What of an assistant's *text* can be accepted: not what it claims to know of them. *strict*: only what it
    asks or proposes, and what that points back to.
    """
    kept: list[str] = []
    sentences = sentences_of(text)
    for n, sentence in enumerate(sentences):
        asks = bool(QUESTION_MARK.search(sentence))
        if not asks and (CLAIMED.match(sentence) or (strict and PASSED_ON.search(sentence))):
            continue
        if not strict or asks or PROPOSING.search(sentence) or points_back(sentences[n + 1 :]):
            kept.append(sentence)
    return "\n".join(kept)


def points_back(rest: Sequence[str]) -> bool:
    """Whether the next sentence asks about this one: "Which one?", "Shall I take it?"."""
    return bool(rest) and bool(QUESTION_MARK.search(rest[0])) and len(told_words(rest[0])) <= 1
