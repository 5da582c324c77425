#!/usr/bin/env python3
"""
Measures what a job, a prompt and a registered tenant cost a fleet, on a Postgres of its own. Needs Debian's postgresql.

    python bench/fleet.py [throughput] [overhead] [registered] [inject] [chaos] [--scale 1] [--json]

Without a name, all but chaos run. --scale multiplies the people, turns, prompts, kills … below. --json prints one
object on the last line.

    throughput   turns a second of 1 and of 4 workers, one job at a time each, with a model that takes 2 s
    overhead     CPU ms of a worker for a job, less what a home needs for the same turn; CPU of Postgres; bytes of rows
    registered   the same job, the tick and a worker's memory with 200 and with 20,000 tenants, of which 200 are active
    inject       ms of a warm and of a cold prompt over HTTP; queries for one prompt
    chaos        tests/fleet/chaos.py: 200 graphs, 2,000 turns, 60 kills, 20 stops, 2 restarts
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "tests"), str(REPO / "tests" / "fleet")]

import psycopg
from chaos import BASE_MS, SETTINGS, Worker, chaos, drop_of
from postgres import PROGRAMS, Postgres

from omg.fleet.serve import tick
from omg.fleet.store import FleetStore, GraphRow, init_database, opened_pool
from omg.identity import identity_of_session

MAIN = "agent:main:main"
TURN = "Statement {n}: the lantern number {n} stands on shelf {shelf} of the blue cabinet, says Nora."
TICKS = os.sysconf("SC_CLK_TCK")


SCALE = 1.0


def scaled(count: int) -> int:
    return max(1, math.ceil(count * SCALE))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def postgres_cpu_s(server: Postgres) -> float:
    """Return the CPU seconds of all processes of the server, ended ones included."""
    main = int((server.folder / "data/postmaster.pid").read_text().split()[0])
    total = cpu_s(main)
    fields = Path(f"/proc/{main}/stat").read_text().rpartition(")")[2].split()
    total += (int(fields[13]) + int(fields[14])) / TICKS
    for child in Path(f"/proc/{main}/task/{main}/children").read_text().split():
        total += cpu_s(int(child))
    return total


def burden(pid: int) -> dict[str, int]:
    rss = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return {
        "rss_mb": int(rss.split()[1]) // 1024,
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
    }


def written(store: FleetStore) -> int:
    """Return the bytes written to Postgres' write-ahead log so far."""
    with store.pool.connection() as conn:
        return int(conn.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()[0])


def new_fleet(server: Postgres) -> tuple[str, FleetStore]:
    name = f"b{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.url("postgres"), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    init_database(server.url(name))
    return server.url(name), FleetStore(opened_pool(server.url(name), 8))


def people(store: FleetStore, count: int, first: int = 0) -> list[GraphRow]:
    rows = []
    for n in range(first, first + count):
        store.add_tenant(f"p{n}")
        rows.append(store.make_graph(store.tenant_id(f"p{n}"), identity_of_session(MAIN)))
    return rows


def say(store: FleetStore, row: GraphRow, n: int) -> None:
    text = TURN.format(n=n, shelf=n * 7 % 900)
    store.put_drop(row.id, f"{BASE_MS + n:015d}-{n:08x}.json", drop_of(n, text, MAIN))
    store.defer("observe", row.id)


def until_done(store: FleetStore) -> float:
    began = time.monotonic()
    with store.pool.connection() as conn:
        while conn.execute("SELECT count(*) FROM omg_drops").fetchone() != (0,):
            time.sleep(0.02)
            assert time.monotonic() - began < 600, "the workers do not get done"
    return time.monotonic() - began


def throughput(server: Postgres, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for count, turns in ((1, scaled(16)), (4, scaled(48))):
        database, store = new_fleet(server)
        rows = people(store, max(turns, 2 * count))
        workers = [
            Worker(database, folder / f"t{count}-{i}", 30, parallel=1, SCRIPTED_S="2") for i in range(count)
        ]
        try:
            for n, row in enumerate(rows[: 2 * count]):  # until each has its model's process
                say(store, row, n)
            until_done(store)
            for n, row in enumerate(rows[:turns]):
                say(store, row, 10_000 + n)
            took = until_done(store)
        finally:
            for worker in workers:
                worker.end()
        found[f"{count} workers"] = {
            "turns": turns,
            "seconds": round(took, 1),
            "turns_per_s": round(turns / took, 3),
        }
    found["times"] = round(found["4 workers"]["turns_per_s"] / found["1 workers"]["turns_per_s"], 2)
    return found


def a_home(folder: Path, turns: int) -> float:
    """Return the CPU ms of a turn in a home: a drop in the spool is taken in and observed."""
    from omg.llm.child import Child
    from omg.memory import Memory

    os.environ.update(SETTINGS, SCRIPTED_S="0")
    model = Child(idle_s=600, command=(sys.executable, str(REPO / "tests/fleet/scripted.py"), "model"))
    with Memory(folder / "home", child=model) as memory:
        before = 0.0
        for n in range(turns + 5):
            if n == 5:
                before = time.process_time()
            (memory.folder / "spool" / f"{BASE_MS + n:015d}-{n:08x}.json").write_bytes(
                drop_of(n, TURN.format(n=n, shelf=n), MAIN)
            )
            memory.work()
        took = time.process_time() - before
    model.close()
    return took / turns * 1000


def measured_jobs(
    server: Postgres, database: str, store: FleetStore, rows: list[GraphRow], folder: Path
) -> dict[str, Any]:
    """Run turns, one job each, on a warm worker. Return the CPU of the worker and of Postgres, seconds and memory."""
    worker = Worker(database, folder, 30, parallel=1, SCRIPTED_S="0")
    pid = worker.process.pid
    try:
        for n, row in enumerate(rows):
            say(store, row, n)
        until_done(store)
        time.sleep(2)
        own, theirs, began = cpu_s(pid), postgres_cpu_s(server), time.monotonic()
        wal = written(store)
        jobs = 0
        for again in range(4):
            for n, row in enumerate(rows):
                say(store, row, 1_000 * (again + 1) + n)
                jobs += 1
            until_done(store)
        return {
            "jobs": jobs,
            "worker_cpu_ms": round((cpu_s(pid) - own) / jobs * 1000, 1),
            "postgres_cpu_ms": round((postgres_cpu_s(server) - theirs) / jobs * 1000, 1),
            "wal_bytes_a_job": (written(store) - wal) // jobs,
            "seconds_a_job": round((time.monotonic() - began) / jobs, 3),
            **burden(pid),
        }
    finally:
        worker.end()


def overhead(server: Postgres, folder: Path) -> dict[str, Any]:
    database, store = new_fleet(server)
    rows = people(store, scaled(25))
    found = measured_jobs(server, database, store, rows, folder / "o")
    home_ms = a_home(folder, scaled(20))
    with store.pool.connection() as conn:
        conn.execute("VACUUM ANALYZE omg_files")
        size = conn.execute("SELECT pg_total_relation_size('omg_files')").fetchone()[0]
        queries = conn.execute("SELECT count(*) FROM omg_files").fetchone()[0]
    return {
        **found,
        "home_cpu_ms": round(home_ms, 1),
        "overhead_cpu_ms": round(found["worker_cpu_ms"] - home_ms, 1),
        "bytes_a_graph": size // len(rows),
        "rows_a_graph": queries // len(rows),
    }


def registered(server: Postgres, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for count in (scaled(200), scaled(20_000)):
        database, store = new_fleet(server)
        rows = people(store, scaled(60))
        with store.pool.connection() as conn, conn.transaction():
            conn.execute(
                "WITH t AS (INSERT INTO omg_tenants (name, token_hash) SELECT 'r' || i, sha256(i::text::bytea)"
                " FROM generate_series(1, %s) i RETURNING id), s AS (INSERT INTO omg_graphs (tenant, folder)"
                " SELECT id, '' FROM t), g AS (INSERT INTO omg_graphs (tenant, folder) SELECT id, %s FROM t RETURNING id)"
                " INSERT INTO omg_files SELECT g.id, p, 0, 0, 0, repeat('x', 400)::bytea FROM g,"
                " unnest(ARRAY['identity.json', 'state.json', 'vault/index.md', 'vault/now.md']) p",
                (count - len(rows), rows[0].folder),
            )
        with store.pool.connection() as conn:
            conn.execute("ANALYZE")
        tick(store)
        began = time.perf_counter()
        for _ in range(20):
            tick(store)
        tick_ms = (time.perf_counter() - began) / 20 * 1000
        jobs = measured_jobs(server, database, store, rows, folder / f"r{count}")
        found[f"{count:,} tenants"] = {"tick_ms": round(tick_ms, 1), **jobs}
    return found


def inject(server: Postgres, folder: Path) -> dict[str, Any]:
    from tests.fleet.test_serve import free_port, post, process, prompt, until

    database, store = new_fleet(server)
    (row,) = people(store, 1)
    token = store.rotate("p0")
    worker = Worker(database, folder / "i", 30, parallel=1, SCRIPTED_S="0")
    try:
        for n in range(scaled(60)):
            say(store, row, n)
            if n % 20 == 19:
                until_done(store)
        until_done(store)
    finally:
        worker.end()
    asked = [
        prompt(f"On which shelf does the lantern number {n} stand, does Nora say?") for n in range(scaled(60))
    ]
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def is_up() -> bool:
        try:
            return post(url, token, "/health", {})[0] == 200
        except OSError:
            return False

    with process(database, "serve", "--port", str(port), cache=folder / "s") as started:
        until(is_up)
        began = time.perf_counter()
        post(url, token, "/inject", asked[0])
        cold_ms = (time.perf_counter() - began) * 1000
        times, hits = [], 0
        own, theirs = cpu_s(started.pid), postgres_cpu_s(server)
        for body in asked * 4:
            began = time.perf_counter()
            _, said = post(url, token, "/inject", body)
            times.append((time.perf_counter() - began) * 1000)
            hits += "prependContext" in said
        server_ms = (cpu_s(started.pid) - own) / len(times) * 1000
        postgres_ms = (postgres_cpu_s(server) - theirs) / len(times) * 1000
        size = burden(started.pid)
    cuts = statistics.quantiles(times, n=20)
    return {
        "prompts": len(times),
        "answered": hits,
        "cold_ms": round(cold_ms),
        "p50_ms": round(cuts[9], 1),
        "p95_ms": round(cuts[18], 1),
        "server_cpu_ms": round(server_ms, 1),
        "postgres_cpu_ms": round(postgres_ms, 1),
        **size,
    }


def chaotic(server: Postgres, folder: Path) -> dict[str, Any]:
    database, store = new_fleet(server)
    sizes = {"graphs": 200, "turns": 2_000, "kills": 60, "stops": 20, "restarts": 2}
    return chaos(server, store, database, folder, **{of: scaled(count) for of, count in sizes.items()})


BENCHES = {
    "throughput": throughput,
    "overhead": overhead,
    "registered": registered,
    "inject": inject,
    "chaos": chaotic,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="BENCH", help=", ".join(BENCHES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    names = given.names or [name for name in BENCHES if name != "chaos"]
    global SCALE
    SCALE = given.scale
    if not PROGRAMS:
        sys.exit("no Postgres on this machine: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="omg-pg-"))
    server = Postgres(folder, PROGRAMS[-1])
    os.environ["OMG_HOME"] = str(folder / "none")
    try:
        found = {}
        for name in names:
            found[name] = BENCHES[name](server, Path(tempfile.mkdtemp(prefix=f"omg-{name}-")))
            if not given.json:
                print(name, json.dumps(found[name], indent=1), flush=True)
        if given.json:
            print(json.dumps(found))
    finally:
        server.stop("immediate")


if __name__ == "__main__":
    main()
