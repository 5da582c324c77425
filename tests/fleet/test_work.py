"""The jobs of a fleet: nights, rebuilding, what is due, and the bench that measures them."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from omg.fleet.serve import do_job, tick
from omg.identity import identity_of_session
from tests.fleet.test_serve import process, until
from tests.fleet.test_store import archived, notes, say

MAIN = "agent:main:main"
SAID = [
    "I prefer green tea in the morning.",
    "I decided to move the pottery class to Thursday.",
    "I prefer green tea in the morning, always.",
]


@pytest.fixture
def row(store, homes):
    """A graph in which three turns were observed."""
    store.add_tenant("acme")
    made = store.make_graph(store.tenant_id("acme"), identity_of_session(MAIN))
    for n, text in enumerate(SAID):
        say(store, made, text, 1_770_000_000_000 + n * 60_000)
    do_job(store, homes, "observe", made.id)
    return made


def graph_times(store, graph):
    return store.ask("SELECT generation, due_at, night_at FROM omg_graphs WHERE id = %s", graph)[0]


def job_kinds(store):
    return [
        kind
        for (kind,) in store.ask("SELECT task_name FROM procrastinate_jobs WHERE status = 'todo' ORDER BY id")
    ]


def test_a_reflection_is_queued_when_due_and_only_if_something_was_said(store, homes, row):
    assert tick(store)["nights"] == 0
    store.ask("UPDATE omg_graphs SET night_at = now() WHERE id = %s", row.id)
    assert tick(store)["nights"] == 1 and job_kinds(store) == ["reflect"]
    before, _, _ = graph_times(store, row.id)
    do_job(store, homes, "reflect", row.id)
    after, due_at, night_at = graph_times(store, row.id)
    assert after == before + 1 and (due_at, night_at) == (None, None)
    store.ask("DELETE FROM procrastinate_jobs")
    assert tick(store) == {"stalled": 0, "due": 0, "nights": 0}
    say(store, row, "I prefer black coffee at noon.", 1_770_000_900_000)
    do_job(store, homes, "observe", row.id)
    assert graph_times(store, row.id)[2] is not None


def test_reflections_are_spread_from_one_to_six_oclock_in_the_users_zone(store, homes):
    store.add_tenant("tokyo")
    tenant, zone = store.tenant_id("tokyo"), ZoneInfo("Asia/Tokyo")
    settings = b'[time]\nzone = "Asia/Tokyo"\n'
    shared = store.graph(tenant, "").id
    store.ask("INSERT INTO omg_files VALUES (%s, 'omg.toml', 0, 1, 1, %s)", shared, settings)
    store.ask("UPDATE omg_graphs SET revision = 1 WHERE id = %s", shared)
    at = set()
    for n in range(6):
        made = store.make_graph(tenant, identity_of_session(f"agent:main:telegram:direct:{n}"))
        say(store, made, SAID[0])
        do_job(store, homes, "observe", made.id)
        night = graph_times(store, made.id)[2].astimezone(zone)
        assert 1 <= night.hour < 6 and night > datetime.now(zone)
        at.add(night)
    assert len(at) == 6


def test_a_worker_reflects_and_rebuilds_and_leaves_no_job(database, store, row, tmp_path):
    before, _, _ = graph_times(store, row.id)
    store.defer("reflect", row.id)
    store.defer("rebuild", row.id)
    with process(database, "work", cache=tmp_path / "w"):
        until(lambda: graph_times(store, row.id)[0] >= before + 2)
        until(lambda: not store.ask("SELECT 1 FROM procrastinate_jobs WHERE task_name <> 'tick'"))
    assert "green tea" in notes(store, row.id) and len(archived(store, row.id)) == len(SAID)


def test_the_job_of_a_dead_worker_is_queued_again(store, row):
    store.defer("observe", row.id)
    store.ask("UPDATE procrastinate_jobs SET status = 'doing'")
    store.defer("observe", row.id)
    assert tick(store)["stalled"] == 1 and job_kinds(store) == ["observe"]


def test_the_bench_runs_on_a_tiny_input(tmp_path):
    script = Path(__file__).parents[2] / "bench" / "fleet.py"
    done = subprocess.run(
        [sys.executable, str(script), "overhead", "inject", "--scale", "0.02", "--json"],
        capture_output=True, text=True, timeout=500, env={**os.environ, "TMPDIR": "/tmp"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert {*found} == {"overhead", "inject"} and found["overhead"]["jobs"] and found["inject"]["prompts"]
