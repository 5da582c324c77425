"""
Imports a synthetic ChatGPT export as a new user would: a daemon is up, and the configuration is the default one.

    python bench/imports.py [--chats 1000] [--megabytes 400] [--kills 3] [--beside 300] [--omg COMMAND]

A chat has messages, executed code, pages that were read, a side branch and a deleted message; images fill up the zip.
The command is killed with SIGKILL the given number of times, the last time together with the daemon. Then a search looks
for each chat's own fact. With --beside N, N more chats are imported: before, during and after, prompts are timed, and
new turns until they are observed. --omg names an installed `omg`; without --omg, this package runs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from exports import at, chat, node
from spooled import entry, hand_over

from omg.client import ask_daemon
from omg.config import Config
from omg.memory import Memory

WORDS = "harbour map bakery river winter ticket garden invoice window letter train copper lemon engine paper".split()


def one_chat(n: int, dice: random.Random) -> dict:
    day = f"{2022 + n % 4}-{n % 12 + 1:02}-{n % 28 + 1:02}"
    prose = lambda k: " ".join(dice.choice(WORDS) for _ in range(k))  # noqa: E731
    nodes, second = [node(f"c{n}-root", "system", None, None)], 0
    for turn in range(8):
        second += 60
        said = f"My colleague Person{n} lives in Town{n}." if turn == 0 else f"What about the {prose(30)}?"
        nodes.append(node(f"c{n}-u{turn}", "user", said, at(day, second)))
        nodes.append(
            node(
                f"c{n}-k{turn}",
                "assistant",
                {"text": prose(400)},
                at(day, second + 1),
                kind="code",
                recipient="python",
            )
        )
        nodes.append(
            node(f"c{n}-t{turn}", "tool", {"text": prose(1600)}, at(day, second + 2), kind="execution_output")
        )
        nodes.append(
            node(f"c{n}-a{turn}", "assistant", f"{prose(120)}.\n```\n{prose(60)}\n```", at(day, second + 3))
        )
    made = chat(f"c{n}", day, *nodes)
    made["mapping"][f"c{n}-old"] = node(f"c{n}-old", "user", prose(50), at(day), parent=f"c{n}-a0")[1]
    made["mapping"][f"c{n}-gone"] = {
        "id": f"c{n}-gone",
        "parent": f"c{n}-a1",
        "children": [],
        "message": None,
    }
    return made


def build(path: Path, chats: int, megabytes: int, first: int = 0) -> None:
    dice = random.Random(44)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("conversations-000.json", "w", force_zip64=True) as file:
            for n in range(first, first + chats):
                file.write((b"[" if n == first else b",") + json.dumps(one_chat(n, dice)).encode())
            file.write(b"]")
        json_bytes = archive.infolist()[0].file_size
        images = max(0, megabytes * 1_000_000 - json_bytes) // 1_000_000
        for n in range(images):
            archive.writestr(zipfile.ZipInfo(f"file-{n}.dat"), dice.randbytes(1_000_000))
    print(
        f"{chats} chats, {json_bytes / 1e6:.0f} MB of JSON, {images} images; the zip has {path.stat().st_size / 1e6:.0f} MB"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--chats", type=int, default=1000)
    options.add_argument("--megabytes", type=int, default=400)
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--beside", type=int, default=0)
    options.add_argument("--each", type=float, default=15.0, help="seconds of prompts without an import")
    options.add_argument("--omg", default="")
    given = options.parse_args()
    omg = [given.omg] if given.omg else [sys.executable, "-c", "from omg.cli import main; main()"]
    with tempfile.TemporaryDirectory() as folder:
        path, home = Path(folder) / "export.zip", Path(folder) / "home"
        build(path, given.chats, given.megabytes)
        env = {k: v for k, v in os.environ.items() if not k.startswith("OMG_")} | {"OMG_HOME": str(home)}
        subprocess.run([*omg, "init"], env=env, stdout=subprocess.DEVNULL, check=True)
        command = [*omg, "import", str(path), "--yes"]
        daemon = started_daemon(omg, home, env)
        try:
            began, costs = time.monotonic(), Costs()
            for n in range(given.kills):
                process = subprocess.Popen(
                    command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                while process.poll() is None and done(home) < given.chats * (n + 1) // (given.kills + 2):
                    time.sleep(0.2)
                process.kill()
                if n == given.kills - 1:
                    costs.add_daemon(daemon)
                    os.kill(daemon, signal.SIGKILL)
                costs.add(process)
                print(
                    f"killed at {time.monotonic() - began:.0f} s with {done(home)} drops on disk", flush=True
                )
            if given.kills:
                daemon = started_daemon(omg, home, env)
            last = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            print(last.stdout.read().decode())
            costs.add(last)
            took_s = time.monotonic() - began
            costs.add_daemon(daemon)
            print(f"{took_s:.0f} s in all; {costs}", flush=True)
            check(home, given.chats)
            if given.beside:
                build(path, given.beside, 0, first=given.chats)
                alone = lambda: time_uses(home, given.chats, lambda: time.monotonic() > stop)  # noqa: E731
                stop = time.monotonic() + given.each
                print(f"alone before:     {alone()}", flush=True)
                with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as importing:
                    text = time_uses(home, given.chats, lambda: importing.poll() is not None)
                print(f"beside an import: {text}", flush=True)
                stop = time.monotonic() + given.each
                print(f"alone again:      {alone()}")
        finally:
            subprocess.run([*omg, "down"], env=env, stdout=subprocess.DEVNULL, check=False)


def started_daemon(omg: list[str], home: Path, env: dict[str, str]) -> int:
    subprocess.run([*omg, "up"], env=env, stdout=subprocess.DEVNULL, check=True)
    return int((ask_daemon(home, "/health", {}) or {})["pid"])


class Costs:
    """CPU seconds and peak memory of the commands and of the daemons."""

    def __init__(self) -> None:
        self.command_s = self.command_mb = self.daemon_s = self.daemon_mb = 0.0

    def add(self, process: subprocess.Popen) -> None:
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        self.command_s += used.ru_utime + used.ru_stime
        self.command_mb = max(self.command_mb, used.ru_maxrss / 1000)

    def add_daemon(self, pid: int) -> None:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        self.daemon_s += sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")
        peak = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]
        self.daemon_mb = max(self.daemon_mb, int(peak) / 1000)

    def __str__(self) -> str:
        return (
            f"import {self.command_s:.0f} s of CPU, peak memory {self.command_mb:.0f} MB;"
            f" daemon {self.daemon_s:.0f} s, {self.daemon_mb:.0f} MB"
        )


def check(home: Path, chats: int) -> None:
    """Print how many chats are found, and how many messages are there once, twice or not at all."""
    with closing(Memory(Config(home=home), embed=None)) as memory:
        graph = memory.find("agent:main:main")
        noted = said = 0
        for n in range(chats):
            noted += any(
                f"Town{n}." in hit.entry.description for hit in memory.search(f"Where does Person{n} live?")
            )
            hits = graph.index.search_raw(f"Person{n} lives in", 10, now=memory.clock())
            said += any(f"Town{n}." in message.text for message, *_ in hits)
        texts = Counter(entry.description for entry in graph.index.entries(status=None))
        waiting = len(graph.pending())
    ids = Counter(archived_ids(home))
    print(
        f"found by search: {noted} notes, {said} messages of {chats}; messages: {len(ids)} of {chats * 16},"
        f" {sum(n > 1 for n in ids.values())} of them twice, {waiting} turns wait; notes: {texts.total()},"
        f" {texts.total() - len(texts)} of them twice",
        flush=True,
    )


def archived_ids(home: Path) -> Iterator[str]:
    for file in home.glob("graphs/*/archive/*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            yield json.loads(line)["id"]


def time_uses(home: Path, known: int, ended: Callable[[], bool]) -> str:
    """Time a prompt each .1 s, and each 5 s a new turn until it is found and until it is observed, until *ended*."""
    took, given = [], 0
    found, observed, waits = list[float](), list[float](), dict[str, float]()
    sent = archive_bytes = 0
    next_turn = time.monotonic()
    while not ended() or (waits and time.monotonic() < next_turn + 60):
        if time.monotonic() >= next_turn and not ended():
            at_ms, sent = round(time.time() * 1000), sent + 1
            id = f"live{at_ms}"
            said = f"Please remember that my locker number is {at_ms % 1_000_000}."
            hand_over(home, entry(id, said, at_ms), reason="remember", session="agent:main:main")
            waits[id] = time.monotonic()
            next_turn += 5
            while str(at_ms % 1_000_000) not in json.dumps(injected(home, "What is my locker number?")):
                if time.monotonic() > waits[id] + 10:
                    break
                time.sleep(0.02)
            found.append(time.monotonic() - waits[id])
        n = len(took) % known
        began = time.perf_counter()
        answer = injected(home, f"Where does my colleague Person{n} live?")
        took.append(1000 * (time.perf_counter() - began))
        given += f"Town{n}." in json.dumps(answer)
        files = [*home.glob(f"graphs/*/archive/{time.strftime('%Y-%m')}.jsonl")]
        if waits and (size := sum(f.stat().st_size for f in files)) != archive_bytes:
            archive_bytes, text = size, "".join(f.read_text("utf-8") for f in files)
            for id in [id for id in waits if id in text]:
                observed.append(time.monotonic() - waits.pop(id))
        time.sleep(0.1)
    late = sum(ms > 150 for ms in took)
    return (
        f"a prompt p50 {percentile(took, 50):.0f} ms, p95 {percentile(took, 95):.0f}, most {max(took):.0f},"
        f" over 150: {late} of {len(took)}; {given} were given the answer. A new turn, of {sent}: found after"
        f" p50 {percentile(found, 50):.2f} s, most {max(found):.2f}; observed after p50 {percentile(observed, 50):.2f} s,"
        f" most {max(observed, default=0):.2f}, {len(waits)} not within a minute"
    )


def percentile(values: list[float], n: int) -> float:
    return statistics.quantiles(values, n=100)[n - 1] if len(values) > 1 else sum(values)


def injected(home: Path, prompt: str) -> dict:
    body = {"sessionKey": "agent:main:main", "trigger": "user", "prompt": prompt}
    return ask_daemon(home, "/inject", body) or {}


def done(home: Path) -> int:
    lines = sum(f.read_bytes().count(b"\n") for f in home.glob("imports/import-*.jsonl"))
    return max(0, lines - 1)


if __name__ == "__main__":
    main()
