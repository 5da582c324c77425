"""
Node: a note as a value, with its properties; and the table of maps.

    parse_node     text → Node      lenient: reads what any editor may have written
    render_node    Node → text      strict: parse_node turns the text back into an equal Node
    amend_text     text → text      changes a few properties of a file that a person edited; all other bytes stay

Nothing that a person wrote is lost: properties that OMG cannot read are kept in `extra`. vault/vault.py writes files.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import BadNode
from .markdown import (
    H1,
    bare_target,
    brackets,
    first_text_line,
    jsonable,
    link_targets,
    load_properties,
    property_entry,
    slugify,
    split_head,
    with_history_line,
    with_properties,
    with_unix_ends,
    without_code,
)

# --- The properties of a note: their names, the values they may have, and a reader for each.
#
# A reader raises ValueError for an unreadable value; the note then keeps the property in `extra`.


TYPES = ("identity", "preference", "project", "decision", "fact", "episode")  # what is remembered
GENERATED = ("index", "now", "moc", "reflection", "log")  # pages that OMG makes
NAME_TITLE = "Name"  # title of the note that says what the user is called
PRIORITIES = ("high", "medium", "low")
STATUSES = ("active", "superseded", "dormant", "archived")
LOOPS = ("open", "done")
SCOPES = ("dm", "group", "global")
ORIGINS = ("user", "assistant", "tool", "human")


@dataclass(frozen=True, slots=True)
class Source:
    """A message that a note was made from. The archive holds the message. *timestamp* is in ms since the epoch."""

    session: str
    id: str  # "" if a person wrote the source without an id
    timestamp: int
    kind: str = "message"


SOURCE = ("sessionKey", "kind", "id", "timestamp")


def text_value(value: Any) -> str:
    """Return a single value as text: YAML reads some ids and tags as numbers. Raises ValueError for lists and mappings."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError(value)


def text_line(value: Any) -> str:
    text = text_value(value)
    return " ".join(text.split()) if "\n" in text or not text.strip() else text


def one_of_values(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = text_value(value).strip().lower()
        if name not in names:
            raise ValueError(value)
        return name

    return read


def flag_value(value: Any) -> bool:
    return one_of_values("true", "yes", "on", "false", "no", "off")(value) in ("true", "yes", "on")


def day_value(value: Any) -> dt.date:
    """Read a date, and ignore a time after it: Obsidian has properties of both kinds. Raises ValueError."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ].*)?", text_value(value).strip())
    if not found:
        raise ValueError(value)
    return dt.date.fromisoformat(found[1])


def days_value(value: Any) -> str:
    ends = [day_value(part) for part in text_value(value).split("..")]
    if len(ends) > 2 or ends != sorted(ends):
        raise ValueError(value)
    return "..".join(end.isoformat() for end in ends)


def count_value(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def leaf_values(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from leaf_values(item)
    elif value is not None:  # Obsidian leaves an empty item behind while one types
        yield value


def many_values(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(text_value(item) for item in items if item is not None)


def link_value(value: Any) -> str:
    (target,) = link_values(value)
    return target


def link_values(value: Any) -> tuple[str, ...]:
    """Return the link targets in *value*, at any depth: YAML reads an unquoted `[[x]]` as a list in a list."""
    return tuple(bare_target(text_value(item)) for item in leaf_values(value))


def applies_to(value: Any) -> tuple[str | None, str | None]:
    if not isinstance(value, dict) or value.keys() - {"sessionScope", "identityKey"}:
        raise ValueError(value)
    scope, identity = value.get("sessionScope"), value.get("identityKey")
    return (
        None if scope is None else one_of_values(*SCOPES)(scope),
        None if identity is None else text_value(identity) or None,
    )


def source_values(value: Any) -> tuple[Source, ...]:
    return tuple(source_value(item) for item in leaf_values(value))


def source_value(value: Any) -> Source:
    """Read one source. Raises ValueError for unknown keys: the note then keeps the whole value in `extra`."""
    needed = set(SOURCE) - {"kind", "id"}
    if not isinstance(value, dict) or value.keys() - set(SOURCE) or needed - value.keys():
        raise ValueError(value)
    session, id, kind = (
        text_value(value.get(key, other))
        for key, other in (("sessionKey", ""), ("id", ""), ("kind", "message"))
    )
    return Source(session, id, epoch_ms_value(value["timestamp"]), kind)


# Timestamps in this range are seconds, as the original design writes them: 1973 to 5138. As ms they would be in early 1970.
SECONDS = range(100_000_000, 100_000_000_000)


def epoch_ms_value(value: Any) -> int:
    at = count_value(value)
    return at * 1000 if at in SECONDS else at


READERS: dict[str, Callable[[Any], Any]] = {
    "id": text_value,
    "description": text_line,
    "type": one_of_values(*TYPES, *GENERATED, "note"),
    "priority": one_of_values(*PRIORITIES),
    "status": one_of_values(*STATUSES),
    "pinned": flag_value,
    "standing": flag_value,
    "loop": one_of_values(*LOOPS),
    "created": day_value,
    "updated": day_value,
    "event": days_value,
    "appliesTo": applies_to,
    "origin": one_of_values(*ORIGINS),
    "proposes": text_value,
    "reflected_in": link_values,
    "sources": source_values,
    "supersedes": link_values,
    "superseded_by": link_value,
    "contradicts": link_values,
    "links": link_values,
    "tags": many_values,
    "aliases": many_values,
}


# --- The maps of content, and which map lists a note.
#
# This is the only table of maps. The text of a map is made in plan/pages.py.


# type → path, title, what the page is for
MOCS = {
    "identity": (
        "mocs/moc-identity",
        "Identity",
        "Who you are: names, people, places, languages, health, work.",
    ),
    "preference": ("mocs/moc-preferences", "Preferences", "What you like, dislike and want done your way."),
    "project": ("mocs/moc-projects", "Projects", "What you are working on, and the state of each project."),
    "decision": ("mocs/moc-decisions", "Decisions", "What was decided, and why."),
    "fact": ("mocs/moc-facts", "Facts", "Other facts: names, numbers, places, how things work."),
    "episode": ("mocs/moc-episodes", "Episodes", "What happened, newest first."),
    "open-loop": ("mocs/moc-open-loops", "Open loops", "Plans and promises that are not done, by date."),
    "reflection": ("mocs/moc-reflections", "Reflections", "Summaries of weeks and months."),
}

OPEN_LOOPS = MOCS["open-loop"][0]
STANDARD = [path for path, _, _ in MOCS.values()]
LOG_FOLDER = "reflections/log/"  # a page a month: what the Reflector did


def map_of_type(type: str) -> str:
    """Return the path of the map that lists notes of *type*."""
    return MOCS.get(type, MOCS["fact"])[0]


def map_listing(path: str, type: str, links: Iterable[str]) -> str:
    """
    Return the path of the map that lists a note: the first map in *links*, else the map of the note's type. For a page
    without a type, the folder below `nodes/` gives the type.

    Return "" for notes that no map lists: the maps themselves, the log, and a person's pages outside `nodes/`.
    """
    if type in ("index", "now", "log") or path in STANDARD:
        return ""
    linked = (link for link in links if link.startswith("mocs/") and link not in (path, OPEN_LOOPS))
    kind = type_of_folder(path) if type == "note" else type
    return next(linked, MOCS[kind][0] if kind in MOCS else "")


def type_of_folder(path: str) -> str:
    """Return the type of a note that names no type: its folder below `nodes/`, "note" anywhere else."""
    folders = path.split("/")
    return folders[1] if folders[0] == "nodes" and folders[1] in TYPES else "note"


def page_title(path: str) -> tuple[str, str]:
    """Return title and description of the generated page at *path*. For a topic, both are made from the file name."""
    fixed = {p: (title, purpose) for p, title, purpose in MOCS.values()}
    fixed["index"] = ("Index", "Start here: the maps, and how to find what is remembered.")
    fixed["now"] = ("Now", "What is going on: each conversation's task, and what is due.")
    if path in fixed:
        return fixed[path]
    of = next((p for p in STANDARD if path.startswith(f"{p}-")), "mocs/moc")
    title = path.removeprefix(f"{of}-").rpartition("/")[2].replace("-", " ").capitalize()
    return title, f"Notes about {title}."


# --- The note itself.


HEADING = re.compile(r"# (\S(?:[^\r\n]*\S)?)\n\n(?=[^\r\n])")


@dataclass(frozen=True, slots=True)
class Node:
    """
    A file of the vault. Link-valued fields hold the bare target: "mocs/moc-preferences".

    `extra` holds a person's own properties, and values of known keys that we cannot read.
    """

    path: str  # below the vault root, without ".md"; not in the frontmatter
    id: str  # the stable handle, "omg/preference/answer-style"; the path if the file names no id
    description: str  # one line
    type: str  # one of TYPES or GENERATED; "note": a person's file outside `nodes/` that names no type
    priority: str = "medium"
    status: str = "active"
    pinned: bool = False
    standing: bool = False  # an instruction for every conversation: "always …", "from now on …"
    loop: str | None = None
    created: dt.date | None = None
    updated: dt.date | None = None
    event: str | None = None  # "2026-03-05" or "2026-03-05..2026-03-08"
    scope: str | None = None  # appliesTo.sessionScope
    identity: str | None = None  # appliesTo.identityKey
    origin: str | None = None
    proposes: str = (
        ""  # what the note becomes if the user confirms: a type, or the link of the note to correct
    )
    reflected_in: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    contradicts: tuple[str, ...] = ()  # notes that say otherwise; nobody said which of them is true
    links: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    heading: str = ""  # the title, if it is the first line of the text and a blank line follows
    body: str = ""  # the text below the heading
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Move the title from the body to `heading`, if the body begins with a title and a blank line."""
        found = HEADING.match(text := self.full_body)
        object.__setattr__(self, "heading", found[1] if found else "")
        object.__setattr__(self, "body", text[found.end() :] if found else text)

    @property
    def full_body(self) -> str:
        """The text below the head."""
        below = f"\n\n{self.body}" if self.body else ""
        return f"# {self.heading}{below}" if self.heading else self.body

    @property
    def wikilinks(self) -> tuple[str, ...]:
        return link_targets(self.full_body)

    @property
    def title(self) -> str:
        """The first `# heading` of the body, else the alias that gave the file its name, else the file's name made readable."""
        if self.heading:
            return self.heading
        if "# " in self.body and (found := H1.search(without_code(self.body))):
            return found[1]
        name = self.path.rpartition("/")[2]
        if re.match(r"\d{4}-", name):  # 2026-W08, 2026-03-05
            return name
        spelled = next((alias for alias in self.aliases if name in (alias, slugify(alias))), "")
        words = spelled or re.sub(r"[-_]+", " ", name).strip() or name
        return spelled or words[0].upper() + words[1:]


def parse_node(text: str, path: str) -> Node:
    """
    Parse *text*, the text of the file at *path*.

    Raises BadNode for a head that does not end, is not YAML, or is not made of `key: value` lines. Nothing else is an
    error: a note needs no head, and a value that cannot be read goes to `extra`.
    """
    try:
        span, start = split_head(text)
        meta = load_properties(text[span])
    except BadNode as e:
        raise BadNode(f"{path}.md: {e}") from e
    # One blank line below the head and one line end at the end belong to the file, not to the body.
    body = with_unix_ends(text[start:]).removesuffix("\n")
    body = body.removeprefix("\n") if start > span.stop else body
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in meta.items():
        if (read := READERS.get(key)) is None:
            extra[key] = value
        elif value is not None:
            try:
                known[key] = read(value)
            except ValueError:
                extra[key] = value
    known["scope"], known["identity"] = known.pop("appliesTo", (None, None))
    known["id"] = known.get("id") or path
    known["description"] = known.get("description") or first_text_line(body)
    known.setdefault("type", type_of_folder(path))
    return Node(path=path, body=body, extra=extra, **known)


def text_below_head(text: str) -> str:
    """Return the text below head and title. Does not parse the head, which would take five times as long."""
    body = with_unix_ends(text[split_head(text)[1] :]).strip("\n")
    title = HEADING.match(body)
    return body[title.end() :] if title else body


def render_node(node: Node) -> str:
    """Return the text of the note's file: head, blank line, body. Lines end with LF."""
    lines = "".join(property_entry(key, value) for key, value in head_of(node).items())
    body = node.full_body
    return f"---\n{lines}---\n" + (f"\n{with_unix_ends(body)}\n" if body else "")


def head_of(node: Node) -> dict[str, Any]:
    """
    Return the frontmatter in the order of `render_node`, as values that JSON can hold and `amend_text` takes.

    A property with its default value is left out, except the type, priority and status of a memory (TYPES).
    """
    kind = type_of_folder(node.path)
    defaults = {"id": node.path, "description": first_text_line(node.full_body), "type": kind} | DEFAULTS
    always = ("type", "priority", "status") if node.type in TYPES else ()
    shown = ("id", "description", *always)
    found = {}
    for key in READERS:
        value = head_value(node, key)
        default = value == defaults[key] if key in defaults else not value
        if default and key in node.extra:
            found[key] = node.extra[key]  # a person's value that OMG cannot read
        elif not default or key in shown:
            found[key] = value
    return found | {key: value for key, value in node.extra.items() if key not in READERS}


def head_value(node: Node, key: str) -> Any:
    """Return the property *key* of *node* as a value that JSON can hold."""
    if key == "appliesTo":
        applies = {"sessionScope": node.scope, "identityKey": node.identity}
        return {name: value for name, value in applies.items() if value}
    if key == "sources":
        rows = (zip(SOURCE, (s.session, s.kind, s.id, s.timestamp), strict=True) for s in node.sources)
        return [{name: value for name, value in row if name != "id" or value} for row in rows]
    value = getattr(node, key)
    if READERS[key] is link_value:
        return value and brackets(value)
    return list(map(brackets, value)) if READERS[key] is link_values else jsonable(value)


def with_heading(node: Node) -> Node:
    """Give *node* its title as a heading, if it has none: Obsidian would show only the file name."""
    if node.type not in TYPES or not node.body or node.heading or H1.search(without_code(node.body)):
        return node
    return replace(node, heading=node.title)


DEFAULTS = {"priority": "medium", "status": "active"}


def amend_text(text: str, *, set: Mapping[str, Any] = {}, history: str | None = None) -> str:
    """
    Set the properties in *set* in the head of a note's *text*, and add the line *history* to `## History`.

    Values are as in `head_of`; None removes a property. A text without a head gets one. A property that already has the
    value keeps its bytes, so a second call adds only *history* again. Raises BadNode as `parse_node` does, and if
    changing one property would change another (YAML aliases).
    """
    if set:
        text = with_properties(text, set)
    if history is not None:
        text = with_history_line(text, " ".join(history.splitlines()))
    return text
