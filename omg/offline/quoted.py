"""
A message without what its sender only passes on: code, forwarded mails, quotations, reported speech, and what is
handed over to be translated, summarised or corrected.

How such things are introduced stands in words/quoted.toml. Not here: lines that a program wrote (sentences.py).
One rule: in doubt it is another's; what someone pastes must never become what they believe.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..node.markdown import uncommented
from ..text.sentences import sentence_parts
from .cues import language

FENCE = re.compile(
    r"(?P<fence>`{3,}|~{3,}|\"{3}|'{3}).*?(?:(?P=fence)|\Z)|<([\w-]{1,60}+)[^<>\n]{0,500}>[^\S\n]{0,9}\n.{0,2000}?</\2>",
    re.DOTALL,
)
QUOTED_CHARS_LOOKED_THROUGH = 100_000  # characters that are looked through; nobody types as many
CHARS_AT_ONCE = 2_000  # that one call looks through: the interpreter is held as long, 5 ms at the worst
LONGEST_CUE = 400  # characters; no pattern that is looked for in steps needs more, but the rest of a line
NEAR_QUOTE = 200  # characters around a quotation in which its speaker is named
APOSTROPHES = str.maketrans("’‘", "''")
QUOTED_LINE = re.compile(r"\s*(?:[-*•–]\s+|\d{1,2}[.)]\s+)?(?:[>＞»│┃▌▏❯]|&gt;)")
INDENTED = re.compile(r"(?: {4,}+|\t)(?!\s*+(?:[-*•–]|\d{1,2}[.)])\s)")
SPAN = re.compile(
    r"!\[[^\[\]\n]{0,500}\]\([^()\n]{0,500}\)|“[^“”]{0,2000}”|„[^“”„]{0,2000}[“”]|«[^«»]{0,2000}»|「[^「」]{0,2000}」|『[^『』]{0,2000}』|`[^`\n]{0,2000}`"
    r"|(?<![\w\"])\"(?=\S)[^\"]{0,2000}\"(?!\w)"
    r"|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){0,500}'(?!\w)"
)
HANDED_ON = re.compile(r"\s{0,9}(?:and|or|,|;|/|und|et|y)?\s{0,9}[\"'“„«「]")
TIME = r"\d{1,2}[:.h]\d\d(?:[:.]\d\d)?(?:\s?[APap]\.?[Mm]\.?)?"
ROLE = re.compile(
    rf"\s{{0,40}}+(?P<time>[\[(]?(?:[\d.,/-]{{4,12}},? )?{TIME}[\])]?[\s-]{{0,9}}+)?"
    r"(?:<(?P<nick>[\w.-]{1,30})>|(?P<mark>[—–@]\s?)(?P<who>\w[\w.-]{0,30}): "
    r"|(?P<name>[A-Z][\w.-]{0,60}(?: [A-Z\d][\w.-]{0,60})?|user|assistant|system|human|ai|bot|[a-z]\w{1,11}(?=: (?:i|i'm|my)\b))"
    r"(?: ?\([^)\n]{0,60}\))?: )\s{0,3}\S"
)
# "Ann, 9:41", "ann — Today at 4:12 PM", "妈妈 20:11" above what they wrote
SPEAKER = re.compile(
    rf"\s{{0,3}}(?!\d)\w[^\n:?!]{{0,30}}?(?:[,\s]\s?|\s[—–-]\s)[\[(]?(?:(?:today|yesterday|heute|gestern)(?: at)? |[\d.,/-]{{4,12}},? )?{TIME}[\])]?\s{{0,3}}$",
    re.I,
)
# A line with which a table or a file of settings begins, and the one behind it: "name,says", "profile:" and "  note: …"
TABULATED = (
    (re.compile(r"\w{1,30}(?:[,;\t]\w{1,30}){1,20}\s{0,3}$"), re.compile(r"[^,;\t\n]{1,200}[,;\t]\S")),
    (re.compile(r"[\w-]{1,40}:\s{0,3}$"), re.compile(r" {2,8}(?:- )?[\w-]{1,40}:\s")),
)
ROW = re.compile(r"\s{0,3}([-=*#<>+~_])\1{2,80}\s{0,3}$")
DOCUMENT_HEADING = re.compile(r"#{1,4} \S")
FRONT = re.compile(r"\s{0,9}---\n(?:[^\n]{0,300}\n){0,20}?---\s{0,3}\n")
CLIPPED_FROM = re.compile(r"^(?:url|source|link|clipped|clip|author|site|website|via)\s?:", re.M | re.I)
ENDS_A_CUE = re.compile(r"[:：\n]")  # each `handed` and `reported` of words/quoted.toml has one
OWN_QUOTE = 5  # words in quotation marks that may be one's own saying; more in the first person are another's
LIST_LABELS = frozenset(  # what people head lines of their own with
    """
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun todo note notes ps nb edit update re
    fyi tldr work home diet job family hobby hobbies name age city food music sport sports travel health budget goal goals
    plan plans project pets languages likes dislikes allergies allergy address phone birthday kids school morning evening
    breakfast lunch dinner background context summary question answer problem request pros cons today tomorrow yesterday
    """.split()
)


def own_words(text: str) -> str:
    """*text* without the words of others; an ellipsis in quotation marks stands where a quotation stood."""
    if len(text) > QUOTED_CHARS_LOOKED_THROUGH:
        text = f"{text[: QUOTED_CHARS_LOOKED_THROUGH // 2]}\n{text[-QUOTED_CHARS_LOOKED_THROUGH // 2 :]}"
    if (front := FRONT.match(text)) and CLIPPED_FROM.search(front[0]):
        return ""
    text = FENCE.sub("\n", uncommented(text, "\n")).translate(APOSTROPHES)
    # Only a newline ends a line: whatever else `splitlines` knows would end a quotation too early.
    text = without_quotes("\n".join(lines_written(text.split("\n"))))
    patterns = language("quoted").patterns
    if above := list(found_in_steps(patterns["above"], text)):
        text = text[text.rfind("\n", 0, above[-1].end()) + 1 :]
    if ENDS_A_CUE.search(text) and (handed := next(found_in_steps(patterns["handed"], text), None)):
        text = text[: handed.end()] + behind_quotation(text, handed.end())
    if ":" not in text and "：" not in text:
        return text
    kept, at = [], 0
    for reported in found_in_steps(patterns["reported"], text):
        kept.append(text[at : reported.start()])
        at = end_of_line(text, reported.end())
    return "".join(kept) + text[at:]


def found_in_steps(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `finditer`, where a match is no longer than LONGEST_CUE; between two steps others have the interpreter."""
    at = 0
    while at < len(text):
        until = at + CHARS_AT_ONCE
        m = pattern.search(text, at, until + LONGEST_CUE)
        if m and m.start() < until:
            yield m
            at = max(m.end(), at + 1)
        else:
            at = until


def end_of_line(text: str, at: int) -> int:
    """Where the line that goes on at *at* ends."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def behind_quotation(text: str, at: int) -> str:
    """What follows the quotation at *at*, of something handed over; "" if it is no quotation, or more of it follows."""
    quoted = SPAN.match(text, at + len(text[at : at + 9]) - len(text[at : at + 9].lstrip()))
    if quoted is None or HANDED_ON.match(text, quoted.end()):
        return ""
    return text[quoted.end() :]


def lines_written(lines: Sequence[str]) -> Iterator[str]:
    """*lines* up to a mail that is passed on, those of others empty."""
    patterns = language("quoted").patterns
    others = {*chat_lines(lines), *speakers_lines(lines), *fenced_lines(lines)}
    end = mail_begins(lines)
    code, blank, anothers, closed = False, True, False, ""
    for n, line in enumerate(lines):
        if not line:
            code, blank, anothers = False, True, False
            yield ""
            continue
        if n == end or forwarded_from(lines, n) or is_document(lines, n) or patterns["context"].match(line):
            return
        if patterns["signed"].match(line) and n:
            return
        if found := patterns["passed"].match(line):
            if not line[found.end() :].partition("]")[2].strip():
                return
            anothers = True
        elif (at := line.find("[")) > 0 and (found := patterns["passed"].match(line, at)):
            yield line[:at]  # "save this: [Forwarded from Ann]"
            if not line[found.end() :].partition("]")[2].strip():
                return
            continue
        elif begins_anothers(lines, n):
            anothers = True
        elif patterns["replying"].match(line) and any(map(patterns["replied"].match, lines[n + 1 : n + 40])):
            closed = "replied"
        code = bool(INDENTED.match(line)) and (code or blank)
        blank = not line.strip()
        anothers = anothers and not blank
        skip = (
            code
            or anothers
            or closed
            or n in others
            or QUOTED_LINE.match(line)
            or patterns["media"].match(line)
        )
        yield "" if skip else line
        if closed and patterns[closed].match(line):
            closed = ""


def begins_anothers(lines: Sequence[str], n: int) -> bool:
    """Whether with line *n*, up to an empty one, begins what a program wrote, or what was read off a picture."""
    patterns, line = language("quoted").patterns, lines[n]
    if patterns["program"].match(line) or patterns["read_off"].match(line):
        return True
    if any(head.match(line) and row.match("".join(lines[n + 1 : n + 2])) for head, row in TABULATED):
        return True
    return bool(n and patterns["media"].match(lines[n - 1]) and patterns["described"].match(line))


def is_document(lines: Sequence[str], n: int) -> bool:
    """Whether with line *n* begins a document that is handed over with a question or a colon."""
    if not DOCUMENT_HEADING.match(lines[n]):
        return False
    before = [line.rstrip() for line in lines[max(0, n - 4) : n] if line.strip()]
    return bool(before) and before[-1].endswith(("?", ":", "？", "："))


def mail_begins(lines: Sequence[str]) -> int:
    """The line in which a mail begins that has no head: after something else, greeted and closed; -1 if there is none."""
    patterns = language("quoted").patterns
    first = next((n for n, line in enumerate(lines) if n and patterns["greeting"].match(line)), -1)
    if first < 0 or not any(line.strip() for line in lines[:first]):
        return -1
    return first if any(patterns["closing"].match(line) for line in lines[first + 1 :][-8:]) else -1


def forwarded_from(lines: Sequence[str], n: int) -> bool:
    """Whether with line *n* a mail begins that goes to the end of the message."""
    patterns = language("quoted").patterns
    line, behind = lines[n], [x for x in lines[n + 1 : n + 5] if x.strip()]
    if patterns["forwarded"].match(line):
        return True
    if any(patterns["wrote"].match(" ".join((line, *behind[:more]))) for more in (0, 1)):
        # those are parted from what stands between them
        return not any(QUOTED_LINE.match(x) for x in behind[:2])
    if not patterns["header"].match(line):
        return False
    head = [line, *(x for x in behind[:3] if patterns["header"].match(x))]
    return len(head) > 1 and any(patterns["subject"].match(x) for x in head)


def chat_lines(lines: Sequence[str]) -> set[int]:
    """The lines of a pasted conversation: those that begin with who spoke, where that shows that they are no list."""
    found = {n: m for n, line in enumerate(lines) if (m := ROLE.match(line))}
    names = Counter((m["name"] or m["nick"] or m["who"]).lower() for m in found.values())
    if len(found) < 2 or LIST_LABELS & names.keys():
        return set()
    marked = sum(bool(m["time"] or m["nick"] or m["mark"]) for m in found.values()) >= 2
    first = language("quoted").patterns["first"]
    spoken = any(first.search(lines[n], m.end() - 1) for n, m in found.items())
    again = max(names.values()) >= 2
    return set(found) if marked or (again and (spoken or len(found) >= 3)) or spoken else set()


def fenced_lines(lines: Sequence[str]) -> set[int]:
    """The lines between two that are nothing but a row of one mark: "---", "===", "<<<" and ">>>"."""
    rows = [n for n, line in enumerate(lines) if ROW.match(line)]
    return {n for first, last in zip(rows[::2], rows[1::2], strict=False) for n in range(first, last + 1)}


def speakers_lines(lines: Sequence[str]) -> set[int]:
    """The lines of a pasted conversation in which who spoke, and when, stands above what they wrote."""
    heads = [n for n, line in enumerate(lines) if SPEAKER.match(line)]
    if len(heads) < 2:
        return set()
    found = set()
    for n in heads:
        while n < len(lines) and lines[n].strip():
            found.add(n)
            n += 1
    return found


def without_quotes(text: str) -> str:
    return SPAN.sub(lambda m: '"…"' if is_anothers(m) else m[0], text)


def is_anothers(m: re.Match[str]) -> bool:
    """Whether what stands in quotation marks is another's statement, and no title, nickname or saying of one's own."""
    if m[0].startswith("!["):  # what a picture is said to show
        return True
    patterns, text = language("quoted").patterns, m.string
    before = text[max(0, m.start() - NEAR_QUOTE) : m.start()].rpartition("\n")[2]
    behind = text[m.end() : m.end() + NEAR_QUOTE].partition("\n")[0]
    long = len(m[0].split()) > OWN_QUOTE
    if not patterns["first"].search(m[0]):  # what somebody is told to do, they were told by somebody
        return long and bool(patterns["told"].search(before) or patterns["teller"].match(behind))
    if long:
        return True
    alone = not before.strip(" \t-*•–") and not behind.strip(" \t.,!?;")
    # One sentence would stand as the sender's own.
    return bool(
        alone
        or len(sentence_parts(m[0])) > 1
        or patterns["told"].search(before)
        or patterns["teller"].match(behind)
    )
