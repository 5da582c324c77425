"""A person's own edits: write, link, merge, rename, undo, export, join accounts."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from . import journal
from .config import set_value, set_vault
from .errors import BadInput, BadNode, NotFound
from .forget.erase import forget_now
from .forget.places import JOINED, Holding, holding
from .forget.selection import Selection, Wanted, select
from .graph.graph import GRAPH_MARK, Graph, marked_identity
from .graph.state import State, append_lines, read_object, write_private
from .identity import identity_of_session
from .message.turn import Message
from .node.markdown import slugify, without_code
from .node.note import TYPES, Node, amend_text
from .plan.corrections import Correction, correction_proposed, draft_correction, take_up
from .plan.drafts import PERSONS, Plan
from .plan.edits import Edit, as_read, one_line, title_alias
from .plan.pages import MapPages, persons_words
from .reflect.similar import merge_notes
from .rules.quotes import named_days, with_days
from .secrets import redact
from .text.characters import WIKILINK, with_labels
from .text.words import split_sentences, words_in
from .worker.intake import Intake
from .worker.registry import Registry

# --- What a person does to notes: find, write, link, merge, rename, supersede, pin, forget.
#
# Each change is one receipt and can be undone, except forgetting. A function does what is asked, or raises an error with the
# reason. cli/notes.py and tools/tools.py call these functions.


SEARCH = "`omg search WORDS` finds notes by what they say"
PAGES = ("index", "now", "moc", "log")  # types of generated pages, which are not notes themselves


def find_note(graph: Graph, name: str) -> str:
    """
    Return the path of the note that *name* means: a path, id, alias or file name, present or former. Raises NotFound, with
    the nearest name, and BadInput if several notes fit.
    """
    path = graph.index.resolve(name) if name else None
    if path is not None:
        return path
    if several := graph.index.ambiguous(name):
        raise BadInput(f"{name!r} may mean any of {', '.join(several)}; give the path")
    asked, names = name.removesuffix(".md").casefold(), dict[str, str]()
    for entry in graph.index.entries(status=None):
        for known in (entry.path, entry.id, last_part(entry.path), last_part(entry.id)):
            names.setdefault(known.casefold(), entry.path)
    near = [path for known, path in names.items() if asked in words_in(known)]
    near += [names[known] for known in difflib.get_close_matches(asked, names, n=1)]
    raise NotFound(f"no note {name!r}; " + (f"did you mean {near[0]}?" if near else SEARCH))


@dataclass(frozen=True, slots=True)
class OpenNote:
    """A note with the text of its file, the paths of the notes that link to it, and the messages that it was made from."""

    node: Node
    text: str
    backlinks: list[str]
    messages: list[Message]


def open_note(graph: Graph, name: str) -> OpenNote:
    """Open the note *name*: a path, a title, or the short name that a prompt shows. Raises NotFound, BadInput, BadNode."""
    path = (graph.index.find(name) if name else None) or find_note(graph, name)
    node = graph.vault.read(path)
    messages = graph.index.messages([s.id for s in node.sources])
    return OpenNote(node, graph.vault.text(path), graph.index.backlinks(path), messages)


def last_part(name: str) -> str:
    return name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class CurationResult:
    """The path of the changed note, and the id of the cycle for `omg undo`; None if nothing was written."""

    path: str
    cycle: str | None


@contextmanager
def planning_under_lock(graph: Graph, now: datetime) -> Iterator[Plan]:
    """Finish receipts that a crash left open, then yield a plan while the vault is locked."""
    with graph.lock():
        journal.replay_open(graph)
        yield Plan(graph, now.astimezone(graph.zone).date())


def done_with(
    plan: Plan, path: str, now: datetime, summary: str, changes: Sequence[journal.Change] | None = None
) -> CurationResult:
    """Write *changes* (None: the changes of *plan*) as one cycle. Raises BadInput if a note is read-only."""
    graph = plan.graph
    changes = [*plan.changes(), *plan.maps.now_changes(plan.day)] if changes is None else changes
    if not changes:
        return CurationResult(path, None)
    for locked in (c.path for c in changes if graph.vault.read_only(c.path)):
        raise BadInput(
            f"{locked}.md is read-only; to change it, chmod u+w {graph.vault.file(locked)}; nothing was written"
        )
    receipt = journal.new_receipt("edit", now, changes, summary=(summary,), person=True)
    journal.commit_receipt(graph, receipt)
    return CurationResult(path, receipt.id)


def write_edits(graph: Graph, edits: Sequence[Edit], now: datetime, summary: str) -> str:
    """
    Write *edits* as one cycle, and return the path of the last note. "{path}" in *summary* stands for that path.

    Raises BadInput if the note may not be written.
    """
    with planning_under_lock(graph, now) as plan:
        return applied(plan, edits, now, summary).path


def applied(plan: Plan, edits: Sequence[Edit], now: datetime, summary: str) -> CurationResult:
    path = None
    for edit in edits:
        path = plan.apply(edit)
    if path is None:
        raise BadInput(f"{plan.dropped[-1] if plan.dropped else 'nothing to write'}; nothing was written")
    return done_with(plan, path, now, summary.replace("{path}", path))


def new_note(graph: Graph, type: str, title: str, text: str, now: datetime) -> CurationResult:
    if type not in TYPES:
        near = difflib.get_close_matches(type, TYPES, n=1)
        raise BadInput(
            f"{type!r} is not a type of note{f'; did you mean {near[0]}?' if near else ''}; types: {', '.join(TYPES)}"
        )
    if not title.strip():
        raise BadInput("a note needs a title: `omg new TYPE TITLE --text …`")
    text = text.strip() or title.strip()
    first = one_line(split_sentences(text)[0])
    edit = Edit("create", title=title, description=with_labels(first), type=type, body=text, origin="human")
    with planning_under_lock(graph, now) as plan:
        path, same = plan.free_path(edit)
        there = as_read(plan.draft(path).node.body) if same else ""
        if same and as_read(text) not in there:  # `apply` would add the rest to that note
            raise BadInput(
                f"{path} begins with the same sentence; add the rest to that note, or begin with another sentence"
            )
        return applied(plan, [edit], now, "wrote {path}")


def amend_note(graph: Graph, path: str, now: datetime, summary: str, **changes: Any) -> CurationResult:
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        if all(getattr(node, name) == value for name, value in changes.items()):
            return CurationResult(path, None)
        plan.amend(path, **changes)
        return done_with(plan, path, now, summary)


def pin_note(graph: Graph, path: str, now: datetime, *, pinned: bool = True) -> CurationResult:
    refuse_pages(graph, path)
    if path.startswith("inbox/"):
        raise BadInput(f"{path} is in the inbox, where notes cannot be pinned; move it below nodes/ first")
    return amend_note(graph, path, now, f"{'pinned' if pinned else 'unpinned'} {path}", pinned=pinned)


def link_notes(graph: Graph, path: str, to: str, now: datetime) -> CurationResult:
    """Link the note at *path* with the note at *to*, in the frontmatter of the first."""
    if path == to:
        raise BadInput(f"{path} cannot be linked to itself")
    refuse_pages(graph, path)
    links = graph.vault.read(path).links
    return amend_note(
        graph, path, now, f"linked {path} to {to}", links=links if to in links else (*links, to)
    )


def refuse_pages(graph: Graph, *paths: str) -> None:
    """Raise BadInput if one of *paths* is a page that OMG generates."""
    for path in paths:
        entry = graph.index.entry(path)
        if entry is not None and entry.type in PAGES:
            raise BadInput(f"{path} is a page that OMG writes; name a note instead")


def supersede_by(graph: Graph, old: str, successor: str, now: datetime) -> CurationResult:
    """Mark the note *old* as replaced by *successor*. Both files stay; the maps no longer list *old*."""
    if old == successor:
        raise BadInput(f"{old} cannot supersede itself")
    refuse_pages(graph, old, successor)
    with planning_under_lock(graph, now) as plan:
        former = plan.draft(successor).node
        refuse_retired(former)
        if plan.draft(old).node.superseded_by == successor:
            return CurationResult(old, None)
        plan.amend(successor, supersedes=tuple(dict.fromkeys((*former.supersedes, old))))
        plan.mark_superseded(old, successor)
        return done_with(plan, old, now, f"{successor} supersedes {old}")


def refuse_retired(node: Node) -> None:
    if node.status == "superseded":
        by = f" by {node.superseded_by}" if node.superseded_by else ""
        raise BadInput(
            f"{node.path} is itself superseded{by}. First undo that: find the cycle's name with"
            f" `omg history {node.path}`, then run `omg undo NAME`"
        )


def merge_into(graph: Graph, keep: str, gone: str, now: datetime) -> CurationResult:
    """Merge text, sources and links of the note *gone* into *keep*, and mark *gone* as superseded by *keep*."""
    if keep == gone:
        raise BadInput(f"{keep} cannot be merged into itself")
    refuse_pages(graph, keep, gone)
    with planning_under_lock(graph, now) as plan:
        refuse_retired(plan.draft(keep).node)
        if plan.draft(gone).node.superseded_by == keep:
            return CurationResult(keep, None)
        merge_notes(plan, keep, gone, asked=True)
        return done_with(plan, keep, now, f"merged {gone} into {keep}")


def rename_note(graph: Graph, path: str, new_name: str, now: datetime) -> CurationResult:
    """Move the note at *path*, keep its id, add its former path as an alias, and rewrite every link to the note."""
    refuse_pages(graph, path)
    target = renamed_path(path, new_name)
    if target == path:
        return CurationResult(path, None)
    with planning_under_lock(graph, now) as plan:
        if graph.vault.bytes(target) is not None:
            raise BadInput(f"{target} exists already; merge the two notes, or choose another name")
        before = graph.vault.text(path)
        node = graph.vault.read(path)
        name = last_part(target)
        title = title_alias(name, target) if name != slugify(name) else ()  # "iPhone", and not "IPhone"
        names = dict.fromkeys((*title, *node.aliases, path))
        aliases = tuple(alias for alias in names if alias != target)
        plan.retitle(path, replace(node, path=target, aliases=aliases), path)
        draft = plan.drafts[path]
        # The maps now list the note at its new path, and no longer at the old path.
        there = replace(draft.node, path=target)
        plan.drafts = {
            path: replace(draft, node=replace(node, status="superseded")),
            target: replace(draft, before=None, node=there),
        }
        changes = {c.path: c for c in plan.maps.changes()}
        for other in graph.index.backlinks(path):
            was = graph.vault.text(other)
            change = changes.get(other) or journal.Change(
                other, was, was, theirs=not is_untouched(graph, other)
            )
            changes[other] = replace(change, after=with_links_to(graph, change.after or "", path, target))
        # Both changes record the file's owner (OMG or a person) and its permissions, so that undo restores both.
        if draft.theirs:
            graph.vault.keep_persons_parts(path, before.encode())
        kept: dict[str, Any] = {"theirs": not draft.ours, "mode": graph.vault.mode(path)}
        moved = [
            journal.Change(target, None, with_links_to(graph, draft.text, path, target), **kept),
            journal.Change(path, before, None, **kept),
        ]
        moved += [c for c in changes.values() if c.after != c.before and c.path != path]
        return done_with(plan, target, now, f"renamed {path} to {target}", moved)


def renamed_path(path: str, name: str) -> str:
    """
    Return the new path. *name* is a file name in the folder of *path*, or a path below the vault. Raises BadInput.
    """
    name = name.strip().removesuffix(".md")
    if not name:
        raise BadInput("the new name is empty; give a file name, or a path below the vault")
    if re.search(r'[\[\]|#^:*?"<>\\]', name):
        raise BadInput(
            f'{name!r}: some systems or links cannot hold this name; leave out [ ] | # ^ : * ? " < > \\'
        )
    return name if "/" in name else f"{path.rpartition('/')[0]}/{name}".lstrip("/")


def with_links_to(graph: Graph, text: str, old: str, new: str) -> str:
    """
    Change every wikilink in *text* from the note *old* to *new*, in whatever form the link was written. A link keeps
    its heading and its label. A link that begins above the vault, such as [[Work/vault/nodes/x]], keeps that beginning
    ("Work/vault/"). A link by the note's id needs no change.
    """
    parts, end = [], 0
    known = graph.index.entry(old)
    for found in WIKILINK.finditer(without_code(text)):
        target, rest = re.fullmatch(r"([^|#]*)(.*)", found[1], re.S).groups()  # type: ignore[union-attr]
        name = target.strip().removesuffix(".md")
        if not name or (known and name == known.id) or graph.index.resolve(name) != old:
            continue
        above = name[: -len(old)] if name.casefold().endswith(f"/{old}".casefold()) else ""
        shown = rest if rest or name.casefold() == f"{above}{old}".casefold() else f"|{name}"
        parts += [text[end : found.start()], f"[[{above}{new}{shown}]]"]
        end = found.end()
    return "".join(parts) + text[end:]


def select_to_forget(
    graph: Graph,
    *,
    ids: Sequence[str] = (),
    matching: str | None = None,
    held: Holding | None = None,
    **what: Any,
) -> Selection:
    """
    Select the notes and messages to forget; see forget/selection.py. *held*: the result of `holding` for *matching*, if the
    caller has it already. Raises NotFound, BadInput.
    """
    if matching is not None and len(matching.strip()) < 2:
        raise BadInput(f"{matching!r} would match nearly everything; give a word or more")
    if matching is not None and held is None:
        held = holding(graph, matching)
    return select(graph, Wanted([note_to_forget(graph, name) for name in ids], held=held, **what))


def note_to_forget(graph: Graph, name: str) -> str:
    """
    Return the path of the note that *name* means.

    *name* may also be the path of a note by OMG whose file a person deleted. Raises NotFound and BadInput like
    `find_note`.
    """
    path = name.removesuffix(".md")
    return path if was_deleted(graph, path) else find_note(graph, name)


def was_deleted(graph: Graph, path: str) -> bool:
    """Whether OMG wrote a note at *path* whose file is gone."""
    return graph.vault.wrote(path) and graph.vault.bytes(path) is None


def is_untouched(graph: Graph, path: str) -> bool:
    """Whether only OMG has written the file at *path*."""
    data = graph.vault.bytes(path)
    return data is None or graph.vault.ours(data)


def forget_selection(intake: Intake, graph: Graph, what: Selection) -> None:
    """Forget *what* for good; see forget/erase.py. First take in the spool, so that waiting turns are covered, too."""
    intake.take_in()
    with graph.lock():
        journal.replay_open(graph)
        forget_now(graph, what)


# --- What an assistant proposes, until the person confirms the proposal.


def propose_note(graph: Graph, text: str, title: str, event: str | None, now: datetime) -> str:
    """Write *text* as a note that the assistant proposes, and return the note's path. *event*: the day or days of an event."""
    text, title = (redact(one_line(given))[0] for given in (text, title))
    if not text:
        raise BadInput("remember what? give `text`, one line")
    title = title or text[:50]
    edit = Edit("create", title, text, event=event, origin="assistant", proposes="fact")
    return write_edits(graph, [edit], now, f"proposed {edit.title}")


def propose_correction(graph: Graph, name: str, new: str, now: datetime) -> str:
    """Write a proposal to correct the note *name* to *new*, and return the proposal's path. The note itself stays."""
    new = redact(one_line(new))[0]
    if not new:
        raise BadInput("correct it to what? give `new`, the whole sentence that is right")
    path = find_note(graph, name)
    refuse_pages(graph, path)
    node = graph.vault.read(path)
    refuse_retired(node)
    edit = correction_proposed(node, Correction(node.description, new), ())
    return write_edits(graph, [edit], now, f"proposed a correction of {path}")


def confirm_note(graph: Graph, name: str, now: datetime) -> CurationResult:
    """
    Mark the note *name* as confirmed by the person.

    If the note only proposes to correct another note, the other note is corrected and marked as confirmed. Raises
    BadInput if the note is already the person's own.
    """
    path = find_note(graph, name)
    refuse_pages(graph, path)
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        refuse_retired(node)
        if node.origin in PERSONS:
            raise BadInput(f"{path} is already the person's own note; nothing was changed")
        if node.proposes:
            if (done := take_up(plan, path)) is None:
                raise BadInput(
                    f"{path} proposes to correct a sentence of another note, but that note no longer has the sentence; nothing was changed"
                )
            path = done
        elif node.priority == "low":  # a night lowered it because nobody had confirmed the note
            plan.amend(path, priority="medium")
        plan.amend(path, origin="human")
        return done_with(plan, path, now, f"confirmed {path}")


def correct_note(graph: Graph, name: str, new: str, now: datetime) -> CurationResult:
    """
    Replace the description of the note *name* by *new*, a person's correction.

    The former description goes to the History of the note. If the note does not hold a person's words, a new note
    replaces the whole note. Raises NotFound, and BadInput if *new* is empty or changes nothing.
    """
    new = with_labels(redact(one_line(new))[0])
    if not new:
        raise BadInput("correct it to what? write the whole sentence that is right")
    path = find_note(graph, name)
    refuse_pages(graph, path)
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        refuse_retired(node)
        new = with_days(new, named_days(new, plan.day))
        if as_read(new) == as_read(node.description):
            raise BadInput(f"{path} says so already; nothing was changed")
        theirs = node.origin in PERSONS
        done = draft_correction(plan, path, Correction(node.description, new), ()).path
        if not theirs:  # a new note, without a message as its source
            plan.amend(done, origin="human")
        return done_with(plan, done, now, f"corrected {done}")


def reject_note(graph: Graph, name: str, now: datetime) -> CurationResult:
    """
    Remove the note *name*, because the note is wrong or about somebody else. Its messages stay, but OMG makes no note from
    these messages again. Undo brings the note back.
    """
    path = find_note(graph, name)
    refuse_pages(graph, path)
    with planning_under_lock(graph, now) as plan:
        draft = plan.draft(path)
        node, before = draft.node, graph.vault.text(path)
        plan.lift_contradictions(node)
        plan.amend(path, status="superseded")  # so that the maps no longer list the note
        pages = [c for c in (*plan.changes(), *plan.maps.now_changes(plan.day)) if c.path != path]
        gone = journal.Change(path, before, None, theirs=not draft.ours, mode=graph.vault.mode(path))
        done = done_with(plan, path, now, f"removed {path}: wrong", [gone, *pages])
        graph.tombstones.add([s.id for s in node.sources if s.id], node.id)
        return done


def keep_both(graph: Graph, path: str, other: str, now: datetime) -> CurationResult:
    """Remove the mark of contradiction between the notes *path* and *other*, because both are true."""
    with planning_under_lock(graph, now) as plan:
        for here, there in ((path, other), (other, path)):
            left = tuple(p for p in plan.draft(here).node.contradicts if p != there)
            if left != plan.draft(here).node.contradicts:
                plan.amend(here, contradicts=left)
        return done_with(plan, path, now, f"kept both {path} and {other}")


# --- Undoes a cycle, and lists the cycles. Notes that were edited since stay as they are, and the result names them.


def take_back(graph: Graph, cycle: str, now: datetime) -> tuple[journal.Outcome, list[str]]:
    """
    Undo *cycle* and make the maps anew. Return the outcome, and the paths left alone because they were edited since.
    """
    with graph.lock():
        journal.replay_open(graph)
        outcome, refused = journal.undo_receipt(graph, cycle, now)
        if changes := MapPages(graph).anew(now.astimezone(graph.zone).date()):
            journal.commit_receipt(graph, journal.new_receipt("edit", now, changes, name="maps"))
    return outcome, refused


def undoable(graph: Graph, cycle: str | None) -> journal.Receipt:
    """
    Return the receipt of *cycle*. None means the person's latest change that is not undone.

    Raises NotFound, BadInput.
    """
    if cycle is not None:
        return journal.find_receipt(graph, cycle)
    undone = journal.undone_cycles(graph)
    for r in journal.receipts_of(graph):
        # A receipt has no summary if its notes were forgotten.
        if r.kind == "edit" and r.person and r.summary and r.id not in undone:
            return r
    raise NotFound(
        "no change of yours is left to undo; `omg history` lists all cycles, `omg undo CYCLE` undoes one"
    )


def closed_cycles(graph: Graph, path: str | None = None) -> list[journal.Receipt]:
    """Return the closed cycles, newest first. With *path*, only those that changed that note under any of its names."""
    if path is None:
        return journal.receipts_of(graph)
    names = {path}
    with suppress(BadNode):
        names.update(graph.vault.read(path).aliases)
    return [r for r in journal.receipts_of(graph) if any(c.path in names for c in r.changes)]


# --- Moves a memory to another key: after a change of dmScope, or if two accounts belong to one person.
#
#     join   enters a name and its accounts in [identity.links], and merges their graphs
#     move   moves a graph to another key; if that key has a graph, the two are merged
#
# Nothing is lost: a merged graph is kept whole in `joined/`, notes that differ are both kept, and the merge is a cycle that
# can be undone. The caller holds the home's daemon lock.


def join_accounts(registry: Registry, name: str, accounts: Sequence[str]) -> list[tuple[str, str]]:
    """
    Record that *accounts* all belong to the person *name*, and merge the graphs of the accounts.

    *accounts*: each as "channel:sender". *name*: a name of one's choice; `owner` means the person of the main session.
    Returns (old key, new key) for each graph that was moved. Raises BadInput.
    """
    if not name.strip() or any(":" not in account.strip(":") for account in accounts):
        raise BadInput("give a name and accounts as channel:sender, such as `ada telegram:111 discord:222`")
    known = registry.config.identity.links.get(name, [])
    links = {**registry.config.identity.links, name: list(dict.fromkeys((*known, *accounts)))}
    set_value(registry.folder, "identity.links", name, links[name])
    moves = []
    for who in registry.identities():
        now = identity_of_session(who.key, links=links)
        if now is not None and now.key != who.key:
            move_identity(registry, who.key, now.key)
            moves.append((who.key, now.key))
    return moves


def move_identity(registry: Registry, old: str, new: str) -> str:
    """Move the graph of the identity *old* to *new*. Return its new folder."""
    # Find the folder by its identity.json, because a crash may have left the folder under another name.
    found = (registry.folder / "graphs").glob(f"[!.]*/{GRAPH_MARK}")
    marks = {who.key: (mark, who) for mark in sorted(found) for who in [marked_identity(mark)]}
    if old not in marks:
        raise NotFound(f"no memory of {old!r}; `omg identity list` lists the keys that have one")
    to = identity_of_session(
        new, links=registry.config.identity.links, asked=registry.config.identity.members
    )
    if to is None or to.key == old:
        raise BadInput(
            f"{old!r} cannot be moved to {new!r}: the new key has to be the session key of a person, such as"
            " agent:main:telegram:direct:111, and another identity than the old key"
        )
    mark, who = marks[old]
    if to.key in marks:
        source = registry.graph(who)
        with source.lock(), registry.graph(to).lock():
            merge_graphs(registry, source, registry.graph(to))
        target = registry.folder / "joined" / source.folder.name
        while target.exists():
            target = target.with_name(f"{target.name}-again")
    else:
        target = registry.folder / "graphs" / to.folder
        if vault := registry.config.vaults.get(old):
            set_vault(registry.folder, to.key, vault)
    registry.forget_open(old)
    if target.parent.name == "joined":
        kept_apart = {"vault": str(vault)} if (vault := registry.config.vaults.get(old)) else {}
        write_private(mark.parent / JOINED, json.dumps({"into": to.key, **kept_apart}))
    for earlier in (registry.folder / "joined").glob(f"*/{JOINED}"):
        if (told := read_object(earlier)).get("into") == old:
            write_private(earlier, json.dumps({**told, "into": to.key}))
    target.parent.mkdir(exist_ok=True, mode=0o700)
    mark.parent.rename(target)
    if target.parent.name == "graphs":
        write_private(target / GRAPH_MARK, json.dumps(asdict(to)))
    set_value(registry.folder, "vaults", old, None)  # otherwise two graphs could share the folder
    return str(target)


def merge_graphs(registry: Registry, source: Graph, into: Graph) -> None:
    """Copy everything from *source* to *into*, and leave *source* unchanged. A second call adds nothing."""
    now, changes = registry.clock(), tuple(move_notes(source, into))
    if changes:
        what = f"merged the memory of {source.identity.key}"
        journal.commit_receipt(
            into, journal.new_receipt("edit", now, changes, name="merged", summary=(what,), person=True)
        )
    maps = MapPages(into)
    for change in changes:
        if change.path.startswith("nodes/"):
            maps.add(into.vault.read(change.path))
    if pages := maps.changes():
        journal.commit_receipt(into, journal.new_receipt("edit", now, pages, name="maps"))
    into.index.archive(into.folder / "archive")
    for file in sorted((source.folder / "archive").glob("*.jsonl")):
        said = filter(None, file.read_text(encoding="utf-8").split("\n"))
        lines = {json.loads(line)["id"]: line for line in said}
        if fresh := [lines[id] for id in lines if id not in into.index.seen(lines)]:
            append_lines(into.folder / "archive" / file.name, fresh)
    into.index.archive(into.folder / "archive")
    for pending in source.intact():
        into.put(pending.name.split(".")[0], pending.turn())
    tombstones = source.folder / "tombstones.jsonl"
    if tombstones.exists():
        append_lines(into.folder / "tombstones.jsonl", tombstones.read_text(encoding="utf-8").splitlines())
    for file in (source.folder / "receipts").glob("*.json"):
        kept = into.folder / "receipts" / file.name
        if not kept.exists() and not file.name.endswith(".open.json"):
            write_private(kept, file.read_text(encoding="utf-8"))
    theirs = source.state()

    def both(state: State) -> None:
        state.sessions = {**theirs.sessions, **state.sessions}
        state.unread = {**theirs.unread, **state.unread}
        state.epoch += 1

    into.update(both)
    into.uses.adopt(source.uses.all())


def move_notes(source: Graph, into: Graph) -> Iterator[journal.Change]:
    """
    Yield the notes of *source* as new files of *into*, under a new name if *into* has another note of that name.

    Maps are made anew, so only what a person wrote on a map is copied, into the inbox.
    """
    found: dict[str, tuple[str, bool]] = {}
    renamed: dict[str, str] = {}
    for path in source.vault.paths():
        data = source.vault.bytes(path) or b""
        text = data.decode("utf-8", "replace")
        if path in ("index", "now") or path.startswith("mocs/"):
            if words := persons_words(text, path).strip():
                into.vault.put_inbox(f"{source.identity.key} {path}", words)
            continue
        there = into.vault.bytes(path)
        if there == data:
            continue
        target, n = path, 2
        while into.vault.bytes(target) not in (None, data) or target in found:
            target, n = f"{path}-{n}", n + 1
        if target != path:
            renamed[path] = target
            text = amend_text(text, set={"id": f"omg/{target.removeprefix('nodes/')}"})
        found[target] = (text, bool(source.vault.theirs(data)))
    for target, (text, by_hand) in found.items():
        for old, new in renamed.items():
            text = with_links_to(source, text, old, new)
        if into.vault.bytes(target) is None:
            yield replace(journal.Change(target, None, text), theirs=by_hand)
