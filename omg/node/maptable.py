"""
What stands between the markers of the maps, the index note and Now: text, made from index entries.

    moc      one map of content: the notes it lists        home_of  which map lists a note
    index    the maps there are                            page     a whole new file around such a block
    now      open loops, and what each conversation is about

Pure: entries in, markdown out. The same entries give the same bytes, whenever and in whatever order they
come; so nothing here says "today" or "overdue". One rule: nothing generated links to `index` or `now`,
bare names that would lead elsewhere once a whole workspace is the vault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..index.entries import Entry


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


# --- which map


def map_of_type(type: str) -> str:
    """Path of the map that lists notes of *type*."""
    return MOCS.get(type, MOCS["fact"])[0]


def map_of(entry: Entry) -> str:
    """Path of the map that lists *entry*: the first that it links to, else that of its type."""
    linked = (
        link for link in entry.links if link.startswith("mocs/") and link not in (entry.path, OPEN_LOOPS)
    )
    return next(linked, map_of_type(entry.type))


def page_title(path: str) -> tuple[str, str]:
    """Title and description of the page at *path*; a topic's come of its name."""
    fixed = {p: (title, purpose) for p, title, purpose in MOCS.values()}
    fixed["index"] = ("Index", "The way in: the maps, and how to find what is remembered.")
    fixed["now"] = ("Now", "What is going on: each conversation's task, and what is due.")
    if path in fixed:
        return fixed[path]
    title = path.rpartition("/")[2].removeprefix("moc-").replace("-", " ").capitalize()
    return title, f"Notes about {title}."
