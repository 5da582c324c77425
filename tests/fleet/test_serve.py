"""A fleet as its clients see it: over HTTP, with a server and workers as processes."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from omg.client import ask_daemon
from omg.errors import OmgError
from omg.fleet.homes import Home, Homes, export_home, import_home
from omg.fleet.serve import Serving, do_job
from omg.identity import identity_of_session
from omg.memory import Memory
from tests.fleet.test_store import drop, everything, notes, say

MAIN = "agent:main:main"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def process(database: str, *command: str, cache: Path, **env: str):
    """Run `omg fleet …` as a process, and end it after the test."""
    settings = {
        "OMG_OBSERVATION_MODEL": "offline",
        "OMG_OBSERVATION_BUFFER_TOKENS": "turn",
        "OMG_EMBEDDING_MODEL": "none",
    }
    started = subprocess.Popen(
        [sys.executable, "-m", "omg.cli", "fleet", *command, "--cache", str(cache)],
        env={**os.environ, **settings, "OMG_FLEET_DATABASE": database, **env},
        cwd=Path(__file__).parents[2],
    )
    try:
        yield started
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGCONT)
            started.terminate()
            try:
                started.wait(15)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def post(url: str, token: str, path: str, body, timeout_s: float = 20):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())


@contextmanager
def server(database: str, cache: Path, **env: str):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with process(database, "serve", "--port", str(port), cache=cache, **env):
        until = time.monotonic() + 60
        while True:
            try:
                post(url, "nobody", "/health", {})
                break
            except OSError:
                assert time.monotonic() < until, "the server does not come up"
                time.sleep(0.1)
        yield url


def until(wanted, seconds: float = 60):
    end = time.monotonic() + seconds
    while not (found := wanted()):
        assert time.monotonic() < end, "it does not come to pass"
        time.sleep(0.2)
    return found


def prompt(text: str, session: str = MAIN, **more):
    return {"sessionKey": session, "trigger": "user", "prompt": text, "deadline_ms": 20_000, **more}


def test_a_turn_sent_to_the_server_is_observed_by_a_worker_and_given_to_a_prompt(database, store, tmp_path):
    token = store.add_tenant("acme")
    with server(database, tmp_path / "s") as url, process(database, "work", cache=tmp_path / "w"):
        status, answer = post(
            url, token, "/drop/001770000000000-aa.json", drop("I prefer green tea in the morning.")
        )
        assert (status, answer) == (200, {"taken": True})
        until(lambda: any("tea" in note for row in store.graphs(1) for note in [notes(store, row.id)]))
        _, given = post(url, token, "/inject", prompt("What do I like to drink in the morning?"))
        assert "green tea" in given["appendSystemContext"] + given.get("prependContext", "")
        context = {"sessionKey": MAIN, "trigger": "user", "runId": "r1"}
        _, said = post(
            url, token, "/tool", {"name": "omg_search", "params": {"query": "tea"}, "context": context}
        )
        assert "green tea" in said["text"]
        _, gone = post(url, token, "/forget", {"session": MAIN, "matching": "green tea"})
        assert gone["notes"] and gone["messages"] == 1
        _, given = post(url, token, "/inject", prompt("What do I like to drink in the morning?"))
        assert "green tea" not in json.dumps(given) and b"green tea" not in everything(store)
    assert not [*(tmp_path / "s").rglob("index.db"), *(tmp_path / "w").rglob("index.db")]


def test_omg_asks_the_fleet_if_the_home_has_the_address_and_token_of_the_fleet(
    database, store, observed, home, tmp_path
):
    token = store.rotate("acme")
    home.mkdir(exist_ok=True)
    with server(database, tmp_path / "s") as url:
        (home / "fleet.json").write_text(json.dumps({"url": url, "token": token}))
        assert ask_daemon(home, "/search", {"query": "tea", "k": 5})["hits"]
        (home / "fleet.json").write_text(json.dumps({"url": url, "token": "wrong"}))
        with pytest.raises(OmgError, match="no tenant has this token"):
            ask_daemon(home, "/search", {"query": "tea", "k": 5})
    with pytest.raises(OmgError, match="does not answer"):
        ask_daemon(home, "/search", {"query": "tea", "k": 5})


def test_a_prompt_gets_the_previous_system_slice_in_time_while_a_cold_home_is_being_loaded(
    store, homes, observed, tmp_path, monkeypatch
):
    asked = prompt("What do I like in the morning?")
    warm = Serving(store, homes).answer(observed.tenant, "/inject", asked)
    with Homes(store, tmp_path / "cold") as cold:
        bring_up = Home.bring_up
        monkeypatch.setattr(
            Home,
            "bring_up",
            lambda home, *how: (time.sleep(3 if home.row.folder else 0), bring_up(home, *how)),
        )
        serving = Serving(store, cold)
        serving.identity(observed.tenant, asked)  # the tenant is known here, the graph is not

        async def ask(deadline_ms):
            began = time.monotonic()
            said = await serving.inject(observed.tenant, {**asked, "deadline_ms": deadline_ms})
            return said, time.monotonic() - began

        async def both():
            first = await ask(1_000)
            await asyncio.sleep(3)
            return first, await ask(20_000)

        (early, took), (late, _) = asyncio.run(both())
    assert early == {"appendSystemContext": warm["appendSystemContext"]} and took < 2
    assert late["appendSystemContext"] == warm["appendSystemContext"]


COLLIDING = [
    "agent:main:main",
    "agent:main:telegram:direct:7",
    "agent:main:telegram:direct:../7",
    "agent:main:x/../main",
    "owner",
    "agent:main:main:thread:1",
]


def test_no_tenant_is_given_anothers_words(database, store, homes, tmp_path):
    """20 tenants with the same sessions and note names; wrong, old and foreign tokens."""
    tokens = {f"t{i}": store.add_tenant(f"t{i}") for i in range(20)}
    ids = {name: store.tenant_id(name) for name in tokens}
    serving = Serving(store, homes)
    for i, name in enumerate(tokens):
        session = COLLIDING[i % len(COLLIDING)]
        serving.drop(
            ids[name],
            "001770000000000-aa.json",
            drop(f"I prefer the canary{name}x tea in the morning.", session=session),
        )
        for row in store.graphs(ids[name]):
            do_job(store, homes, "observe", row.id)
    leaks, served = [], 0
    for i, name in enumerate(tokens):
        for session in {COLLIDING[i % len(COLLIDING)], *COLLIDING[:3]}:
            bodies = {
                "/inject": prompt("Which canary tea do I prefer in the morning?", session),
                "/search": {"query": "canary tea", "k": 50, "session": session},
                "/command": {"args": "search canary tea", "context": {"sessionKey": session}},
                "/corpus": {
                    "op": "search",
                    "params": {"query": "canary tea"},
                    "context": {"sessionKey": session},
                },
                "/tool": {
                    "name": "omg_open",
                    "params": {"name": "../../../../omg.toml"},
                    "context": {"sessionKey": session},
                },
            }
            for path, body in bodies.items():
                said = json.dumps(serving.answer(ids[name], path, body))
                served += f"canary{name}x" in said
                leaks += [(name, other) for other in tokens if other != name and f"canary{other}x" in said]
    assert leaks == [] and served >= 40
    old = tokens["t1"]
    new = store.rotate("t1")
    with server(database, tmp_path / "s") as url:
        for token in ("", "wrong", old, new[:-1], new + "x", hex(1)):
            assert post(url, token, "/inject", prompt("canary"))[0] == 401
        for name in ("../../x.json", "%2e%2e%2fx.json", "..", ".hidden.json"):
            assert post(url, new, f"/drop/{name}", drop("I prefer tea."))[0] in (404, 422)
        assert post(url, new, "/inject", prompt("Which canary tea do I prefer?"))[0] == 200


def test_a_home_exported_from_the_fleet_equals_the_imported_one_byte_for_byte(
    store, homes, home, tmp_path, monkeypatch
):
    monkeypatch.setenv("OMG_OBSERVATION_MODEL", "offline")
    with Memory(home) as memory:
        for session in (MAIN, "alice"):
            memory.capture(
                [{"role": "user", "content": f"I prefer {session} tea.", "id": "1"}], session=session
            )
        memory.observe()
        memory.inject("tea?")
    (home / "omg.toml").write_text('[time]\nzone = "Europe/Berlin"\n')
    (home / "graphs").glob("*").__next__().joinpath("vault/paper.pdf").write_bytes(os.urandom(200_000))
    store.add_tenant("acme")
    import_home(store, "acme", home)
    export_home(store, "acme", tmp_path / "out")
    derived = ("index.db", "lock", "omg.sock", ".omg-")

    def bytes_of(root):
        found = {
            p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.is_file() and not p.is_symlink()
        }
        return {
            n: (p.read_bytes(), p.stat().st_mtime_ns)
            for n, p in found.items()
            if not any(d in p.name for d in derived)
        }

    before, after = bytes_of(home), bytes_of(tmp_path / "out")
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []
    row = store.graphs(store.tenant_id("acme"))[0]
    with homes.hold(row) as opened:
        assert opened.memory.search("tea") and opened.memory.config.time.zone == "Europe/Berlin"


def test_fleet_commands_create_a_tenant_and_count_its_rows_and_report_faults(database, store):
    def omg(*command: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "OMG_FLEET_DATABASE": database}
        return subprocess.run(
            [sys.executable, "-m", "omg.cli", "fleet", *command],
            env=env, capture_output=True, text=True, timeout=100, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    token = omg("tenant", "add", "acme").stdout.strip()
    assert store.tenant_of(token) == store.tenant_id("acme")
    assert "this tenant exists" in omg("tenant", "add", "acme").stderr
    told = json.loads(omg("status", "--json").stdout)
    assert (told["tenants"], told["graphs"], told["workers"]) == (1, 0, 0)
    doctor = omg("doctor")
    assert doctor.returncode == 1 and "start `omg fleet work`" in doctor.stdout


def test_a_tenant_that_waits_for_its_own_graph_delays_no_other_tenant(database, store, homes, tmp_path):
    tokens = {name: store.add_tenant(name) for name in ("slow", "quick")}
    made = {name: store.make_graph(store.tenant_id(name), identity_of_session(MAIN)) for name in tokens}
    for row in made.values():
        say(store, row, "I prefer green tea in the morning.")
        do_job(store, homes, "observe", row.id)
    with server(database, tmp_path / "s") as url, ThreadPoolExecutor(30) as threads:
        post(url, tokens["quick"], "/inject", prompt("What do I like to drink?"))
        with store.pool.connection() as conn, conn.transaction():
            conn.execute("SELECT 1 FROM omg_graphs WHERE id = %s FOR UPDATE", (made["slow"].id,))
            body = {"session": MAIN, "matching": "green tea"}
            asked = [threads.submit(post, url, tokens["slow"], "/forget", body, 60) for _ in range(30)]
            time.sleep(1)
            began = time.monotonic()
            _, given = post(url, tokens["quick"], "/inject", prompt("What do I like to drink?"))
            took = time.monotonic() - began
        assert given and took < 5
        assert {answer.result()[0] for answer in asked} <= {200, 422, 503}
    assert "green tea" not in notes(store, made["slow"].id)


def test_an_unknown_path_and_a_body_that_is_no_object_get_an_error_message(database, store, tmp_path):
    token = store.add_tenant("acme")
    with server(database, tmp_path / "s") as url:
        for path in ("/mcp", "/host", "/stop", "/llm/next", "/nothing"):
            status, said = post(url, token, path, {})
            assert status == 404 and "docs/fleet.md" in said["error"]
        for data in (b"[]", b"{", b"[" * 100_000, b"\xff"):
            assert post(url, token, "/search", data)[0] == 400


def test_the_containers_health_check_sees_whether_the_server_answers(database, tmp_path):
    script = Path(__file__).parents[2] / "hooks" / "container" / "health.py"

    def healthy(url: str) -> bool:
        env = {**os.environ, "OMG_HEALTH_URL": f"{url}/metrics"}
        return (
            subprocess.run([sys.executable, script], env=env, capture_output=True, timeout=30).returncode == 0
        )

    with server(database, tmp_path / "cache") as url:
        assert healthy(url)
    assert not healthy(url)
