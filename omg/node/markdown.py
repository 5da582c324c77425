"""
The text of a note: links, the generated block, the history, and names made from titles.

A function that adds to a text keeps all other bytes of the text, and its line ends.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import yaml

from ..errors import BadNode
from ..text.characters import WIKILINK
from ..text.words import cut_text

# --- The properties at the head of a note, read as Obsidian reads them.
#
#     split_head         where the head lies in a text
#     load_properties    its YAML as Python values
#     property_entry     one property as text
#     with_properties    a text with some of its properties changed, and no other byte
#
# YAML 1.2, except that `on`, `0123`, `0x1F`, `12:30` and dates are strings. What is written reads the same under
# YAML 1.1 and 1.2.


HEAD_CHARS = 1_000_000  # about 7,000 sources: more than any real note has
DEPTH = 50  # nested values: libyaml recurses in C, and 100,000 brackets would crash the process
VALUES = 100_000  # in one head, with each use of an alias: nine lines of aliases can stand for a billion
HEAD_START = re.compile(r"\ufeff?---[ \t]*\r?\n")
HEAD_END = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.M)


def split_head(text: str) -> tuple[slice, int]:
    """
    Return where the head of a note lies in *text*, without the `---` lines, and where the body starts.

    Without a head, return an empty slice at the start of the body. Raises BadNode for a head that does not end.
    """
    opening = HEAD_START.match(text)
    if opening is None:
        start = 1 if text.startswith("\ufeff") else 0
        return slice(start, start), start
    closing = HEAD_END.search(text, opening.end())
    if closing is None:
        raise BadNode("the frontmatter does not end; put a line --- below it")
    return slice(opening.end(), closing.start()), closing.end()


def line_end(text: str) -> str:
    """Return the line end of the first line of *text*; LF if there is none."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def with_unix_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


# --- reading

SCALAR = re.compile(
    r"(?P<null>|~|null|Null|NULL)|(?P<bool>true|True|TRUE|false|False|FALSE)"
    r"|(?P<int>[-+]?(?:0|[1-9][0-9]{0,17}))|(?P<float>[-+]?[0-9]{1,17}\.[0-9]{0,25}(?:[eE][-+]?[0-9]{1,3})?)"
)


class Loader(yaml.CSafeLoader):
    """
    PyYAML's C parser, with OMG's rules for unquoted values.

    The tag of an unquoted value is "null", "bool", "int" or "float" if the regular expression SCALAR matches. Every
    other value is a "str".
    """

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0] and (found := SCALAR.fullmatch(value)):
            return found.lastgroup or "str"
        return "str"


def load_properties(fm: str) -> dict[str, Any]:
    """
    Parse the frontmatter *fm* into properties. Raises BadNode, which says what to mend, if *fm* cannot be read.

    python-frontmatter is not used: it strips bodies, fails on a BOM, and returns `{}` for an unreadable head.
    """
    root = compose_head(fm)
    return {} if root is None else values_of(root)


def compose_head(fm: str) -> yaml.MappingNode | None:
    """Parse *fm* into YAML nodes, which know their places in *fm*; None if *fm* is empty. Raises BadNode."""
    if len(fm) > HEAD_CHARS or too_deep(fm):
        raise BadNode("the frontmatter is too large or too deeply nested; keep it to plain properties")
    try:
        root = Loader(fm).get_single_node()
    except yaml.YAMLError as e:
        raise BadNode(f"the frontmatter is not YAML: {place_in_yaml(e)}; mend it there") from e
    if root is None or root.tag == "null":
        return None
    if not isinstance(root, yaml.MappingNode):
        raise BadNode(
            "the frontmatter is not made of `key: value` lines; mend it, or put a blank line above it"
        )
    return root


def place_in_yaml(e: yaml.YAMLError) -> str:
    mark = getattr(e, "problem_mark", None)
    # Marks count lines from 0, and the head starts in the file's second.
    return f"{getattr(e, 'problem', None) or e}" + (f" in line {mark.line + 2}" if mark else "")


def too_deep(fm: str) -> bool:
    """
    Whether brackets or dashes nest deeper than DEPTH. Nesting by indentation is not checked here, because HEAD_CHARS
    already limits its depth.
    """
    if re.search(rf"^[ \t]*(?:[-?][ \t]+){{{DEPTH}}}", fm, re.M):
        return True
    if fm.count("[") + fm.count("{") > DEPTH:
        depth = 0
        for char in re.findall(r"[\[\]{}]", fm):
            depth = max(0, depth + (1 if char in "[{" else -1))
            if depth > DEPTH:
                return True
    return False


def values_of(root: yaml.MappingNode) -> dict[str, Any]:
    """
    Convert *root* to values that JSON can hold. Keys become strings, as written. Raises BadNode beyond DEPTH or VALUES.

    This takes a third of the time of PyYAML's constructor.
    """
    count = 0

    def value(node: yaml.Node, depth: int) -> Any:
        nonlocal count
        count += 1
        if depth > DEPTH or count > VALUES:
            raise BadNode("the frontmatter is too deeply nested, or its YAML aliases repeat too much")
        if isinstance(node, yaml.ScalarNode):
            return scalar_value(node)
        if isinstance(node, yaml.SequenceNode):
            return [value(item, depth + 1) for item in node.value]
        return {key_name(k): value(v, depth + 1) for k, v in node.value}

    found: dict[str, Any] = value(root, 0)
    return found


def key_name(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        line = node.start_mark.line + 2
        raise BadNode(f"the frontmatter has a list or mapping as a key in line {line}; quote the key")
    return str(node.value)


def scalar_value(node: yaml.ScalarNode) -> Any:
    match node.tag:
        case "null":
            return None
        case "bool":
            return node.value.lower() == "true"
        case "int":
            return int(node.value)
        case "float" if math.isfinite(float(node.value)):
            return float(node.value)
    return node.value


# --- writing

# Text that needs no quotes: it starts with a letter, so it is no number, date or indicator, and it has no ": " or " #".
# Inside [ ] and { } it also has no comma. YAML 1.1 reads YAML_WORDS as other values than text.
PLAIN = re.compile(r"[^\W\d_](?:[\w .,;!?()'\"/&+=%@$–—…“”‘’-]*[\w.,;!?()'\"/&+=%@$–—…“”‘’-])?")
PLAIN_IN_FLOW = re.compile(r"[^\W\d_](?:[\w ./+=@$-]*[\w./+=@$-])?")
YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
DATES = ("created", "updated", "event")  # written without quotes, because they are dates
DATE_VALUE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?")
UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def property_entry(key: str, value: Any) -> str:
    """Render a property as text of a head, with the line end. A list takes a line for each item."""
    if isinstance(value, list) and value:
        return f"{string_value(key)}:\n" + "".join(f"  - {flow_value(item)}\n" for item in value)
    return f"{string_value(key)}: {inline_property(key, value)}\n"


def inline_property(key: str, value: Any) -> str:
    """Render *value*, the value of the property *key*, on one line."""
    if isinstance(value, str):
        return value if key in DATES and DATE_VALUE.fullmatch(value) else string_value(value)
    return flow_value(value)


def flow_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            digits = repr(value)  # YAML 1.1 wants a point in a number with an exponent
            return digits if "." in digits else digits.replace("e", ".0e")
        case str():
            return string_value(value, PLAIN_IN_FLOW)
        case list():
            return "[" + ", ".join(map(flow_value, value)) + "]"
        case dict():
            return (
                "{ "
                + ", ".join(f"{string_value(k, PLAIN_IN_FLOW)}: {flow_value(v)}" for k, v in value.items())
                + " }"
            )
    return str(value)


def string_value(text: str, plain: re.Pattern[str] = PLAIN) -> str:
    if plain.fullmatch(text) and text.lower() not in YAML_WORDS:
        return text
    text = re.sub(r"[\ud800-\udfff]", "\ufffd", text)  # a lone surrogate, which no file can hold
    # A JSON string is also a YAML string, except for characters that YAML calls unprintable.
    return UNPRINTABLE.sub(lambda char: f"\\u{ord(char[0]):04x}", json.dumps(text, ensure_ascii=False))


# --- changing


def with_properties(text: str, values: Mapping[str, Any]) -> str:
    """
    Set the properties *values* in the head of *text*; None removes a property. All other bytes stay.

    A property that already has the value keeps its bytes. A text without a head gets one. Raises BadNode if the head cannot
    be read, or if changing one property would change another (YAML aliases).
    """
    values = {name: jsonable(value) for name, value in values.items()}
    span, start = split_head(text)
    fm = text[span]
    root = compose_head(fm)
    now = {} if root is None else values_of(root)
    values = {
        name: value
        for name, value in values.items()
        if (name in now if value is None else not same_value(now.get(name), value))
    }
    if not values:
        return text
    if root is not None:
        fm = with_changes(fm, root, values)
    indent = " " * root.start_mark.column if root else ""
    added = "".join(property_entry(name, value) for name, value in values.items() if name not in now)
    eol = line_end(text)
    fm += "".join(f"{indent}{line}{eol}" for line in added.splitlines())
    wanted = {name: value for name, value in {**now, **values}.items() if values.get(name, "") is not None}
    if not reads_as(fm, wanted):
        raise BadNode(
            f"cannot change {', '.join(values)} in the frontmatter; write each on a line of its own"
        )
    if start == span.stop:  # no head yet
        gap = eol if text[start:] else ""
        fm = f"---{eol}{fm}---{eol}{gap}"
    return text[: span.start] + fm + text[span.stop :]


def with_changes(fm: str, root: yaml.MappingNode, values: Mapping[str, Any]) -> str:
    """
    Return *fm*, the properties of a note as YAML, with new values from *values*.

    - A property whose new value is None is removed, with its lines.
    - No property is added: names that are not in *fm* are ignored.

    *root*: *fm*, parsed.
    """
    last = {key_name(k): v for k, v in root.value}  # if a name stands twice, the last counts
    for k, v in reversed(root.value):
        name = key_name(k)
        if name not in values:
            continue
        colon = fm.find(":", k.end_mark.index) + 1  # `reads_as` finds any mistake made here
        end = max(colon, end_of(v, fm))  # an alias has the place of its anchor, far above
        if values[name] is None:
            fm = fm[: fm.rfind("\n", 0, k.start_mark.index) + 1] + fm[fm.index("\n", end) + 1 :]
        elif v is last[name]:
            gap = fm[colon : v.start_mark.index]
            # A value that starts on a later line moves up; comments on the way there stay.
            before, after = (" ", gap.rstrip()) if "\n" in gap or not gap else (gap, "")
            fm = fm[:colon] + before + inline_property(name, values[name]) + after + fm[end:]
    return fm


def end_of(node: yaml.Node, fm: str) -> int:
    """Return where *node* ends in *fm*. libyaml's own mark is too late for a block: it includes the comments that follow."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return end_of(last[1] if isinstance(last, tuple) else last, fm)
    start, stop = node.start_mark.index, node.end_mark.index
    return start + len(fm[start:stop].rstrip())


def reads_as(fm: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return same_value(load_properties(fm), wanted)
    except BadNode:
        return False


def same_value(a: Any, b: Any) -> bool:
    """Whether both are equal and of equal types: in Python `1 == True`."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def jsonable(value: Any) -> Any:
    """Return *value* with each date as ISO text, each tuple as a list, and each key as text."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): jsonable(item) for name, item in value.items()}
    return value


HISTORY_HEADING = "## History"
BEGIN, END = "<!-- omg:begin -->", "<!-- omg:end -->"
DESCRIPTION_CHARS = 200  # the longest description taken from a body

# Fenced blocks (an unclosed block lasts to the end), and `spans` (an unclosed span ends with its paragraph).
CODE_PATTERN = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:.*?^[ \t>]*(?P=fence)[`~]*[ \t]*$|.*)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).){1,2000}?(?<!`)(?P=ticks)(?!`)",
    re.M | re.S,
)


def link_targets(text: str) -> tuple[str, ...]:
    """
    Return the targets of the wikilinks in *text*, in order, each once.

    A target has no heading and no label. Links in code are left out.
    """
    if "[[" not in text:
        return ()
    found = []
    for inner in WIKILINK.findall(without_code(text)):
        try:
            found.append(bare_target(inner))
        except ValueError:  # [[#a heading of this very note]]
            continue
    return tuple(dict.fromkeys(found))


def without_code(text: str) -> str:
    """Replace code in *text* by spaces. Every other character keeps its place."""
    if "`" not in text and "~~~" not in text:
        return text
    return CODE_PATTERN.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def bare_target(link: str) -> str:
    """Return the target of `target#heading|label`, given with or without brackets. Raises ValueError without a target."""
    if link.startswith("[[") and link.endswith("]]"):
        link = link[2:-2]
    target = re.split(r"\\?\||#", link, maxsplit=1)[0]  # tables need the pipe escaped
    target = re.sub(r"(?:\s{0,9}\.md){1,9}\Z", "", target.strip()).strip()
    if not target or re.search(r"[\[\]\r\n]", target):
        raise ValueError(link)
    return target


def brackets(target: str) -> str:
    return f"[[{target}]]"


UNLINKABLE = re.compile(r"[\[\]|#^]")  # these characters end the name in a wikilink


def wikilink(path: str, label: str | None = None) -> str:
    """
    Return `[[path|label]]`. Characters that a label cannot hold become spaces.

    If a wikilink cannot hold *path* and there is a label, return `[label](path.md)`, which Obsidian follows, too.
    """
    label = " ".join(re.sub(r"[\[\]|\\]", " ", label or "").split())
    if label and UNLINKABLE.search(path):
        return f"[{label}]({quote(path)}.md)"
    return f"[[{path}|{label}]]" if label else f"[[{path}]]"


# Names that Windows reserves, with any extension.
DEVICES = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")


SLUG_CHARS = 50


def slugify(title: str) -> str:
    """
    Return a file name for *title*: at most 50 lower-case letters, digits and hyphens.

    - A longer name is shortened by whole words. If the first word alone is too long, the word is cut.
    - Latin letters lose their accents. Letters of other scripts keep their marks, in the form NFC.
    - The name is never empty and never a path.
    """
    kept: list[str] = []
    for char in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", title).lower()):
        if char.isalnum():
            kept.append(char)
        elif unicodedata.category(char).startswith("M"):  # an accent or vowel sign belongs to its letter
            if kept and kept[-1] != "-" and not kept[-1].isascii():
                kept.append(char)
        elif kept and kept[-1] != "-":
            kept.append("-")
    slug = unicodedata.normalize("NFC", "".join(kept))
    if len(slug) > SLUG_CHARS:
        slug = slug[: SLUG_CHARS + 1].rpartition("-")[0] or slug[:SLUG_CHARS]
    slug = slug.strip("-") or "note"
    return f"{slug}-note" if DEVICES.fullmatch(slug) else slug


# --- parts of a body

MARKS = re.compile(r"[ \t]*+(?:[#>*+-]++[ \t]++)*+")  # the marks of headings, quotations and list items
H1 = re.compile(r"^# ++(.*\S)[ \t]*$", re.M)


def first_text_line(body: str) -> str:
    """Return the first line of text in *body*, without marks, cut to DESCRIPTION_CHARS; "" if there is no text."""
    lines = (line[m.end() :] for line in body.split("\n") if (m := MARKS.match(line)))
    found = (line for line in lines if not line.startswith("<!--") and re.search(r"\w", line))
    return cut_text(" ".join(next(found, "").split()), DESCRIPTION_CHARS)


HEADING_LINE = re.compile(r"^(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$", re.M)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, with the place of the text below it, subheadings included."""

    heading: str
    level: int
    start: int
    end: int


def sections_of(text: str) -> list[Section]:
    """Return every section of *text*, in reading order. A `#` in code is not a heading."""
    found = [(m, len(m[1])) for m in HEADING_LINE.finditer(without_code(text))]
    return [
        Section(
            text[m.start(2) : m.end(2)],
            level,
            m.start(),
            next((other.start() for other, of in found[n + 1 :] if of <= level), len(text)),
        )
        for n, (m, level) in enumerate(found)
    ]


# What a model wrote about a map, at the top of the generated block: sentences, and a mark for each (plan/pages.py).
TOLD = re.compile(r"\A((?:.+\n)+)%% told ([\w ]+) %%(?:\n|\Z)")


def told_in(text: str) -> str:
    """
    Return the summary that a model wrote at the top of the map *text*.

    The summary ends with the line `%% told … %%`, which is returned, too. "" means that the map has no summary.
    """
    found = TOLD.match(generated_block(text) or "")
    return found[0] if found else ""


def generated_block(text: str) -> str | None:
    """Return the lines between the markers BEGIN and END, joined by LF; None without exactly one such pair."""
    span = between_markers(text)
    return None if span is None else with_unix_ends(text[span]).strip("\n")


def with_generated_block(text: str, inner: str) -> str:
    """Replace the lines between the markers BEGIN and END by *inner*. Raises BadNode without exactly one such pair."""
    span = between_markers(text)
    if span is None:
        raise BadNode(f"the file needs one line {BEGIN} and, below it, one line {END}")
    # a description in *inner* must not end the block
    inner = with_unix_ends(inner).strip("\n").replace("<!-- omg:", "<!-- omg :")
    lines = f"\n{inner}\n" if inner else "\n"
    return text[: span.start] + lines.replace("\n", line_end(text)) + text[span.stop :]


def uncommented(text: str) -> str:
    """Replace each HTML comment in *text* by a space. An unclosed comment stays."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return " ".join([*kept, text[at:]])


def between_markers(text: str) -> slice | None:
    start, stop = text.find(BEGIN) + len(BEGIN), text.find(END)
    paired = text.count(BEGIN) == text.count(END) == 1 and start <= stop
    return slice(start, stop) if paired else None


HISTORY_LINE = re.compile(rf"^{HISTORY_HEADING}[ \t]*$", re.M)
NEXT = re.compile(r"^(?:#{1,2} |<!-- omg:)", re.M)  # what ends the section History
LINE_END = re.compile(r"[\r\n]|\Z")


def with_history_line(text: str, line: str) -> str:
    """Add *line* as the last item of the section History. A text without that section gets one at its end."""
    eol = line_end(text)
    begin, end = split_head(text)[1], len(text)
    prose = without_code(text[begin:].replace("\r", " "))  # blanks keep every other character in its place
    headings = list(HISTORY_LINE.finditer(prose))
    if headings:
        last = headings[-1].start() + len(HISTORY_HEADING)
        following = NEXT.search(prose, last)
        end = begin + following.start() if following else end
        begin += last
    place = LINE_END.search(text, begin + len(text[begin:end].rstrip()))
    above = text[: place.start()] if place else text
    if headings:
        gap = eol
    else:
        gap = "" if above in ("", "\ufeff") else eol if above.endswith("\n") else eol * 2
        gap += HISTORY_HEADING + eol
    below = text[len(above) :] or (eol if above.endswith("\n") else "")
    return above + gap + (line if line.startswith("- ") else f"- {line}") + below
