"""
The maps of content there are, and which one lists a note.

Not here: what is written on a map (plan/pages.py). One rule: this table stands nowhere else; index, plan and
injection ask here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

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
    """A note as far as a map is concerned."""

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

    "" for what none lists: these maps themselves, the log, and a person's page elsewhere.
    """
    if type in ("index", "now", "log") or path in STANDARD:
        return ""
    linked = (link for link in links if link.startswith("mocs/") and link not in (path, OPEN_LOOPS))
    kind = path.split("/")[1] if type == "note" and path.startswith("nodes/") else type
    return next(linked, MOCS[kind][0] if kind in MOCS else "")


def map_of(note: Listed) -> str:
    """The map that lists *note*; that of the facts where none does."""
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
