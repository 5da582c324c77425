"""The actions of the page's buttons: each calls one function of curate.py and returns one line about its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..curate import correct_note, find_note, forget_selection, pin_note
from ..errors import BadInput, NotFound, how_many
from ..forget.places import looked_through
from ..tools import settling
from ..tools.settling import Settled, told
from .notes import selection_for
from .request import Asked


@dataclass(frozen=True, slots=True)
class Report:
    """The result of forgetting: the places searched, the things removed, and the paths that OMG cannot change."""

    looked: list[tuple[int, str]]
    went: list[tuple[int, str]]
    outside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What an action did. *cycle* is its receipt, "" if it cannot be undone. *path* is the note to show next."""

    text: str
    path: str = ""
    cycle: str = ""
    report: Report | None = None  # only after a forgetting


def done(settled: Settled) -> Done:
    text, written = settled
    return Done(text, written.path, written.cycle or "")


def confirm(asked: Asked) -> Done:
    return done(settling.confirm(asked.graph, asked.get("path"), asked.memory.clock()))


def correct(asked: Asked) -> Done:
    new = correct_note(asked.graph, asked.get("path"), asked.get("new"), asked.memory.clock())
    return done(told(new, "Corrected."))


def reject(asked: Asked) -> Done:
    return done(settling.reject(asked.graph, asked.get("path"), asked.memory.clock()))


def pin(asked: Asked) -> Done:
    pinned = asked.get("off") != "1"
    path = find_note(asked.graph, asked.get("path"))
    text = "Pinned: every prompt is given this note." if pinned else "No longer pinned."
    return done(told(pin_note(asked.graph, path, asked.memory.clock(), pinned=pinned), text))


def keep(asked: Asked) -> Done:
    """Settle a contradiction: `path` replaces `other`; with `both`, both notes hold."""
    path, other, both = map(asked.get, ("path", "other", "both"))
    return done(settling.keep(asked.graph, path, other, asked.memory.clock(), both=both == "1"))


def undo(asked: Asked) -> Done:
    cycle = asked.get("cycle")
    if not cycle:
        raise BadInput("the request does not say which change to undo; use an Undo button of this page")
    return done(settling.undo(asked.graph, cycle, asked.memory.clock()))


def forget_chosen(asked: Asked) -> Done:
    """Forget the notes and messages of the choice for good."""
    asked.memory.take_in()
    what = selection_for(asked.graph, asked.get("choice"), asked.get("path"), asked.get("words"))
    if not what:
        raise NotFound("OMG no longer remembers what you chose; nothing was changed")
    looked = looked_through(asked.graph)
    forget_selection(asked.memory.intake, asked.graph, what)
    text = "The words were taken out of" if what.redacts else "Forgotten for good:"
    counts = f"{how_many(len(what.paths), 'file')} and {how_many(len(what.messages), 'message')}"
    went = [
        (len(what.paths), "notes"),
        (len(what.messages), "messages"),
        (len(what.linking), "links of other notes"),
        (len(what.trash), "notes in the vault's trash"),
    ]
    left = [f"{page}: you wrote the words there yourself; remove them there" for page in what.left]
    report = Report(looked, [(n, name) for n, name in went if n], (*left, *what.beyond))
    return Done(f"{text} {counts}.", report=report)


ACTIONS: dict[str, Callable[[Asked], Done]] = {
    "confirm": confirm,
    "correct": correct,
    "reject": reject,
    "pin": pin,
    "keep": keep,
    "undo": undo,
    "forget": forget_chosen,
}
