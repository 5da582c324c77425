"""
What a person does to notes: find, write, link, merge, rename, supersede, pin, forget.

All but forgetting are one receipt each, so each can be undone. Not here: how it is asked for (cli/curate.py,
tools/tools.py). One rule: what a person says is so is done as said, or refused with the reason; nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..errors import BadInput, NotFound
from ..forget.erase import forget_now
from ..forget.redacting import Redaction
from ..forget.selection import Selection, select
from ..graph.graph import Graph
from ..journal import Change, Receipt, commit_receipt, new_receipt, replay_open
from ..message.turn import Message
from ..node.fields import TYPES
from ..node.markdown import slugify, without_code
from ..node.note import Node
from ..plan.bodies import as_read
from ..plan.drafts import Plan
from ..plan.edits import Edit, one_line, title_alias
from ..reflect.revise import merge_notes
from ..text.links import WIKILINK, with_labels
from ..text.sentences import split_sentences
from ..text.words import words_in
from ..worker.intake import Intake

SEARCH = "`omg search WORDS` finds notes by what they say"
PAGES = ("index", "now", "moc", "log")  # types that we generate, and that are no memory themselves


def find_note(graph: Graph, name: str) -> str:
    """
    The path that *name* (path, id, alias, file name, also a former one) means. Raises NotFound with the nearest,
    BadInput if ambiguous.
    """
    path = graph.index.resolve(name) if name else None
    if path is not None:
        return path
    if several := graph.index.ambiguous(name):
        raise BadInput(f"{name!r} may be any of {', '.join(several)}; give the path")
    asked, names = name.removesuffix(".md").casefold(), dict[str, str]()
    for entry in graph.index.entries(status=None):
        for known in (entry.path, entry.id, last_part(entry.path), last_part(entry.id)):
            names.setdefault(known.casefold(), entry.path)
    near = [names[known] for known in difflib.get_close_matches(asked, names, n=1)]
    near += [path for known, path in names.items() if asked and asked in words_in(known)]
    raise NotFound(f"no note {name!r}; " + (f"did you mean {near[0]}?" if near else SEARCH))


@dataclass(frozen=True, slots=True)
class OpenNote:
    """A note, `text` as it is in its file, paths of the notes that link to it, and the messages it came from."""

    node: Node
    text: str
    backlinks: list[str]
    messages: list[Message]


def open_note(graph: Graph, name: str) -> OpenNote:
    """The note that *name* means, also by the name that a prompt has for it. Raises NotFound, BadInput, BadNode."""
    path = (graph.index.find(name) if name else None) or find_note(graph, name)
    node = graph.vault.read(path)
    messages = graph.index.messages([s.id for s in node.sources])
    return OpenNote(node, graph.vault.text(path), graph.index.backlinks(path), messages)


def last_part(name: str) -> str:
    return name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class CurationResult:
    """The note that was worked on, and the cycle to undo. None: all was so already, and nothing was written."""

    path: str
    cycle: str | None


def receipt_of(plan: Plan, now: datetime, summary: str, changes: Sequence[Change] | None = None) -> Receipt:
    changes = plan.changes() if changes is None else changes
    return new_receipt("edit", now, changes, summary=(summary,), person=True)


@contextmanager
def planning_under_lock(graph: Graph, now: datetime) -> Iterator[Plan]:
    """A plan under the vault's lock, what was left open before it done."""
    with graph.lock():
        replay_open(graph)
        yield Plan(graph, now.astimezone(graph.zone).date())


def done_with(graph: Graph, path: str, receipt: Receipt) -> CurationResult:
    if not receipt.changes:
        return CurationResult(path, None)
    for locked in (c.path for c in receipt.changes if graph.vault.read_only(c.path)):
        raise BadInput(
            f"{locked}.md is read-only; to change it, chmod u+w {graph.vault.file(locked)}; nothing was written"
        )
    commit_receipt(graph, receipt)
    return CurationResult(path, receipt.id)


def write_edits(graph: Graph, edits: Sequence[Edit], now: datetime, summary: str) -> str:
    """
    Write *edits* as one cycle; returns the path of the last note, which *summary* may name as "{path}".

    Raises BadInput if it may not be written.
    """
    return written_as_cycle(graph, edits, now, summary).path


def written_as_cycle(graph: Graph, edits: Sequence[Edit], now: datetime, summary: str) -> CurationResult:
    with planning_under_lock(graph, now) as plan:
        return applied(plan, edits, now, summary)


def applied(plan: Plan, edits: Sequence[Edit], now: datetime, summary: str) -> CurationResult:
    path = None
    for edit in edits:
        path = plan.apply(edit)
    if path is None:
        raise BadInput(f"{plan.dropped[-1] if plan.dropped else 'nothing to write'}; nothing was written")
    return done_with(plan.graph, path, receipt_of(plan, now, summary.replace("{path}", path)))


def new_note(graph: Graph, type: str, title: str, text: str, now: datetime) -> CurationResult:
    if type not in TYPES:
        near = difflib.get_close_matches(type, TYPES, n=1)
        raise BadInput(
            f"{type!r} is no type of note{f'; did you mean {near[0]}?' if near else ''}; there are: {', '.join(TYPES)}"
        )
    if not title.strip():
        raise BadInput("a note needs a title: `omg new TYPE TITLE --text …`")
    text = text.strip() or title.strip()
    first = one_line(split_sentences(text)[0])
    edit = Edit("create", title=title, description=with_labels(first), type=type, body=text, origin="human")
    with planning_under_lock(graph, now) as plan:
        path, same = plan.free_path(edit)
        there = as_read(plan.draft(path).node.body) if same else ""
        if same and as_read(text) not in there:  # `apply` would add the rest to it
            raise BadInput(f"{path} begins with the same sentence; add the rest to it, or begin otherwise")
        return applied(plan, [edit], now, "wrote {path}")


def amend_note(graph: Graph, path: str, now: datetime, summary: str, **changes: Any) -> CurationResult:
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        if all(getattr(node, name) == value for name, value in changes.items()):
            return CurationResult(path, None)
        plan.amend(path, **changes)
        return done_with(graph, path, receipt_of(plan, now, summary))


def pin_note(graph: Graph, path: str, now: datetime, *, pinned: bool = True) -> CurationResult:
    refuse_pages(graph, path)
    if path.startswith("inbox/"):
        raise BadInput(
            f"{path} lies in the inbox, where nothing counts as pinned; move it below nodes/ first"
        )
    return amend_note(graph, path, now, f"{'pinned' if pinned else 'unpinned'} {path}", pinned=pinned)


def link_notes(graph: Graph, path: str, to: str, now: datetime) -> CurationResult:
    """Relate *path* to *to* in its frontmatter."""
    if path == to:
        raise BadInput(f"{path} cannot be linked to itself")
    refuse_pages(graph, path)
    links = graph.vault.read(path).links
    return amend_note(
        graph, path, now, f"linked {path} to {to}", links=links if to in links else (*links, to)
    )


def refuse_pages(graph: Graph, *paths: str) -> None:
    """Raise BadInput for a page that we generate."""
    for path in paths:
        entry = graph.index.entry(path)
        if entry is not None and entry.type in PAGES:
            raise BadInput(f"{path} is a page that OMG writes; only notes can be changed so")


def supersede_by(graph: Graph, old: str, successor: str, now: datetime) -> CurationResult:
    """Both notes exist; *old* leaves the maps, *successor* says what it replaced."""
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
        return done_with(graph, old, receipt_of(plan, now, f"{successor} supersedes {old}"))


def refuse_retired(node: Node) -> None:
    if node.status == "superseded":
        by = f" by {node.superseded_by}" if node.superseded_by else ""
        raise BadInput(
            f"{node.path} is itself superseded{by}; undo that first: `omg history {node.path}` has the cycle"
        )


def merge_into(graph: Graph, keep: str, gone: str, now: datetime) -> CurationResult:
    """*keep* takes over what *gone* said, its sources and links; *gone* is superseded by it."""
    if keep == gone:
        raise BadInput(f"{keep} cannot be merged with itself")
    refuse_pages(graph, keep, gone)
    with planning_under_lock(graph, now) as plan:
        refuse_retired(plan.draft(keep).node)
        if plan.draft(gone).node.superseded_by == keep:
            return CurationResult(keep, None)
        merge_notes(plan, keep, gone)
        return done_with(graph, keep, receipt_of(plan, now, f"merged {gone} into {keep}"))


def rename_note(graph: Graph, path: str, new_name: str, now: datetime) -> CurationResult:
    """Move a note, keep its id, note its former path as an alias, and rewrite every link to it."""
    refuse_pages(graph, path)
    target = renamed_path(path, new_name)
    if target == path:
        return CurationResult(path, None)
    with planning_under_lock(graph, now) as plan:
        if graph.vault.bytes(target) is not None:
            raise BadInput(f"{target} exists already; merge the two, or take another name")
        before = graph.vault.text(path)
        node = graph.vault.read(path)
        name = last_part(target)
        title = title_alias(name, target) if name != slugify(name) else ()  # "iPhone", and not "IPhone"
        names = dict.fromkeys((*title, *node.aliases, path))
        aliases = tuple(alias for alias in names if alias != target)
        plan.retitle(path, replace(node, path=target, aliases=aliases), path)
        draft = plan.drafts[path]
        # For the maps: the note stands at its new place, and no longer at the old.
        there = replace(draft.node, path=target)
        plan.drafts = {
            path: replace(draft, node=replace(node, status="superseded")),
            target: replace(draft, before=None, node=there),
        }
        changes = {c.path: c for c in plan.maps.changes()}
        for other in graph.index.backlinks(path):
            was = graph.vault.text(other)
            change = changes.get(other) or Change(other, was, was, theirs=not is_untouched(graph, other))
            changes[other] = replace(change, after=with_links_to(graph, change.after or "", path, target))
        # Kept on both sides: it is theirs, and as private, again if this is undone.
        if draft.theirs:
            graph.vault.keep_persons_parts(path, before.encode())
        kept: dict[str, Any] = {"theirs": not draft.ours, "mode": graph.vault.mode(path)}
        moved = [
            Change(target, None, with_links_to(graph, draft.text, path, target), **kept),
            Change(path, before, None, **kept),
        ]
        moved += [c for c in changes.values() if c.after != c.before and c.path != path]
        return done_with(graph, target, receipt_of(plan, now, f"renamed {path} to {target}", moved))


def renamed_path(path: str, name: str) -> str:
    """The path that *name* asks for: a file name beside *path*, or a path below the vault. Raises BadInput."""
    name = name.strip().removesuffix(".md")
    if not name or re.search(r'[\[\]|#^:*?"<>\\]', name):
        raise BadInput(f'{name!r} cannot be linked to or kept everywhere; leave out [ ] | # ^ : * ? " < > \\')
    target = name if "/" in name else f"{path.rpartition('/')[0]}/{name}".lstrip("/")
    return target


def with_links_to(graph: Graph, text: str, old: str, new: str) -> str:
    """
    *text* with every wikilink to *old* leading to *new*, in whatever form it was written; headings stay, and so
    does what a reader sees, and a folder above the vault. A link by the note's id goes on leading there as it is.
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


def select_to_forget(graph: Graph, *, ids: Sequence[str] = (), **what: Any) -> Selection:
    """What goes; see forget/selection.py. Raises NotFound, BadInput."""
    matching = what.get("matching")
    if matching is not None and len(matching.strip()) < 2:
        raise BadInput(f"{matching!r} would match nearly everything; give a word or more")
    return select(graph, paths=[find_note(graph, i) for i in ids], **what)


def is_untouched(graph: Graph, path: str) -> bool:
    """Whether nobody but us has written what is at *path*."""
    data = graph.vault.bytes(path)
    return data is None or graph.vault.ours(data)


def forget_selection(intake: Intake, graph: Graph, what: Selection | Redaction) -> None:
    """Forget for good; see forget/erase.py. Drops that are not yet taken in are taken in first, so that none slips by."""
    intake.take_in()
    with graph.lock():
        replay_open(graph)
        forget_now(graph, what)
