"""
Homes moved in and out byte for byte, and a person's edits: vaults checked out into a folder, and committed from it.

A file that the person and the fleet both changed keeps the person's text; the fleet's is beside it, as a conflict copy.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from pathlib import Path
from typing import Any

from ..client import ask_daemon
from ..config import load_config
from ..errors import BadInput, NotFound, Stale
from ..graph.graph import GRAPH_MARK, marked_identity
from ..graph.state import write_private
from .homes import Homes
from .store import GraphRow, Store
from .tree import Tree, below, hash_of, pieces_of

RECORD = ".omg-fleet.json"  # of a checkout: the tenant, and the hash of each file
TRIES = 10
PUT = "INSERT INTO omg_files (graph, path, part, generation, size, mtime_ns, bytes) VALUES (%s, %s, %s, 0, %s, %s, %s)"


def import_home(store: Store, tenant: str, folder: Path) -> dict[str, int]:
    """Move the home *folder* into the new tenant; returns how many graphs and files. Raises BadInput, and writes nothing."""
    if ask_daemon(folder, "/health", {}, timeout_s=5) is not None:
        raise BadInput(f"{folder}: a daemon is up there; stop it first, by `omg down`")
    if waiting := len([*(folder / "spool").glob("[!.]*.json")]):
        raise BadInput(
            f"{folder}: {waiting} drops are not taken in yet; `OMG_HOME={folder} omg observe` does that"
        )
    id, vaults = store.tenant_id(tenant), load_config(folder).vaults
    shared = store.graph(id, "")
    if shared is None or store.graphs(id):
        raise BadInput(f"{tenant}: has a memory already; import into a tenant that has none")
    links, files, graphs = [], 0, 0
    with store.pool.connection() as conn, conn.transaction():
        trees = [(shared.id, Tree(shared.id, folder, shared=True), "")]
        for mark in sorted((folder / "graphs").glob(f"[!.]*/{GRAPH_MARK}")):
            row = conn.execute(
                "INSERT INTO omg_graphs (tenant, folder, due_at, night_at) VALUES (%s, %s, now(), now()"
                " + interval '12 hours') RETURNING id",
                (id, mark.parent.name),
            ).fetchone()
            assert row is not None
            graphs += 1
            trees.append((row[0], Tree(row[0], mark.parent), ""))
            if elsewhere := vaults.get(marked_identity(mark).key):
                trees.append((row[0], Tree(row[0], elsewhere), "vault/"))
        for graph, tree, prefix in trees:
            found = {prefix + path: file for path, file in tree.files(everything=True)}
            links += [path for path, file in found.items() if file.is_symlink()]
            for path, file in found.items():
                if not file.is_symlink():
                    put_file(conn, graph, path, file)
                    files += 1
    if links:
        print(f"not imported, since they are links: {', '.join(links[:20])}")
    return {"graphs": graphs, "files": files}


def put_file(conn: Any, graph: int, path: str, file: Path) -> None:
    data, mtime_ns = file.read_bytes(), file.stat().st_mtime_ns
    parts = [(graph, path, i, len(data), mtime_ns, piece) for i, piece in enumerate(pieces_of(data))]
    with conn.cursor() as cursor:
        cursor.executemany(PUT, parts)


def export_home(store: Store, tenant: str, folder: Path) -> int:
    """Write the tenant as a home into the empty *folder*, drops too; returns how many files."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: is not empty")
    id, files = store.tenant_id(tenant), 0
    with store.pool.connection() as conn, conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        graphs = conn.execute("SELECT id, folder FROM omg_graphs WHERE tenant = %s", (id,)).fetchall()
        for graph, name in graphs:
            root = folder / "graphs" / name if name else folder
            rows = conn.execute(
                "SELECT path, string_agg(bytes, ''::bytea ORDER BY part), max(mtime_ns) FROM omg_files"
                " WHERE graph = %s GROUP BY path",
                (graph,),
            )
            for path, data, mtime_ns in rows:
                files += write_file(below(root, path), data, mtime_ns)
            for name, data in conn.execute("SELECT name, bytes FROM omg_drops WHERE graph = %s", (graph,)):
                files += write_file(below(folder / "spool", name), data, time.time_ns())
    return files


def write_file(file: Path, data: bytes, mtime_ns: int) -> int:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(data)
    file.chmod(0o600)
    os.utime(file, ns=(mtime_ns, mtime_ns))
    return 1


# --- a person's edits


def check_out(store: Store, tenant: str, folder: Path) -> int:
    """Write the tenant's vaults into the empty *folder*, one folder a graph; returns how many files."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(
            f"{folder}: is not empty; `omg fleet commit {folder}` brings an older checkout up to date"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return refresh(store, store.tenant_id(tenant), tenant, folder)


def refresh(store: Store, id: int, tenant: str, folder: Path) -> int:
    record: dict[str, dict[str, str]] = {}
    for row in store.graphs(id):
        found, record[row.folder] = vault_of(store, row), {}
        for path, data in found.items():
            file = below(folder / row.folder, path)
            if not file.exists() or file.read_bytes() != data:
                write_file(file, data, time.time_ns())
            record[row.folder][path] = hash_of(data).hex()
        for path, file in edited_files(folder / row.folder).items():
            if path not in found:
                file.unlink()
    write_private(folder / RECORD, json.dumps({"tenant": tenant, "graphs": record}))
    return sum(map(len, record.values()))


def vault_of(store: Store, row: GraphRow) -> dict[str, bytes]:
    with store.pool.connection() as conn:
        rows = conn.execute(
            "SELECT substr(path, 7), string_agg(bytes, ''::bytea ORDER BY part) FROM omg_files"
            " WHERE graph = %s AND path LIKE 'vault/%%' GROUP BY path",
            (row.id,),
        ).fetchall()
    return dict(rows)


def edited_files(root: Path) -> dict[str, Path]:
    return {
        file.relative_to(root).as_posix(): file
        for file in root.rglob("*")
        if file.is_file() and not file.is_symlink() and not file.name.startswith(".omg-")
    }


def commit_edits(store: Store, homes: Homes, folder: Path) -> dict[str, Any]:
    """Write what was edited, made and deleted in a checkout; returns how much, and the conflicts by path."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise NotFound(f"{folder}: no checkout; `omg fleet checkout TENANT {folder}` makes one") from e
    id, written, conflicts = store.tenant_id(record["tenant"]), 0, []
    for name, known in record["graphs"].items():
        files = {path: file.read_bytes() for path, file in edited_files(folder / name).items()}
        edits: dict[str, bytes | None] = {
            path: data for path, data in files.items() if hash_of(data).hex() != known.get(path)
        }
        edits |= {path: None for path in known if path not in files}
        if not edits:
            continue
        for tries in range(TRIES):
            row = store.graph(id, name)
            if row is None:
                raise NotFound(f"{name}: that graph is there no more; your edits are still in {folder}")
            try:
                with homes.hold(row, drops=True) as home:
                    assert home.memory is not None
                    clashed = apply(home.own.root / "vault", edits, known)
                    home.memory.refresh(home.memory.find())
                    home.commit(store, due_at=time.time())
                break
            except Stale:
                if tries == TRIES - 1:
                    raise
        written += len(edits)
        conflicts += [f"{name}/{path}" for path in clashed]
    refresh(store, id, record["tenant"], folder)
    return {"written": written, "conflicts": conflicts}


def apply(vault: Path, edits: dict[str, bytes | None], known: dict[str, str]) -> list[str]:
    """Write *edits* into *vault*; returns the conflict copies of what the fleet had changed since the checkout."""
    copies = []
    for path, data in edits.items():
        file = below(vault, path)
        now = file.read_bytes() if file.exists() else None
        moved_on = now is not None and now != data and hash_of(now).hex() != known.get(path)
        if moved_on and data is None:
            continue  # deleted here, newer there: it stays
        if moved_on and now is not None:
            copy = file.with_name(f"{file.stem} (conflict {dt.datetime.now():%Y-%m-%d %H%M%S}){file.suffix}")
            copy.write_bytes(now)
            copies.append(copy.relative_to(vault).as_posix())
        if data is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return copies
