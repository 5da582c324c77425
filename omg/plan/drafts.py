"""
Plan: edits become drafts over a vault, and the drafts the changes of one receipt.

Nothing is written here; later edits see earlier drafts, and the maps that list a changed note come out regenerated.
Files that are ours are rewritten whole; what a person touched is amended, which leaves every word of theirs where it
was. Not here: where an edit comes from, and writing (journal.py). One rule: what was said before is never lost, it
moves to `## History`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import WeakMethod

from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..index.entries import Entry
from ..journal import Change, Rebase
from ..node.fields import GENERATED
from ..node.maptable import map_of_type
from ..node.markdown import slugify, wikilink
from ..node.note import Node, amend_text, head_of, parse_node, render_node, with_heading
from ..tokens import count_tokens
from ..vault.parts import BODY_PART
from .edits import (
    Edit,
    NoteDraft,
    as_entry,
    higher_priority,
    merged_sources,
    one_line,
    split_history,
    title_alias,
    weaker_origin,
    with_history_lines,
)
from .mappages import MapPages

FROM_ABOVE = re.compile(
    r"(?<=\[\[)(?:[^\[\]|#\n\\]+/(?:nodes|mocs|reflections|inbox)/|omg/(?=moc-))[^\[\]|#\n\\]+"
)
NEEDS_USER = ("identity", "preference", "decision", "project")  # only a person's own words become these


class Plan:
    """Drafts over one vault. *day* dates what is written; it comes from the messages, not from a clock."""

    def __init__(self, graph: Graph, day: dt.date) -> None:
        self.graph, self.day = graph, day
        self.drafts: dict[str, NoteDraft] = {}
        # Weakly: a circle would hold the graph, and its descriptors, until garbage is collected.
        drafted = WeakMethod(self.drafted)
        self.maps = MapPages(graph, lambda: (drafted() or dict)())
        self.dropped: list[str] = []  # reasons, for the log

    # --- edits

    def apply(self, edit: Edit) -> str | None:
        """Draft *edit*; returns the path of the note that now says it, or None if it was dropped."""
        self.day = edit.day or self.day
        if edit.op == "create" or edit.target is None:
            return self.create(edit)
        try:
            return self.update(edit) if edit.op == "update" else self.supersede(edit)
        except (NotFound, BadNode):  # a person deleted it meanwhile, or broke it: what is new is still said
            return self.create(replace(edit, op="create", target=None))

    def apply_all(self, edits: Sequence[Edit]) -> None:
        """Draft the *edits* of one reply, and link those that are about one another."""
        paths = [self.apply(edit) for edit in edits]
        for edit, path in zip(edits, paths, strict=True):
            others = [other for n in edit.beside if (other := paths[n]) is not None and other != path]
            if path is not None and others:
                self.relate(path, others)

    def relate(self, path: str, others: Iterable[str]) -> None:
        """Let the draft of *path* link to *others*; a file that a person touched stays as it is."""
        draft = self.drafts.get(path)
        if draft is None or not draft.ours:
            return
        main, lines = split_history(draft.node.body)
        there = {*draft.node.links, *draft.node.wikilinks}
        links, main = self.link_mentions([other for other in others if other not in there], main)
        node = replace(draft.node, links=(*draft.node.links, *links), body=with_history_lines(main, lines))
        self.rewrite(draft, node, Rebase())

    def create(
        self, edit: Edit, history: tuple[str, ...] = (), supersedes: tuple[str, ...] = ()
    ) -> str | None:
        path, same = self.free_path(edit)
        if same:
            return self.update(replace(edit, target=path))
        id = "omg/" + path.removeprefix("nodes/")
        ids = [s.id for s in edit.sources]
        if self.graph.tombstones.blocks(id, ids, cited=lambda: bool(self.graph.index.citing(ids))):
            self.dropped.append(f"{path}: a person deleted this note")
            return None
        links, body = self.link_mentions(edit.links, edit.body.strip() or edit.description)
        node = Node(
            path=path,
            id=id,
            description=one_line(edit.description),
            type=edit.type,
            priority=edit.priority,
            loop=edit.loop,
            created=self.day,
            updated=self.day,
            event=edit.event,
            scope=self.graph.identity.scope,
            identity=self.graph.identity.key,
            origin=edit.origin,
            generation=edit.generation,
            sources=edit.sources,
            supersedes=supersedes,
            links=(map_of_type(edit.type), *links),
            tags=edit.tags,
            aliases=title_alias(edit.title, path),
            body=with_history_lines(body, history),
        )
        node = with_heading(node)
        self.drafts[path] = NoteDraft(None, node, render_node(node), ours=True)
        self.maps.add(node)
        return path

    def update(self, edit: Edit) -> str | None:
        """Say it anew in the same note; the former statement moves to History."""
        assert edit.target is not None
        draft = self.draft(edit.target)
        old, said = draft.node, one_line(edit.description)
        sources = merged_sources(old.sources, edit.sources)
        if said == old.description and edit.loop in (None, old.loop) and edit.event in (None, old.event):
            if sources == old.sources:
                return old.path
            return self.rewrite(draft, replace(old, sources=sources), Rebase())
        if edit.said_ms and edit.said_ms < max((s.timestamp for s in old.sources), default=0):
            return self.recall_earlier(draft, edit)
        stated = not draft.ours or "description" in draft.theirs  # by a person, in their own words
        if stated and said != old.description and self.said_since(edit, old.path):
            return self.supersede(edit)
        if stated and draft.ours and said != old.description:
            return self.recall_earlier(draft, edit)
        line = self.history_line(old) if said != old.description else None
        links, body = self.link_mentions(edit.links, edit.body.strip() or edit.description)
        main, lines = split_history(old.body)
        if said == old.description:
            body = main
        node = replace(
            old,
            description=said,
            priority=higher_priority(old.priority, edit.priority),
            event=edit.event or old.event,
            loop=edit.loop or old.loop,
            origin=weaker_origin(old.origin, edit.origin),
            updated=self.day,
            sources=sources,
            tags=tuple(dict.fromkeys((*old.tags, *edit.tags))),
            links=tuple(dict.fromkeys((*old.links, *links))),
            body=with_history_lines(body, (*lines, *([line] if line else []))),
        )
        loop = {"loop": edit.loop} if edit.loop and edit.loop != old.loop else {}
        return self.rewrite(draft, node, Rebase(set=loop, history=f"- {self.day}: {said}"))

    def said_since(self, edit: Edit, path: str) -> bool:
        """Whether *edit* was said after a person last saved the note: then it is news, and not the old belief."""
        return edit.said_ms > self.graph.vault.file(path).stat().st_mtime * 1000

    def supersede(self, edit: Edit) -> str | None:
        """A new note takes the place of the target, which stays on disk and off the maps."""
        assert edit.target is not None
        draft = self.draft(edit.target)
        old = draft.node
        earlier = edit.said_ms and edit.said_ms < max((s.timestamp for s in old.sources), default=0)
        if one_line(edit.description) == old.description or earlier:
            return self.update(edit)
        line = f"{self.history_line(old)} ({wikilink(old.path, old.title)})"
        replacement = replace(edit, op="create", generation=max(edit.generation, old.generation))
        path = self.create(replacement, history=(line,), supersedes=(old.path,))
        if path is not None and path != old.path:
            self.mark_superseded(old.path, path)
        return path

    def recall_earlier(self, draft: NoteDraft, edit: Edit) -> str:
        """An old conversation came in late: newer wins, so what it says is history already."""
        line = f"- {self.day}: {one_line(edit.description)}"
        main, lines = split_history(draft.node.body)
        lines = tuple(sorted({*lines, line}))
        sources = merged_sources(draft.node.sources, edit.sources)
        node = replace(draft.node, sources=sources, body=with_history_lines(main, lines))
        return self.rewrite(draft, node, Rebase(history=line))

    def mark_superseded(self, path: str, successor: str) -> None:
        """Mark *path* superseded by *successor*."""
        draft = self.draft(path)
        node = replace(draft.node, status="superseded", superseded_by=successor, updated=self.day)
        self.rewrite(draft, node, Rebase(set={"status": "superseded", "superseded_by": wikilink(successor)}))

    def amend(self, path: str, **changes: Any) -> str:
        """Change frontmatter fields of *path* as `Node` names them, and nothing else."""
        draft = self.draft(path)
        node = replace(draft.node, **changes)
        was, now = head_of(draft.node), head_of(node)
        return self.rewrite(
            draft, node, Rebase(set={k: now.get(k) for k in (*was, *now) if was.get(k) != now.get(k)})
        )

    def retitle(self, path: str, moved: Node, was: str) -> str:
        """Give the note that went from *was* to where *moved* is its aliases, and the title that its name has there."""
        unnamed = replace(moved, heading="")
        by_name = replace(unnamed, path=was, aliases=self.draft(path).node.aliases).title
        titled = with_heading(unnamed if moved.heading == by_name else moved)
        self.amend(path, aliases=moved.aliases, heading=titled.heading)
        draft = self.drafts[path]
        if not draft.ours and path == was and moved.heading == by_name:  # asked for by name, and one line
            text = draft.text.replace(f"# {by_name}\n", f"# {unnamed.title}\n", 1)
            self.drafts[path] = replace(draft, node=parse_node(text, path), text=text)
        return path

    # --- drafts

    def draft(self, path: str) -> NoteDraft:
        """The draft of *path*, begun from the file if there is none yet. Raises NotFound, BadNode."""
        if path not in self.drafts:
            vault = self.graph.vault
            text = vault.text(path)
            node = parse_node(self.with_links_from_root(text), path)
            theirs = vault.theirs(text.encode("utf-8"))
            ours = BODY_PART not in theirs and not vault.read_only(path)
            self.drafts[path] = NoteDraft(text, node, text, ours, theirs=theirs if ours else frozenset())
        return self.drafts[path]

    def with_links_from_root(self, text: str) -> str:
        """*text* with links from the vault's root down, where Obsidian, or a person, wrote them from a folder above it."""

        def from_here(link: re.Match[str]) -> str:
            return self.graph.index.resolve(link[0]) or link[0]

        return FROM_ABOVE.sub(from_here, text)

    def rewrite(self, draft: NoteDraft, node: Node, rebase: Rebase) -> str:
        if draft.ours:
            node = with_node_properties(node, draft.node, draft.theirs - rebase.set.keys())
            node = node if node == draft.node else with_heading(node)
            text = draft.text if node == draft.node else render_node(node)
        else:
            history = None if rebase.history and rebase.history in draft.text else rebase.history
            text = amend_text(draft.text, set=rebase.set, history=history)
            node = parse_node(text, node.path)
        both = Rebase(set={**draft.rebase.set, **rebase.set}, history=rebase.history or draft.rebase.history)
        self.drafts[node.path] = replace(draft, node=node, text=text, rebase=both)
        self.maps.add(draft.node)
        self.maps.add(node)
        return node.path

    def free_path(self, edit: Edit) -> tuple[str, bool]:
        """A free path for *edit*, or the path of a note that says the same already."""
        slug, n = slugify(edit.title), 1
        while True:
            path = f"nodes/{edit.type}/{slug}" + (f"-{n}" if n > 1 else "")
            taken = path in self.drafts or self.graph.vault.bytes(path) is not None
            if not taken and self.graph.index.entry("omg/" + path.removeprefix("nodes/")) is None:
                return path, False
            if taken:
                with suppress(BadNode, NotFound):
                    node = self.draft(path).node
                    if node.status == "active" and one_line(edit.description) == node.description:
                        return path, True
                if path in self.drafts and self.drafts[path].text == self.drafts[path].before:
                    del self.drafts[path]
            n += 1

    def link_mentions(self, links: Iterable[str], body: str) -> tuple[tuple[str, ...], str]:
        """Links whose title the text mentions go into the prose, once each; the others are returned."""
        rest = []
        for path in dict.fromkeys(links):
            title = self.title(path)
            if title is None:
                continue
            mention = (
                re.compile(rf"(?<![\w\[|]){re.escape(title)}(?![\w\]|])", re.I) if len(title) > 2 else None
            )
            found = mention and mention.search(
                re.sub(r"\[\[[^\[\]\n]*\]\]", lambda m: "\0" * len(m[0]), body)
            )
            if found:
                body = body[: found.start()] + wikilink(path, found[0]) + body[found.end() :]
            else:
                rest.append(path)
        return tuple(rest), body

    def title(self, path: str) -> str | None:
        if path in self.drafts:
            return self.drafts[path].node.title
        entry = self.graph.index.entry(path)
        return entry.title if entry else None

    def history_line(self, old: Node) -> str:
        return f"- {old.updated or old.created or self.day}: {old.description}"

    # --- what comes of them

    def drafted(self) -> dict[str, Entry]:
        """The drafts that change their file, as the index will have them."""
        return {p: as_entry(d.node) for p, d in self.drafts.items() if d.text != d.before}

    def entries(self) -> list[Entry]:
        """The active drafts, in the order they were begun."""
        nodes = [d.node for d in self.drafts.values() if d.text != d.before]
        return [as_entry(n) for n in nodes if n.status == "active" and n.type not in GENERATED]

    def changes(self) -> list[Change]:
        """Under the vault's lock: what was forgotten while the drafts were thought of is not brought back by them."""
        self.leave_out_forgotten()
        notes = [
            Change(path, d.before, d.text, d.rebase, theirs=not d.ours)
            for path, d in self.drafts.items()
            if d.text != d.before
        ]
        return notes + self.maps.changes()

    def leave_out_forgotten(self) -> None:
        cited = {s.id for d in self.drafts.values() for s in d.node.sources}
        gone = self.graph.tombstones.messages(cited)
        for path, draft in list(self.drafts.items()):
            if any(s.id in gone for s in draft.node.sources):
                del self.drafts[path]
                self.dropped.append("a note whose messages were forgotten meanwhile")

    def written_tokens(self) -> int:
        return sum(
            count_tokens(f"{d.node.description} {d.node.body}")
            for d in self.drafts.values()
            if d.text != d.before
        )


# --- small things


def with_node_properties(node: Node, of: Node, properties: Iterable[str]) -> Node:
    """*node* with those *properties*, as a head names them, that *of* has."""
    names = [n for p in properties for n in (("scope", "identity") if p == "appliesTo" else (p,))]
    return replace(node, **{name: getattr(of, name) for name in names if name in Node.__slots__})
