"""
The doctor at one graph: its notes, its links, its maps, and what waits for them.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from ...errors import BadNode, NotFound, OutsideVault
from ...graph.files import damaged_files
from ...graph.graph import GRAPH_MARK, Graph
from ...identity import identity_of_session
from ...journal import commit_receipt, has_open_receipt, new_receipt, readable, replay_open
from ...memory import Memory
from ...node.fields import GENERATED, LOOPS, PRIORITIES, STATUSES, TYPES
from ...node.markdown import UNLINKABLE, generated_block, slugify
from ...node.note import Node, parse_node
from ...plan.mappages import MapPages
from ...plan.proposals import proposed_notes
from ...plural import how_many
from .finding import Finding
from .secrets import check_secrets

PENDING_AGE_S = 86_400
NIGHT_S = 2 * 86_400

UNDERSTOOD = {
    **{
        key: " or ".join(names)
        for key, names in (("type", TYPES), ("priority", PRIORITIES), ("status", STATUSES), ("loop", LOOPS))
    },
    **dict.fromkeys(("created", "updated"), "a day, such as 2026-02-19"),
    "event": "a day, such as 2026-02-19, or several: 2026-02-19..2026-02-21",
    **dict.fromkeys(("pinned", "standing"), "true or false"),
}

MANY_LINKS = 200  # links into one note; with more a graph view shows nothing but them


def check_graph(memory: Memory, graph: Graph) -> Iterator[Finding]:
    key = graph.identity.key
    yield from check_lifecycle(memory, graph)
    synced = memory.refresh(graph)
    if behind := len(synced.changed) + len(synced.removed):
        yield Finding("note", f"the index was behind by {how_many(behind, 'note')}, and is not any more", key)
    for path, why in sorted(graph.index.bad().items()):
        yield Finding(
            "warn",
            f"cannot be read: {why}",
            path,
            "mend it in an editor, or its permissions; until then the note is left alone",
        )
    if proposed := sum(1 for _ in proposed_notes(graph)):
        what = f"{how_many(proposed, 'note')} of the assistant's may be yours, and wait for your word"
        yield Finding("note", what, key, "`omg confirm` lists them; `omg confirm NOTE` makes one yours")
    for path in graph.vault.conflicts():
        yield Finding(
            "warn",
            "a copy made by a sync service; it is not indexed",
            path,
            "keep what you want of it in the note itself, then delete the copy",
        )
    yield from check_secrets(graph)
    yield from check_names(graph)
    ids = Counter(e.id for e in graph.index.entries(status=None))
    for id, n in ids.items():
        if n > 1:
            paths = [e.path for e in graph.index.entries(status=None) if e.id == id]
            yield Finding(
                "warn",
                f"{n} notes have the id {id}",
                ", ".join(paths),
                "give all but one another `id`, or delete the copy",
            )
    yield from check_heads(graph)
    yield from check_applies_to(memory, graph)
    yield from check_shape(graph)
    yield from check_maps(memory, graph)


def check_heads(graph: Graph) -> Iterator[Finding]:
    """What a person wrote in a note's head that says nothing to us: it stays, and counts for nothing."""
    for path in graph.vault.paths():
        with suppress(BadNode, UnicodeDecodeError):
            data = graph.vault.bytes(path)
            if data is None or not graph.vault.theirs(data):
                continue
            node = parse_node(data.decode("utf-8"), path)
            if node.pinned and path.startswith("inbox/"):
                what = "`pinned` counts for nothing in the inbox, where an agent may write, too"
                yield Finding("note", what, path, "move the note below nodes/")
            yield from check_other_forms(node)
            for key, value in node.extra.items():
                if key in UNDERSTOOD:
                    what = f"`{key}: {value}` is not understood, and counts for nothing"
                    yield Finding("note", what, path, f"write {UNDERSTOOD[key]}")


def check_other_forms(node: Node) -> Iterator[Finding]:
    """What is read leniently, and would be of more use in our own form."""
    if nameless := sum(not source.id for source in node.sources):
        what = f"{nameless} of its sources name no message: they date the note, and lead to nothing that was said"
        yield Finding("warn", what, node.path, "add the message's `id` to each, where it is known")
    for target in dict.fromkeys((*node.links, *node.wikilinks)):
        if target.casefold().startswith("omg/moc-"):
            ours = "mocs/" + target[4:]
            what = f"[[{target}]] is read as [[{ours}]], which Obsidian does not do"
            yield Finding("warn", what, node.path, f"write [[{ours}]]")


def check_applies_to(memory: Memory, graph: Graph) -> Iterator[Finding]:
    """Notes that say that they are another's. Whose a note is, its vault decides; but a copy may be a mistake."""
    others: dict[str, list[str]] = {}
    for path in graph.vault.paths():
        with suppress(BadNode, NotFound, OutsideVault):
            key = graph.vault.read(path).identity
            who = identity_of_session(key, links=memory.config.identity.links) if key else graph.identity
            if key and (who is None or who.key != graph.identity.key):
                others.setdefault(key, []).append(path)
    for key, paths in others.items():
        what = f"{how_many(len(paths), 'note')} in the vault of {graph.identity.key} say by `appliesTo` that they are of {key}"
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        mend = "nothing to do after `omg identity move`; else take out what was copied here by mistake"
        yield Finding("note", what, ", ".join(paths[:3]) + more, mend)


def check_names(graph: Graph) -> Iterator[Finding]:
    """Files that are not what they seem, names that cannot be linked to, links that lead nowhere."""
    files: set[str] = set()
    for path, why in graph.vault.others():
        # Obsidian finds a file by its name, too
        files |= {path.casefold(), path.rpartition("/")[2].casefold()}
        if why:
            yield Finding("warn", f"{why}; it is left alone", path, "put the file itself there, or rename it")
    for path in (p for p in graph.vault.paths() if UNLINKABLE.search(p)):
        what = "no [[link]] can lead there: its name has one of [ ] | # ^"
        yield Finding(
            "warn", what, path, f"omg rename {shlex.quote(path)} {slugify(path.rpartition('/')[2])}"
        )
    for path in (p for p in graph.vault.paths() if graph.vault.read_only(p)):
        yield Finding("note", "is read-only, so nothing is written to it", path, "chmod u+w, if it may be")
    dangling = [(path, target) for path, target in graph.index.dangling() if target.casefold() not in files]
    for path, target in dangling[:50]:
        if several := graph.index.ambiguous(target):
            what = f"[[{target}]] may be any of {', '.join(several)}"
            yield Finding("warn", what, path, "write the path in the link")
        else:
            mend = "write the note (`omg new`), or correct the link"
            yield Finding("note", f"[[{target}]] leads nowhere yet", path, mend)


def check_lifecycle(memory: Memory, graph: Graph) -> Iterator[Finding]:
    key, state, now = graph.identity.key, graph.state(), memory.clock().timestamp()
    pending = graph.pending()
    if state.failures:
        yield Finding(
            "fail",
            f"the last observation{f's, {state.failures},' * (state.failures != 1)} failed: {state.error}",
            key,
            "mend the model's settings, then `omg observe`",
        )
    for waiting in pending:
        graph.readable(waiting)
    old = sum(now - p.at_ms / 1000 > PENDING_AGE_S for p in pending)
    if old:
        yield Finding("warn", f"{how_many(old, 'turn')} waited for more than a day", key, "omg observe")
    for file in sorted((graph.folder / "receipts").glob("*.json")):
        readable(graph, file)
    for file, line in damaged_files(graph.folder):
        yield Finding("warn", line, str(file), "delete it and its .txt once it is of no use to you")
    if has_open_receipt(graph):
        yield Finding(
            "warn", "a cycle was cut short", key, "the next start finishes it", lambda: finish_open(graph)
        )
    begun = (graph.folder / GRAPH_MARK).stat().st_mtime
    if state.observed_ms and now - max(state.reflected_ms / 1000, begun) > NIGHT_S:
        last = (
            datetime.fromtimestamp(state.reflected_ms / 1000, graph.zone).strftime("%Y-%m-%d %H:%M")
            if state.reflected_ms
            else "never"
        )
        yield Finding(
            "note",
            f"the nightly reflection last ran: {last}",
            key,
            "omg reflect, and see `omg install` for the job",
        )


def finish_open(graph: Graph) -> None:
    with graph.lock():
        replay_open(graph)


def check_shape(graph: Graph) -> Iterator[Finding]:
    entries = [e for e in graph.index.entries() if e.type in TYPES]
    orphans = [e.path for e in entries if not e.links and not graph.index.backlinks(e.path)]
    for path in [path for path in orphans if not UNLINKABLE.search(path)][:20]:
        yield Finding(
            "note", "linked from nowhere, and leads nowhere", path, "omg reflect attaches it to its map"
        )
    pairs = {tuple(sorted((e.path, other))): None for e in entries for other in e.contradicts}
    for one, other in list(pairs)[:20]:
        yield Finding(
            "note",
            f"contradicts {other}, and nobody said which of the two holds",
            one,
            "say in a conversation which holds, or `omg supersede OLD SUCCESSOR`",
        )
    for entry in entries:
        back = len(graph.index.backlinks(entry.path)) if len(entries) < 20_000 else 0
        if back > MANY_LINKS:
            yield Finding(
                "note", f"a hub: {back} notes link here", entry.path, "split it, or let fewer notes name it"
            )


def check_maps(memory: Memory, graph: Graph) -> Iterator[Finding]:
    maps = MapPages(graph)
    maps.add_all()
    changes = maps.changes()
    for path in (p for p in graph.vault.paths() if p.startswith("mocs/")):
        if generated_block(graph.vault.text(path)) is None:
            yield Finding("note", "has no generated block; it is yours alone now", path)
    if changes:

        def regenerate() -> None:
            with graph.lock():
                commit_receipt(graph, new_receipt("edit", memory.clock(), changes, name="maps"))

        yield Finding(
            "warn",
            f"{len(changes)} map{' is' if len(changes) == 1 else 's are'} out of date",
            ", ".join(c.path for c in changes),
            "omg doctor --fix, or omg reflect",
            regenerate,
        )
    else:
        notes = sum(e.type not in GENERATED for e in graph.index.entries())
        yield Finding("ok", f"{how_many(notes, 'note')}, maps up to date", graph.identity.key)
