"""The actions of the page's buttons: each calls one function of curate.py and returns one line about its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..curate import (
    CurationResult,
    amend_note,
    confirm_note,
    correct_note,
    find_note,
    forget_selection,
    keep_both,
    pin_note,
    reject_note,
    supersede_by,
    take_back,
    undoable,
)
from ..errors import BadInput, NotFound, how_many
from ..forget.places import looked_through
from ..plan.drafts import PERSONS
from .notes import selection_for
from .request import Asked


@dataclass(frozen=True, slots=True)
class Report:
    """What a forgetting looked through, what it removed, and the places that OMG cannot change, with their paths."""

    looked: list[tuple[int, str]]
    went: list[tuple[int, str]]
    outside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What an action did. *cycle* is its receipt, "" if it cannot be undone. *path* is the note to show next."""

    text: str
    path: str = ""
    cycle: str = ""
    report: Report | None = None  # of a forgetting


def told(done: CurationResult, text: str) -> Done:
    return Done(
        text if done.cycle else "Nothing was changed: it was so already.", done.path, done.cycle or ""
    )


def confirm(asked: Asked) -> Done:
    """Make the note the person's own. A note that is already theirs gets today's date."""
    graph, now, path = asked.graph, asked.memory.clock(), find_note(asked.graph, asked.get("path"))
    if graph.vault.read(path).origin not in PERSONS:
        return told(confirm_note(graph, path, now), "Confirmed: it counts as your own word now.")
    done = amend_note(graph, path, now, f"still so: {path}", updated=asked.today)
    return told(done, "Confirmed: it counts as said today.")


def correct(asked: Asked) -> Done:
    return told(
        correct_note(asked.graph, asked.get("path"), asked.get("new"), asked.memory.clock()), "Corrected."
    )


def reject(asked: Asked) -> Done:
    done = reject_note(asked.graph, asked.get("path"), asked.memory.clock())
    return Done("Removed. OMG makes no note from those words again.", "", done.cycle or "")


def pin(asked: Asked) -> Done:
    pinned = asked.get("off") != "1"
    path = find_note(asked.graph, asked.get("path"))
    done = pin_note(asked.graph, path, asked.memory.clock(), pinned=pinned)
    return told(done, "Pinned: every prompt is given it." if pinned else "No longer pinned.")


def keep(asked: Asked) -> Done:
    """Settle a contradiction: `path` replaces `other`; with `both`, both notes hold."""
    path, other = (find_note(asked.graph, asked.get(name)) for name in ("path", "other"))
    if asked.get("both") == "1":
        return told(keep_both(asked.graph, path, other, asked.memory.clock()), "Both hold.")
    done = supersede_by(asked.graph, other, path, asked.memory.clock())
    return told(done, "Settled. The other is kept in the history as no longer so.")


def undo(asked: Asked) -> Done:
    cycle = asked.get("cycle")
    if not cycle:
        raise BadInput("the change to undo is not named")
    receipt = undoable(asked.graph, cycle)
    outcome, refused = take_back(asked.graph, receipt.id, asked.memory.clock())
    text = f"Undone: {how_many(len(outcome.written), 'file')} as before."
    if refused:
        text += f" {', '.join(refused)} was changed since, and was not touched."
    return Done(text)


def forget_chosen(asked: Asked) -> Done:
    """Forget the notes and messages of the choice for good."""
    asked.memory.take_in()
    what = selection_for(asked.graph, asked.get("choice"), asked.get("path"), asked.get("words"))
    if not what:
        raise NotFound("nothing of that is remembered any more; nothing was changed")
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
