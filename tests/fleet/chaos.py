"""Kills workers, stops them for longer than their lease, restarts Postgres, and counts what is left."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from psycopg.errors import OperationalError

from omg.errors import OmgError
from omg.fleet.homes import Homes
from omg.fleet.store import FleetStore
from omg.identity import identity_of_session

WORD = "zyxquartz"  # forgotten in the middle of it
BASE_MS = 1_770_000_000_000
SETTINGS = {
    "OMG_OBSERVATION_MODEL": "openai/scripted",
    "OMG_LLM_CONTEXT_WINDOW": "32000",
    "OMG_LLM_API_KEY": "none",
    "OMG_OBSERVATION_BUFFER_TOKENS": "turn",
    "OMG_EMBEDDING_MODEL": "none",
}
AUDIT = """
CREATE TABLE audit (graph bigint, generation bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit VALUES (NEW.id, NEW.generation); RETURN NEW; END $$;
CREATE TRIGGER note AFTER UPDATE OF generation ON omg_graphs FOR EACH ROW
    WHEN (OLD.generation <> NEW.generation AND NEW.folder <> '') EXECUTE FUNCTION note();
"""


class Worker:
    def __init__(self, database: str, cache: Path, lease_s: float, parallel: int = 2, **env: str) -> None:
        self.command = [
            sys.executable,
            str(Path(__file__).with_name("scripted.py")),
            "work",
            str(cache),
            str(parallel),
            str(lease_s),
        ]
        self.env = {**os.environ, **SETTINGS, "OMG_FLEET_DATABASE": database, **env}
        self.cache, self.log = cache, cache.with_suffix(".log")
        cache.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, env=self.env, stderr=log, stdout=log)

    def kill(self) -> None:
        """kill -9, and another in its place."""
        self.process.kill()
        self.process.wait()
        self.start()

    def pause(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def drop_of(n: int, text: str, session: str) -> bytes:
    at = BASE_MS + n * 1000
    entry = {"entryId": f"e{n}", "createdAt": at, "message": {"role": "user", "content": text}}
    drop = {
        "v": 1,
        "reason": "turn",
        "agentId": "main",
        "sessionKey": session,
        "sessionId": "s",
        "entries": [entry],
    }
    return json.dumps(drop).encode()


def patiently(what):
    """Call *what*, again while Postgres restarts or another machine commits first."""
    until = time.monotonic() + 90
    while True:
        try:
            return what()
        except (OperationalError, OmgError):
            if time.monotonic() > until:
                raise
            time.sleep(0.3)


def chaos(postgres, store: FleetStore, database: str, folder: Path, *, graphs=200, turns=2_000, kills=60, stops=20, restarts=2, lease_s=5.0, seed=1):  # fmt: skip
    rng = random.Random(seed)
    with store.pool.connection() as conn:
        conn.execute(AUDIT)
    rows = []
    for t in range(max(1, graphs // 10)):
        store.add_tenant(f"t{t}")
        tenant = store.tenant_id(f"t{t}")
        for g in range(min(10, graphs - 10 * t)):
            session = f"agent:main:telegram:direct:{g}"
            rows.append((session, store.make_graph(tenant, identity_of_session(session))))
    workers = [Worker(database, folder / f"w{i}", lease_s) for i in range(4)]
    said: dict[int, list[int]] = {row.id: [] for _, row in rows}
    marked: dict[int, list[int]] = {}
    events = ["kill"] * kills + ["stop"] * stops + ["restart"] * restarts + ["forget"] * 5
    rng.shuffle(events)
    every = max(1, turns // len(events))
    began = woken = time.monotonic()
    done = Counter()
    try:
        for n in range(turns):
            session, row = rng.choice(rows)
            word = WORD if n < turns // 2 and rng.random() < 0.1 else "lantern"
            text = f"Statement {n}: the {word} number {n} stands on shelf {rng.randrange(900)}."
            said[row.id].append(n)
            if word == WORD:
                marked.setdefault(row.id, []).append(n)

            def tell(n=n, text=text, session=session, row=row):
                store.put_drop(row.id, f"{BASE_MS + n:015d}-{n:08x}.json", drop_of(n, text, session))
                store.defer("observe", row.id)

            patiently(tell)
            time.sleep(0.01)
            if n % every == every - 1 and events:
                event = events.pop()
                done[event] += 1
                worker = rng.choice(workers)
                if event == "kill":
                    time.sleep(rng.random() * 1.5)
                    worker.kill()
                elif event == "stop":
                    worker.pause(lease_s + 3)
                    woken = time.monotonic()
                elif event == "restart":
                    postgres.restart()
                elif marked:
                    forget_word(store, folder, database, marked, said)
        for event in events:  # those that are left over from rounding
            if event == "forget" and marked:
                forget_word(store, folder, database, marked, said)
        while marked:
            forget_word(store, folder, database, marked, said)
        woken = max(woken, time.monotonic())

        def at_rest():
            with store.pool.connection() as conn:
                return conn.execute(
                    "SELECT (SELECT count(*) FROM omg_drops) + (SELECT count(*) FROM omg_graphs WHERE due_at IS NOT NULL)"
                    " + (SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND task_name <> 'tick')"
                ).fetchone() == (0,)  # fmt: skip

        until = time.monotonic() + 300
        while not patiently(at_rest):
            assert time.monotonic() < until, "what was said is not all observed"
            time.sleep(0.5)
        took = time.monotonic() - began
        clean_s = None
        while time.monotonic() - woken < 60 or clean_s is None:
            if not word_in_caches(folder):
                clean_s = time.monotonic() - woken
                break
            assert time.monotonic() - woken < 75, f"{WORD} is in {word_in_caches(folder)}"
            time.sleep(1)
        return {
            **findings(store, said),
            "events": dict(done),
            "seconds": round(took, 1),
            "clean_s": round(clean_s, 1),
        }
    finally:
        for worker in workers:
            worker.end()


def forget_word(store, folder, database, marked, said) -> None:
    """Forget the word in a graph, as a server does. Its turns are no longer counted as said."""
    graph = next(iter(marked))

    def forget(home):
        return home.memory.forget(matching=WORD, session=home.memory.registry.only.key)

    def now():
        with Homes(store, folder / "server") as homes:
            homes.change(store.row(graph), "forget", forget)

    with_rules = {**SETTINGS, "OMG_OBSERVATION_MODEL": "offline"}
    before = {key: os.environ.get(key) for key in with_rules}
    os.environ.update(with_rules)
    try:
        patiently(now)
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
    gone = set(marked.pop(graph))
    said[graph] = [n for n in said[graph] if n not in gone]


def word_in_caches(folder: Path) -> list[str]:
    found = []
    for below, _, names in os.walk(folder):  # folders go meanwhile
        for name in names:
            with contextlib.suppress(OSError):
                if WORD.encode() in Path(below, name).read_bytes():
                    found.append(str(Path(below, name)))
    return found


def findings(store: FleetStore, said: dict[int, list[int]]) -> dict[str, int]:
    """Count everything that must be zero."""
    lost = doubled = gaps = 0
    with store.pool.connection() as conn:
        for graph, expected in said.items():
            lines = conn.execute(
                "SELECT string_agg(bytes, ''::bytea ORDER BY path, part) FROM omg_files WHERE graph = %s AND path LIKE 'archive/%%'",
                (graph,),
            ).fetchone()[0]
            kept = Counter(json.loads(line)["id"] for line in (lines or b"").splitlines())
            lost += len({f"e{n}" for n in expected} - kept.keys())
            doubled += sum(count - 1 for count in kept.values())
        for _, generations in conn.execute(
            "SELECT graph, array_agg(generation ORDER BY generation) FROM audit GROUP BY graph"
        ):
            gaps += generations != list(range(1, len(generations) + 1))
        word = conn.execute(
            "SELECT count(*) FROM omg_files WHERE position(%s::bytea IN bytes) > 0", (WORD.encode(),)
        ).fetchone()[0]
        word += conn.execute(
            "SELECT count(*) FROM omg_drops WHERE position(%s::bytea IN bytes) > 0", (WORD.encode(),)
        ).fetchone()[0]
        pending = conn.execute("SELECT count(*) FROM omg_files WHERE path LIKE 'pending/%%'").fetchone()[0]
    return {"said": sum(map(len, said.values())), "lost": lost, "doubled": doubled, "gaps": gaps, "rows_with_word": word, "pending": pending}  # fmt: skip
