"""
Plan: turns edits into drafts of notes, and drafts into the changes of one receipt.

Later edits see earlier drafts, and each map that lists a changed note is regenerated. Files that only OMG wrote
are rewritten whole; a file that a person edited keeps every word of the person. A former statement moves to `##
History`. This module writes nothing to disk; journal.py does.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakMethod

from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..index.store import Entry
from ..journal import Change, Rebase
from ..node.markdown import H1, load_properties, split_head, wikilink
from ..node.note import (
    GENERATED,
    Node,
    amend_text,
    head_of,
    map_of_type,
    parse_node,
    render_node,
    with_heading,
)
from ..text.characters import WIKILINK, link_label
from ..text.tokens import count_tokens
from ..text.words import denies, split_sentences, told_words
from ..vault.vault import BODY_PART
from .edits import (
    Edit,
    NoteDraft,
    as_compared,
    as_entry,
    dated,
    former_state,
    head_set_by,
    merged_sources,
    news_line,
    numbered_paths,
    one_line,
    place_of,
    split_history,
    title_alias,
    trust_of,
    weaker_origin,
    with_history_lines,
    with_node_properties,
    with_sentences,
    without_part,
)
from .mentions import with_link_at
from .pages import MapPages

FROM_ABOVE = re.compile(
    r"(?<=\[\[)(?:[^\[\]|#\n\\]+/(?:nodes|mocs|reflections|inbox)/|omg/(?=moc-))[^\[\]|#\n\\]+"
)
PERSONS = ("user", "human", None)  # origins of a person's words
# Types of notes that are made only from a person's own words.
NEEDS_USER = ("identity", "preference", "decision", "project")


IN_BOTH = ("type", "priority", "event", "loop", "standing", "tags")  # properties of an edit and of its note
LINK_END = re.compile(r"\\?\||#")  # where the target of a link ends


def with_link(text: str, old: str, new: str) -> str:
    """
    Return *text* with every wikilink to *old* changed into a link to *new*. Labels and headings in links stay.
    """
    return re.sub(rf"\[\[{re.escape(old)}(?:\.md)?(?=\\?\||\]|#)", lambda _: f"[[{new}", text)


def last_said_ms(node: Node) -> int:
    return max((s.timestamp for s in node.sources), default=0)


def without_outdated(edit: Edit, old: Node) -> Edit:
    """
    Return *edit* without the properties that a later conversation has set in *old*. An edit with text is returned
    unchanged. An edit that is not older than *old* is returned unchanged.
    """
    if edit.description or edit.body or edit.drop or not 0 < edit.said_ms < last_said_ms(old):
        return edit
    return replace(
        edit, event=old.event or edit.event, loop=old.loop or edit.loop, sets=edit.sets & {"title"}
    )


@dataclass(frozen=True, slots=True)
class Restated:
    """An update to be drafted: the note's present draft, the edit, and the updated note."""

    draft: NoteDraft
    edit: Edit
    node: Node

    @property
    def old(self) -> Node:
        return self.draft.node

    @property
    def anew(self) -> bool:
        """
        Whether the update gives the note another type or title, so that the note may get a new path.

        Always False if a person edited the file.
        """
        return self.draft.ours and (self.node.type, self.edit.title) != (self.old.type, self.old.title)

    @property
    def says_nothing_new(self) -> bool:
        old = self.old
        return not self.anew and replace(self.node, sources=old.sources, updated=old.updated) == old

    @property
    def restated(self) -> bool:
        """
        Whether the update changes the note's description.

        In a note that a person wrote by hand, any change of the text counts, except in its History.
        """
        other = self.node.description != self.old.description
        return other or (
            self.draft.written and split_history(self.node.body)[0] != split_history(self.old.body)[0]
        )

    @property
    def late(self) -> bool:
        """
        Whether the edit brings text that is older than the note's latest message.

        Always False if the edit changes the note of another edit in the same reply (`Edit.about`).
        """
        says = self.edit.description or self.edit.body or self.edit.drop
        return bool(says) and self.edit.about is None and 0 < self.edit.said_ms < last_said_ms(self.old)

    @property
    def stated(self) -> bool:
        """
        Whether the update must keep what the note says, because a person wrote the note's text.

        An edit without sources is a command of the person. A command may replace the text if nobody has edited the
        note's file.
        """
        return self.draft.stated and (self.draft.touched or bool(self.edit.sources))


class Plan:
    """
    Drafts for the notes of one vault. *day*: the day of the messages, which becomes the date of the drafts. An edit with
    a day of its own changes *day*.
    """

    def __init__(self, graph: Graph, day: dt.date) -> None:
        self.graph, self.day = graph, day
        self.drafts: dict[str, NoteDraft] = {}
        # Weak: a reference cycle would keep the graph and its files open until garbage is collected.
        drafted = WeakMethod(self.drafted)
        self.maps = MapPages(graph, lambda: (drafted() or dict)())
        self.moved: dict[str, str] = {}  # former path → new path, of notes that an edit renamed
        self.dropped: list[str] = []  # reasons, for the log
        self.waiting: set[str] = set()  # proposals that the drafts may settle (plan/corrections.py)

    # --- edits

    def apply(self, edit: Edit) -> str | None:
        """Draft *edit*. Return the path of its note, or None if the edit was dropped."""
        self.day = edit.day or self.day
        if edit.op == "create" or edit.target is None:
            return self.create(edit)
        try:
            return self.update(edit) if edit.op == "update" else self.supersede(edit)
        except (NotFound, BadNode):  # a person deleted or broke the note meanwhile: a new note is made
            return self.create(replace(edit, op="create", target=None))

    def apply_all(self, edits: Sequence[Edit]) -> None:
        """Draft the *edits* of one reply, link related ones to each other, and mark contradictions."""
        paths: list[str | None] = []
        for edit in edits:
            target = edit.target if edit.about is None else paths[edit.about]
            paths.append(self.apply(replace(edit, target=target)))
        for edit, path in zip(edits, paths, strict=True):
            path = path and self.place_now(path)
            others = [self.place_now(other) for n in edit.beside if (other := paths[n]) is not None]
            others = [other for other in dict.fromkeys(others) if other != path]
            if path is not None and others:
                self.relate(path, others)
            # Only a person's own words can contradict a note of theirs.
            for other in map(self.place_now, edit.contradicts if edit.origin in PERSONS else ()):
                if path is not None and other != path:
                    self.contradict(path, other)

    def relate(self, path: str, others: Iterable[str]) -> None:
        """Link the draft of *path* to the notes at *others*, unless a person edited its file."""
        draft = self.drafts.get(path)
        if draft is None or not draft.ours:
            return
        main, lines = split_history(draft.node.body)
        there = {*draft.node.links, *draft.node.wikilinks}
        links, main = self.link_mentions([other for other in others if other not in there], main)
        node = replace(draft.node, links=(*draft.node.links, *links), body=with_history_lines(main, lines))
        self.rewrite(draft, node, Rebase())

    def create(
        self, edit: Edit, history: tuple[str, ...] = (), supersedes: tuple[str, ...] = (), beside: str = ""
    ) -> str | None:
        """
        Draft a new note, and return its path. If a note already says the same, return the path of that note. Return
        None if the edit was dropped.

        The new note may have the same title as the notes that it replaces (*supersedes*), and as the note that it
        contradicts (*beside*).
        """
        if not edit.description.strip():  # an update of a note that is gone by now
            self.dropped.append("an edit without text")
            return None
        if (kept := self.carried_note(edit)) is not None:
            self.dropped.append(f"{kept}: a person's note already says the same")
            return kept
        if (kept := self.noted_already(edit)) is not None:
            if edit.origin not in PERSONS:
                return kept
            links = tuple(link for link in edit.links if link != kept)
            more = replace(edit, op="update", target=kept, description="", links=links, sets=frozenset())
            return self.update(more)
        path, same = self.free_path(edit)
        if same:
            theirs = self.draft(path).node.origin in PERSONS and edit.origin not in PERSONS
            if theirs:  # a person already said the same; a second source changes nothing
                return path
            if edit.joins:
                edit = replace(edit, description="", body=f"{edit.description}\n{edit.body}".strip())
            return self.update(replace(edit, target=path))
        id = "omg/" + path.removeprefix("nodes/")
        ids = [s.id for s in edit.sources]
        if self.graph.tombstones.blocks(id, ids, cited=lambda: self.graph.is_cited(ids)):
            self.dropped.append(f"{path}: a person deleted this note")
            return None
        links, body = self.link_mentions(edit.links, edit.body.strip() or edit.description)
        node = Node(
            path=path,
            id=id,
            description=one_line(edit.description),
            created=self.day,
            updated=self.day,
            scope=self.graph.identity.scope,
            identity=self.graph.identity.key,
            origin=edit.origin,
            proposes=edit.proposes,
            sources=edit.sources,
            supersedes=supersedes,
            links=(map_of_type(edit.type), *links),
            aliases=title_alias(edit.title, path),
            body=with_history_lines(body, history),
            **{name: getattr(edit, name) for name in IN_BOTH},
        )
        same_title = supersedes or beside
        first = next(numbered_paths(edit.type, edit.title)) if same_title else path
        named = replace(node, path=first, aliases=title_alias(edit.title, first))
        node = replace(node, heading=with_heading(named).heading)
        self.drafts[path] = NoteDraft(None, node, render_node(node), ours=True)
        self.maps.add(node)
        return path

    def carried_note(self, edit: Edit) -> str | None:
        """
        Find the note that a person edited and that already says *edit*. Returns the note's path, or None.

        Used in a rebuild, which makes all other notes anew. All of these must hold for the note:
        - All messages of *edit* are among the note's sources.
        - The note has the name that *edit* would get, or at least half of the words of *edit*.
        - No other note from these messages is more like *edit*.
        """
        former, ids = self.graph.former, {s.id for s in edit.sources}
        if former is None or not ids:
            return None
        words = told_words(edit.description)
        made = [e for path in former.citing(ids) if (e := former.entry(path)) is not None]
        named = "omg/" + next(numbered_paths(edit.type, edit.title)).removeprefix("nodes/")

        def likeness(e: Entry) -> tuple[bool, int, bool]:
            shared = len(words & told_words(f"{e.title} {e.description}"))
            return e.id == named, shared, e.path in self.graph.carried

        near = max(made, key=likeness, default=None)
        if near is None or near.path not in self.graph.carried:
            return None
        same_name, shared, _ = likeness(near)
        says_it = (same_name or 2 * shared >= len(words)) and ids <= {s.id for s in former.sources(near.path)}
        return near.path if says_it else None

    def noted_already(self, edit: Edit) -> str | None:
        """
        Return the path of a person's note from the same message that says exactly what *edit* says; None if
        there is no such note.
        """
        made = self.graph.index.notes_by_source([s.id for s in edit.sources if s.id])
        said = told_words(edit.description)
        for path in dict.fromkeys(note.path for notes in made.values() for note in notes):
            with suppress(BadNode, NotFound):
                path = self.place_now(path)
                node = self.drafts[path].node if path in self.drafts else self.graph.vault.read(path)
                known = told_words(node.description)
                same = said <= known | told_words(node.title) and known <= said | told_words(edit.title)
                active = node.status == "active" and not node.proposes and node.origin in PERSONS
                days = (edit.event or node.event) == (node.event or edit.event)
                if active and same and days and denies(node.description) == denies(edit.description):
                    return path
        return None

    def update(self, edit: Edit) -> str | None:
        """
        Update the note in place; return its path. The former statement and each removed sentence move to the
        History.
        """
        assert edit.target is not None
        draft = self.draft(edit.target)
        old, edit = draft.node, without_outdated(edit, draft.node)
        change = Restated(draft, edit, self.updated(old, edit))
        theirs, more_sources = edit.origin in PERSONS, change.node.sources != old.sources
        if change.says_nothing_new and more_sources:
            return self.rewrite(draft, replace(old, sources=change.node.sources), Rebase())
        # In a rebuild, the person edited the note after seeing what these messages say.
        if change.says_nothing_new or (old.path in self.graph.carried and not more_sources):
            return old.path
        if change.late:  # a person's newer word stays
            if change.restated and theirs and old.origin not in PERSONS:
                links = (*edit.links, old.path)
                return self.create(replace(edit, op="create", target=None, links=links))
            return self.recall_earlier(change)
        if not (change.stated and change.restated):
            return self.update_in_place(change)
        if self.said_since(edit, old.path):
            return self.succeed(change)
        if edit.said_ms > last_said_ms(old) and theirs:
            return self.put_beside(change)
        return self.recall_earlier(change) if draft.ours else self.update_in_place(change)

    def update_in_place(self, change: Restated) -> str:
        draft, edit, old, node = change.draft, change.edit, change.old, change.node
        if change.anew:
            node = self.renamed(node, edit, old, stays=draft.touched)
        loop = {"loop": node.loop} if node.loop != old.loop else {}
        theirs = self.lift_contradictions(old) if change.restated and draft.ours else []
        path = self.rewrite(draft, node, Rebase(set=loop, history=news_line(self.day, edit, old)))
        for other in theirs:
            if self.said_since(edit, other):
                self.mark_superseded(other, path)
            else:
                self.contradict(path, other)
        return path

    def updated(self, old: Node, edit: Edit) -> Node:
        """Return *old* updated by *edit*, with the same path and title."""
        head = head_set_by(edit, old)
        main, lines = split_history(old.body)
        said, gone = head["description"], list(edit.drop)
        if "body" in edit.sets:
            gone, main, lines = [], said, (*lines, *dated(old, self.day, one_line(main)))
        elif said != old.description and (at := place_of(old.description, main)):
            main = main[: at.start] + said + main[at.stop :]
        for sentence in gone:
            main, cut = without_part(main, sentence)
            lines = (*lines, *dated(old, self.day, cut))
        if as_compared(main) == as_compared(said):
            main = ""  # the text only repeats the description, so the edit's text replaces the whole
        if said != old.description or (head["event"] != old.event and old.event):
            lines = (*lines, former_state(old, head["event"], self.day))
        links, main = self.link_mentions(edit.links, with_sentences(main, edit.body) or said)
        if head["type"] != old.type:
            kept = (link for link in old.links if not link.startswith("mocs/"))
            links = (map_of_type(head["type"]), *kept, *links)
        else:
            links = (*old.links, *links)
        return replace(
            old,
            **head,
            origin=weaker_origin(old.origin, edit.origin),
            updated=self.day,
            sources=merged_sources(old.sources, edit.sources),
            contradicts=old.contradicts if said == old.description else (),
            links=tuple(dict.fromkeys(links)),
            body=with_history_lines(main, tuple(dict.fromkeys(lines))),
        )

    def renamed(self, node: Node, edit: Edit, old: Node, *, stays: bool) -> Node:
        """
        Return *node* with the title of *edit*. The path changes with the title, and the former path becomes an alias.
        *stays*: the path does not change.
        """
        title = one_line(edit.title) if "title" in edit.sets and edit.title else old.title
        if stays or not old.path.startswith("nodes/"):
            return replace(node, heading=title)
        paths = numbered_paths(node.type, title)
        path = next(p for p in paths if p == old.path or not self.is_taken(p, by=old.id))
        names = dict.fromkeys(
            (*title_alias(title, path), *node.aliases, *([old.path] if path != old.path else []))
        )
        heading = old.heading if title == old.title else ""
        return replace(node, path=path, heading=heading, aliases=tuple(n for n in names if n != path))

    def said_since(self, edit: Edit, path: str) -> bool:
        """Return whether *edit* was said after a person last saved the note at *path*."""
        return edit.said_ms > self.graph.vault.file(path).stat().st_mtime * 1000

    def supersede(self, edit: Edit, old: Node | None = None) -> str | None:
        """
        Draft a new note that replaces the target of *edit*, and return the new note's path.

        The new note's History quotes *old*, a state of the target; by default, the present state. The target's file
        stays, but the maps no longer list the target.
        """
        assert edit.target is not None
        old = old or self.draft(edit.target).node
        earlier = edit.said_ms and edit.said_ms < last_said_ms(old)
        if one_line(edit.description) == old.description or earlier:
            return self.update(edit)
        line = f"{former_state(old, old.event, self.day)} ({wikilink(old.path, old.title)})"
        replacement = replace(edit, op="create", about=None)
        path = self.create(replacement, history=(line,), supersedes=(old.path,))
        if path is not None and path != old.path:
            self.mark_superseded(old.path, path)
            if old.pinned:
                self.amend(path, pinned=True)
        return path

    def succeed(self, change: Restated) -> str | None:
        """
        Draft a successor of a note whose text a person wrote, and return its path.

        The successor is a new file with the note's text, updated by the edit. If the note is less trusted than
        the edit, the note's text is left out.
        """
        edit, old = change.edit, change.old
        said, text = told_words(edit.description), self.draft(old.path).text
        main, lines = split_history(old.body)
        main = H1.sub("", main, count=1).strip()
        sentences = split_sentences(main)
        old = replace(old, body=with_history_lines(main, lines))
        if sentences and "description" not in load_properties(text[split_head(text)[0]]):
            # The description is a line of the text. The edit replaces the sentence most like the edit.
            old = replace(old, description=max(sentences, key=lambda s: len(told_words(s) & said)))
        # A sentence whose words are all in the new description differs only in a former day or number.
        words = {s: {w for w in told_words(s) if not w[0].isdigit()} for s in sentences}
        stale = tuple(sentence for sentence in sentences if words[sentence] and words[sentence] <= said)
        node = self.updated(old, replace(edit, drop=(*edit.drop, *stale)))
        trusted = trust_of(node.origin) >= trust_of(edit.origin)
        whole = replace(
            edit,
            description=node.description,
            body=split_history(node.body)[0] if trusted else edit.body,
            links=tuple(link for link in node.links if not link.startswith("mocs/")),
            **{name: getattr(node, name) for name in IN_BOTH},
        )
        path = self.supersede(whole, old)
        if path is not None and path != old.path:
            made = self.draft(path).node
            sources = merged_sources(old.sources, made.sources)
            self.amend(path, sources=sources, extra={**node.extra, **made.extra})
        return path

    def put_beside(self, change: Restated) -> str | None:
        """
        Draft the edit as a new note that contradicts the old note.

        The edit is newer than the old note's messages, but older than the person's last change of that note. So
        OMG cannot tell which of the two is true.
        """
        edit, old = change.edit, change.old
        beside = next((path for path in old.contradicts if self.draft(path).ours), None)
        loop, event = edit.loop or old.loop, edit.event or old.event
        edit = replace(edit, about=None, target=beside, loop=loop, event=event)
        path = self.update(edit) if beside else self.create(edit, beside=old.path)
        if path is not None and path != old.path:
            self.contradict(path, old.path)
        return path

    def recall_earlier(self, change: Restated) -> str:
        """Add the edit only to the History, because the edit is from an older conversation than the note."""
        draft, edit = change.draft, change.edit
        line = news_line(self.day, edit, draft.node)
        main, lines = split_history(draft.node.body)
        lines = tuple(sorted(dict.fromkeys((*lines, line)), key=lambda line: line[:12]))  # by day
        sources = merged_sources(draft.node.sources, edit.sources)
        node = replace(draft.node, sources=sources, body=with_history_lines(main, lines))
        return self.rewrite(draft, node, Rebase(history=line))

    def mark_superseded(self, path: str, successor: str) -> None:
        """Mark the note at *path*, and each proposal to correct this note, as superseded by *successor*."""
        for proposal in self.corrections_proposed(path):
            self.mark_superseded(proposal, successor)
        draft = self.draft(path)
        self.lift_contradictions(draft.node)
        node = replace(draft.node, status="superseded", superseded_by=successor, updated=self.day)
        self.rewrite(draft, node, Rebase(set={"status": "superseded", "superseded_by": wikilink(successor)}))

    def corrections_proposed(self, path: str) -> list[str]:
        """Return the paths of the unconfirmed corrections of the note at *path*."""
        found = []
        for beside in self.graph.index.backlinks(path):
            with suppress(BadNode, NotFound):
                node = self.graph.vault.read(beside)
                if node.status == "active" and node.proposes == wikilink(path):
                    found.append(beside)
        return found

    def contradict(self, one: str, other: str) -> None:
        """
        Mark two notes that cannot both be true: each names the other in its property `contradicts` and in its
        History.

        A note that a person edited gets only the History line. Marking twice changes nothing more. Raises
        NotFound, BadNode.
        """
        for path, there in ((one, other), (other, one)):
            draft, against = self.draft(path), self.draft(there).node
            line = f"{wikilink(against.path, against.title)} says otherwise, and neither says which holds"
            if against.path in draft.node.contradicts or (not draft.ours and line in draft.text):
                continue
            main, lines = split_history(draft.node.body)
            body = with_history_lines(main, (*lines, f"- {self.day}: {line}"))
            named = (*draft.node.contradicts, against.path)
            node = replace(draft.node, contradicts=named, body=body)
            self.rewrite(draft, node, Rebase(history=f"- {self.day}: {line}"))

    def lift_contradictions(self, node: Node) -> list[str]:
        """
        Remove *node* from the property `contradicts` of other notes.

        Call this when *node* changes or no longer holds. Returns the paths of the changed notes that a person edited
        and that have the title of *node*. The caller decides anew whether *node* contradicts these notes.
        """
        theirs: list[str] = []
        for path in node.contradicts:
            with suppress(NotFound, BadNode):
                draft = self.draft(path)
                left = tuple(t for t in draft.node.contradicts if t != node.path)
                self.amend(path, contradicts=left)
                theirs += [path] * (draft.touched and draft.node.title == node.title)
        return theirs

    def amend(self, path: str, **changes: Any) -> str:
        """Change only the given frontmatter fields of the note at *path*. *changes* has names as in `Node`."""
        draft = self.draft(path)
        node = replace(draft.node, **changes)
        was, now = head_of(draft.node), head_of(node)
        return self.rewrite(
            draft, node, Rebase(set={k: now.get(k) for k in (*was, *now) if was.get(k) != now.get(k)})
        )

    def retitle(self, path: str, moved: Node, was: str) -> str:
        """
        Set the aliases and the title of a note that gets a new path, and return *path*.

        *path*: where the note's file is now. *was*: the note's former path. *moved*: the note with its new path and new
        aliases. A title made from the former file name is made again from the new file name. Any other title stays.
        """
        unnamed = replace(moved, heading="")
        by_name = replace(unnamed, path=was, aliases=self.draft(path).node.aliases).title
        titled = with_heading(unnamed if moved.heading == by_name else moved)
        self.amend(path, aliases=moved.aliases, heading=titled.heading)
        draft = self.drafts[path]
        if not draft.ours and path == was and moved.heading == by_name:  # only this line changes
            text = draft.text.replace(f"# {by_name}\n", f"# {unnamed.title}\n", 1)
            self.drafts[path] = replace(draft, node=parse_node(text, path), text=text)
        return path

    # --- drafts

    def draft(self, path: str) -> NoteDraft:
        """Return the draft of *path*. Without a draft, begin one from the file. Raises NotFound, BadNode."""
        path = self.place_now(path)
        if path not in self.drafts:
            vault = self.graph.vault
            text = vault.text(path)
            node = vault.parse(self.with_links_from_root(text), path)
            theirs = vault.theirs(text.encode("utf-8"))
            ours = BODY_PART not in theirs and not vault.read_only(path)
            self.drafts[path] = NoteDraft(text, node, text, ours, theirs=theirs if ours else frozenset())
        return self.drafts[path]

    def place_now(self, path: str) -> str:
        """Return the present path of the note at *path*, which an edit may have renamed."""
        while path in self.moved:
            path = self.moved[path]
        return path

    def with_links_from_root(self, text: str) -> str:
        """
        Return *text* with links relative to the vault's root. Links written from a folder above the root are
        changed.
        """

        def from_here(link: re.Match[str]) -> str:
            return self.graph.index.resolve(link[0]) or link[0]

        return FROM_ABOVE.sub(from_here, text)

    def rewrite(self, draft: NoteDraft, node: Node, rebase: Rebase) -> str:
        former = draft.node
        if draft.ours:
            node = with_node_properties(node, draft.node, draft.theirs - rebase.set.keys())
            node = node if node == draft.node else with_heading(node)
            text = draft.text if node == draft.node else render_node(node)
        else:
            history = None if rebase.history and rebase.history in draft.text else rebase.history
            text = amend_text(draft.text, set=rebase.set, history=history)
            node = self.graph.vault.parse(text, node.path)
        both = Rebase(set={**draft.rebase.set, **rebase.set}, history=rebase.history or draft.rebase.history)
        if (was := draft.node.path) != node.path:
            del self.drafts[was]
            self.moved[was] = node.path
            draft = replace(draft, was=draft.was or was)
        self.drafts[node.path] = replace(draft, node=node, text=text, rebase=both)
        self.maps.add(former)
        self.maps.add(node)
        return node.path

    def free_path(self, edit: Edit) -> tuple[str, bool]:
        """
        Return a free path for *edit*, and False. If an active note with this title already says the same as *edit*, or
        if *edit* is to be added to it (`Edit.joins`), return the path of that note, and True.
        """
        for path in numbered_paths(edit.type, edit.title):
            if not self.is_taken(path):
                return path, False
            with suppress(BadNode, NotFound):
                node = self.draft(path).node
                says_same = one_line(edit.description) == node.description
                joined = edit.joins and edit.origin == node.origin
                if node.status == "active" and (says_same or joined):
                    return node.path, True
            if path in self.drafts and self.drafts[path].text == self.drafts[path].before:
                del self.drafts[path]
        raise AssertionError("numbers do not end")

    def is_taken(self, path: str, by: str = "") -> bool:
        """
        Return whether *path* cannot be given to a note, because it is or was another note's path.

        *by*: the id of the note that wants *path*. A note may get its own former path back.
        """
        if path in self.drafts or path in self.moved or self.graph.vault.bytes(path) is not None:
            return True
        there = self.graph.index.entry("omg/" + path.removeprefix("nodes/"))
        return there is not None and there.id != by

    def link_mentions(self, links: Iterable[str], body: str) -> tuple[tuple[str, ...], str]:
        """
        Link the title of each note in *links* at its first mention in *body*. Return the links that *body* does
        not mention, and the text.
        """
        rest = []
        for path in dict.fromkeys(map(self.place_now, links)):
            title = self.title(path)
            if title is None:
                continue
            linked = with_link_at(body, title, path)
            rest += [path] * (linked is None)
            body = linked or body
        return tuple(rest), body

    def title(self, path: str) -> str | None:
        if (path := self.place_now(path)) in self.drafts:
            return self.drafts[path].node.title
        entry = self.graph.index.entry(path)
        return entry.title if entry else None

    # --- from drafts to changes

    def drafted(self) -> dict[str, Entry]:
        """Return path → the note as the index will have it, for drafts that change their file."""
        left = {d.was: d.node for d in self.drafts.values() if d.was}
        gone = {was: replace(as_entry(node), path=was, status="superseded") for was, node in left.items()}
        return gone | {p: as_entry(d.node) for p, d in self.drafts.items() if d.text != d.before}

    def entries(self) -> list[Entry]:
        """Return the active drafts as notes of the index, in the order they were begun."""
        nodes = [d.node for d in self.drafts.values() if d.text != d.before]
        return [as_entry(n) for n in nodes if n.status == "active" and n.type not in GENERATED]

    def changes(self) -> list[Change]:
        """
        Return the changes of all drafts. Leaves out notes that were forgotten meanwhile. Call this under the
        vault's lock.
        """
        self.leave_out_forgotten()
        self.follow_renamed()
        notes: list[Change] = []
        for path, d in self.drafts.items():
            if d.was is None or d.before is None:
                notes += [Change(path, d.before, d.text, d.rebase, theirs=not d.ours)] * (d.text != d.before)
            elif (self.graph.vault.bytes(d.was), self.graph.vault.bytes(path)) != (d.before.encode(), None):
                # A person saved, moved or made the file meanwhile.
                notes.append(Change(d.was, d.before, d.text, d.rebase))
            else:
                mode = self.graph.vault.mode(d.was)
                notes += [Change(path, None, d.text, mode=mode), Change(d.was, d.before, None, mode=mode)]
        maps = self.maps.changes()
        gone = {c.path for c in maps if c.after is None}
        return [c for c in notes if c.path not in gone] + maps

    def follow_renamed(self) -> None:
        """
        Update links in OMG's text after renamings and settled proposals.

        A link to a renamed note gets the new path. A link to a settled proposal leads to the note that now says
        the same. Maps and Now are generated anew elsewhere.
        """
        moved = {d.was: path for path, d in self.drafts.items() if d.was}
        for path, d in self.drafts.items():
            if d.node.proposes and d.node.superseded_by:
                moved[path] = self.place_now(d.node.superseded_by)
        linking = {back for was in moved for back in self.graph.index.backlinks(was)}
        for path in {*self.drafts, *linking} if moved else ():
            if path.startswith(("nodes/", "reflections/")):
                with suppress(NotFound, BadNode):  # a person removed or broke the note meanwhile
                    self.relink(path, moved)

    def relink(self, path: str, moved: Mapping[str, str | None]) -> bool:
        """
        In the note at *path*, change each link to a key of *moved* into a link to the key's value.

        If the value is None or the note itself, only the link's words stay. Returns False if a person edited
        the note, or there is no such link.
        """
        draft = self.draft(path)
        own, text = draft.node.path, draft.text
        for old, new in moved.items():
            text = with_link(text, old, new) if new and new != own else text
        gone = {old for old, new in moved.items() if not new or new == own}
        node = parse_node(text, own) if text != draft.text else draft.node
        kept = replace(
            node,
            links=tuple(link for link in node.links if link not in gone),
            body=WIKILINK.sub(
                lambda m: link_label(m[1]) if LINK_END.split(m[1])[0] in gone else m[0], node.body
            ),
        )
        if not draft.ours or (kept, text) == (draft.node, draft.text):
            return False
        text = text if kept == node else render_node(kept)
        self.drafts[own] = replace(draft, node=kept, text=text)
        self.maps.add(kept)
        return True

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
