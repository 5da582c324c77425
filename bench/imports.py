"""
Imports a synthetic ChatGPT export as a new user would, by the rules: time, memory, and whether each chat is found.

    python bench/imports.py [--chats 1000] [--megabytes 400] [--kills 3] [--beside 300]

A chat has messages, code that ran, pages that were read, a side branch and a deleted message; images fill the zip up. The
command is killed the given number of times. Then every chat's own word is looked for by search. With --beside, a daemon is up
after that, as many other chats are imported, and its prompts are timed before and meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from exports import at, chat, node

from omg.client import ask_daemon
from omg.config import Config
from omg.errors import OmgError
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
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, home = Path(folder) / "export.zip", Path(folder) / "home"
        home.mkdir()
        build(path, given.chats, given.megabytes)
        env = {
            **os.environ,
            "OMG_HOME": str(home),
            "OMG_OBSERVATION_MODEL": "offline",
            "OMG_EMBEDDING_MODEL": "none",
        }
        command = [sys.executable, "-c", "from omg.cli import main; main()", "import", str(path), "--yes"]
        began = time.monotonic()
        for n in range(given.kills):
            process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and done(home) < given.chats * (n + 1) // (given.kills + 2):
                time.sleep(0.2)
            process.kill()
            process.wait()
            print(f"killed at {time.monotonic() - began:.0f} s with {done(home)} drops on disk")
        print(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False).stdout)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{time.monotonic() - began:.0f} s in all, {used.ru_utime + used.ru_stime:.0f} s of CPU,"
            f" peak memory {used.ru_maxrss / 1000:.0f} MB"
        )
        with closing(Memory(Config(home=home), embed=None)) as memory:
            graph = memory.find("agent:main:main")
            noted = said = 0
            for n in range(given.chats):
                noted += any(
                    f"Town{n}." in hit.entry.description
                    for hit in memory.search(f"Where does Person{n} live?")
                )
                hits = graph.index.search_raw(f"Person{n} lives in", 10, now=memory.clock())
                said += any(f"Town{n}." in message.text for message, *_ in hits)
            lines = sum(f.read_bytes().count(b"\n") for f in home.glob("graphs/*/archive/*.jsonl"))
            print(
                f"found by search: {noted} notes, {said} messages of {given.chats}; messages kept: {lines} of {given.chats * 16}"
            )
        if given.beside:
            build(path, given.beside, 0, first=given.chats)
            time_prompts_beside(home, env, command, given.chats)


def time_prompts_beside(home: Path, env: dict[str, str], command: list[str], known: int) -> None:
    """Print how long a prompt takes (ms) at a daemon, idle and while *command* imports."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    daemon = subprocess.Popen([*command[:3], "serve"], env=env, **quiet)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and not answered(home):
            time.sleep(0.2)
        stop = time.monotonic() + 15
        print(f"prompts alone:            {prompts(home, known, lambda: time.monotonic() > stop)}")
        importing = subprocess.Popen(command, env=env, **quiet)
        print(f"prompts beside an import: {prompts(home, known, lambda: importing.poll() is not None)}")
    finally:
        daemon.terminate()
        daemon.wait()


def answered(home: Path) -> bool:
    try:
        return bool(ask_daemon(home, "/health", {}))
    except OmgError:
        return False


def prompts(home: Path, known: int, ended: Callable[[], bool]) -> str:
    took, given = [], 0
    while not ended():
        n = len(took) % known
        body = {
            "sessionKey": "agent:main:main",
            "trigger": "user",
            "prompt": f"Where does my colleague Person{n} live?",
        }
        began = time.perf_counter()
        answer = ask_daemon(home, "/inject", body)
        took.append(1000 * (time.perf_counter() - began))
        given += f"Town{n}." in json.dumps(answer)
        time.sleep(0.1)
    p50, p95 = statistics.quantiles(took, n=20)[9], statistics.quantiles(took, n=20)[18]
    return (
        f"p50 {p50:.0f} ms, p95 {p95:.0f}, most {max(took):.0f}; {given} of {len(took)} were given the answer"
    )


def done(home: Path) -> int:
    lines = sum(f.read_bytes().count(b"\n") for f in home.glob("imports/import-*.jsonl"))
    return max(0, lines - 1)


if __name__ == "__main__":
    main()
