"""
What is done to notes that exist: merged, superseded, described anew, their links mended.

Each function drafts on a Plan; whether it may be done was decided before. One rule: a statement that leaves the maps
stays on disk, and is named, with its date, in the History of the note that took its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..errors import NotFound
from ..journal import Rebase
from ..node.markdown import wikilink
from ..node.note import Node, parse_node, render_node
from ..plan.drafts import Plan
from ..plan.edits import (
    NoteDraft,
    higher_priority,
    merged_sources,
    one_line,
    split_history,
    weaker_origin,
    with_history_lines,
)

CITED = re.compile(r"\s{0,9}\((?:\[\[[^\[\]\n]*\]\](?:, )?)+\)")  # the links behind a claim of a reflection
LINK_WITH_LABEL = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]")


def merge_notes(plan: Plan, keep: str, gone: str, description: str = "") -> None:
    """
    *keep* takes over the sources, tags, links and History of *gone*, which is superseded by it.

    *description* says both in one line; it was made of both, so it is as little to be trusted as the weaker.
    """
    draft, other = plan.draft(keep), plan.draft(gone).node
    node, line = draft.node, former_line(plan, other)
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
        loop=loop_of(node, other),
        standing=node.standing or other.standing,
        event=node.event or other.event,
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
    heir = replace(
        node,
        priority=higher_priority(node.priority, other.priority),
        generation=max(node.generation, other.generation) + 1,
        supersedes=tuple(dict.fromkeys((*node.supersedes, old))),
        body=with_history_lines(main, tuple(sorted({*lines, line}))),
    )
    plan.rewrite(draft, heir, Rebase(history=line))
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


def without_links(text: str) -> str:
    """*text* as it is read: labels for links, and no list of links behind a claim."""
    return LINK_WITH_LABEL.sub(r"\1", CITED.sub("", text))


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


def put_page(plan: Plan, node: Node) -> None:
    """Draft a page that we make: a new one, or in the place of ours; what its owner entered in its head stays."""
    try:
        draft = plan.draft(node.path)
    except NotFound:
        plan.drafts[node.path] = NoteDraft(None, node, render_node(node), ours=True)
        plan.maps.add(node)
        return
    old = draft.node
    kept = replace(
        node, created=old.created, pinned=old.pinned, tags=old.tags, aliases=old.aliases, extra=old.extra
    )
    kept = replace(kept, reflected_in=old.reflected_in, links=old.links or node.links)
    plan.rewrite(draft, kept, Rebase())
