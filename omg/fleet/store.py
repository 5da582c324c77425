"""
The database of a fleet: the connection, tenants and their tokens, drops, jobs, status and metrics.

Each query names its tenant or its graph, so a request of one tenant never reaches the rows of another.
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
    from prometheus_client import Histogram
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
WAIT_S = 30.0  # how long to wait for a connection: Postgres may be restarting
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


def histogram(name: str, what: str, *labels: str) -> Histogram:
    from prometheus_client import Histogram

    return Histogram(name, what, labels, buckets=BUCKETS)


WORK_S = histogram("omg_work_seconds", "How long a job or a change took", "kind", "outcome")
REQUEST_S = histogram("omg_request_seconds", "How long an answer took", "path", "status")


def database_url() -> str:
    """The address of the fleet's database. Raises ConfigError if OMG_FLEET_DATABASE is not set."""
    if url := os.environ.get("OMG_FLEET_DATABASE"):
        return url
    raise ConfigError("OMG_FLEET_DATABASE is not set; write it as postgresql://user:password@host/database")


def opened_pool(url: str, size: int = 4) -> ConnectionPool[Any]:
    from psycopg_pool import ConnectionPool

    return ConnectionPool(
        url,
        min_size=1,
        max_size=size,
        timeout=WAIT_S,
        kwargs={"autocommit": True, "options": "-c lock_timeout=20s"},
        check=ConnectionPool.check_connection,  # a restart of Postgres breaks the open connections
        open=True,
    )


def init_database(url: str) -> None:
    """Create the missing tables, both OMG's and Procrastinate's."""
    from procrastinate.schema import SchemaManager

    with opened_pool(url) as pool, pool.connection() as conn, conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(718281828)")  # if two `init` run at once, one waits
        conn.execute(Path(__file__).with_name("schema.sql").read_bytes())
        if conn.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() == (None,):
            conn.execute(SchemaManager.get_schema().encode())


@dataclass(frozen=True, slots=True)
class GraphRow:
    id: int
    tenant: int
    folder: str
    generation: int
    revision: int
    erased: int
    shared: int  # the id of the row that has the home's own files
    shared_revision: int


class FleetStore:
    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self.pool = pool

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one SQL statement and return its rows; [] for a statement without rows."""
        with self.pool.connection() as conn:
            found = conn.execute(query, values)
            return found.fetchall() if found.description else []

    # --- tenants

    def add_tenant(self, name: str) -> str:
        """Create the tenant and return a new token. Only a hash of the token is stored."""
        if not TENANT.fullmatch(name):
            raise BadInput(
                f"{name!r}: a tenant's name has at most 63 characters: lower-case letters, digits, `.`, `_` and `-`"
            )
        token = secrets.token_urlsafe(32)
        if not self.ask(
            "WITH made AS (INSERT INTO omg_tenants (name, token_hash) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING"
            " RETURNING id) INSERT INTO omg_graphs (tenant, folder) SELECT id, '' FROM made RETURNING id",
            name, hashed(token),
        ):  # fmt: skip
            raise BadInput(
                f"{name}: this tenant exists already; `omg fleet tenant rotate {name}` gives a new token"
            )
        return token

    def rotate(self, name: str) -> str:
        """Give the tenant a new token and return the token. The old token is refused from now on."""
        token, id = secrets.token_urlsafe(32), self.tenant_id(name)
        self.ask("UPDATE omg_tenants SET token_hash = %s WHERE id = %s", hashed(token), id)
        return token

    def remove_tenant(self, name: str) -> None:
        """Delete the tenant with all its rows."""
        self.ask("DELETE FROM omg_tenants WHERE id = %s", self.tenant_id(name))

    def tenants(self) -> list[dict[str, Any]]:
        rows = self.ask(
            "SELECT t.name, t.made_at, count(g.id) FILTER (WHERE g.folder <> '') FROM omg_tenants t"
            " LEFT JOIN omg_graphs g ON g.tenant = t.id GROUP BY t.id ORDER BY t.name"
        )
        return [{"tenant": name, "made": made.isoformat(), "graphs": graphs} for name, made, graphs in rows]

    def tenant_id(self, name: str) -> int:
        for (id,) in self.ask("SELECT id FROM omg_tenants WHERE name = %s", name):
            return int(id)
        raise NotFound(f"{name}: no such tenant; `omg fleet tenant add {name}` creates one")

    def tenant_of(self, token: str) -> int | None:
        """Return the id of the tenant with this token; None if no tenant has the token."""
        found = self.ask("SELECT id FROM omg_tenants WHERE token_hash = %s", hashed(token))
        return int(found[0][0]) if found else None

    # --- graphs

    def graph(self, tenant: int, folder: str) -> GraphRow | None:
        """Return the row of the graph in *folder*; for '' the row of the home's own files; None if there is no row."""
        with self.pool.connection() as conn:
            return graph_row(conn, "g.tenant = %s AND g.folder = %s", tenant, folder)

    def row(self, graph: int) -> GraphRow | None:
        with self.pool.connection() as conn:
            return graph_row(conn, "g.id = %s", graph)

    def make_graph(self, tenant: int, who: Identity) -> GraphRow:
        """Return the row of the graph of *who*. Create the row if it is missing."""
        if (found := self.graph(tenant, who.folder)) is not None:
            return found
        self.ask(
            "WITH made AS (INSERT INTO omg_graphs (tenant, folder) VALUES (%s, %s) ON CONFLICT DO NOTHING"
            " RETURNING id) INSERT INTO omg_files SELECT id, %s, 0, 0, %s, %s FROM made",
            tenant, who.folder, GRAPH_MARK, time.time_ns(), json.dumps(asdict(who)).encode(),
        )  # fmt: skip
        found = self.graph(tenant, who.folder)
        assert found is not None
        return found

    def graphs(self, tenant: int) -> list[GraphRow]:
        ids = self.ask("SELECT id FROM omg_graphs WHERE tenant = %s AND folder <> '' ORDER BY folder", tenant)
        return [row for (id,) in ids if (row := self.row(id)) is not None]

    # --- drops and jobs

    def put_drop(self, graph: int, name: str, data: bytes) -> None:
        """Store a drop until a commit takes it in. If the graph has a drop with this name, do nothing."""
        self.ask(
            "INSERT INTO omg_drops (graph, name, bytes) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            graph, name, data,
        )  # fmt: skip

    def defer(self, kind: str, graph: int) -> bool:
        """Make a job of *kind* for *graph*. Return False if such a job waits already."""
        from psycopg.errors import UniqueViolation

        job = "ROW('default', %s, 0, %s, %s, %s::jsonb, NULL)::procrastinate_job_to_defer_v1"
        args = json.dumps({"graph": graph})
        try:
            self.ask(
                f"SELECT procrastinate_defer_jobs_v1(ARRAY[{job}])",
                kind, f"graph:{graph}", f"{kind}:{graph}", args,
            )  # fmt: skip
        except UniqueViolation:
            return False
        return True

    # --- status

    def status(self) -> dict[str, Any]:
        """Count tenants, graphs, drops, jobs and workers; also return the oldest drop's age (s) and the database's size (bytes)."""
        from psycopg.rows import dict_row

        with self.pool.connection() as conn, conn.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(
                "SELECT (SELECT count(*) FROM omg_tenants) tenants,"
                " (SELECT count(*) FROM omg_graphs WHERE folder <> '') graphs, (SELECT count(*) FROM omg_drops) drops,"
                " (SELECT extract(epoch FROM now() - min(came_at))::int FROM omg_drops) oldest_drop_s,"
                " (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' AND task_name <> 'tick') waiting,"
                " (SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing' AND task_name <> 'tick') running,"
                " (SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '1 minute') workers,"
                " (SELECT count(*) FROM omg_graphs WHERE due_at < now() - interval '5 minutes') overdue,"
                " pg_total_relation_size('omg_files') bytes"
            ).fetchone()
        return found or {}

    def findings(self) -> list[str]:
        """Return a line for each fault of the fleet, with what to do about the fault."""
        now, found = self.status(), []
        if not now["workers"]:
            found.append("no worker is running: start `omg fleet work` on any machine")
        if (now["oldest_drop_s"] or 0) > 300:
            found.append(f"a turn has waited for {now['oldest_drop_s']:,} s: start more workers")
        if now["overdue"]:
            found.append(
                f"graphs overdue by five minutes: {now['overdue']}; start more workers, or read the workers' log"
            )
        return found


def graph_row(conn: Connection[Any], where: str, *values: Any) -> GraphRow | None:
    row = conn.execute(
        "SELECT g.id, g.tenant, g.folder, g.generation, g.revision, g.erased, s.id, s.revision FROM omg_graphs g"
        " JOIN omg_graphs s ON s.tenant = g.tenant AND s.folder = '' WHERE " + where,
        values,
    ).fetchone()
    return GraphRow(*row) if row else None


def hashed(token: str) -> bytes:
    """The hash of *token*. A token has 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(token.encode()).digest()
