"""
Splits a message into statements, and decides which of them the person says as their own.

    statements_of      the statements of a message
    statements_in      the statements of a text; cached

A statement is a sentence or a list item. Check `own` before you keep a statement, because it may be:
- a quotation, or what somebody else said
- only supposed
- denied by the next sentence

Lists, forms and timetables count as the person's own. Quotations are found in the whole message, in the styles of many
languages. The word lists below find what has no form: who speaks, what is only supposed, and words that deny a statement.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal

import regex

from ..text.words import (
    ANY_LETTER,
    LIST_MARK,
    NUMBERS,
    denies,
    english_words,
    phrases,
    sentence_spans,
    told_words,
    words_in,
)
from .turn import PART, Message, Span, material_in
from .wording import VERBS, Tokens, around, only_marks, telling, tokens_of

Govern = Literal["", "passed on", "quoted", "reported", "refused", "asked", "supposed"]


@dataclass(frozen=True, slots=True)
class Statement:
    """
    A statement of a message: the characters from *start* to *end*, without list marks.

    *governed* is "" for a plain statement of the person. Otherwise *governed* says why the statement is not the
    person's own:

        "quoted"     the statement is in a quotation of another speaker
        "reported"   the statement follows a colon, as the words of another speaker
        "passed on"  the person pasted or quoted the statement, or put it after "Translate this:"
        "refused"    the message calls the statement untrue, or asks not to keep the statement
        "asked"      the statement is a question
        "supposed"   the statement is a condition

    *speaker*: who said a quoted or reported statement; "" if the text names nobody. A whole sentence that names its
    speaker (“Ann says that …”) is the person's own.
    """

    start: int
    end: int
    text: str
    governed: Govern = ""
    speaker: str = ""  # in the text's words: "My ex always says"

    @property
    def own(self) -> bool:
        return not self.governed


def statements_of(message: Message) -> tuple[Statement, ...]:
    """The statements of *message*, in order."""
    return statements_in(message.text, message.material)


@lru_cache(maxsize=512)
def statements_in(text: str, material: tuple[Span, ...] | None = None) -> tuple[Statement, ...]:
    """The statements of *text*, in order. *material*: the parts that are pasted or quoted; None: they are searched for."""
    material = material_in(text) if material is None else material
    found: list[Statement] = []
    for start, end, passed_on in stretches(text, material):
        for part in sentence_spans(text[start:end]):
            a, b = start + part.start, start + part.stop
            if behind := CLOSED.match(
                text, a, b
            ):  # "« … . » And then": the mark belongs to the sentence before the mark
                a = behind.end()
            if found and found[-1].start >= start and not ANY_LETTER.search(text, a, b):
                # Marks alone, "*/" or "||", belong to the sentence before them.
                found[-1] = replace(found[-1], end=b, text=text[found[-1].start : b])
                continue
            found.append(Statement(a, b, text[a:b], "passed on" if passed_on else ""))
    spoken = [n for n, said in enumerate(found) if said.own]
    for govern in (
        in_quotation,
        in_dialogue,
        behind_colon,
        before_speaker,
        beside,
        taken_back,
        only_supposed,
    ):
        govern(text, found, [n for n in spoken if found[n].own])
    for n in spoken:
        if found[n].own and asks(found[n].text):
            found[n] = replace(found[n], governed="asked")
    return tuple(found)


def stands_alone(message: Message, text: str) -> bool:
    """Whether *message* has no words beside the statement *text* that may change what the statement means."""
    idle = english_words("around")
    others = (s.text for s in statements_of(message) if s.text != text)
    return all(idle.issuperset(words_in(s.lower())) for s in others)


def stretches(text: str, material: Sequence[Span]) -> Iterator[tuple[int, int, bool]]:
    """
    Divide *text* into stretches: start, end, and whether the stretch is *material* (True) or the person's own words
    (False).
    """
    at = head.end() if (head := PART.match(text)) else 0
    for span in material:
        yield at, span.start, False
        yield max(at, span.start), span.end, True
        at = span.end
    yield at, len(text), False


# --- Quotations.


# each opening mark with the marks that may close it
CLOSERS = {
    pair[0]: pair[1:]
    for pair in "“”“ „“” ”” «» »«» ‹› ›‹› \"\" ＂＂ ‘’ ‚‘’ '' 「」 『』 〝〞〟 ﹁﹂ 《》 〈〉 ❝❞".split()
}
MARK = regex.compile(f"[{regex.escape(''.join({*CLOSERS, *''.join(CLOSERS.values())}))}]")
APOSTROPHES = "'‘‚"
COLON = (":", "：")
BESIDE_CHARS = 200  # on each side of a quotation, where its speaker is looked for
CLOSED = regex.compile(r"[»›”’」』]\s+(?=\S)")
BLANK_LINE = regex.compile(r"\n[^\S\n]*\n")
SENTENCE_MARK = regex.compile(r"[\p{STerm}…]")


def quotations(text: str) -> list[Span]:
    """
    The outermost quotations of *text*, with their marks. A quotation without a closing mark ends with its paragraph,
    but goes on if the next paragraph begins with an opening mark.
    """
    marks = [m.start() for m in MARK.finditer(text)]
    opening = [at for at in marks if may_open(text, at)]
    closing = [at for at in marks if may_close(text, at)]
    far = len(text)
    blank = [m.start() for m in BLANK_LINE.finditer(text)]
    closed = {
        mark: [at for at in closing if text[at] in CLOSERS[mark]] for mark in {text[at] for at in opening}
    }
    again = {
        mark: [at for at in opening if text[at] == mark and not begins_line(text, at)] for mark in closed
    }
    found: list[Span] = []
    end = 0
    for start in opening:
        if start < end:
            continue
        mark, ends = text[start], following(blank, start, far)
        close, reopened = following(closed[mark], start, far), following(again[mark], start, far)
        unclosed = close == far or reopened < close
        if mark in APOSTROPHES and (unclosed or close > ends):
            continue  # 'tis
        end = min(ends, reopened) if unclosed else close + 1
        found.append(Span(start, end, "quote"))
    return found


def following(places: Sequence[int], at: int, far: int) -> int:
    """The first of the ordered *places* after *at*; *far* if there is none."""
    n = bisect_right(places, at)
    return places[n] if n < len(places) else far


def begins_line(text: str, at: int) -> bool:
    return not text[max(text.rfind("\n", 0, at) + 1, at - 9) : at].strip()


def may_open(text: str, at: int) -> bool:
    """
    Whether the mark at *at* may open a quotation. An opening mark does not follow a letter, except in scripts
    without spaces, and no space follows the mark.
    """
    mark = text[at]
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if mark not in CLOSERS or not after:
        return False
    if mark in "「『〝﹁《〈„‚“«‹❝":
        return True
    return not after.isspace() and not before.isalnum() and before not in (".", "!", "?", ",")


def may_close(text: str, at: int) -> bool:
    """Whether the mark at *at* may close a quotation; an apostrophe inside a word may not."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if text[at] in "'’":
        return not before.isspace() and not after.isalnum()
    return text[at] not in '"＂' or not before.isspace()


def in_quotation(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """Mark the statements inside quoted speech as "quoted", with the speaker named before or behind the quotation."""
    ends = [found[n].end for n in spoken]
    for quote in quotations(text):
        place = last = bisect_right(ends, quote.start)
        while last < len(spoken) and found[spoken[last]].start < quote.end:
            last += 1
        if place == last:
            continue
        start, end = found[spoken[place]].start, found[spoken[last - 1]].end
        lead = text[max(start, quote.start - BESIDE_CHARS) : quote.start]
        if place and not lead.strip() and "\n" in text[ends[place - 1] : start]:
            above = found[spoken[place - 1]].text  # "My ex says:", with the quotation on the next line
            lead = above if above.endswith(COLON) else lead
        behind = text[quote.end : min(end, quote.end + BESIDE_CHARS)]
        before = bool(ANY_LETTER.search(lead))
        speaker = (lead if before else behind).strip(" \t\n:：,，—–-.")
        if is_speech(text[quote.start : quote.end], lead, behind) and not is_persons(
            speaker, behind=not before
        ):
            mark(found, spoken[place:last], "quoted", speaker)


def in_dialogue(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """
    Mark the lines of a dialogue as "quoted". A dialogue has dashes and a verb of saying: "—Hola. —Soy yo. —dijo mi
    hermano."
    """
    lines = [n for n in spoken if found[n].text.startswith(("—", "―"))]
    if len(lines) > 1 and any(SAYING.search(found[n].text) and not is_persons(found[n].text) for n in lines):
        mark(found, lines, "quoted")


def mark(found: list[Statement], places: Iterable[int], govern: Govern, speaker: str = "") -> None:
    for n in places:
        found[n] = replace(found[n], governed=govern, speaker=speaker)


def is_speech(quote: str, lead: str, behind: str) -> bool:
    """
    Whether the words in quotation marks are speech, and not a title or a name. They are speech if they are several
    sentences, stand alone, follow a colon, or have a verb of saying beside them.
    """
    if len(sentence_spans(quote)) > 1 or not ANY_LETTER.search(lead + behind):
        return True
    if lead.rstrip().endswith(COLON) and SENTENCE_MARK.search(quote[-2:]):
        return True
    return bool(SAYING.search(lead) or SAYING.search(behind))


# --- Another's words behind a colon, without quotation marks; words that are taken back; suppositions.
#
# Without a verb of saying, a colon leads to a form or list ("Gym: Monday 18:00") as often as to another's
# words.


SAYING = regex.compile(
    r"\b(?:says?|said|saying|tells?|told|telling|writes|wrote|written|claim(?:s|ed)|repli(?:es|ed)|answer(?:s|ed)|texted|shout(?:s|ed)|insist(?:s|ed)|according"
    r"|sag(?:e|t|te|ten|en)|gesagt|mein(?:t|te)|schr(?:eib|ieb)|geschrieben|behaupt|erzähl|antworte|laut\b"
    r"|di(?:go|ce|cen|je|jo|jeron|cho)\b|decía|escrib|contest(?:a|ó)|respond|según"
    r"|dit\b|dis(?:ait)?\b|disent|écri[tv]|répond|selon|affirme"
    r"|disse|detto|scri(?:ve|sse|tto)|secondo|diz(?:em)?\b|escrev|segundo|zeg(?:t|gen)|zei\b|schreef|schrijf|volgens"
    r"|говор|сказа|пиш|написа|mówi|powiedzia|säger|skrev|diyor|dedi\b)|[说說曰]|写道|言[いうわっ]|라고|말했",
    regex.I,
)
# Asks to work on a text: "Translate into German."
WORKING = r"(?:translate|summari[sz]e|proofread|rephrase|übersetz\w*|tradui\w*|traduc\w*|traduz\w*|vertaal|翻[译訳譯]|英語に)"
WORKS = regex.compile(rf"\W*(?:(?:please|can|could|would|you|bitte)\W+)*{WORKING}", regex.I)
# A lead that points at a text, or asks to work on it: "Translate this: …"
POINTING = regex.compile(
    rf"\b(?:th(?:is|ese)|following|below|above|{WORKING}|folgend\w*|dies\w*|c(?:e|et|ette|eci|es)|suivant\w*"
    r"|est[aeo]s?|siguiente\w*|quest[aeio]|seguent\w*|dit|deze|volgende)\b|これ|この|以下|下面|这|這|翻[译訳譯]",
    regex.I,
)
# "I said", "ich sage immer": the person quotes themselves. A few words may stand between, but no other
# speaker.
PERSONS = regex.compile(
    r"\b(?:I(?:['’]ve)?|we|ich|wir|je|j['’](?:ai)?|nous|yo|io|eu|ik|я)(?: ?(?:always|often|also|once|just|have|had|ai|he|ho|heb|habe|only|only ever)){0,2} ?"
    rf"(?:{SAYING.pattern})|\b(?:digo|dije|siempre digo|he dicho|dico|ho detto|ho scritto)\b|[我私](?:[はが]|常|总|總)?[说說言]",
    regex.I,
)
# Words that ask to remember, at the beginning of a sentence or of the words that lead to one
REMEMBERING = regex.compile(
    r"\b(?:remember|memori[sz]e|not(?:e[rz]?|iert?|ieren?|eer|eren)|sav(?:e|ed|ing)|stor(?:e|ed|ing)|record|keep|(?:write|jot)(?= (?:\w+ ){0,2}down)|merk\w*|speicher\w*"
    r"|reti(?:ens|enez|ent)|souv(?:iens|enez)|enregistre\w*|(?:recu|acu)[eé]rd\w*|ann?[oó]t\w*|ap[uú]nt\w*|guard\w*|ricord\w*|lembr\w*|onthoud\w*|bewaar|denke? d(?:ran|aran)|ten(?:ga)? en cuenta|gard(?:e|ez) en tête|tieni (?:a mente|presente)"
    r"|запомни\w*|запи[шс]\w*|сохран\w*|zapamiętaj|zapisz|spara)\b|覚え|メモ|記憶|记住|記住|记下|記下|기억",
    regex.I,
)
FORGETTING = regex.compile(
    r"\b(?:forget|scratch|ignore|delete|remove|discard|verw[ei]rf\w*|lösch\w*|supprim\w*|elimin\w*|borra\w*|vergiss|vergessen|oublie\w*|olv[ií]d\w*|dimentica\w*|esque[cç]\w*|vergeet|забудь\w*)\b|忘れ|忘记|잊어",
    regex.I,
)
# "Just kidding.", "That is not true."
JOKING = regex.compile(
    r"\b(?:kidding|jok(?:e|ing)|made (?:that|this|it) up|witz|scherz|blague|rigole|plaisant\w*|broma|scherz[oa]\w*|brincadeira|grapje|шу[тч]\w+)\b|冗談|玩笑|농담",
    regex.I,
)
TRUE = regex.compile(
    r"\b(?:true|real|serious(?:ly)?|wahr|ernst|stimmt|vrai|sérieux|verdad|cierto|serio|vero|verdade|waar|правда)\b|本当|真的",
    regex.I,
)
FIRST = regex.compile(r"\b(?:I|ich|je|yo|io|eu|ik|я)\b|[我私]")
ABOUT_ME = regex.compile(rf"{FIRST.pattern}|\b(?:me|we|us|mich|mir|wir|uns|moi|nous|mí|mij|мне)\b", regex.I)
# "That is what my ex says.", "So says my ex.", "Sagt mein Chef."
SAYS = (
    r"(?:says|said|wrote|writes|claims?|sagte?n?|meinte?|schreibt|schrieb|behauptet\w*|dit|écrit|dicen?|dijo|escrib\w+|disse|scrive|diz|zegt|zei|schreef"
    r"|говорит|сказал\w*)"
)
BACK = regex.compile(
    r"\W*(?:(?P<that>that(?:['’]s| is| was)?|this is|so|thus|das|dies|c['’]est|eso|esto|así|così|questo|isso|assim|dat|zo|так)\W+(?:what |was |ce que |lo que |che |o que |wat )?)?"
    rf"(?:{SAYS}(?:[^\W\d_]+['’ ]?|\W){{1,9}}|(?(that)(?:[\w'’]+ ){{1,4}}{SAYS}|(?!)))\W*",
    regex.I,
)
SIGNED = regex.compile(r"[^\S\n]*(?:—|―|–|--)[^\S\n]{0,3}\p{L}[^\n\p{STerm}]{0,40}[^\S\n]*")
UNSAID = regex.compile(
    r"\W*(?:(?:doch )?(?:not|nicht|niet)|(?:(?:wait|no|or|oder|ou|o)\W+)++(?:(?:I|we)(?:['’]?\w{1,5}| do| did)?(?:n['’]t| not)|(?:am|do|have|did) (?:I|we)|nicht))\W*",
    regex.I,
)
WANTING = regex.compile(r"\b(?:want|möchte|will|veux|quiero|voglio|quero|wil|хочу)\b", regex.I)
SUPPOSING = regex.compile(
    r"(?:\W*(?:now|so|ok|okay|let['’]?s|just)\b)*\W*(?:suppos(?:e|ing)|imagine|pretend|let['’]?s say|what if|hypothetically|angenommen|stell(?:en)? (?:dir|sie sich|euch) vor"
    r"|nehmen wir an|supongamos|imagin[ae]\w*|supposons|imaginons|supponiamo|immagina\w*|suponha\w*|stel dat|предположим|представь\w*)\b|\W*(?:假设|假如|もしも?|仮に)",
    regex.I,
)
CONDITION = regex.compile(
    r"\W*(?:if|unless|wenn|falls|si|se|als|если|jeśli|om|eğer)\b|\W*(?:如果|要是|もし)", regex.I
)
UNTRUE = regex.compile(
    r"\b(?:wrong|false|incorrect|untrue|outdated|lie[sd]?|nonsense|falsch|unwahr|gelogen|unsinn|faux|falso|errado|sbagliato|onjuist|неверно)\b|違|错|錯",
    regex.I,
)
# "What is wrong?" and "Anything wrong?" doubt no other words; "Wrong?", "Was that a lie?" and "Is it wrong?" do.
ASKS_WHAT = regex.compile(
    r"\W*(?:what|which|who|where|when|why|how|was(?! (?:that|this|it)\b)|welche\w?|wer|wo|wann|warum|wie|qu[eé]|qu['’]|quoi|quel\w*|qui|où|pourquoi|comment"
    r"|cu[aá]l\w*|qui[eé]n|d[oó]nde|cosa|che|quale|chi|dove|perché|o que|qual|onde|wat|welke?|waar\w*|hoe|что|где|почему|как)\b|.*\b(?:any|some)thing\b",
    regex.I,
)
# Before the words that a person asks to remember
LED = regex.compile(r":|\b(?:that|dass|que|che|dat|что)\b", regex.I)
QUESTION = ("?", "？", "؟", ";", "՞", "፧")
SHORT = 8  # words; a sentence that takes others back has no more


def asks(text: str) -> bool:
    return text.rstrip(" \"'”’»)*_").endswith(QUESTION)


def is_persons(lead: str, *, behind: bool = False) -> bool:
    """
    Whether the introduction *lead* shows that the words next to *lead* are the person's own.

    *lead* stands before these words, or after these words if *behind*. Returns True if *lead*
    - says that the person speaks: "I told Tom", but not "I told Tom, and he wrote"
    - asks the agent to remember: "Note for later", but not "The page wants you to note"
    """
    told, theirs = [*SAYING.finditer(lead)], [*PERSONS.finditer(lead)]
    if theirs and (not told or theirs[0 if behind else -1].end() >= told[0 if behind else -1].end()):
        return not behind or theirs[0].start() <= told[0].start()
    asked = REMEMBERING.search(lead)
    if asked is None or told or denies(lead) or not is_idle(lead[: asked.start()]):
        return False
    rest = lead[asked.end() :]
    return not POINTING.search(rest) or is_idle(POINTING.sub("", rest))


def is_idle(text: str) -> bool:
    """
    Whether *text* says nothing of its own: it only addresses the reader, or announces a number of items ("Two
    things").
    """
    return all(word.isdigit() for word in told_beside(text, "around"))


def told_beside(text: str, *lists: str) -> frozenset[str]:
    """The words of *text* that carry meaning and are in none of the *lists*."""
    idle = frozenset[str]().union(*map(english_words, lists))
    return told_words(" ".join(word for word in text.lower().split() if word.strip(IDLE_MARKS) not in idle))


IDLE_MARKS = " \t\n.,;:!?¿¡…\"'“”()。，！？、"


def behind_colon(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """
    Mark statements that follow a colon and are not the person's own.

    Examples of such a colon: "my brother says:", "Translate this:" and "Don't save this:".
    """
    for place, n in enumerate(spoken):
        lead, colon, rest = found[n].text.replace("：", ":").partition(":")
        if not colon or not found[n].own:
            continue
        if not rest.strip() and [s.governed for s in found[n + 1 : n + 2]] == ["passed on"]:
            continue  # the colon leads to the quoted text below; after that text the person speaks again
        led = partial(led_by, text, found, spoken, place, line=bool(rest.strip()))
        if refuses(lead):
            mark(found, led(), "refused")
        elif SAYING.search(lead) and not is_persons(lead):
            mark(found, led(), "reported", lead.strip())
        elif POINTING.search(lead) and not is_persons(lead):
            mark(found, led(), "passed on")
        elif (
            not rest.strip()
            and place + 1 < len(spoken)
            and not leads_to_own(text, found, lead, spoken[place + 1])
        ):
            mark(found, led()[1:], "passed on")


def leads_to_own(text: str, found: Sequence[Statement], lead: str, first: int) -> bool:
    """
    Whether the lines below the introduction *lead* are the person's own words.

    *first*: the place of the first statement below *lead*. Returns True for a list, and after an introduction such as
    "About me:". Returns False after "Tom:" or "My brother's letter:", because anybody may have written the lines.
    """
    line = text[text.rfind("\n", 0, found[first].start) + 1 :]
    return bool(LIST_MARK.match(line) or ABOUT_ME.search(lead) or is_persons(lead) or is_idle(lead))


def before_speaker(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """
    Mark words as another's if their speaker is named after them ("… That is what my ex says.") or below them ("—
    Tom").
    """
    for place, n in enumerate(spoken):
        start = text.rfind("\n", 0, found[n].start) + 1
        end = text.find("\n", found[n].end)
        signed = SIGNED.fullmatch(text, start, len(text) if end < 0 else end) and not SIGNED.match(text)
        if found[n].own and (signed or BACK.fullmatch(found[n].text)):
            mark(found, paragraph_before(text, found, spoken, place), "quoted", found[n].text)
            if signed:
                mark(found, [n], "quoted")


def beside(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """
    Mark statements as "quoted" if the sentence beside them shows that they are somebody else's words.

    - The sentence may stand before the statements: "My brother texted me yesterday.", "Translate into German."
    - The sentence may stand after the statements: "At least my ex says so."
    """
    for place, n in enumerate(spoken):
        said = found[n].text
        works = WORKS.match(said)
        if not found[n].own or not (works or says_nothing(said)):
            continue
        before, behind = paragraph_before(text, found, spoken, place), spoken[place + 1 :]
        if works and POINTING.search(said, works.end()):  # "Summarise the text above."
            before = spoken[:place]
        else:
            before = [] if works else before
            behind = led_by(text, found, spoken, place, line=False)[1:]
        mark(found, behind if behind and not (before and BACKWARD.search(said)) else before, "quoted", said)


THAT = r"(?:that|das|ça|eso|lo|questo|isso|dat)"
BACKWARD = regex.compile(rf"\b(?:{THAT}|so|it|es)\b", regex.I)


def says_nothing(text: str) -> bool:
    """Whether *text* says that somebody else said something, but not what."""
    told = [*SAYING.finditer(text)]
    rest = POINTING.sub(" ", text[told[-1].end() :]) if told else ""
    others = bool(told) and not is_persons(text) and not FIRST.search(text)
    return others and not told_words(rest) and "down" not in words_in(rest)  # to write down is not to say


def paragraph_before(
    text: str, found: Sequence[Statement], spoken: Sequence[int], place: int
) -> Sequence[int]:
    """The person's own statements right before *place*, back to the paragraph's beginning."""
    first = place
    while first and found[spoken[first - 1]].own:
        between = text[found[spoken[first - 1]].end : found[spoken[first]].start]
        if first < place and BLANK_LINE.search(between):
            break
        first -= 1
    return spoken[first:place]


def led_by(
    text: str, found: Sequence[Statement], spoken: Sequence[int], place: int, *, line: bool
) -> list[int]:
    """
    Return an introduction and the statements that it introduces, as places in *found*.

    *place*: the introduction's place in *spoken*. The result ends with the last statement before:
    - with *line*: the end of the introduction's line
    - without *line*: the next blank line; a blank line right below the introduction does not count
    """
    last = place + 1
    while last < len(spoken):
        between = text[found[spoken[last - 1]].end : found[spoken[last]].start]
        if "\n" in between if line else last > place + 1 and BLANK_LINE.search(between):
            break
        last += 1
    return list(spoken[place:last])


def taken_back(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """
    Mark as "refused" each refusal, and the statements that the refusal denies.

    - "Don't remember that." and "Just kidding!" deny the paragraph before.
    - At the beginning of a message, such a sentence denies the whole message.
    - A refusal with a subject of its own ("Don't save my phone number.") denies no other statement.
    """
    for place, n in enumerate(spoken):
        if not found[n].own or not (refuses(found[n].text) or unsays(found[n].text, behind=place > 0)):
            continue
        mark(found, [n], "refused")
        if told_beside(without_asking(found[n].text), "around", "correcting"):
            continue
        before = paragraph_before(text, found, spoken, place)
        mark(found, before if place else [k for k in spoken if found[k].own], "refused")


def refuses(text: str) -> bool:
    """
    Whether *text* asks to forget something, or asks not to remember something.

    True for "Forget my address." and "Don't save that.", but not for "I forgot that …".
    """
    if FIRST.search(LED.split(text)[0]) and not WANTING.search(text):
        return False
    begun = " ".join(text.split()[:SHORT])
    if denies(begun):
        # "Remember: never call before nine", "Remember that Rosa is not here" ask to remember the words behind.
        # "Note: I never save receipts." tells what the person does.
        parts = (p for p in LED.split(begun) if not FIRST.search(p) or WANTING.search(p))
        return any(denies(p) and REMEMBERING.search(p) for p in parts) and not FORGETTING.search(begun)
    return FORGETTING.search(" ".join(text.split()[:3])) is not None


def unsays(text: str, *, behind: bool) -> bool:
    """
    Whether *text* calls other words a joke or untrue: "Not true.", "NOT!", "Or am I?".

    *behind*: *text* follows the other words. Only then do "Wrong!" and "Is that true?" refer to the other words.
    """
    if len(words_in(text)) > SHORT:
        return False
    if JOKING.search(text):
        return not denies(text)
    asked = asks(text)
    doubts = (UNTRUE.search(text) and not (asked and ASKS_WHAT.match(text))) or (asked and TRUE.search(text))
    if behind and doubts and not told_beside(TRUE.sub("", UNTRUE.sub("", text)), "around", "correcting"):
        return not denies(UNTRUE.sub("", text))
    idle = not told_beside(TRUE.sub("", text), "around", "correcting")
    return idle and bool(UNSAID.fullmatch(text) if not TRUE.search(text) else denies(text))


def without_asking(text: str) -> str:
    for pattern in (REMEMBERING, FORGETTING, JOKING, TRUE, UNTRUE):
        text = pattern.sub(" ", text)
    return text


def only_supposed(text: str, found: list[Statement], spoken: Sequence[int]) -> None:
    """Mark a condition, and "Suppose …" with the rest of its paragraph, as "supposed"."""
    for place, n in enumerate(spoken):
        if found[n].own and SUPPOSING.match(found[n].text):
            mark(found, led_by(text, found, spoken, place, line=False), "supposed")
        elif found[n].own and CONDITION.match(found[n].text):
            mark(found, [n], "supposed")


# --- Frames: a sentence beside a statement may say who speaks, or from what text the statement comes.


BY_PERSON = regex.compile(
    r"\W*(?:(?:I|we|my|our|ich|wir|mein\w*|unser\w*|je|nous|mon|ma|mes|nos|notre|yo|mi|mis|nuestr\w+|io|mio|mia|eu|meu|minha|ik|mijn|я|мы|мо[йяи])\b|j['’]|[我私])",
    regex.I,
)
BY_PERSON_NOW = regex.compile(rf"\W*(?:{FIRST.pattern})", regex.I)
LEAD = regex.compile(r"[:：,，、]")
THANKS = regex.compile(
    r"\b(?:thank(?:s| you)(?! to\b)|danke|merci|gracias|grazie|obrigad[oa]|bedankt)\b|ありがと|谢谢|謝謝",
    regex.I,
)
# A greeting without a name: a letter to somebody begins with a name.
GREETING = regex.compile(
    r"(?:good (?:morning|afternoon|evening)|bonjour|bonsoir|salut|coucou|hallo|moin|servus|guten? (?:morgen|tag|abend)|grüß (?:gott|dich)|hola"
    r"|buen[oa]s (?:días|tardes|noches)|buongiorno|buonasera|salve|ol[áà]|oi|bo[am] (?:dia|tarde|noite)|hoi|goede(?:morgen|middag|navond|ndag)|hej|cześć|merhaba"
    r"|привет|здравствуй(?:те)?|добр(?:ый день|ый вечер|ое утро)|こんにちは|こんばんは|おはよう(?:ございます)?|[你您]好|早上好|안녕(?:하세요)?)\W*",
    regex.I,
)
POINTS_BACK = regex.compile(rf"\W*{THAT}\b", regex.I)
CODE_MARK = regex.compile(r"[ \t]*(?:~~|/[/*]|#|--|[;%])")
FRAGMENT = 3  # words: a signature, a source, "lol jk"


def is_framed(text: str, said: Sequence[Statement], place: int, notes: Sequence[Tokens] = ()) -> bool:
    """
    Whether another sentence puts the statement at *place* in doubt.

    Such a sentence may name another speaker or deny the statement. Its place and form decide, not its meaning:
    - A sentence before the statement counts, unless the person speaks about themselves in it ("My cat is old.").
    - A sentence after the statement counts if it is very short, points back ("That is …") or begins with a bracket.
    - A sentence that repeats or contains one of *notes* never counts.

    A statement without a full stop (or "!", "?") and without "I" is never in doubt: it is an entry of a form or a list.
    A line that looks like a comment in code is always in doubt.
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
    """
    Whether *tokens* only repeat *note*, or contain the whole *note*.

    *tokens* repeat *note* if every word that carries meaning is in *note*, too.
    """
    if any(tokens[n : n + len(note)] == note for n in range(len(tokens))):
        return True
    words = telling(tokens) - around()
    return bool(words) and words <= {*note}


def frames(text: str, other: Statement, *, before: bool) -> bool:
    """
    Whether the sentence *other* of *text* may put a neighbouring statement in doubt.

    For example, "Tom told me this." may mean that Tom made the next statement. *before*: *other* stands before the
    statement. Otherwise *other* stands after the statement.
    """
    said, line = other.text, text.rfind("\n", 0, other.start) + 1
    if LIST_MARK.match(text, line) or said.endswith(":") or MARK.match(said[-1:]):
        return False
    if by_person(other) or adds_nothing(said) or (before and (only_marks(tokens_of(said)) or answers(said))):
        return False
    if denies(said.split()[0]) and told_words(said):
        return False  # "Not Milan." says what it denies
    short = len(words_in(said)) <= FRAGMENT and VERBS.isdisjoint(words_in(said.lower()))
    if not other.own:  # a question
        return before and (short or POINTING.search(said) is not None)
    back = POINTS_BACK.match(said) and not FIRST.search(said)
    return bool(before or short or back or said.startswith("("))


def by_person(other: Statement) -> bool:
    """Whether the person speaks about themselves in *other*: "My cat is old.", "Yeah, I think so." """
    lead, _, led = other.text.replace("：", ":").partition(":")
    if BY_PERSON_NOW.match(led) and not BY_PERSON_NOW.match(lead):
        return is_persons(lead) or is_idle(lead)  # not "The form asks: I am over 65."
    if BY_PERSON.match(other.text) or (other.own and is_persons(other.text)):
        return True
    return not SAYING.search(other.text) and any(map(BY_PERSON_NOW.match, LEAD.split(other.text)))


def answers(text: str) -> bool:
    """Whether *text* only greets, or answers what was said before: "Bonjour !", "Sounds good!" """
    plain = text.lower().strip(IDLE_MARKS)
    return bool(THANKS.search(text) or GREETING.fullmatch(text)) or plain in phrases("yes")


def adds_nothing(text: str) -> bool:
    """Whether *text* only greets, thanks, announces a number of items, or affirms other words."""
    idle, serious = english_words("around") | NUMBERS.keys(), bool(JOKING.search(text)) == denies(text)
    if serious and not UNTRUE.search(text) and (JOKING.search(text) or TRUE.search(text)):
        return True
    words = (w.strip(IDLE_MARKS) for w in text.lower().split() if ANY_LETTER.search(w))
    return all(w in idle or w.isdigit() for w in words)


def unframed_statements(message: Message, *notes: Tokens) -> list[Statement]:
    """
    Return the person's statements and questions, except those that another sentence puts in doubt.

    "Tom told me this." before a statement puts the statement in doubt (see `is_framed`). A question is included because
    the person may ask to remember something. *notes*: a sentence that repeats or contains one of these notes ("You
    still think that …") puts no statement in doubt.
    """
    said = [s for s in statements_of(message) if s.governed in ("", "asked")]
    return [s for n, s in enumerate(said) if not is_framed(message.text, said, n, notes)]
