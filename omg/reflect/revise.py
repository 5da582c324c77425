"""
What is done to notes that exist: merged, superseded, described anew, their links mended.

Each function drafts on a Plan; whether it may be done was decided before. One rule: a statement that leaves the maps
stays on disk, and is named, with its date, in the History of the note that took its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..journal import Rebase
from ..node.markdown import wikilink
from ..node.note import Node, parse_node
from ..plan.drafts import Plan
from ..plan.edits import (
    Edit,
    higher_priority,
    merged_sources,
    one_line,
    split_history,
    weaker_origin,
    with_history_lines,
)


def merge_notes(plan: Plan, keep: str, gone: str, description: str = "") -> None:
    """
    *keep* takes over the sources, tags, links and History of *gone*, which is superseded by it.

    *description* says both in one line; it was made of both, so it is as little to be trusted as the weaker.
    """
    draft, other = plan.draft(keep), plan.draft(gone).node
    node, line = draft.node, former_line(plan, other)
    # What is less trusted ends no plan of a person's, gives it no day, and makes no rule of it.
    less_trusted = other.origin in ("tool", "assistant") and (
        weaker_origin(node.origin, other.origin) != node.origin
    )
    main, lines = split_history(node.body)
    _, theirs = split_history(other.body)
    said = one_line(description)
    if said and said != node.description:
        lines = (*lines, former_line(plan, node, linked=False))
        main = said if one_line(main) == node.description else f"{said}\n\n{main}"
        node = replace(node, description=said, origin=weaker_origin(node.origin, other.origin))
    merged_node = replace(
        node,
        priority=higher_priority(node.priority, other.priority),
        generation=max(node.generation, other.generation) + 1,
        loop=node.loop if less_trusted else loop_of(node, other),
        standing=node.standing or (other.standing and not less_trusted),
        event=node.event or (None if less_trusted else other.event),
        sources=merged_sources(node.sources, other.sources),
        supersedes=tuple(dict.fromkeys((*node.supersedes, gone))),
        links=tuple(dict.fromkeys((*node.links, *(t for t in other.links if is_related_link(t, keep))))),
        tags=tuple(dict.fromkeys((*node.tags, *other.tags))),
        body=with_history_lines(main, tuple(sorted({*lines, *theirs, line}))),
    )
    plan.rewrite(draft, merged_node, Rebase(history=line))
    plan.mark_superseded(gone, keep)


def supersede_note(plan: Plan, old: str, successor: str) -> None:
    """*old* was true before *successor* was: it leaves the maps, and each names the other in its History."""
    draft, other = plan.draft(successor), plan.draft(old).node
    node, line = draft.node, former_line(plan, other)
    main, lines = split_history(node.body)
    taking_over = replace(
        node,
        priority=higher_priority(node.priority, other.priority),
        generation=max(node.generation, other.generation) + 1,
        supersedes=tuple(dict.fromkeys((*node.supersedes, old))),
        body=with_history_lines(main, tuple(sorted({*lines, line}))),
    )
    plan.rewrite(draft, taking_over, Rebase(history=line))
    then = f"- {said_day(plan, node)}: replaced by {wikilink(successor, node.title)}"
    draft = plan.draft(old)
    main, lines = split_history(draft.node.body)
    retired = replace(
        draft.node,
        status="superseded",
        superseded_by=successor,
        updated=plan.day,
        body=with_history_lines(main, (*lines, then)),
    )
    head = {"status": "superseded", "superseded_by": wikilink(successor)}
    plan.rewrite(draft, retired, Rebase(set=head, history=then))


def describe_note(plan: Plan, path: str, description: str) -> None:
    """Give a note that is ours the line its body deserves; the former one goes to its History."""
    draft = plan.draft(path)
    main, lines = split_history(draft.node.body)
    body = with_history_lines(main, (*lines, former_line(plan, draft.node, linked=False)))
    plan.rewrite(draft, replace(draft.node, description=one_line(description), body=body), Rebase())


def contradict_notes(plan: Plan, one: str, other: str) -> None:
    """Let two notes that disagree name each other in their History, and lead to each other where they are ours."""
    for path, there in ((one, other), (other, one)):
        draft, against = plan.draft(path), plan.draft(there).node
        line = f"- {plan.day}: {wikilink(against.path, against.title)} says otherwise, and neither says which holds"
        main, lines = split_history(draft.node.body)
        links = tuple(dict.fromkeys((*draft.node.links, against.path)))
        body = with_history_lines(main, (*lines, line))
        plan.rewrite(draft, replace(draft.node, links=links, body=body), Rebase(history=line))


def point_at_each_other(a: Node, b: Node) -> bool:
    """Whether each of two notes leads to the other by its head, as those do that contradict each other."""
    return a.path in b.links and b.path in a.links


def lead_to(plan: Plan, path: str, other: str) -> None:
    """Let *path* lead to *other*."""
    plan.amend(path, links=tuple(dict.fromkeys((*plan.draft(path).node.links, plan.place_now(other)))))


def close_loop(plan: Plan, path: str, told: Node | None) -> None:
    """*path* is no open loop any more; *told*: the note that says what became of it."""
    draft = plan.draft(path)
    main, lines = split_history(draft.node.body)
    because = f", going by {wikilink(told.path, told.title)}" if told else ""
    line = f"- {plan.day}: closed, as its day {draft.node.event} is past{because}"
    body = with_history_lines(main, (*lines, line))
    plan.rewrite(draft, replace(draft.node, loop="done", body=body), Rebase())


def retitle_note(plan: Plan, path: str, title: str) -> Node:
    """Give a note that is ours another *title* and its file that name; links in files of ours lead there at once."""
    draft = plan.draft(path)
    edit = Edit("update", title, "", type=draft.node.type, sets=frozenset({"title"}))
    there = plan.rewrite(draft, plan.renamed(draft.node, edit, draft.node, stays=False), Rebase())
    for back in plan.graph.index.backlinks(path) if there != path else ():
        if back.startswith(("nodes/", "reflections/")):  # maps and Now are made anew
            relink_note(plan, back, {path: there})
    return plan.draft(there).node


def relink_note(plan: Plan, path: str, moved: Mapping[str, str]) -> bool:
    """Let every link of *path* to a key of *moved* lead to its value; False if the file is not ours, or has none."""
    draft = plan.draft(path)
    text = draft.text
    for old, new in moved.items():
        text = with_link(text, old, new)
    if not draft.ours or text == draft.text:
        return False
    plan.drafts[path] = replace(draft, node=parse_node(text, path), text=text)
    plan.maps.add(plan.drafts[path].node)
    return True


def with_link(text: str, old: str, new: str) -> str:
    """*text* with every wikilink to *old* leading to *new*; labels and headings stay."""
    return re.sub(rf"\[\[{re.escape(old)}(?:\.md)?(?=\\?\||\]|#)", lambda _: f"[[{new}", text)


def former_line(plan: Plan, node: Node, *, linked: bool = True) -> str:
    """The line of a History that says what *node* said, and when; of a tool's note, only where that stands."""
    where = wikilink(node.path, node.title)
    if node.origin == "tool":
        return f"- {said_day(plan, node)}: {where}"
    return f"- {said_day(plan, node)}: {node.description}" + (f" ({where})" if linked else "")


def said_day(plan: Plan, node: Node) -> str:
    return (node.updated or node.created or plan.day).isoformat()


def is_related_link(target: str, keep: str) -> bool:
    """Whether a link that a note had in its head is one that the note merging it should take over."""
    return not target.startswith("mocs/") and target != keep


def loop_of(a: Node, b: Node) -> str | None:
    """Of two notes on one plan, the one said last knows whether it is done."""
    if a.loop is None or b.loop is None:
        return a.loop or b.loop
    return max(a, b, key=lambda n: max((s.timestamp for s in n.sources), default=0)).loop
