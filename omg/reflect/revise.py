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
from ..plan.bodies import fresh_sentences
from ..plan.drafts import Plan
from ..plan.edits import (
    Edit,
    higher_priority,
    merged_sources,
    one_line,
    split_history,
    trust_of,
    weaker_origin,
    with_history_lines,
)
from ..text.links import with_labels


def merge_notes(plan: Plan, keep: str, gone: str, description: str = "") -> None:
    """
    *gone* is superseded by *keep*, whose History gets every sentence of it that *keep* does not have.

    *keep* takes over its sources, tags, links and History as well, unless *gone* is less trusted: that makes no note of
    a person's newer or weightier, and ends no plan of theirs. *description* says both in one line.
    """
    draft, other = plan.draft(keep), plan.draft(gone).node
    node = draft.node
    main, lines = split_history(node.body)
    more = fresh_sentences(f"{node.description}\n{main}\n{other.description}", split_history(other.body)[0])
    line = taken_line(plan, other, node, one_line(f"{other.description} {with_labels(more)}"))
    said = one_line(description)
    if said and said != node.description:
        lines = (*lines, former_line(plan, node))
        main = said if one_line(main) == node.description else f"{said}\n\n{main}"
        node = replace(node, description=said, origin=weaker_origin(node.origin, other.origin))
    if trust_of(other.origin) >= trust_of(node.origin):
        lines = (*lines, *split_history(other.body)[1])
        node = replace(
            node,
            priority=higher_priority(node.priority, other.priority),
            loop=loop_of(node, other),
            standing=node.standing or other.standing,
            event=node.event or other.event,
            sources=merged_sources(node.sources, other.sources),
            links=tuple(dict.fromkeys((*node.links, *(t for t in other.links if is_related_link(t, keep))))),
            tags=tuple(dict.fromkeys((*node.tags, *other.tags))),
        )
    body = with_history_lines(main, tuple(sorted({*lines, line})))
    plan.rewrite(draft, replace(taking_over(node, other), body=body), Rebase(history=line))
    plan.mark_superseded(gone, keep)


def taking_over(node: Node, other: Node) -> Node:
    """*node* as the note that stands for *other* too."""
    return replace(
        node,
        generation=max(node.generation, other.generation) + 1,
        supersedes=tuple(dict.fromkeys((*node.supersedes, other.path))),
    )


def supersede_note(plan: Plan, old: str, successor: str) -> None:
    """*old* was true before *successor* was: it leaves the maps, and each names the other in its History."""
    draft, other = plan.draft(successor), plan.draft(old).node
    node, line = draft.node, taken_line(plan, other, draft.node, other.description)
    main, lines = split_history(node.body)
    if trust_of(other.origin) >= trust_of(node.origin):
        node = replace(node, priority=higher_priority(node.priority, other.priority))
    body = with_history_lines(main, tuple(sorted({*lines, line})))
    plan.rewrite(draft, replace(taking_over(node, other), body=body), Rebase(history=line))
    plan.lift_contradictions(other)
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
    body = with_history_lines(main, (*lines, former_line(plan, draft.node)))
    plan.rewrite(draft, replace(draft.node, description=one_line(description), body=body), Rebase())


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


def former_line(plan: Plan, node: Node) -> str:
    """The line of a note's own History that says what *node* said, and when."""
    return f"- {said_day(plan, node)}: {node.description}"


def taken_line(plan: Plan, node: Node, into: Node, said: str) -> str:
    """
    The line of the History of *into* that says what *node*, whose place it takes, *said*, and when.

    Where a person's note takes the place, what the assistant said is marked; of a tool's, the line says where it stands.
    """
    day, where = said_day(plan, node), wikilink(node.path, node.title)
    if trust_of(node.origin) >= trust_of(into.origin):
        return f"- {day}: {said} ({where})"
    return f"- {day}: {where}" if node.origin == "tool" else f"- {day}: the assistant, in {where}: {said}"


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
