"""
The maps, topics and projects that a prompt names by their words, and their best lines.

They are looked up: by the titles of the vault's maps, which a person may change, by the titles of its project notes, and
by the types of notes. How sure a line is, is the share of the prompt's words that are the name ("List my projects": a
half); it is given where a note of that score would be (sure.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from ..graph.graph import Graph
from ..index.entries import Entry, Hit
from ..index.scores import ParsedQuery
from ..index.terms import Term, terms_of
from ..node.fields import PRIORITIES, TYPES
from ..node.maptable import MOCS, OPEN_LOOPS
from ..plan.pages import filed_day, standing_loops
from ..text.characters import fold_text
from ..text.english import singular_form
from .sure import OF_ONES_OWN, SURE


def named_in(query: ParsedQuery, names: Iterable[tuple[str, str]]) -> dict[str, float]:
    """
    Path → the share of the words of *query* that are its name, for those of *names* (path, name) whose words are all in
    *query*. Words that say whose it is ("meine") are not counted.
    """
    asked = word_forms(term for term in query.terms if not OF_ONES_OWN.fullmatch(term.shown))
    found: dict[str, float] = {}
    for path, name in names:
        words = word_forms(terms_of(name))
        if words and words <= asked:
            found[path] = max(len(words) / len(asked), found.get(path, 0.0))
    return found


def word_forms(terms: Iterable[Term]) -> frozenset[str]:
    return frozenset(singular_form(fold_text(term.shown).lower()) for term in terms)


def maps_named(graph: Graph, query: ParsedQuery) -> dict[str, float]:
    """The maps that *query* names: by title, or by the type of what they list."""
    types = ((path, type) for type, (path, _, _) in MOCS.items())
    return named_in(query, (*graph.index.maps().items(), *types))


def projects_named(query: ParsedQuery, hits: Iterable[Hit]) -> dict[str, float]:
    """The projects among *hits* that *query* names."""
    return named_in(query, ((h.entry.path, h.entry.title) for h in hits if h.entry.type == "project"))


def named_lines(
    graph: Graph, query: ParsedQuery, named: Mapping[str, float], limit: int, today: date
) -> list[Hit]:
    """
    The best *limit* lines of each map and project of *named* whose share of *query* is large enough; of a project, the
    notes that link to it. None where *query* asks for days: a search finds what there is of those.
    """
    found: dict[str, Hit] = {}
    for path, share in sorted(named.items(), key=lambda of: -of[1]) if not query.days else ():
        for entry in lines_of(graph, path, limit, today) if share >= SURE else ():
            found.setdefault(entry.path, Hit(entry, share, f"on [[{path}]]"))
    return [*found.values()]


def lines_of(graph: Graph, path: str, limit: int, today: date) -> list[Entry]:
    """The notes of the map or project at *path*, by priority, then the newest first; open loops by their day."""
    if path == OPEN_LOOPS:
        return standing_loops(graph.index.entries(loop="open"), today)[:limit]
    moc = path if path.startswith("mocs/") else None
    found = graph.index.entries(moc=moc, links_to=None if moc else path, first=limit)
    entries = [e for e in found if e.type in (*TYPES, "note", "reflection")]
    entries.sort(key=lambda e: filed_day(e) or date.min, reverse=True)
    return sorted(entries, key=lambda e: PRIORITIES.index(e.priority) if e.priority in PRIORITIES else 1)
