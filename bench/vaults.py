#!/usr/bin/env python3
"""
Measures what a vault costs as it grows: to index, to update, to search, in memory and on disk.

    python bench/vaults.py --notes 1000 10000 100000 [--embedder static|none] [--svg FILE] [--json]

For each size a vault is generated (by ../shared/bench/gen_vault.py if it exists, else by floor.py), and measured three
times: with a floor, a script that does the least possible (../shared/bench/reference.py, else floor.py); with the library
in a process of its own; and through the daemon's socket. Ratios to the floor hold on any machine; compare seconds only
within one run. CPU is user and system time of the process.

    cold      a first sync, from no index to all notes        one, hundred   notes edited, then synced by path
    no-op     a sync of everything with nothing to do         vectors        made in the background, search works meanwhile
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent / "shared" / "bench"
sys.path[:0] = [str(HERE.parent), str(HERE)]

import floor  # beside this script

SESSION = "agent:main:main"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def generated(notes: int, folder: Path) -> tuple[Path, Path]:
    """Generate a vault of *notes* notes, and its questions."""
    vault = folder / f"vault{notes}"
    if (SHARED / "gen_vault.py").exists():
        made = subprocess.run(
            [sys.executable, SHARED / "gen_vault.py", str(notes), vault], capture_output=True
        )
        if made.returncode == 0:
            return vault, vault.with_name(f"{vault.name}.queries.json")
        shutil.rmtree(vault, ignore_errors=True)  # it needs wordfreq and Faker
    return vault, floor.vault(notes, vault)


def lowest(vault: Path, questions: Path, folder: Path) -> dict[str, Any]:
    script = SHARED / "reference.py" if (SHARED / "reference.py").exists() else HERE / "floor.py"
    for file in folder.glob("floor.db*"):
        file.unlink()
    out = run([script, vault, folder / "floor.db", "--search", questions])
    return {
        "script": script.name,
        "cold_cpu_s": out["sync_cpu_s"],
        "p50_ms": out["p50_ms"],
        "p95_ms": out["p95_ms"],
    }


def run(command: list[Any], **env: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, env=os.environ | env
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


# --- the library, in a process of its own


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def spent(what: Callable[[], Any]) -> dict[str, float]:
    began, before = time.perf_counter(), cpu()
    what()
    return {"cpu_s": round(cpu() - before, 4), "wall_s": round(time.perf_counter() - began, 4)}


def peak_mb() -> float:
    return round(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        / (1 << 20 if sys.platform == "darwin" else 1 << 10),
        1,
    )


def percentiles(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {"p50_ms": round(times[len(times) // 2], 2), "p95_ms": round(times[int(len(times) * 0.95)], 2)}


def library(root: Path, questions: Path, file: Path, embedder: str, cold_only: bool) -> dict[str, Any]:
    from omg.embed import load_embedder
    from omg.index.index import Index
    from omg.index.search import How
    from omg.text.tokens import count_tokens
    from omg.vault.vault import Vault

    count_tokens("loads the table")
    vault = Vault(root)
    index = Index(file, load_embedder(embedder))
    out: dict[str, Any] = {"cold": spent(lambda: index.sync(vault))}
    if cold_only:
        return out
    out["cold_peak_mb"] = peak_mb()
    out["no_op"] = spent(lambda: index.sync(vault))
    paths = [e.path for e in index.entries() if e.path.startswith("nodes/")][:100]
    asked = [q["q"] for q in json.loads(questions.read_text())]

    def edit(some: list[str], word: str) -> None:
        for path in some:
            note = root / f"{path}.md"
            note.write_text(note.read_text(encoding="utf-8") + f"\n{word}\n", encoding="utf-8")

    edit(paths[:1], "quokka")
    out["one"] = spent(lambda: index.sync(vault, paths[:1]))
    assert [h.entry.path for h in index.search("quokka", now=NOW)][:1] == paths[:1]
    edit(paths, "numbat")
    out["hundred"] = spent(lambda: index.sync(vault, paths))
    out["words"] = asked_of(lambda q: index.search(q, now=NOW, how=How(vectors=False)), asked)
    if embedder != "none":

        def work_off() -> None:
            while index.embed():
                pass

        out["vectors"] = spent(work_off)
        out["words_and_meaning"] = asked_of(lambda q: index.search(q, now=NOW), asked)
        out["one_with_vector"] = spent(
            lambda: (edit(paths[:1], "bilby"), index.sync(vault, paths[:1]), work_off())
        )
    targets = [q["target"].removesuffix(".md") for q in json.loads(questions.read_text())]
    found = [
        t in [h.entry.path for h in index.search(q, now=NOW)] for q, t in zip(asked, targets, strict=True)
    ]
    index.close()
    size = sum(f.stat().st_size for f in file.parent.glob(f"{file.name}*"))
    return out | {
        "known_item@10": sum(found) / len(found),
        "peak_mb": peak_mb(),
        "index_mb": round(size / 1e6, 1),
    }


def asked_of(search: Callable[[str], Any], questions: list[str]) -> dict[str, float]:
    search("warm up")
    times = []
    for question in questions:
        began = time.perf_counter()
        search(question)
        times.append((time.perf_counter() - began) * 1e3)
    return percentiles(times)


# --- the daemon, over its socket


def over_the_socket(root: Path, questions: Path, home: Path, embedder: str) -> dict[str, Any]:
    from omg.client import ask_daemon

    (home / "omg.toml").write_text(
        f'[vaults]\n"{SESSION}" = {json.dumps(str(root))}\n[embedding]\nmodel = "{embedder}"\n[observation]\nmodel = "offline"\n'
    )
    daemon = subprocess.Popen(
        [sys.executable, "-m", "omg.cli", "serve"],
        cwd=HERE.parent,
        env=os.environ | {"OMG_HOME": str(home)},
        stdout=subprocess.DEVNULL,
    )
    context = {"agentId": "main", "sessionKey": SESSION, "sessionId": "s1", "senderIsOwner": True}

    def search(text: str) -> dict[str, Any]:
        return (
            ask_daemon(home, "/tool", {"name": "omg_search", "params": {"query": text}, "context": context})
            or {}
        )

    def inject(text: str) -> dict[str, Any]:
        return ask_daemon(home, "/inject", {**context, "trigger": "user", "prompt": text}) or {}

    try:
        until = time.monotonic() + 600
        while ask_daemon(home, "/health", {}) is None:
            if time.monotonic() > until or daemon.poll() is not None:
                raise SystemExit("the daemon did not start")
            time.sleep(0.1)
        asked = [q["q"] for q in json.loads(questions.read_text())]
        search(asked[0])
        idle(daemon.pid)
        out: dict[str, Any] = {"search": asked_of(search, asked), "inject": asked_of(inject, asked)}
        note = next(root.glob("nodes/*/*.md"))
        note.write_text(note.read_text(encoding="utf-8") + "\nwombat\n", encoding="utf-8")
        began = time.perf_counter()
        while (
            note.stem not in json.dumps(search("wombat"), ensure_ascii=False)
            and time.perf_counter() - began < 30
        ):
            time.sleep(0.01)
        out["visible_s"] = round(time.perf_counter() - began, 3)
        out["rss_mb"] = rss_mb(daemon.pid)
        return out
    finally:
        daemon.terminate()
        daemon.wait(30)


def idle(pid: int) -> None:
    """Wait until the process has used no CPU for two seconds: then its vectors are made."""
    quiet, last = 0, -1.0
    for _ in range(1200):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        quiet = quiet + 1 if now - last < 0.02 else 0
        if quiet >= 4:
            return
        last = now
        time.sleep(0.5)


def rss_mb(pid: int) -> float:
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return round(int(line.split()[1]) / 1024, 1)


# --- the report


def measure(notes: int, embedder: str, folder: Path, rounds: int) -> dict[str, Any]:
    root, questions = generated(notes, folder)
    home = Path(tempfile.mkdtemp(prefix="omg-", dir="/tmp"))  # a socket's path must be short
    from omg.identity import Identity

    file = home / "graphs" / Identity(SESSION, "dm", "main").folder / "index.db"
    file.parent.mkdir(parents=True)
    try:
        floors, colds = [], []
        child = [__file__, "--library", root, questions, file, embedder]
        for last in (*[False] * (rounds - 1), True):
            floors.append(lowest(root, questions, folder))
            for old in file.parent.glob("index.db*"):
                old.unlink()
            out = run([*child, *([] if last else ["--cold-only"])])
            colds.append(out["cold"]["cpu_s"])
        base = min(floors, key=lambda f: f["cold_cpu_s"])
        out["cold"]["cpu_s"] = min(colds)
        out["socket"] = over_the_socket(root, questions, home, embedder)
        return {
            "notes": notes,
            "embedder": embedder,
            "floor": base,
            **out,
            "cold_ratio": round(min(colds) / base["cold_cpu_s"], 2),
        }
    finally:
        shutil.rmtree(home)
        shutil.rmtree(root)


def show(m: dict[str, Any]) -> None:
    f, socket = m["floor"], m["socket"]
    meaning = m.get("words_and_meaning", m["words"])
    print(f"{m['notes']:,} notes, embedder {m['embedder']}; floor: {f['script']}")
    print(
        f"  cold index         {m['cold']['cpu_s']:8.2f} s of CPU, {m['cold_ratio']} x the floor's {f['cold_cpu_s']:.2f}; peak {m['cold_peak_mb']:.0f} MB"
    )
    print(
        f"  no-op, 1, 100 edits {m['no_op']['cpu_s'] * 1e3:7.0f} {m['one']['cpu_s'] * 1e3:7.0f} {m['hundred']['cpu_s'] * 1e3:7.0f} ms of CPU"
    )
    if "vectors" in m:
        print(
            f"  vectors            {m['vectors']['cpu_s']:8.2f} s of CPU in the background; 1 edit with its vector {m['one_with_vector']['cpu_s'] * 1e3:.0f} ms"
        )
    print(
        f"  search p50, p95    {m['words']['p50_ms']:8.1f} {m['words']['p95_ms']:7.1f} ms by words; with vectors {meaning['p50_ms']:.1f} {meaning['p95_ms']:.1f}; floor {f['p50_ms']} {f['p95_ms']}"
    )
    print(
        f"  over the socket    {socket['search']['p50_ms']:8.1f} {socket['search']['p95_ms']:7.1f} ms; inject {socket['inject']['p50_ms']:.1f} {socket['inject']['p95_ms']:.1f} ms"
    )
    print(
        f"  an edit is visible {socket['visible_s']:8.2f} s after the save; known item in the first 10: {m['known_item@10']:.3f}"
    )
    print(
        f"  peak memory        {m['peak_mb']:8.0f} MB, daemon {socket['rss_mb']:.0f} MB; index {m['index_mb']} MB on disk",
        flush=True,
    )


def plot(measured: list[dict[str, Any]]) -> str:
    """Plot cost over size as SVG, both logarithmic: linear growth is a line of slope one."""
    series = {
        "cold index, s of CPU": ([m["cold"]["cpu_s"] for m in measured], "#2563eb"),
        "the floor's": ([m["floor"]["cold_cpu_s"] for m in measured], "#93c5fd"),
        "search p95, ms": ([m.get("words_and_meaning", m["words"])["p95_ms"] for m in measured], "#dc2626"),
        "one edit, ms of CPU": ([m["one"]["cpu_s"] * 1e3 for m in measured], "#16a34a"),
    }
    from math import log10

    sizes = [m["notes"] for m in measured]
    left, right = log10(min(sizes)), max(log10(max(sizes)), log10(min(sizes)) + 1)

    def x(n: float) -> float:
        return 70 + 400 * (log10(n) - left) / (right - left)

    def y(value: float) -> float:
        return 270 - 60 * (log10(max(value, 0.01)) + 1)  # from .1 to 1000

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 320" font-family="sans-serif" font-size="12">'
    ]
    parts.append('<rect width="680" height="320" fill="white"/>')
    for value in (0.1, 1, 10, 100, 1000):
        parts.append(
            f'<path d="M70 {y(value):.0f}H470" stroke="#e5e7eb"/><text x="62" y="{y(value) + 4:.0f}" text-anchor="end">{value:g}</text>'
        )
    parts += [f'<text x="{x(n):.0f}" y="292" text-anchor="middle">{n:,}</text>' for n in sizes]
    parts.append('<text x="270" y="312" text-anchor="middle">notes</text>')
    for name, (values, color) in series.items():
        points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in zip(sizes, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="3" fill="{color}"/>'
            for p in points.split()
        ]
        parts.append(
            f'<text x="482" y="{y(values[-1]) + 4:.0f}" fill="{color}">{name}: {values[-1]:.3g}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--embedder", choices=("none", "static", "minilm"), default="static")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="how many cold syncs, alternating with the floor's; the smallest figure counts",
    )
    parser.add_argument("--svg", type=Path, help="draw cost against size")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--library", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--cold-only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.library:
        root, questions, file, embedder = args.library
        print(json.dumps(library(Path(root), Path(questions), Path(file), embedder, args.cold_only)))
        return
    measured = []
    with tempfile.TemporaryDirectory(prefix="vaults-") as folder:
        for notes in args.notes:
            measured.append(measure(notes, args.embedder, Path(folder), args.rounds))
            show(measured[-1])
    if args.svg:
        args.svg.write_text(plot(measured), encoding="utf-8")
    if args.json:
        print(json.dumps({"vaults": measured}))


if __name__ == "__main__":
    main()
