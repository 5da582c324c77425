"""
Archives notes that only the rules of an earlier version would write.

This happens once in each graph, and only if no model has ever made notes here. One receipt lists all archived notes, so
that `omg undo` can bring them back. An archived note leaves the maps; its file is not moved.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

from ..errors import BadNode, NotFound, how_many
from ..graph.graph import Graph
from ..journal import Receipt, commit_receipt, new_receipt, replay_open
from ..message.turn import Message
from ..node.note import Node
from ..plan.drafts import Plan
from ..plan.edits import as_read
from ..plan.pages import persons_words
from ..rules.observer import GROUNDED, observe_offline
from ..text.words import told_words

NONE = "none"  # in `State.former_rules`: the graph was looked at, and no note was archived
DAYS_ADDED = re.compile(r" \([\d.-]+\)")  # the date that rules put after the words for a day


def archive_former_notes(graph: Graph, now: datetime, *, by_rules: bool) -> Receipt | None:
    """
    Archive notes that an earlier version's rules wrote, if today's rules would not write them.

    Returns the receipt; None if no note was archived. Each graph is searched only once: later calls return None.

    *by_rules*: whether only rules have ever made notes here. If a model has, no note is archived.
    """
    if graph.state().former_rules:
        return None
    gone = former_notes(graph) if by_rules else []
    with graph.lock():
        replay_open(graph)
        plan = Plan(graph, now.astimezone(graph.zone).date())
        for path in gone:
            with suppress(NotFound, BadNode):  # its owner removed or broke the note meanwhile
                plan.amend(path, status="archived")
        if not (changes := plan.changes()):
            graph.update(lambda state: setattr(state, "former_rules", NONE))
            return None
        said = f"archived {how_many(len(gone), 'note')} that an older version made and this version would not make"
        lines = (said, *(f"archived {path}" for path in gone))
        receipt = new_receipt("upgrade", now, changes, summary=lines)
        commit_receipt(graph, receipt)
    return receipt


def former_notes(graph: Graph) -> list[str]:
    """
    Return the paths of the notes to archive.

    Left out:
    - instructions for every conversation (`standing`)
    - notes that a person pinned, edited or linked
    - notes linked from any note that is not archived
    """
    plan, vault = Plan(graph, datetime.now(graph.zone).date()), graph.vault
    going: set[str] = set()
    for entry in graph.index.entries():
        if (
            entry.path.startswith("nodes/")
            and entry.origin == "user"
            and not (entry.pinned or entry.standing)
        ):
            with suppress(NotFound, BadNode):
                draft = plan.draft(entry.path)
                if not draft.touched and was_rewritten(graph, draft.node):
                    going.add(entry.path)
    pages = [e.path for kind in ("moc", "index", "now") for e in graph.index.entries(type=kind)]
    theirs = "\n".join(persons_words(vault.text(path), path) for path in pages)
    links = {path: graph.index.backlinks(path) for path in going}
    while staying := {
        path
        for path in going
        if path in theirs or any(b not in going and b.startswith(("nodes/", "inbox/")) for b in links[path])
    }:
        going -= staying
    return sorted(going)


def was_rewritten(graph: Graph, node: Node) -> bool:
    """
    Whether an earlier version's rules reworded a person's message to make *node*.

    All of these must hold:
    - *node* is made from exactly one message, and superseded no other note
    - *node* does not quote this message
    - today's rules would not make such a note from the message
    """
    said = graph.index.messages([s.id for s in node.sources if s.kind == "message"])
    if len(node.sources) != 1 or len(said) != 1 or node.supersedes:
        return False
    (message,) = said
    quoted = DAYS_ADDED.sub("", node.description.partition(": “")[2] or node.description)
    return as_read(quoted).rstrip("”.!") not in as_read(message.text) and not earns(graph, message, node)


def earns(graph: Graph, message: Message, node: Node) -> bool:
    """Whether today's rules make a note from *message* that says what *node* says, in whole or in part."""
    words = told_words(node.description)
    quoted = [told_words(e["description"]) for e in observe_offline([message], [], graph.zone)["edits"]]
    return any(len(words & said) >= GROUNDED * min(len(words), len(said)) for said in quoted)
