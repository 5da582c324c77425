"""
Moves homes into and out of a fleet, and takes a person's edits of checked-out vaults.

A file that the person and the fleet both changed keeps the person's text; the fleet's is beside it, as a conflict copy.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..client import ask_daemon
from ..config import load_config
from ..errors import BadInput, NotFound
from ..graph.graph import GRAPH_MARK, marked_identity
from ..graph.state import write_private
from .homes import DERIVED, OF_HOME, Home, Homes, below, files_below, hash_of, is_utf8, pieces_of, write_file
from .store import Store

RECORD = ".omg-fleet.json"  # of a checkout: the tenant, and the hash of each file


def import_home(store: Store, tenant: str, folder: Path) -> dict[str, Any]:
    """
    Move the home *folder* into a tenant without a memory; returns how many graphs and files, and which links were left
    out. Raises BadInput, and writes nothing.
    """
    if ask_daemon(folder, "/health", {}, timeout_s=5) is not None:
        raise BadInput(f"{folder}: a daemon is up there; stop it first, by `omg down`")
    if waiting := len([*(folder / "spool").glob("[!.]*.json")]):
        raise BadInput(
            f"{folder}: {waiting} drops are not taken in yet; `OMG_HOME={folder} omg observe` does that"
        )
    id, vaults, files = store.tenant_id(tenant), load_config(folder).vaults, 0
    shared = store.graph(id, "")
    if shared is None or shared.revision or store.graphs(id):
        raise BadInput(f"{tenant}: has a memory already; import into a tenant that has none")
    parts = [(shared.id, "", folder, OF_HOME)]
    with store.pool.connection() as conn, conn.transaction():
        marks = sorted((folder / "graphs").glob(f"[!.]*/{GRAPH_MARK}"))
        for mark in marks:
            row = conn.execute(
                "INSERT INTO omg_graphs (tenant, folder, due_at, night_at) VALUES (%s, %s, now(), now()"
                " + interval '12 hours') RETURNING id",
                (id, mark.parent.name),
            ).fetchone()
            assert row is not None
            parts.append((row[0], "", mark.parent, DERIVED))
            if elsewhere := vaults.get(marked_identity(mark).key):
                parts.append((row[0], "vault/", elsewhere, DERIVED))
        copy = "COPY omg_files (graph, path, part, revision, mtime_ns, bytes) FROM STDIN"
        with conn.cursor() as cursor, cursor.copy(copy) as rows:
            for graph, prefix, root, left_out in parts:
                for path in files_below(root, left_out):
                    file, files = root / path, files + 1
                    for part, piece in enumerate(pieces_of(file.read_bytes())):
                        rows.write_row((graph, prefix + path, part, 1, file.stat().st_mtime_ns, piece))
        # A server may have checked the tenant out already.
        conn.execute("UPDATE omg_graphs SET revision = 1 WHERE tenant = %s", (id,))
    there = {path for _, _, root, _ in parts for path in root.rglob("*")}
    left = sorted(str(path) for path in there if path.is_symlink() or not is_utf8(str(path)))
    return {"graphs": len(marks), "files": files, "left": left}


def write_tenant(
    store: Store, id: int, folder: Path, only: str = "%", mine: Mapping[str, bytes] = MappingProxyType({})
) -> dict[str, str]:
    """
    Write a tenant's files as a home below *folder*, drops too; returns a hash of each, by path. *only*: paths LIKE it.
    A file that is there is replaced only if it still says *mine*.
    """
    written = {}
    with store.pool.connection() as conn, conn.cursor() as cursor:
        for name, path, data, mtime_ns in cursor.stream(
            "SELECT * FROM (SELECT g.folder, f.path, string_agg(f.bytes, ''::bytea ORDER BY f.part), max(f.mtime_ns)"
            " FROM omg_files f JOIN omg_graphs g ON g.id = f.graph WHERE g.tenant = %s GROUP BY 1, 2 UNION ALL"
            " SELECT '', 'spool/' || d.name, d.bytes, (extract(epoch FROM d.came_at) * 1e9)::bigint FROM omg_drops d"
            " JOIN omg_graphs g ON g.id = d.graph WHERE g.tenant = %s) found WHERE path LIKE %s",
            (id, id, only),
        ):
            at = f"graphs/{name}/{path}" if name else path
            file, written[at] = below(folder, at), hash_of(data).hex()
            now = file.read_bytes() if file.exists() else None
            if now != data and now in (None, mine.get(at)):
                write_file(file, data, mtime_ns)
    return written


def export_home(store: Store, tenant: str, folder: Path) -> int:
    """Write the tenant as a home into the empty *folder*; returns how many files."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: is not empty")
    return len(write_tenant(store, store.tenant_id(tenant), folder))


# --- a person's edits


def check_out(store: Store, tenant: str, folder: Path) -> int:
    """Write the tenant's vaults into *folder*, laid out as in a home; returns how many files."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(
            f"{folder}: is not empty; `omg fleet commit {folder}` brings an older checkout up to date"
        )
    known = write_tenant(store, store.tenant_id(tenant), folder, "vault/%")
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / RECORD, json.dumps({"tenant": tenant, "files": known}))
    return len(known)


def commit_edits(store: Store, homes: Homes, folder: Path) -> dict[str, Any]:
    """Write what was edited, made and deleted in a checkout; returns how much, and the conflicts by path."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        id, known = store.tenant_id(record["tenant"]), record["files"]
    except (OSError, ValueError, KeyError) as e:
        raise NotFound(f"{folder}: no checkout; `omg fleet checkout TENANT {folder}` makes one") from e
    edits = {path: (folder / path).read_bytes() for path in vault_files(folder)}
    changed: dict[str, bytes | None] = {
        p: data for p, data in edits.items() if hash_of(data).hex() != known.get(p)
    }
    changed |= {path: None for path in known if path not in edits}
    conflicts: list[str] = []
    for name in sorted({path.split("/")[1] for path in changed}):
        if (row := store.graph(id, name)) is None:
            raise NotFound(f"{name}: that graph does not exist any more; your edits are still in {folder}")
        mine = {path: data for path, data in changed.items() if path.startswith(f"graphs/{name}/")}
        conflicts += homes.change(row, "edit", partial(apply, edits=mine, known=known))
    now = write_tenant(store, id, folder, "vault/%", edits)
    for path in edits.keys() - now.keys():
        if (folder / path).read_bytes() == edits[path]:
            (folder / path).unlink()
    write_private(folder / RECORD, json.dumps({"tenant": record["tenant"], "files": now}))
    return {"written": len(changed), "conflicts": conflicts}


def vault_files(folder: Path) -> list[str]:
    found = files_below(folder, DERIVED)
    return [path for path in found if path.split("/")[::2][:2] == ["graphs", "vault"]]


def apply(home: Home, edits: dict[str, bytes | None], known: dict[str, str]) -> list[str]:
    """Write *edits* into *home*; returns the conflict copies of what the fleet had changed since the checkout."""
    copies = []
    for path, data in edits.items():
        file = below(home.root, path)
        now = file.read_bytes() if file.exists() else None
        moved_on = now is not None and now != data and hash_of(now).hex() != known.get(path)
        if moved_on and data is None:
            continue  # deleted here, newer there: it stays
        if moved_on and now is not None:
            copy = file.with_name(f"{file.stem} (conflict {dt.datetime.now():%Y-%m-%d %H%M%S}){file.suffix}")
            copy.write_bytes(now)
            copies.append(copy.relative_to(home.root).as_posix())
        if data is None:
            file.unlink(missing_ok=True)
        else:
            write_file(file, data, time.time_ns())
    home.memory.refresh(home.memory.find())
    return copies
