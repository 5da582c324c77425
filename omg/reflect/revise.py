"""
What is done to notes that exist: merged, superseded, described anew, their links mended.

Each function drafts on a Plan; nothing is written here. Not here: why (tidy.py, judge.py, a person with
curate.py), and whether it may be. One rule: a statement that leaves the maps stays on disk, and is named,
with its date, in the History of the note that took its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..edit import (
    Draft,
    Plan,
    highest,
    merged,
    one_line,
    split_history,
    weakest,
    with_history,
)
from ..errors import NotFound
from ..node import Node, parse, render, wikilink
from ..receipt import Rebase

CITED = re.compile(r"\s{0,9}\((?:\[\[[^\[\]\n]*\]\](?:, )?)+\)")  # the links behind a claim of a reflection
LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]")


def merge(plan: Plan, keep: str, gone: str, description: str = "") -> None:
    """
    *keep* takes over the sources, tags, links and History of *gone*, which is superseded by it.

    *description* says both in one line; it was made of both, so it is as little to be trusted as the weaker.
    """
    draft, other = plan.draft(keep), plan.draft(gone).node
    node, line = draft.node, former(plan, other)
    main, lines = split_history(node.body)
    _, theirs = split_history(other.body)
    said = one_line(description)
    if said and said != node.description:
        lines = (*lines, former(plan, node, linked=False))
        main = said if one_line(main) == node.description else f"{said}\n\n{main}"
        node = replace(node, description=said, origin=weakest(node.origin, other.origin))
    merged_node = replace(
        node,
        priority=highest(node.priority, other.priority),
        generation=max(node.generation, other.generation) + 1,
        loop=loop_of(node, other),
        event=node.event or other.event,
        sources=merged(node.sources, other.sources),
        supersedes=tuple(dict.fromkeys((*node.supersedes, gone))),
        links=tuple(dict.fromkeys((*node.links, *(t for t in other.links if related(t, keep))))),
        tags=tuple(dict.fromkeys((*node.tags, *other.tags))),
        body=with_history(main, tuple(sorted({*lines, *theirs, line}))),
    )
    plan.rewrite(draft, merged_node, Rebase(history=line))
    plan.retire(gone, keep)


def supersede(plan: Plan, old: str, successor: str) -> None:
    """*old* was true before *successor* was: it leaves the maps, and each names the other in its History."""
    draft, other = plan.draft(successor), plan.draft(old).node
    node, line = draft.node, former(plan, other)
    main, lines = split_history(node.body)
    heir = replace(
        node,
        priority=highest(node.priority, other.priority),
        generation=max(node.generation, other.generation) + 1,
        supersedes=tuple(dict.fromkeys((*node.supersedes, old))),
        body=with_history(main, tuple(sorted({*lines, line}))),
    )
    plan.rewrite(draft, heir, Rebase(history=line))
    then = f"- {day(plan, node)}: replaced by {wikilink(successor, node.title)}"
    draft = plan.draft(old)
    main, lines = split_history(draft.node.body)
    retired = replace(
        draft.node,
        status="superseded",
        superseded_by=successor,
        updated=plan.day,
        body=with_history(main, (*lines, then)),
    )
    head = {"status": "superseded", "superseded_by": wikilink(successor)}
    plan.rewrite(draft, retired, Rebase(set=head, history=then))


def describe(plan: Plan, path: str, description: str) -> None:
    """Give a note that is ours the line its body deserves; the former one goes to its History."""
    draft = plan.draft(path)
    main, lines = split_history(draft.node.body)
    body = with_history(main, (*lines, former(plan, draft.node, linked=False)))
    plan.rewrite(draft, replace(draft.node, description=one_line(description), body=body), Rebase())


def relink(plan: Plan, path: str, moved: Mapping[str, str]) -> bool:
    """Let every link of *path* to a key of *moved* lead to its value; False if the file is not ours, or has none."""
    draft = plan.draft(path)
    text = draft.text
    for old, new in moved.items():
        text = relinked(text, old, new)
    if not draft.ours or text == draft.text:
        return False
    plan.drafts[path] = replace(draft, node=parse(text, path), text=text)
    plan.touch(plan.drafts[path].node)
    return True


def relinked(text: str, old: str, new: str) -> str:
    """*text* with every wikilink to *old* leading to *new*; labels and headings stay."""
    return re.sub(rf"\[\[{re.escape(old)}(?:\.md)?(?=\\?\||\]|#)", lambda _: f"[[{new}", text)


def unlinked(text: str) -> str:
    """*text* as it is read: labels for links, and no list of links behind a claim."""
    return LINK.sub(r"\1", CITED.sub("", text))


def former(plan: Plan, node: Node, *, linked: bool = True) -> str:
    """The line of a History that says what *node* said, and when; of a tool's note, only where that stands."""
    where = wikilink(node.path, node.title)
    if node.origin == "tool":
        return f"- {day(plan, node)}: {where}"
    return f"- {day(plan, node)}: {node.description}" + (f" ({where})" if linked else "")


def day(plan: Plan, node: Node) -> str:
    return (node.updated or node.created or plan.day).isoformat()


def related(target: str, keep: str) -> bool:
    """Whether a link that a note had in its head is one that the note merging it should take over."""
    return not target.startswith("mocs/") and target != keep


def loop_of(a: Node, b: Node) -> str | None:
    """Of two notes on one plan, the one heard of last knows whether it is done."""
    if a.loop is None or b.loop is None:
        return a.loop or b.loop
    return max(a, b, key=lambda n: max((s.timestamp for s in n.sources), default=0)).loop


def put(plan: Plan, node: Node) -> None:
    """Draft a page that we make: a new one, or in the place of ours; what its owner entered in its head stays."""
    try:
        draft = plan.draft(node.path)
    except NotFound:
        plan.drafts[node.path] = Draft(None, node, render(node), ours=True)
        plan.touch(node)
        return
    old = draft.node
    kept = replace(
        node, created=old.created, pinned=old.pinned, tags=old.tags, aliases=old.aliases, extra=old.extra
    )
    kept = replace(kept, reflected_in=old.reflected_in, links=old.links or node.links)
    plan.rewrite(draft, kept, Rebase())
