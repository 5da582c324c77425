"""A graph in Postgres: checked out, committed in one transaction, and fenced."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from omg.errors import BadInput, ConfigError, Stale
from omg.fleet.homes import Homes
from omg.fleet.serve import do_job, tick
from omg.identity import identity_of_session


def drop(
    text: str, at_ms: int = 1_770_000_000_000, session: str = "agent:main:main", role: str = "user"
) -> bytes:
    entry = {"entryId": f"e{at_ms}", "createdAt": at_ms, "message": {"role": role, "content": text}}
    return json.dumps(
        {
            "v": 1,
            "reason": "turn",
            "agentId": "main",
            "sessionKey": session,
            "sessionId": "s",
            "entries": [entry],
        }
    ).encode()


def say(store, row, text: str, at_ms: int = 1_770_000_000_000) -> None:
    store.put_drop(row.id, f"{at_ms:015d}-{at_ms:08x}.json", drop(text, at_ms))


def rows(store, graph: int) -> dict[str, bytes]:
    with store.pool.connection() as conn:
        found = conn.execute(
            "SELECT path, string_agg(bytes, ''::bytea ORDER BY part) FROM omg_files WHERE graph = %s GROUP BY path",
            (graph,),
        ).fetchall()
    return dict(found)


def everything(store) -> bytes:
    """Return all bytes and texts of all rows."""
    with store.pool.connection() as conn:
        found = conn.execute("SELECT bytes FROM omg_files UNION ALL SELECT bytes FROM omg_drops").fetchall()
        jobs = conn.execute("SELECT row_to_json(j)::text FROM procrastinate_jobs j").fetchall()
    return b"".join(data for (data,) in found) + str(jobs).encode()


def notes(store, graph: int) -> str:
    return b"\n".join(
        data for path, data in rows(store, graph).items() if path.startswith("vault/nodes/")
    ).decode()


def archived(store, graph: int) -> list[str]:
    return [
        json.loads(line)["id"]
        for path, data in rows(store, graph).items()
        if path.startswith("archive/")
        for line in data.splitlines()
    ]


def test_a_drop_becomes_rows_of_notes_and_its_own_row_is_deleted(store, homes, row):
    say(store, row, "I prefer green tea in the morning.")
    do_job(store, homes, "observe", row.id)
    assert "green tea" in notes(store, row.id)
    with store.pool.connection() as conn:
        assert conn.execute("SELECT count(*) FROM omg_drops").fetchone() == (0,)
        generation, due, night = conn.execute(
            "SELECT generation, due_at, night_at FROM omg_graphs WHERE id = %s", (row.id,)
        ).fetchone()
    assert (generation, due) == (1, None) and night is not None


def test_a_job_without_work_is_not_queued_again(store, homes, observed):
    with store.pool.connection() as conn:
        conn.execute("UPDATE omg_graphs SET due_at = now() WHERE id = %s", (observed.id,))
        do_job(store, homes, "observe", observed.id)
        assert conn.execute("SELECT count(*) FROM omg_graphs WHERE due_at IS NOT NULL").fetchone() == (0,)


def test_a_worker_writes_nothing_if_another_machine_changed_its_graph(store, homes, row, tmp_path):
    say(store, row, "I prefer green tea in the morning.")
    with Homes(store, tmp_path / "other") as other:
        with pytest.raises(Stale), other.hold(row, drops=True) as home:
            home.memory.take_in()
            home.memory.work()
            do_job(store, homes, "observe", row.id)  # meanwhile, elsewhere
            before = rows(store, row.id)
            home.commit(store)
    assert rows(store, row.id) == before and len(archived(store, row.id)) == 1


COMMITTING = """
import os, sys
from pathlib import Path
from omg.fleet import homes, store
from omg.fleet.serve import do_job
database, folder, graph, number = sys.argv[1:]
write, sent = homes.Tree._write_rows, []
def interrupted(self, *a):
    write(self, *a)
    if not sent:
        sent.append(number)
        os.kill(os.getpid(), int(number))
homes.Tree._write_rows = interrupted
opened = store.FleetStore(store.opened_pool(database))
with homes.Homes(opened, Path(folder)) as caches:
    do_job(opened, caches, "observe", int(graph))
"""


def committing(database, folder, row, number: signal.Signals) -> subprocess.Popen:
    """Start a process that observes *row*, and that sends itself a signal in its transaction after writing its rows."""
    arguments = (database, str(folder), str(row.id), str(number.value))
    return subprocess.Popen([sys.executable, "-c", COMMITTING, *arguments])


def test_a_commit_killed_halfway_changes_nothing(store, homes, row, database, tmp_path):
    """The process dies inside the transaction, after its rows were written."""
    say(store, row, "I prefer green tea in the morning.")
    before = rows(store, row.id)
    with committing(database, tmp_path / "dead", row, signal.SIGKILL) as died:
        died.wait(60)
    assert died.returncode == -signal.SIGKILL and rows(store, row.id) == before
    do_job(store, homes, "observe", row.id)
    assert len(archived(store, row.id)) == 1
    left = [path for path in (tmp_path / "dead").rglob("*") if path.is_file()]
    assert left, "the dead process left its cache"
    with Homes(store, tmp_path / "dead"):
        assert not any(path.exists() for path in left)


def test_a_slice_served_while_a_worker_runs_is_saved_and_the_worker_can_still_commit(
    store, homes, observed, tmp_path
):
    say(store, observed, "I prefer black coffee at noon.", 1_770_000_100_000)
    with Homes(store, tmp_path / "worker") as worker, worker.hold(observed, drops=True) as at_work:
        at_work.memory.take_in()
        with homes.hold(observed) as home:  # a server, meanwhile
            given = home.memory.inject("What do I like in the morning?", session="agent:main:main")
            home.keep_served(store)
        assert given.reason == "new_session"
        at_work.memory.work()
        at_work.commit(store)
    state = json.loads(rows(store, observed.id)["state.json"])["sessions"]["agent:main:main"]
    assert state["system"] == given.system and state["last_ms"] == 1_770_000_100_000
    with Homes(store, tmp_path / "another") as another, another.hold(observed) as home:
        again = home.memory.inject("And at noon?", session="agent:main:main")
    assert again.system == given.system and again.reason is None


def test_forgotten_words_are_in_no_row_and_no_cache(store, homes, row, tmp_path):
    say(store, row, "My locker code is zyxquartz and I prefer green tea.")
    do_job(store, homes, "observe", row.id)
    say(store, row, "The zyxquartz locker is on the second floor.", 1_770_000_100_000)
    with Homes(store, tmp_path / "other") as other:
        with other.hold(row) as home:
            home.memory.inject("What is my locker code?", session="agent:main:main")
            home.commit(store)
        with homes.hold(row, drops=True) as home:
            home.memory.forget(matching="zyxquartz", session="agent:main:main")
            home.commit(store)
        assert b"zyxquartz" not in everything(store)
        other.sweep()
        kept = [f for f in [*other.folder.rglob("*"), *homes.folder.rglob("*")] if f.is_file()]
        assert not [f for f in kept if b"zyxquartz" in f.read_bytes()]
        with other.hold(row) as home:
            assert (
                "zyxquartz"
                not in home.memory.inject("What is my locker code?", session="agent:main:main").prompt
            )


def test_a_note_removed_by_another_machine_does_not_count_as_a_persons_deletion(
    store, homes, observed, tmp_path
):
    path = next(p for p in rows(store, observed.id) if p.startswith("vault/nodes/") and "tea" in p)
    with Homes(store, tmp_path / "other") as other:
        with other.hold(observed) as home:
            home.memory.search("tea")
        with homes.hold(observed) as home:
            (home.own.root / path).rename(home.own.root / path.replace("tea", "leaves"))
            home.memory.refresh(home.memory.find())
            home.commit(store)
        before = rows(store, observed.id).get("tombstones.jsonl")
        with other.hold(observed) as home:
            assert [hit.entry.path for hit in home.memory.search("tea")]
            home.commit(store)
        assert rows(store, observed.id).get("tombstones.jsonl") == before


def test_a_path_that_leads_out_of_a_graph_is_refused(store, homes, row):
    with store.pool.connection() as conn:
        conn.execute("INSERT INTO omg_files VALUES (%s, '../../../escaped', 0, 0, 0, 'x')", (row.id,))
    with pytest.raises(BadInput, match="leads out of the graph"), homes.hold(row):
        pass
    assert not list(homes.folder.rglob("escaped"))


def test_a_token_is_in_no_row_and_an_old_one_is_refused(store):
    first = store.add_tenant("acme")
    assert store.tenant_of(first) == store.tenant_id("acme")
    second = store.rotate("acme")
    assert store.tenant_of(first) is None and store.tenant_of(second) is not None
    with store.pool.connection() as conn:
        kept = str(conn.execute("SELECT * FROM omg_tenants").fetchall())
    assert first not in kept and second not in kept


def test_jobs_hold_no_text_and_equal_jobs_are_queued_once(store, row):
    assert store.defer("observe", row.id) and not store.defer("observe", row.id)
    with store.pool.connection() as conn:
        assert conn.execute("SELECT args, lock FROM procrastinate_jobs").fetchall() == [
            ({"graph": row.id}, f"graph:{row.id}")
        ]


def test_forgetting_an_unreadable_drop_clears_the_caches_of_all_graphs_of_the_tenant(
    store, homes, row, tmp_path
):
    say(store, row, "My locker code is zyxquartz and I prefer green tea.")
    do_job(store, homes, "observe", row.id)
    beside = store.make_graph(row.tenant, identity_of_session("agent:main:telegram:direct:7"))
    bad = b'{"zyxquartz'
    store.ask("INSERT INTO omg_files VALUES (%s, 'spool/bad/1.json', 0, 99, 1, %s)", row.shared, bad)
    store.ask("UPDATE omg_graphs SET revision = 99 WHERE id = %s", row.shared)
    with Homes(store, tmp_path / "other") as other:
        with other.hold(beside):
            assert [f for f in other.folder.rglob("1.json") if b"zyxquartz" in f.read_bytes()]
        homes.change(row, "forget", lambda home: home.memory.forget(matching="zyxquartz"))
        assert b"zyxquartz" not in everything(store)
        other.sweep()
        assert not [f for f in other.folder.rglob("*") if f.is_file() and b"zyxquartz" in f.read_bytes()]


def test_a_process_stopped_during_its_commit_delays_no_other(store, homes, row, database, tmp_path):
    """After SIGSTOP in an open transaction, Postgres ends the transaction, and the process commits nothing when it wakes."""
    say(store, row, "I prefer green tea in the morning.")
    asleep = committing(database, tmp_path / "asleep", row, signal.SIGSTOP)
    try:
        assert os.WIFSTOPPED(os.waitpid(asleep.pid, os.WUNTRACED)[1])
        with ThreadPoolExecutor(1) as threads:
            done = threads.submit(do_job, store, homes, "observe", row.id)
            while not done.done():
                tick(store, lease_s=2)  # as a worker does every five seconds
                time.sleep(0.5)
        assert len(archived(store, row.id)) == 1
        before = rows(store, row.id)
    finally:
        asleep.send_signal(signal.SIGCONT)
    asleep.wait(60)
    assert rows(store, row.id) == before


def test_a_cache_that_another_account_could_reach_is_refused(store, tmp_path):
    folder = tmp_path / f"omg-fleet-{os.getuid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    with pytest.raises(ConfigError, match="other accounts can reach it"):
        Homes(store, tmp_path)
