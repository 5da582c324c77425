"""
The lines of a timeline: the notes made of what was cut, and how a person's words began where no note was made.

Not here: which messages these are (context.py), and which lines have room (timeline.py). One rule: a line says whose
word it is, as a prompt's quotations do; whoever is not the user is never called by that name.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dates.days import day_of_ms
from ..graph.graph import Graph
from ..inject.passages import cleaned, how_passed_on, speaker_name
from ..inject.system import cut_text, note_statement
from ..plan.pages import safe_line
from ..text.characters import visible
from .timeline import Told

BEGINNING_CHARS = 160  # of what a person said in a turn that no note was made of
ORIGIN_MARKS = {"tool": " (from a tool or a page)", "assistant": " (by the assistant)"}
LOOKED_AT_CHARS = 600  # of it: what names a secret may stand behind the beginning


def note_lines_of(graph: Graph, ids: Mapping[str, int]) -> list[Told]:
    """A line for each note made from the messages *ids* (with their times) that still holds."""
    first: dict[str, int] = {}
    for mid, notes in graph.index.notes_by_source(ids).items():
        for path in (note.path for note in notes if note.status != "superseded"):
            first[path] = min(first.get(path, ids[mid]), ids[mid])
    lines = []
    for path, at in first.items():
        if entry := graph.index.entry(path):
            event = f" ({entry.event})" if entry.event and entry.event not in entry.description else ""
            mark = ORIGIN_MARKS.get(entry.origin or "", "")
            rank = 0 if entry.pinned or entry.priority == "high" else 1
            lines.append(Told(at, day_of_ms(at, graph.zone), note_statement(entry) + event + mark, rank))
    return lines


def said_lines_of(graph: Graph, ids: Mapping[str, int]) -> list[Told]:
    """How what a person said begins, for messages that no note was made from; as the archive has it, without secrets."""
    cited = graph.index.notes_by_source(ids).keys()
    alone = [mid for mid in ids if mid not in cited]
    gone = graph.tombstones.gone(dict.fromkeys(alone, ()))  # its note was deleted: its words do not come back
    lines = []
    for message in graph.index.messages([mid for mid in alone if mid not in gone]):
        if message.role == "user" and message.text:
            said = cut_text(safe_line(visible(cleaned(message.text[:LOOKED_AT_CHARS]))), BEGINNING_CHARS)
            passed_on = how_passed_on(message, 0, BEGINNING_CHARS)
            mark = f" ({passed_on})" if passed_on else ""
            day = day_of_ms(message.timestamp, graph.zone)
            lines.append(Told(message.timestamp, day, f'- {speaker_name(message)}{mark}: "{said}"', 2))
    return lines
