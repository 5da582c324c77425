"""A Postgres of its own for the tests of a fleet: initdb in a tmp folder, as an unprivileged user."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg", reason="pip install 'omg-memory[fleet]'")
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [
    Path(p).parent for p in [shutil.which("initdb")] if p
]


class Postgres:
    """A server on a unix socket. `restart` kills its backends as a machine's restart would."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.programs = folder, programs
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        self.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "omg", "--no-sync")
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        as_user = {"user": self.user} if os.geteuid() == 0 else {}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **as_user)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c max_connections=200"
        data, logged = str(self.folder / "data"), str(self.folder / "log")
        self.run("pg_ctl", "-D", data, "-w", "-l", logged, "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", how, "stop")

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://omg@/{database}?host={self.folder}"


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
    from omg.fleet.store import Store, opened_pool

    with opened_pool(database) as pool:
        yield Store(pool)


@pytest.fixture
def homes(store, tmp_path, monkeypatch):
    """Where graphs are checked out, with the rules as the Observer and no vectors."""
    from omg.fleet.homes import Homes

    monkeypatch.setenv("OMG_OBSERVATION_MODEL", "offline")
    monkeypatch.setenv("OMG_OBSERVATION_BUFFER_TOKENS", "turn")
    monkeypatch.setenv("OMG_EMBEDDING_MODEL", "none")
    with Homes(store, tmp_path / "cache") as made:
        yield made
