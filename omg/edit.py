"""
What Observer, Reflector or a person proposes, turned into the changes of one receipt.

    Plan(graph, day)  .apply(edit) .apply_all(edits) / .create(edit) .update(edit) .supersede(edit) .amend(path, …)  ->  .changes()

A Plan is drafts over a vault: nothing is written, later edits see earlier ones, and the maps that list a
touched node come out regenerated. Files that are ours are rewritten whole; what a person touched is
amended, which leaves every word of theirs where it was.

Not here: where an edit comes from. One rule: what was said before is never lost, it moves to `## History`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from . import maps, tokens
from .errors import BadNode, NotFound
from .graph import Graph
from .index import Entry
from .node import (
    GENERATED,
    HISTORY,
    TYPES,
    Node,
    Source,
    amend,
    block,
    head,
    parse,
    render,
    slugify,
    wikilink,
    with_block,
)
from .receipt import Change, Rebase
from .vault.parts import BODY

LISTED = (*TYPES, "note", "reflection")  # what stands on a map
INDEX_LINES = 40  # of the index note; with more maps than that, topics are found on the map above them
LONGEST_TITLE = 120  # characters; the name of its file holds 60
FROM_ABOVE = re.compile(r"(?<=\[\[)[^\[\]|#\n\\]+/(?:nodes|mocs|reflections|inbox)/[^\[\]|#\n\\]+")
NEEDS_USER = ("identity", "preference", "decision", "project")  # only a person's own words become these


@dataclass(frozen=True, slots=True)
class Edit:
    op: Literal["create", "update", "supersede"]
    title: str
    description: str
    type: str = "fact"
    body: str = ""
    priority: str = "medium"
    event: str | None = None
    loop: str | None = None
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # paths
    beside: tuple[int, ...] = ()  # places, among the edits of one reply, of others it is about
    sources: tuple[Source, ...] = ()
    origin: str | None = None
    target: str | None = None  # path of the note to update or supersede
    reason: str = ""
    generation: int = 0
    day: dt.date | None = None  # when it was said; None: the plan's

    @property
    def said_ms(self) -> int:
        return max((s.timestamp for s in self.sources), default=0)


@dataclass(slots=True)
class Draft:
    before: str | None
    node: Node
    text: str  # what the file will be
    ours: bool  # nobody but us has written its words: it may be rendered anew
    rebase: Rebase = field(default_factory=Rebase)
    theirs: frozenset[str] = frozenset()  # properties of a note of ours that a person has set

    @property
    def touched(self) -> bool:
        return not self.ours or bool(self.theirs)


class Plan:
    """Drafts over one vault. *day* dates what is written; it comes from the messages, not from a clock."""

    def __init__(self, graph: Graph, day: dt.date) -> None:
        self.graph, self.day = graph, day
        self.drafts: dict[str, Draft] = {}
        self.maps: set[str] = set()  # MOC paths to regenerate
        self.pages: dict[str, str] = {}  # MOC pages that are new and more than maps.page, their blocks empty
        self.dropped: list[str] = []  # reasons, for the log
        # `indexed` for all maps, where the caller has read all notes anyway.
        self.known: Mapping[str, Sequence[Entry]] | None = None

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
        links, main = self.weave([other for other in others if other not in there], main)
        node = replace(draft.node, links=(*draft.node.links, *links), body=with_history(main, lines))
        self.rewrite(draft, node, Rebase())

    def create(
        self, edit: Edit, history: tuple[str, ...] = (), supersedes: tuple[str, ...] = ()
    ) -> str | None:
        path, same = self.place(edit)
        if same:
            return self.update(replace(edit, target=path))
        id = "omg/" + path.removeprefix("nodes/")
        ids = [s.id for s in edit.sources]
        if self.graph.tombstones.blocks(id, ids, cited=lambda: bool(self.graph.index.citing(ids))):
            self.dropped.append(f"{path}: a person deleted this note")
            return None
        home = maps.home(edit.type)
        links, body = self.weave(edit.links, edit.body.strip() or edit.description)
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
            links=(home, *links),
            tags=edit.tags,
            aliases=spelled(edit.title, path),
            body=with_history(body, history),
        )
        self.drafts[path] = Draft(None, node, render(node), ours=True)
        self.touch(node)
        return path

    def update(self, edit: Edit) -> str | None:
        """Say it anew in the same note; the former statement moves to History."""
        assert edit.target is not None
        draft = self.draft(edit.target)
        old, said = draft.node, one_line(edit.description)
        sources = merged(old.sources, edit.sources)
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
        links, body = self.weave(edit.links, edit.body.strip() or edit.description)
        main, lines = split_history(old.body)
        if said == old.description:
            body = main
        node = replace(
            old,
            description=said,
            priority=highest(old.priority, edit.priority),
            event=edit.event or old.event,
            loop=edit.loop or old.loop,
            origin=weakest(old.origin, edit.origin),
            updated=self.day,
            sources=sources,
            tags=tuple(dict.fromkeys((*old.tags, *edit.tags))),
            links=tuple(dict.fromkeys((*old.links, *links))),
            body=with_history(body, (*lines, *([line] if line else []))),
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
        heir = replace(edit, op="create", generation=max(edit.generation, old.generation))
        path = self.create(heir, history=(line,), supersedes=(old.path,))
        if path is not None and path != old.path:
            self.retire(old.path, path)
        return path

    def recall_earlier(self, draft: Draft, edit: Edit) -> str:
        """An old conversation came in late: newer wins, so what it says is history already."""
        line = f"- {self.day}: {one_line(edit.description)}"
        main, lines = split_history(draft.node.body)
        lines = tuple(sorted({*lines, line}))
        sources = merged(draft.node.sources, edit.sources)
        node = replace(draft.node, sources=sources, body=with_history(main, lines))
        return self.rewrite(draft, node, Rebase(history=line))

    def retire(self, path: str, successor: str) -> None:
        """Mark *path* superseded by *successor*."""
        draft = self.draft(path)
        node = replace(draft.node, status="superseded", superseded_by=successor, updated=self.day)
        self.rewrite(draft, node, Rebase(set={"status": "superseded", "superseded_by": wikilink(successor)}))

    def amend(self, path: str, **changes: Any) -> str:
        """Change frontmatter fields of *path* as `Node` names them, and nothing else."""
        draft = self.draft(path)
        node = replace(draft.node, **changes)
        was, now = head(draft.node), head(node)
        return self.rewrite(
            draft, node, Rebase(set={k: now.get(k) for k in (*was, *now) if was.get(k) != now.get(k)})
        )

    # --- drafts

    def draft(self, path: str) -> Draft:
        """The draft of *path*, begun from the file if there is none yet. Raises NotFound, BadNode."""
        if path not in self.drafts:
            vault = self.graph.vault
            text = vault.text(path)
            node = parse(self.as_linked_here(text), path)
            theirs = vault.theirs(text.encode("utf-8"))
            ours = BODY not in theirs and not vault.read_only(path)
            self.drafts[path] = Draft(text, node, text, ours, theirs=theirs if ours else frozenset())
        return self.drafts[path]

    def as_linked_here(self, text: str) -> str:
        """*text* with links from the vault's root down, where Obsidian wrote them from a folder above it."""

        def from_here(link: re.Match[str]) -> str:
            return self.graph.index.resolve(link[0]) or link[0]

        return FROM_ABOVE.sub(from_here, text)

    def rewrite(self, draft: Draft, node: Node, rebase: Rebase) -> str:
        if draft.ours:
            node = with_properties(node, draft.node, draft.theirs - rebase.set.keys())
            text = draft.text if node == draft.node else render(node)
        else:
            history = None if rebase.history and rebase.history in draft.text else rebase.history
            text = amend(draft.text, set=rebase.set, history=history)
            node = parse(text, node.path)
        both = Rebase(set={**draft.rebase.set, **rebase.set}, history=rebase.history or draft.rebase.history)
        self.drafts[node.path] = replace(draft, node=node, text=text, rebase=both)
        self.touch(draft.node)
        self.touch(node)
        return node.path

    def place(self, edit: Edit) -> tuple[str, bool]:
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

    def weave(self, links: Iterable[str], body: str) -> tuple[tuple[str, ...], str]:
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

    # --- maps

    def touch(self, node: Node) -> None:
        if node.type not in LISTED:
            return
        if home := home_of(as_entry(node)):
            self.maps.add(home)
        if node.loop:
            self.maps.add(maps.OPEN_LOOPS)

    def listed(self, moc: str) -> list[Entry]:
        """The notes that *moc* lists once the drafts are written."""
        return self.lists((moc,))[moc]

    def lists(self, mocs: Iterable[str]) -> dict[str, list[Entry]]:
        """`listed` for each of *mocs*, in their order."""
        drafts, found = self.drafted(), {}
        for moc in sorted(mocs):
            entries = self.indexed(moc) if self.known is None else self.known.get(moc, ())
            found[moc] = [e for e in entries if e.path not in drafts and e.type in LISTED]
        for entry in drafts.values():
            if entry.status == "active" and entry.type in LISTED:
                for moc in {home_of(entry), maps.OPEN_LOOPS if entry.loop == "open" else ""} & found.keys():
                    found[moc].append(entry)
        return {moc: sorted(entries, key=lambda e: e.path) for moc, entries in found.items()}

    def indexed(self, moc: str) -> list[Entry]:
        """The active notes that *moc* lists before the drafts."""
        index = self.graph.index
        return index.entries(loop="open") if moc == maps.OPEN_LOOPS else index.entries(moc=moc)

    def drafted(self) -> dict[str, Entry]:
        """The drafts that change their file, as the index will have them."""
        return {p: as_entry(d.node) for p, d in self.drafts.items() if d.text != d.before}

    def topics(self) -> dict[str, list[Entry]]:
        """Map → the maps that were split off it: those that link to it before any other map."""
        pages = {e.path: e for e in self.graph.index.entries(type="moc") if e.path not in maps.STANDARD}
        pages |= {path: as_entry(parse(text, path)) for path, text in self.pages.items()}
        found: dict[str, list[Entry]] = {}
        for path, page in sorted(pages.items()):
            parent = next((t for t in page.links if t.startswith("mocs/") and t != path), None)
            if parent is not None:
                found.setdefault(parent, []).append(page)
        return found

    def page(self, path: str, inner: str, whole: str) -> Change | None:
        """The change that puts *inner* into the generated block of *path*; *whole* is the page if there is none."""
        now = self.graph.vault.bytes(path)
        before = None if now is None else now.decode("utf-8", errors="replace")
        if before is None:
            after = whole
        elif block(before) is None or self.graph.vault.read_only(path):
            # Its owner took the markers out, or locked the file: the page is theirs now.
            return None
        else:
            after = with_block(before, inner)
        return None if after == before else Change(path, before, after, Rebase(block=inner))

    def map_changes(self) -> list[Change]:
        listed = self.lists(self.maps)
        counts = {**self.counts(), **{moc: len(entries) for moc, entries in listed.items()}}
        topics = self.topics()
        changes = []
        for moc, entries in listed.items():
            below = [
                replace(t, description=size(t, counts)) for t in topics.get(moc, ()) if counts.get(t.path)
            ]
            inner = maps.moc(moc, [*below, *entries])
            whole = self.pages[moc] if moc in self.pages else maps.page(moc, "")
            changes.append(self.page(moc, inner, with_block(whole, inner)))
        if listed:
            small = {t.path for of in topics.values() for t in of} if len(counts) > INDEX_LINES else set()
            shown = {moc: n for moc, n in counts.items() if moc in maps.STANDARD or (n and moc not in small)}
            inner = maps.index(shown)
            changes.append(self.page("index", inner, maps.page("index", inner)))
        return [c for c in changes if c is not None]

    def counts(self) -> dict[str, int]:
        """MOC path → active notes it lists, before the drafts."""
        loops = [e for e in self.indexed(maps.OPEN_LOOPS) if e.type in LISTED]  # at home on other maps
        return {**self.graph.index.moc_counts(), maps.OPEN_LOOPS: len(loops)}

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
        return notes + self.map_changes()

    def leave_out_forgotten(self) -> None:
        cited = {s.id for d in self.drafts.values() for s in d.node.sources}
        gone = self.graph.tombstones.messages(cited)
        for path, draft in list(self.drafts.items()):
            if any(s.id in gone for s in draft.node.sources):
                del self.drafts[path]
                self.dropped.append("a note whose messages were forgotten meanwhile")

    def written_tokens(self) -> int:
        return sum(
            tokens.count(f"{d.node.description} {d.node.body}")
            for d in self.drafts.values()
            if d.text != d.before
        )


# --- small things


def with_properties(node: Node, of: Node, properties: Iterable[str]) -> Node:
    """*node* with those *properties*, as a head names them, that *of* has."""
    names = [n for p in properties for n in (("scope", "identity") if p == "appliesTo" else (p,))]
    return replace(node, **{name: getattr(of, name) for name in names if name in Node.__slots__})


def home_of(entry: Entry) -> str:
    """The map that lists *entry*; "" for a person's page that names none, and is no memory of ours."""
    linked = any(t.startswith("mocs/") for t in entry.links)
    return maps.home_of(entry) if linked or entry.type != "note" else ""


def size(topic: Entry, counts: Mapping[str, int]) -> str:
    """What stands behind a topic on the map above it: how much is in it, unless a person has said what is."""
    n = counts[topic.path]
    return f"{n} note{'s' * (n > 1)}" if topic.description == maps.named(topic.path)[1] else topic.description


def one_line(text: str) -> str:
    return " ".join(text.split())


def spelled(title: str, path: str) -> tuple[str, ...]:
    """*title* as an alias, where the name of its file cannot spell it: "Maria's iPhone", "GraphQL"."""
    title, name = one_line(re.sub(r"[\[\]|\\]", " ", title)), path.rpartition("/")[2]
    if number := re.fullmatch(re.escape(slugify(title)) + r"-(\d+)", name):  # a second note by this title
        title += f" {number[1]}"
    fits = len(title) <= LONGEST_TITLE and name in (title, slugify(title))
    return (title,) if fits and Node(path, "", "", "").title != title else ()


def merged(old: tuple[Source, ...], new: Iterable[Source]) -> tuple[Source, ...]:
    return tuple(
        {(s.session, s.id): s for s in (*new, *old)}[key]
        for key in dict.fromkeys((s.session, s.id) for s in (*old, *new))
    )


def highest(a: str, b: str) -> str:
    return min(a, b, key=("high", "medium", "low").index)


def weakest(a: str | None, b: str | None) -> str | None:
    """The less trusted of two origins: what a tool had a part in stays a tool's."""
    order = ("tool", "assistant", "user", "human", None)
    return min(a, b, key=order.index)


def split_history(body: str) -> tuple[str, tuple[str, ...]]:
    main, mark, lines = body.partition(f"{HISTORY}\n")
    if not mark:
        return body.strip(), ()
    return main.strip(), tuple(line for line in lines.strip().splitlines() if line.strip())


def with_history(body: str, lines: tuple[str, ...]) -> str:
    return f"{body.strip()}\n\n{HISTORY}\n" + "\n".join(lines) if lines else body.strip()


def as_entry(node: Node) -> Entry:
    """What the index will say of *node*, its links not resolved."""
    return Entry(
        path=node.path,
        id=node.id,
        type=node.type,
        title=node.title,
        description=node.description,
        priority=node.priority,
        status=node.status,
        pinned=node.pinned,
        loop=node.loop,
        event=node.event,
        created=node.created,
        updated=node.updated,
        origin=node.origin,
        generation=node.generation,
        superseded_by=node.superseded_by,
        links=(*node.links, *node.wikilinks),
        tags=node.tags,
        mtime=0,
    )
