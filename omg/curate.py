"""
A person's own hand on the graph: write, link, merge, rename, supersede, pin, undo, forget, export.

All but the last two are one receipt each, so each can be undone. Not here: how it is asked for (cli_curate.py,
tools.py). One rule: what a person says is so is done as said, or refused with the reason; nothing is guessed.
"""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from . import forget as forgetting
from . import maps
from .edit import Edit, Plan, one_line, spelled
from .errors import BadInput, BadNode, NotFound
from .graph import Graph
from .home import Home
from .index import Entry
from .node import TYPES, Node
from .node.markdown import slugify, without_code
from .receipt import Change, Outcome, Receipt, commit, find, history, replay, undo
from .reflect import revise
from .reflect.seen import UNDONE

LINK = re.compile(r"\[\[([^\[\]\n]*)\]\]")
SEARCH = "`omg search WORDS` finds notes by what they say"
PAGES = ("index", "now", "moc", "log")  # types that we generate, and that are no memory themselves


def found(graph: Graph, name: str) -> str:
    """
    The path that *name* (path, id, alias, file name, also a former one) means. Raises NotFound with the nearest,
    BadInput if ambiguous.
    """
    path = graph.index.resolve(name) if name else None
    if path is not None:
        return path
    if several := graph.index.ambiguous(name):
        raise BadInput(f"{name!r} may be any of {', '.join(several)}; give the path")
    names: dict[str, list[str]] = {}
    for entry in graph.index.entries(status=None):
        for known in {entry.path, entry.id, leaf(entry.path), leaf(entry.id)}:
            names.setdefault(known.casefold(), []).append(entry.path)
    asked = name.removesuffix(".md").casefold()
    if fits := names.get(asked):
        if len(fits) > 1:
            raise BadInput(f"{name!r} may be any of {', '.join(fits)}; give the path")
        return fits[0]
    near = difflib.get_close_matches(asked, names, n=1)
    raise NotFound(f"no note {name!r}; " + (f"did you mean {names[near[0]][0]}?" if near else SEARCH))


def leaf(name: str) -> str:
    return name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Done:
    """The note that was worked on, and the cycle to undo. None: all was so already, and nothing was written."""

    path: str
    cycle: str | None


def receipt(plan: Plan, now: datetime, summary: str, changes: Sequence[Change] | None = None) -> Receipt:
    stamp = now.astimezone(UTC)
    id = f"{stamp:%Y%m%dT%H%M%S}-edit-{time.time_ns() // 1000 % 10**6:06d}"
    changes = tuple(plan.changes() if changes is None else changes)
    return Receipt(id, "edit", stamp.isoformat(timespec="seconds"), changes, summary=(summary,), person=True)


@contextmanager
def planning(graph: Graph, now: datetime) -> Iterator[Plan]:
    """A plan under the vault's lock, what was left open before it done."""
    with graph.lock():
        replay(graph)
        yield Plan(graph, now.astimezone(graph.zone).date())


def written(graph: Graph, path: str, receipt: Receipt) -> Done:
    if not receipt.changes:
        return Done(path, None)
    for locked in (c.path for c in receipt.changes if graph.vault.read_only(c.path)):
        raise BadInput(
            f"{locked}.md is read-only; to change it, chmod u+w {graph.vault.file(locked)}; nothing was written"
        )
    commit(graph, receipt)
    return Done(path, receipt.id)


def write(graph: Graph, edits: Sequence[Edit], now: datetime, summary: str) -> str:
    """
    Write *edits* as one cycle; returns the path of the last note, which *summary* may name as "{path}".

    Raises BadInput if it may not be written.
    """
    return wrote(graph, edits, now, summary).path


def wrote(graph: Graph, edits: Sequence[Edit], now: datetime, summary: str) -> Done:
    path = None
    with planning(graph, now) as plan:
        for edit in edits:
            path = plan.apply(edit)
        if path is None:
            raise BadInput(f"{plan.dropped[-1] if plan.dropped else 'nothing to write'}; nothing was written")
        return written(graph, path, receipt(plan, now, summary.replace("{path}", path)))


def new(graph: Graph, type: str, title: str, text: str, now: datetime) -> Done:
    if type not in TYPES:
        near = difflib.get_close_matches(type, TYPES, n=1)
        raise BadInput(
            f"{type!r} is no type of note{f'; did you mean {near[0]}?' if near else ''}; there are: {', '.join(TYPES)}"
        )
    if not title.strip():
        raise BadInput("a note needs a title: `omg new TYPE TITLE --text …`")
    text = text.strip() or title.strip()
    first = one_line(re.split(r"(?<=[.!?。])\s|\n", text)[0])
    label = LINK.sub(lambda link: link[1].rpartition("|")[2].rpartition("/")[2], first)
    edit = Edit("create", title=title, description=label, type=type, body=text, origin="human")
    done = wrote(graph, [edit], now, "wrote {path}")
    if done.cycle is None and text not in graph.vault.text(done.path):
        raise BadInput(f"{done.path} begins with the same sentence; add the rest to it, or begin otherwise")
    return done


def amended(graph: Graph, path: str, now: datetime, summary: str, **changes: Any) -> Done:
    with planning(graph, now) as plan:
        node = plan.draft(path).node
        if all(getattr(node, name) == value for name, value in changes.items()):
            return Done(path, None)
        plan.amend(path, **changes)
        return written(graph, path, receipt(plan, now, summary))


def pin(graph: Graph, path: str, now: datetime, *, pinned: bool = True) -> Done:
    refuse_pages(graph, path)
    if path.startswith("inbox/"):
        raise BadInput(
            f"{path} lies in the inbox, where nothing counts as pinned; move it below nodes/ first"
        )
    return amended(graph, path, now, f"{'pinned' if pinned else 'unpinned'} {path}", pinned=pinned)


def link(graph: Graph, path: str, to: str, now: datetime) -> Done:
    """Relate *path* to *to* in its frontmatter."""
    if path == to:
        raise BadInput(f"{path} cannot be linked to itself")
    refuse_pages(graph, path)
    links = graph.vault.read(path).links
    return amended(graph, path, now, f"linked {path} to {to}", links=links if to in links else (*links, to))


def refuse_pages(graph: Graph, *paths: str) -> None:
    """Raise BadInput for a page that we generate."""
    for path in paths:
        entry = graph.index.entry(path)
        if entry is not None and entry.type in PAGES:
            raise BadInput(f"{path} is a page that OMG writes; only notes can be changed so")


def supersede(graph: Graph, old: str, successor: str, now: datetime) -> Done:
    """Both notes exist; *old* leaves the maps, *successor* says what it replaced."""
    if old == successor:
        raise BadInput(f"{old} cannot supersede itself")
    refuse_pages(graph, old, successor)
    with planning(graph, now) as plan:
        former = plan.draft(successor).node
        refuse_retired(former)
        if plan.draft(old).node.superseded_by == successor:
            return Done(old, None)
        plan.amend(successor, supersedes=tuple(dict.fromkeys((*former.supersedes, old))))
        plan.retire(old, successor)
        return written(graph, old, receipt(plan, now, f"{successor} supersedes {old}"))


def refuse_retired(node: Node) -> None:
    if node.status == "superseded":
        by = f" by {node.superseded_by}" if node.superseded_by else ""
        raise BadInput(
            f"{node.path} is itself superseded{by}; undo that first: `omg history {node.path}` has the cycle"
        )


def merge(graph: Graph, keep: str, gone: str, now: datetime) -> Done:
    """*keep* takes over what *gone* said, its sources and links; *gone* is superseded by it."""
    if keep == gone:
        raise BadInput(f"{keep} cannot be merged with itself")
    refuse_pages(graph, keep, gone)
    with planning(graph, now) as plan:
        refuse_retired(plan.draft(keep).node)
        if plan.draft(gone).node.superseded_by == keep:
            return Done(keep, None)
        revise.merge(plan, keep, gone)
        return written(graph, keep, receipt(plan, now, f"merged {gone} into {keep}"))


def rename(graph: Graph, path: str, new_name: str, now: datetime) -> Done:
    """Move a note, keep its id, note its former path as an alias, and rewrite every link to it."""
    refuse_pages(graph, path)
    target = renamed(path, new_name)
    if target == path:
        return Done(path, None)
    with planning(graph, now) as plan:
        if graph.vault.bytes(target) is not None:
            raise BadInput(f"{target} exists already; merge the two, or take another name")
        before = graph.vault.text(path)
        node = graph.vault.read(path)
        name = leaf(target)
        title = spelled(name, target) if name != slugify(name) else ()  # "iPhone", and not "IPhone"
        names = dict.fromkeys((*title, *node.aliases, path))
        plan.amend(path, aliases=tuple(alias for alias in names if alias != target))
        draft = plan.drafts[path]
        # For the maps: the note stands at its new place, and no longer at the old.
        there = replace(draft.node, path=target)
        plan.drafts = {
            path: replace(draft, node=replace(node, status="superseded")),
            target: replace(draft, before=None, node=there),
        }
        changes = {c.path: c for c in plan.map_changes()}
        for other in graph.index.backlinks(path):
            was = graph.vault.text(other)
            change = changes.get(other) or Change(other, was, was, theirs=not untouched(graph, other))
            changes[other] = replace(change, after=relinked(graph, change.after or "", path, target))
        # Kept on both sides: it is theirs, and as private, again if this is undone.
        if draft.theirs:
            graph.vault.keep_in_mind(path, before.encode())
        kept: dict[str, Any] = {"theirs": not draft.ours, "mode": graph.vault.mode(path)}
        moved = [
            Change(target, None, relinked(graph, draft.text, path, target), **kept),
            Change(path, before, None, **kept),
        ]
        moved += [c for c in changes.values() if c.after != c.before and c.path != path]
        return written(graph, target, receipt(plan, now, f"renamed {path} to {target}", moved))


def renamed(path: str, name: str) -> str:
    """The path that *name* asks for: a file name beside *path*, or a path below the vault. Raises BadInput."""
    name = name.strip().removesuffix(".md")
    if not name or re.search(r'[\[\]|#^:*?"<>\\]', name):
        raise BadInput(f'{name!r} cannot be linked to or kept everywhere; leave out [ ] | # ^ : * ? " < > \\')
    target = name if "/" in name else f"{path.rpartition('/')[0]}/{name}".lstrip("/")
    return target


def relinked(graph: Graph, text: str, old: str, new: str) -> str:
    """
    *text* with every wikilink to *old* leading to *new*, in whatever form it was written; headings stay, and so
    does what a reader sees. A link by the note's id goes on leading there as it is.
    """
    parts, end = [], 0
    for found in LINK.finditer(without_code(text)):
        target, rest = re.fullmatch(r"([^|#]*)(.*)", found[1], re.S).groups()  # type: ignore[union-attr]
        name = target.strip().removesuffix(".md")
        if not name or name.startswith("omg/") or graph.index.resolve(name) != old:
            continue
        shown = rest if rest or name.casefold() == old.casefold() else f"|{name}"
        parts += [text[end : found.start()], f"[[{new}{shown}]]"]
        end = found.end()
    return "".join(parts) + text[end:]


def take_back(graph: Graph, cycle: str, now: datetime) -> tuple[Outcome, list[str]]:
    """Undo *cycle*; the paths refused because they were edited since come second. Maps are made anew."""
    with graph.lock():
        replay(graph)
        stamp = now.astimezone(UTC)
        id = f"{stamp:%Y%m%dT%H%M%S}-undo-{time.time_ns() // 1000 % 10**6:06d}"
        outcome, refused = undo(graph, cycle, id, stamp.isoformat(timespec="seconds"))
        plan = Plan(graph, stamp.astimezone(graph.zone).date())
        plan.maps |= {e.path for e in graph.index.entries(type="moc")}
        inner = maps.now(graph.state().sessions, plan.listed(maps.OPEN_LOOPS), plan.day, graph.zone)
        pages = [*plan.map_changes(), plan.page("now", inner, maps.page("now", inner))]
        if changes := tuple(page for page in pages if page is not None):
            commit(graph, Receipt(f"{id}-maps", "edit", stamp.isoformat(timespec="seconds"), changes))
    return outcome, refused


def undoable(graph: Graph, cycle: str | None) -> Receipt:
    """*cycle*, or the last that a person asked for at the command line and has not undone. Raises NotFound, BadInput."""
    if cycle is not None:
        return find(graph, cycle)
    closed = history(graph)
    undone = {line.removeprefix(UNDONE) for r in closed for line in r.summary if line.startswith(UNDONE)}
    for r in closed:
        if r.kind == "edit" and r.person and r.summary and r.id not in undone:  # none: it was forgotten
            return r
    raise NotFound(
        "you have changed nothing yet; `omg history` lists all cycles, `omg undo CYCLE` takes one back"
    )


def cycles(graph: Graph, path: str | None = None) -> list[Receipt]:
    """Closed cycles, newest first; with *path* those that changed that note, whatever it was called then."""
    if path is None:
        return history(graph)
    with suppress(BadNode):
        names = {path, *graph.vault.read(path).aliases}
        return [r for r in history(graph) if any(c.path in names for c in r.changes)]
    return [r for r in history(graph) if any(c.path == path for c in r.changes)]


def selection(graph: Graph, *, ids: Sequence[str] = (), **what: Any) -> forgetting.Selection:
    """What goes; see forget.py. Raises NotFound, BadInput."""
    matching = what.get("matching")
    if matching is not None and len(matching.strip()) < 2:
        raise BadInput(f"{matching!r} would match nearly everything; give a word or more")
    return forgetting.select(graph, paths=[found(graph, i) for i in ids], **what)


def untouched(graph: Graph, path: str) -> bool:
    """Whether nobody but us has written what is at *path*."""
    data = graph.vault.bytes(path)
    return data is None or graph.vault.ours(data)


def forget(home: Home, graph: Graph, what: forgetting.Selection) -> None:
    """Forget for good; see forget.py. Drops that are not yet taken in are taken in first, so that none slips by."""
    home.take_in()
    with graph.lock():
        replay(graph)
        forgetting.forget(graph, what)


def export(graph: Graph, form: str) -> str:
    """All active notes as one markdown page, or as JSON with everything there is about each."""
    nodes: list[Node] = []
    for entry in ordered(graph.index.entries(status=None)):
        with suppress(BadNode, NotFound):  # broken or removed this moment; the doctor names it
            nodes.append(graph.vault.read(entry.path))
    if form == "json":
        return json.dumps([asdict(n) for n in nodes], ensure_ascii=False, indent=1, default=str)
    parts = [f"# {graph.identity.key}\n"]
    for node in nodes:
        if node.status == "active":
            parts.append(
                f"## {node.title}\n\n*{node.type}, {node.updated or node.created or 'undated'}* — {node.description}\n\n{node.body.strip()}\n"
            )
    return "\n".join(parts)


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(
        (e for e in entries if e.type in TYPES or e.type in ("note", "reflection")),
        key=lambda e: (e.type, e.path),
    )
