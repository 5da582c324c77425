"""Whether the words around a date look back or ahead. English only."""

from __future__ import annotations

import re

# The person Will does not look forward to anything.
INTENT = re.compile(
    r"\b(?:(?-i:will)|(?-i:^Will(?= [a-z]))(?! \w+s\b)|(?:am|is|are|be) to|shall|plan(?:s|ned|ning)?"
    r"|going to|gonna|looking forward|intend(?:s|ed|ing)?|wants?|needs?|about to|hop(?:es?|ing)|due|deadline|scheduled"
    r"|expect(?:s|ed|ing)?|promised|decided to)\b|['’]ll\b",
    re.I,
)
AHEAD = re.compile(
    INTENT.pattern + r"|\b(?:must|should|ha(?:ve|s) to|gotta|let['’]s|remind|upcoming|see you"
    r"|leaves|departs|arrives|starts|begins|expires|takes (?:place|off)"  # as timetables say it
    r"|excited|wait|(?:can|could) (?:we|you|i)|(?:i['’]m|we['’]re|is|are|am) \w+ing)\b",
    re.I,
)
# What was arranged lies ahead, where its day comes after it: "bought tickets for the concert on 12 January".
ARRANGED = re.compile(
    r"\b(?:booked|reserved|arranged|registered|enrolled|signed up|invited|tickets?)\b[^,;:]{0,80}?\b(?:for|to)\b",
    re.I,
)
BEHIND = re.compile(
    r"\b(?:was|were|did|didn['’]t|had|went|got|came|saw|made|took|met|bought|said|told|gave|found|left|felt|ate|won"
    r"|lost|began|broke|spoke|wrote|ran|sent|spent|thought|knew|kept|held|heard|built|taught|drove|flew|sold|paid"
    r"|(?!hundred)[a-z]{2,}[^\We]ed)\b",
    re.I,
)
FINITE = re.compile(r"was|were|did|didn['’]t|went|came|saw|took|gave|ate|wrote|knew|drove|flew", re.I)
CLAUSE = re.compile(
    r"[,;:—–(]|\b(?:and|but|so|because|which|after|when|as)\b|\b(?:i|we|he|she|they|who|has|have)\s+(?:\w+ly\s+)?\Z",
    re.I,
)
# What looks ahead and can mean no day that is past: a deadline can, and so can what somebody waits for.
FUTURE = re.compile(r"\b(?:(?-i:will)|shall|going to|gonna|remind|plan(?:s|ning)? to)\b|['’]ll\b", re.I)
_NEAR = 200  # chars
_STOPS = (". ", "! ", "? ", "\n")


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """What the sentence around says before *start* and after *end*, as far as it bears on the days."""
    low, high = max(0, start - _NEAR), min(len(text), end + _NEAR)
    first = max((at + len(stop) for stop in _STOPS if (at := text.rfind(stop, low, start)) >= 0), default=low)
    last = min((at for stop in _STOPS if (at := text.find(stop, end, high)) >= 0), default=high)
    return text[first:start], text[end:last]


def tense_of(text: str, start: int, end: int) -> str:
    """Whether the sentence looks "ahead", "behind", or neither: "". Where it does both, the nearest verb decides."""
    before, after = sentence_around(text, start, end)
    sentence, at = f"{before} {after}", len(before)
    ahead = [m.span() for m in (*AHEAD.finditer(sentence), *ARRANGED.finditer(before))]
    # "Booked the van: 19 December" names the day of what was booked, not the day of the booking.
    since = max(before.rfind(": "), 0)
    behind = [m.span() for m in BEHIND.finditer(sentence, since) if is_past_tense(sentence, m, ahead)]
    if not ahead or not behind:
        return "ahead" if ahead else "behind" if behind else ""
    far = [min(max(at - b, a - at, 0) for a, b in spans) for spans in (ahead, behind)]
    return "ahead" if far[0] <= far[1] else "behind"


def is_past_tense(sentence: str, m: re.Match[str], ahead: list[tuple[int, int]]) -> bool:
    """Not the participle in "will be submitted", "want it finished": what looks ahead reaches to the next clause."""
    since = max((b for _, b in ahead if b <= m.start()), default=-1)
    return since < 0 or bool(FINITE.fullmatch(m[0]) or CLAUSE.search(sentence, since, m.start()))
