"""
One person's memory under another key: what follows a changed dmScope, or two accounts of one person.

    join   a name and the accounts that are its: entered in [identity.links], and their graphs made one
    move   a graph to another key; where there is one already, the two are merged

Not here: whose a session is (identity.py). Its one rule: nothing is lost. A merged graph is kept whole in
`joined/`, notes that differ stand side by side, and the merge is a cycle that can be undone. The caller holds
the home's daemon lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ..config.file import set_value, set_vault
from ..errors import BadInput, NotFound
from ..forget.places import JOINED, json_object
from ..graph.files import append_lines, write_private
from ..graph.graph import GRAPH_MARK, Graph, marked_identity
from ..graph.state import State
from ..identity import Identity, identity_of_session
from ..journal import Change, commit_receipt, new_receipt
from ..node.note import amend_text
from ..plan.mappages import MapPages
from ..plan.pages import persons_words
from ..worker.registry import Registry
from .notes import with_links_to


def join_accounts(registry: Registry, name: str, accounts: Sequence[str]) -> list[tuple[str, str]]:
    """Make *accounts* ("channel:sender") one person, *name*; `owner` is the main session's. Returns the moves."""
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
    """Carry the graph of *old* over to *new*, with all that belongs to it. Returns where its folder is now."""
    marks = {who.key: (mark, who) for mark, who in identity_marks(registry)}
    if old not in marks:
        raise NotFound(f"no graph of {old!r}; `omg identity list` names them")
    to = identity_of_session(
        new, links=registry.config.identity.links, asked=registry.config.identity.members
    )
    if to is None or to.key == old:
        raise BadInput(f"{new!r} is nobody else's; give a session key such as agent:main:telegram:direct:111")
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
        if (told := json_object(earlier)).get("into") == old:
            write_private(earlier, json.dumps({**told, "into": to.key}))
    target.parent.mkdir(exist_ok=True, mode=0o700)
    mark.parent.rename(target)
    if target.parent.name == "graphs":
        write_private(target / GRAPH_MARK, json.dumps(asdict(to)))
    set_value(registry.folder, "vaults", old, None)  # were the folder used again, two graphs would share it
    return str(target)


def identity_marks(registry: Registry) -> Iterator[tuple[Path, Identity]]:
    """Each graph's mark and whose it is: by the marks, since a crash may have left a folder misnamed."""
    for mark in sorted((registry.folder / "graphs").glob(f"[!.]*/{GRAPH_MARK}")):
        yield mark, marked_identity(mark)


def merge_graphs(registry: Registry, source: Graph, into: Graph) -> None:
    """Everything of *source* into *into*; *source* is only read. Repeating it after a crash adds nothing."""
    now, changes = registry.clock(), tuple(move_notes(source, into))
    if changes:
        what = f"merged the memory of {source.identity.key}"
        commit_receipt(into, new_receipt("edit", now, changes, name="merged", summary=(what,), person=True))
    maps = MapPages(into)
    for change in changes:
        if change.path.startswith("nodes/"):
            maps.add(into.vault.read(change.path))
    if pages := maps.changes():
        commit_receipt(into, new_receipt("edit", now, pages, name="maps"))
    into.index.archive(into.folder / "archive")
    for file in sorted((source.folder / "archive").glob("*.jsonl")):
        lines = {
            json.loads(line)["id"]: line for line in file.read_text(encoding="utf-8").split("\n") if line
        }
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
        state.epoch += 1

    into.update(both)
    into.uses.adopt(source.uses.all())


def move_notes(source: Graph, into: Graph) -> Iterator[Change]:
    """
    The notes of *source* as new files of *into*: under a name of their own where another has it already.

    Maps are made anew, so of a page only what a person wrote on it is carried over, into the inbox.
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
            yield replace(Change(target, None, text), theirs=by_hand)
