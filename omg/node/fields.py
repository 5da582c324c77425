"""
The properties of a note: their names, the values they may have, and a reader for each.

A reader raises ValueError for a value that it cannot read; the note then keeps that property in `extra`. YAML is
read in markdown.py.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from .markdown import bare_target

TYPES = ("identity", "preference", "project", "decision", "fact", "episode")  # what is remembered
GENERATED = ("index", "now", "moc", "reflection", "log")  # what we make of it
NAME_TITLE = "Name"  # of the note that says what the user is called
PRIORITIES = ("high", "medium", "low")
STATUSES = ("active", "superseded", "dormant")
LOOPS = ("open", "done")
SCOPES = ("dm", "group", "global")
ORIGINS = ("user", "assistant", "tool", "human")


@dataclass(frozen=True, slots=True)
class Source:
    """A message that a node was made from; the archive has it. *timestamp* is ms since the epoch."""

    session: str
    id: str  # "" if a person named none: the source then has a time only
    timestamp: int
    kind: str = "message"


SOURCE = ("sessionKey", "kind", "id", "timestamp")


# --- Readers of values. Each raises ValueError for a value that it cannot read.


def text_value(value: Any) -> str:
    """A single value as text; YAML makes numbers of ids and tags that look like them."""
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
    """A date, with or without a time behind it (Obsidian has properties of both kinds)."""
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
    """The targets of links, at any depth of nesting: YAML reads `[[x]]` without quotes as a list in a list."""
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
    """A value with unknown keys goes to `extra` whole, so that none of its keys is lost."""
    needed = set(SOURCE) - {"kind", "id"}
    if not isinstance(value, dict) or value.keys() - set(SOURCE) or needed - value.keys():
        raise ValueError(value)
    session, id, kind = (
        text_value(value.get(key, other))
        for key, other in (("sessionKey", ""), ("id", ""), ("kind", "message"))
    )
    return Source(session, id, epoch_ms_value(value["timestamp"]), kind)


# Seconds since the epoch from 1973 to 5138, which the original design writes. As ms they are days of early 1970.
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
    "generation": count_value,
    "reflected_in": link_values,
    "sources": source_values,
    "supersedes": link_values,
    "superseded_by": link_value,
    "contradicts": link_values,
    "links": link_values,
    "tags": many_values,
    "aliases": many_values,
}


# --- The maps of content there are, and which one lists a note.
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
    "project": ("mocs/moc-projects", "Projects", "What you are working on, and where each stands."),
    "decision": ("mocs/moc-decisions", "Decisions", "What was decided, and why."),
    "fact": ("mocs/moc-facts", "Facts", "Things that are so: names, numbers, places, how things work."),
    "episode": ("mocs/moc-episodes", "Episodes", "What happened, newest first."),
    "open-loop": ("mocs/moc-open-loops", "Open loops", "Plans and promises that are not done, by date."),
    "reflection": ("mocs/moc-reflections", "Reflections", "What weeks and months amounted to."),
}

OPEN_LOOPS = MOCS["open-loop"][0]
STANDARD = [path for path, _, _ in MOCS.values()]
LOG_FOLDER = "reflections/log/"  # a page a month: what the Reflector did


class Listed(Protocol):
    """The fields of a note that decide which map lists it."""

    @property
    def path(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def links(self) -> tuple[str, ...]: ...


def map_of_type(type: str) -> str:
    """Path of the map that lists notes of *type*."""
    return MOCS.get(type, MOCS["fact"])[0]


def map_listing(path: str, type: str, links: Iterable[str]) -> str:
    """
    Path of the map that lists a note: the first it links to, else that of its type, or of its folder below `nodes/`
    where a person's page names none.

    "" for notes that no map lists: the maps themselves, the log, and a person's pages outside `nodes/`.
    """
    if type in ("index", "now", "log") or path in STANDARD:
        return ""
    linked = (link for link in links if link.startswith("mocs/") and link not in (path, OPEN_LOOPS))
    kind = path.split("/")[1] if type == "note" and path.startswith("nodes/") else type
    return next(linked, MOCS[kind][0] if kind in MOCS else "")


def map_of(note: Listed) -> str:
    """The map that lists *note*, or the map of facts if none does."""
    return map_listing(note.path, note.type, note.links) or map_of_type(note.type)


def page_title(path: str) -> tuple[str, str]:
    """Title and description of the page at *path*; a topic's come of its name."""
    fixed = {p: (title, purpose) for p, title, purpose in MOCS.values()}
    fixed["index"] = ("Index", "The way in: the maps, and how to find what is remembered.")
    fixed["now"] = ("Now", "What is going on: each conversation's task, and what is due.")
    if path in fixed:
        return fixed[path]
    title = path.rpartition("/")[2].removeprefix("moc-").replace("-", " ").capitalize()
    return title, f"Notes about {title}."
