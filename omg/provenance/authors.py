"""
Who an edit comes from, by the messages that it cites, and what it may become then.

A model never says who it comes from. What the assistant or a tool said becomes a fact or an episode, and changes no note
of a person's. Which parts of a person's message are their own words: message/material.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..index.entries import Entry
from ..message.machinery import MEMORY_NOTES
from ..message.turn import Message
from ..plan.drafts import NEEDS_USER, PERSONS
from ..plan.edits import Edit

ASSISTANT = (
    "The assistant"  # how a note begins that tells what the assistant said: prompts/observe.md asks for it
)


@dataclass(frozen=True, slots=True)
class Target:
    """The note that an edit changes. *path*: None for one of the same reply."""

    origin: str | None
    type: str
    title: str
    description: str
    body: str = ""
    path: str | None = None
    standing: bool = False


def author(message: Message) -> str:
    """Whose words *message* is: a person's that only passes something on is a tool's."""
    if message.role == "user" and not message.spoken:
        return "tool"
    return message.role


def origin_of(edit: Edit, cited: Sequence[Message], by_hand: Collection[Message]) -> str:
    """The origin of *edit*, which rests on *cited*; *by_hand*: those that a person wrote into the vault's inbox."""
    authors = {author(m) for m in cited}
    if "user" in authors and not ("assistant" in authors and edit.description.startswith(ASSISTANT)):
        return "human" if all(m in by_hand for m in cited) else "user"
    return "assistant" if authors <= {"user", "assistant"} else "tool"


def is_protected(edit: Edit, target: Target | None) -> bool:
    """Whether *edit* would be a trait, a wish, a decision or a project of the user's, or change a note of theirs."""
    changes = edit.op != "create" and target is not None and target.origin in PERSONS
    return changes or edit.type in NEEDS_USER or edit.standing


def foreign_in_sight(messages: Sequence[Message], notes: Sequence[Entry]) -> bool:
    """Whether somebody who read *messages* and *notes* has read anything but the words of person and assistant."""
    return any(m.material and m.text not in MEMORY_NOTES for m in messages) or any(
        n.origin == "tool" for n in notes
    )


def as_others(edit: Edit, origin: str) -> Edit:
    """*edit* as what the assistant or a tool said: a fact or an episode, and no instruction."""
    edit = replace(edit, origin=origin, standing=False, sets=edit.sets - {"type", "standing"})
    return replace(edit, type="fact", priority="medium") if edit.type in NEEDS_USER else edit


def origin_mark(origin: str | None) -> str:
    """What a reader is told of a note that does not come from a person; "" for all others."""
    if origin == "tool":
        return "from a tool or a page, not from the user"
    return "said by the assistant" if origin == "assistant" else ""
