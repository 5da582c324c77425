"""
One markdown file, as a value.

    parse    text → Node      lenient: whatever a person's editor left behind
    render   Node → text      strict: parse(render(n)) == n, and what we rendered is reproduced byte for byte
    amend    text → text      changes a few keys of a file that a person touched; all other bytes stay

Not here: YAML (properties.py); where a file lies, and whether it may be written (vault.py). One rule:
nothing a person wrote is lost on the way; what we cannot read is kept in `extra`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..dates import LAST_MS
from ..errors import BadNode
from .markdown import (
    H1,
    HISTORY,
    bare,
    block,
    brackets,
    first_line,
    slugify,
    targets,
    uncommented,
    wikilink,
    with_block,
    with_history,
    without_code,
)
from .properties import changed, entry, load, split, unix

TYPES = ("identity", "preference", "project", "decision", "fact", "episode")  # what is remembered
GENERATED = ("index", "now", "moc", "reflection", "log")  # what we make of it
PRIORITIES = ("high", "medium", "low")
STATUSES = ("active", "superseded", "dormant")
LOOPS = ("open", "done")
SCOPES = ("dm", "group", "global")
ORIGINS = ("user", "assistant", "tool", "human")

__all__ = [  # with what markdown.py has for a node's body
    "GENERATED",
    "HISTORY",
    "LOOPS",
    "ORIGINS",
    "PRIORITIES",
    "SCOPES",
    "STATUSES",
    "TYPES",
    "Node",
    "Source",
    "amend",
    "block",
    "head",
    "parse",
    "render",
    "slugify",
    "targets",
    "uncommented",
    "wikilink",
    "with_block",
]


@dataclass(frozen=True, slots=True)
class Source:
    """A message that a node was made from; the archive has it. *timestamp* is ms since the epoch."""

    session: str
    id: str
    timestamp: int
    kind: str = "message"


@dataclass(frozen=True, slots=True)
class Node:
    """
    A file of the vault. Link-valued fields hold the bare target: "mocs/moc-preferences".

    `extra` holds a person's own properties, and values of known keys that we cannot read.
    """

    path: str  # below the vault root, without ".md"; not in the frontmatter
    id: str  # the stable handle, "omg/preference/answer-style"; the path where the file has none
    description: str  # one line
    type: str  # one of TYPES or GENERATED; "note" is a person's file without one
    priority: str = "medium"
    status: str = "active"
    pinned: bool = False
    loop: str | None = None
    created: dt.date | None = None
    updated: dt.date | None = None
    event: str | None = None  # "2026-03-05" or "2026-03-05..2026-03-08"
    scope: str | None = None  # appliesTo.sessionScope
    identity: str | None = None  # appliesTo.identityKey
    origin: str | None = None
    generation: int = 0
    reflected_in: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: str | None = None
    links: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    body: str = ""
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def wikilinks(self) -> tuple[str, ...]:
        return targets(self.body)

    @property
    def title(self) -> str:
        """The first `# heading` of the body, else the alias that the file is named after, else its name made readable."""
        if "# " in self.body and (found := H1.search(without_code(self.body))):
            return found[1]
        name = self.path.rpartition("/")[2]
        if re.match(r"\d{4}-", name):  # 2026-W08, 2026-03-05
            return name
        spelled = next((alias for alias in self.aliases if name in (alias, slugify(alias))), "")
        words = spelled or re.sub(r"[-_]+", " ", name).strip() or name
        return spelled or words[0].upper() + words[1:]


def parse(text: str, path: str) -> Node:
    """
    Read the text of the file at *path*.

    Raises BadNode for a head that does not end, is not YAML, or is not made of `key: value` lines.
    Everything else is read somehow: a note needs no head, and a value that makes no sense goes to `extra`.
    """
    try:
        span, start = split(text)
        meta = load(text[span])
    except BadNode as e:
        raise BadNode(f"{path}.md: {e}") from e
    # One blank line below the head and one line end at the end are the file's; the rest is the body's.
    body = unix(text[start:]).removesuffix("\n")
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
    known["description"] = known.get("description") or first_line(body)
    known.setdefault("type", "note")
    return Node(path=path, body=body, extra=extra, **known)


def render(node: Node) -> str:
    """The text of the file: head, blank line, body; LF."""
    lines = "".join(entry(key, value) for key, value in head(node).items())
    return f"---\n{lines}---\n" + (f"\n{unix(node.body)}\n" if node.body else "")


def head(node: Node) -> dict[str, Any]:
    """
    The frontmatter as `render` writes it, in its order: only what JSON can hold, and what `amend` takes.

    What has its default is left out; of a memory, priority, status and generation are always shown.
    """
    applies = {"sessionScope": node.scope, "identityKey": node.identity}
    values: dict[str, Any] = {
        "id": node.id,
        "description": node.description,
        "type": node.type,
        "priority": node.priority,
        "status": node.status,
        "pinned": node.pinned,
        "loop": node.loop,
        "created": node.created and node.created.isoformat(),
        "updated": node.updated and node.updated.isoformat(),
        "event": node.event,
        "appliesTo": {key: value for key, value in applies.items() if value},
        "origin": node.origin,
        "generation": node.generation,
        "reflected_in": [brackets(target) for target in node.reflected_in],
        "sources": [
            dict(zip(SOURCE, (s.session, s.kind, s.id, s.timestamp), strict=True)) for s in node.sources
        ],
        "supersedes": [brackets(target) for target in node.supersedes],
        "superseded_by": node.superseded_by and brackets(node.superseded_by),
        "links": [brackets(target) for target in node.links],
        "tags": list(node.tags),
        "aliases": list(node.aliases),
    }
    defaults = {"id": node.path, "description": first_line(node.body)} | DEFAULTS
    shown = ("id", "description", *(("priority", "status", "generation") if node.type in TYPES else ()))
    found = {}
    for key, value in values.items():
        default = value == defaults[key] if key in defaults else not value
        if default and key in node.extra:
            found[key] = node.extra[key]  # what stands there is not one of ours, but it is somebody's
        elif not default or key in shown:
            found[key] = value
    return found | {key: value for key, value in node.extra.items() if key not in values}


SOURCE = ("sessionKey", "kind", "id", "timestamp")
DEFAULTS = {"type": "note", "priority": "medium", "status": "active"}


def amend(text: str, *, set: Mapping[str, Any] = {}, history: str | None = None) -> str:
    """
    Change top-level keys of the head to the values in *set*, and add a line to `## History`.

    Values are as in `head`; None takes a key out. A head is made where there is none. A key that has its
    value keeps its bytes, so that doing it twice is doing it once, but for *history*, which is added again.
    Raises BadNode as `parse` does, and where a key cannot be changed without touching another (YAML aliases).
    """
    if set:
        text = changed(text, set)
    if history is not None:
        text = with_history(text, " ".join(history.splitlines()))
    return text


# --- reading values: each reader raises ValueError for what it cannot make sense of


def words(value: Any) -> str:
    """A single value as text; YAML makes numbers of ids and tags that look like them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError(value)


def line(value: Any) -> str:
    text = words(value)
    return " ".join(text.split()) if "\n" in text or not text.strip() else text


def one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = words(value).strip().lower()
        if name not in names:
            raise ValueError(value)
        return name

    return read


def flag(value: Any) -> bool:
    return one_of("true", "yes", "on", "false", "no", "off")(value) in ("true", "yes", "on")


def day(value: Any) -> dt.date:
    """A date, with or without a time behind it (Obsidian has properties of both kinds)."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ].*)?", words(value).strip())
    if not found:
        raise ValueError(value)
    return dt.date.fromisoformat(found[1])


def days(value: Any) -> str:
    ends = [day(part) for part in words(value).split("..")]
    if len(ends) > 2 or ends != sorted(ends):
        raise ValueError(value)
    return "..".join(end.isoformat() for end in ends)


def count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif value is not None:  # Obsidian leaves an empty item behind while one types
        yield value


def many(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(words(item) for item in items if item is not None)


def link(value: Any) -> str:
    (target,) = links(value)
    return target


def links(value: Any) -> tuple[str, ...]:
    """Targets, whatever the nesting: without quotes, YAML takes `[[x]]` for a list in a list."""
    return tuple(bare(words(item)) for item in leaves(value))


def applies_to(value: Any) -> tuple[str | None, str | None]:
    if not isinstance(value, dict) or value.keys() - {"sessionScope", "identityKey"}:
        raise ValueError(value)
    scope, identity = value.get("sessionScope"), value.get("identityKey")
    return (
        None if scope is None else one_of(*SCOPES)(scope),
        None if identity is None else words(identity) or None,
    )


def sources(value: Any) -> tuple[Source, ...]:
    return tuple(source(item) for item in leaves(value))


def source(value: Any) -> Source:
    """Keys of others would be lost with the value, so their presence leaves all of it to `extra`."""
    if not isinstance(value, dict) or value.keys() - set(SOURCE) or set(SOURCE) - value.keys() - {"kind"}:
        raise ValueError(value)
    kind, at = words(value.get("kind", "message")), count(value["timestamp"])
    if at >= LAST_MS:
        raise ValueError(value)
    return Source(words(value["sessionKey"]), words(value["id"]), at, kind)


READERS: dict[str, Callable[[Any], Any]] = {
    "id": words,
    "description": line,
    "type": one_of(*TYPES, *GENERATED, "note"),
    "priority": one_of(*PRIORITIES),
    "status": one_of(*STATUSES),
    "pinned": flag,
    "loop": one_of(*LOOPS),
    "created": day,
    "updated": day,
    "event": days,
    "appliesTo": applies_to,
    "origin": one_of(*ORIGINS),
    "generation": count,
    "reflected_in": links,
    "sources": sources,
    "supersedes": links,
    "superseded_by": link,
    "links": links,
    "tags": many,
    "aliases": many,
}
