"""The tests of a fleet start a Postgres of their own."""

import shutil
import tempfile
import uuid
from pathlib import Path

import pytest
from postgres import PROGRAMS, Postgres

psycopg = pytest.importorskip("psycopg", reason="pip install 'omg-memory[fleet]'")


@pytest.fixture(scope="session")
def postgres():
    if not PROGRAMS:
        pytest.skip("no Postgres on this machine: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="omg-pg-"))
    server = Postgres(folder, PROGRAMS[-1])
    yield server
    server.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres):
    """The address of a new fleet."""
    from omg.fleet.store import init_database

    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    init_database(postgres.url(name))
    return postgres.url(name)


@pytest.fixture
def store(database):
    from omg.fleet.store import FleetStore, opened_pool

    with opened_pool(database) as pool:
        yield FleetStore(pool)


@pytest.fixture
def row(store):
    """A graph of the tenant acme."""
    from omg.identity import identity_of_session

    store.add_tenant("acme")
    return store.make_graph(store.tenant_id("acme"), identity_of_session("agent:main:main"))


@pytest.fixture
def observed(store, homes, row):
    """The same graph once a turn of it was observed."""
    from omg.fleet.serve import do_job
    from tests.fleet.test_store import say

    say(store, row, "I prefer green tea in the morning.")
    do_job(store, homes, "observe", row.id)
    return row


@pytest.fixture
def homes(store, tmp_path, monkeypatch):
    """Where graphs are checked out, with the rules as the Observer and no vectors."""
    from omg.fleet.homes import Homes

    monkeypatch.setenv("OMG_OBSERVATION_MODEL", "offline")
    monkeypatch.setenv("OMG_OBSERVATION_BUFFER_TOKENS", "turn")
    monkeypatch.setenv("OMG_EMBEDDING_MODEL", "none")
    with Homes(store, tmp_path / "cache") as made:
        yield made
