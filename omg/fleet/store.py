"""
The connection to Postgres; tenants and their tokens; drops, which are rows before they are answered.

Each query is of one tenant: a path, a session or a folder of one never reaches the rows of another.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, ConfigError, NotFound
from ..graph.graph import GRAPH_MARK
from ..identity import Identity

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
WAIT_S = 30.0  # for a connection: Postgres may be starting anew


def database_url() -> str:
    """Where the fleet is. Raises ConfigError."""
    if url := os.environ.get("OMG_FLEET_DATABASE"):
        return url
    raise ConfigError("OMG_FLEET_DATABASE is not set; write it as postgresql://user:password@host/database")


def opened_pool(url: str, size: int = 4) -> ConnectionPool[Any]:
    try:
        from psycopg_pool import ConnectionPool
    except ImportError as e:
        raise ConfigError(f"a fleet needs more packages ({e.name}); pip install 'omg-memory[fleet]'") from e
    return ConnectionPool(
        url,
        min_size=1,
        max_size=size,
        timeout=WAIT_S,
        kwargs={"autocommit": True, "options": "-c lock_timeout=20s"},
        check=ConnectionPool.check_connection,  # those of before a restart of Postgres are dead
        open=True,
    )


def init_database(url: str) -> None:
    """Make the tables that are not there yet, ours and Procrastinate's."""
    from .jobs import make_app

    with opened_pool(url) as pool, pool.connection() as conn, conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(718281828)")  # two `init` at once
        conn.execute(Path(__file__).with_name("schema.sql").read_bytes())
        if conn.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() == (None,):
            schema = make_app(url).schema_manager.get_schema()
            conn.execute(schema.encode())


@dataclass(frozen=True, slots=True)
class GraphRow:
    id: int
    tenant: int
    folder: str
    generation: int
    erased: int
    served: int
    shared: int  # the row of the home's own files,
    shared_generation: int


class Store:
    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self.pool = pool

    # --- tenants

    def add_tenant(self, name: str) -> str:
        """Make the tenant; returns its token, which is kept nowhere."""
        from psycopg.errors import UniqueViolation

        if not TENANT.fullmatch(name):
            raise BadInput(
                f"{name!r}: a tenant's name has lower-case letters, digits, `.`, `_` and `-`, 63 at the most"
            )
        token = secrets.token_urlsafe(32)
        try:
            with self.pool.connection() as conn, conn.transaction():
                row = conn.execute(
                    "INSERT INTO omg_tenants (name, token_hash) VALUES (%s, %s) RETURNING id",
                    (name, hashed(token)),
                ).fetchone()
                conn.execute("INSERT INTO omg_graphs (tenant, folder) VALUES (%s, '')", row)
        except UniqueViolation as e:
            raise BadInput(
                f"{name}: there is a tenant of this name; `omg fleet tenant rotate` gives a new token"
            ) from e
        return token

    def rotate(self, name: str) -> str:
        """A new token; the old one is refused from now on."""
        token = secrets.token_urlsafe(32)
        with self.pool.connection() as conn:
            found = conn.execute(
                "UPDATE omg_tenants SET token_hash = %s WHERE name = %s", (hashed(token), name)
            )
        if not found.rowcount:
            raise NotFound(f"{name}: no such tenant")
        return token

    def remove_tenant(self, name: str) -> None:
        """Delete the tenant with all its rows."""
        with self.pool.connection() as conn:
            if not conn.execute("DELETE FROM omg_tenants WHERE name = %s", (name,)).rowcount:
                raise NotFound(f"{name}: no such tenant")

    def tenants(self) -> list[dict[str, Any]]:
        with self.pool.connection() as conn:
            rows = conn.execute(
                "SELECT t.name, t.made_at, count(g.id) FILTER (WHERE g.folder <> '') FROM omg_tenants t"
                " LEFT JOIN omg_graphs g ON g.tenant = t.id GROUP BY t.id ORDER BY t.name"
            ).fetchall()
        return [{"tenant": name, "made": made.isoformat(), "graphs": graphs} for name, made, graphs in rows]

    def tenant_id(self, name: str) -> int:
        with self.pool.connection() as conn:
            row = conn.execute("SELECT id FROM omg_tenants WHERE name = %s", (name,)).fetchone()
        if row is None:
            raise NotFound(f"{name}: no such tenant; `omg fleet tenant add {name}` makes it")
        return int(row[0])

    def tenant_of(self, token: str) -> int | None:
        """Whose token this is; None: nobody's."""
        with self.pool.connection() as conn:
            row = conn.execute(
                "SELECT id FROM omg_tenants WHERE token_hash = %s", (hashed(token),)
            ).fetchone()
        return row and int(row[0])

    # --- graphs

    def graph(self, tenant: int, folder: str) -> GraphRow | None:
        """The row of a graph, by one indexed read; with '' that of the home's own files."""
        with self.pool.connection() as conn:
            return graph_row(conn, "g.tenant = %s AND g.folder = %s", (tenant, folder))

    def make_graph(self, tenant: int, who: Identity) -> GraphRow:
        """The row of the graph of *who*, made where there is none."""
        if (found := self.graph(tenant, who.folder)) is not None:
            return found
        mark = json.dumps(asdict(who)).encode()
        with self.pool.connection() as conn, conn.transaction():
            conn.execute(
                "WITH made AS (INSERT INTO omg_graphs (tenant, folder) VALUES (%s, %s) ON CONFLICT DO NOTHING"
                " RETURNING id) INSERT INTO omg_files SELECT id, %s, 0, 0, %s, %s, %s FROM made",
                (tenant, who.folder, GRAPH_MARK, len(mark), time.time_ns(), mark),
            )
        found = self.graph(tenant, who.folder)
        assert found is not None
        return found

    def graphs(self, tenant: int) -> list[GraphRow]:
        with self.pool.connection() as conn:
            ids = conn.execute(
                "SELECT id FROM omg_graphs WHERE tenant = %s AND folder <> '' ORDER BY folder", (tenant,)
            ).fetchall()
            found = [graph_row(conn, "g.id = %s", row) for row in ids]
        return [row for row in found if row is not None]

    # --- drops

    def put_drop(self, graph: int, name: str, data: bytes) -> None:
        """Keep a drop until a commit takes it in; the same name again changes nothing."""
        with self.pool.connection() as conn:
            conn.execute(
                "INSERT INTO omg_drops (graph, name, bytes) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (graph, name, data),
            )


def graph_row(conn: Connection[Any], where: str, values: tuple[Any, ...]) -> GraphRow | None:
    row = conn.execute(
        "SELECT g.id, g.tenant, g.folder, g.generation, g.erased, g.served, s.id, s.generation FROM omg_graphs g"
        " JOIN omg_graphs s ON s.tenant = g.tenant AND s.folder = '' WHERE " + where,
        values,
    ).fetchone()
    return GraphRow(*row) if row else None


def hashed(token: str) -> bytes:
    """A token has 256 random bits: a plain hash cannot be guessed back."""
    return hashlib.sha256(token.encode()).digest()
