#!/usr/bin/env python3
"""
Measures the least that a vault can cost: files, one FTS5 table, links, vectors and a matrix product, and no more.

    python bench/floor.py VAULT INDEX.db [--search QUERIES.json]

Nothing is parsed and no model is run. bench/vaults.py runs this beside the library and publishes ratios: ratios hold on
any machine, seconds do not. bench/vaults.py accepts another script of the same form instead. One JSON object
on the last line: CPU seconds of the sync, files that had changed, and with --search p50 and p95 in ms.

`vault(N, folder)` writes a vault to measure on: made-up words by Zipf's law, people, topics, links, maps.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import random
import re
import sqlite3
import time
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

TABLES = """
    create table if not exists file(id integer primary key, path text unique, mtime int, size int, hash blob, vector blob);
    create table if not exists link(src int, dst text);
    create index if not exists link_src on link(src);
    create index if not exists link_dst on link(dst);
    create virtual table if not exists words using fts5(title, body, tokenize='porter unicode61');
"""


def hashed(text: str) -> np.ndarray:
    """Return a vector that costs nothing to make: 256 numbers from a hash of the text."""
    numbers = np.random.default_rng(int.from_bytes(hashlib.sha1(text.encode()).digest()[:8])).standard_normal(
        256
    )
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


def sync(db: sqlite3.Connection, vault: Path) -> int:
    seen = {
        path: (id, mtime, size)
        for id, path, mtime, size in db.execute("select id, path, mtime, size from file")
    }
    changed = 0
    db.execute("begin")
    for file in vault.rglob("*.md"):
        stat, path = file.stat(), str(file)
        id, *was = seen.get(path, (None, None))
        if was == [stat.st_mtime_ns, stat.st_size]:
            continue
        text = file.read_text(encoding="utf-8")
        body = text.partition("\n---\n")[2] or text
        row = (
            path,
            stat.st_mtime_ns,
            stat.st_size,
            hashlib.sha1(text.encode()).digest(),
            hashed(body).tobytes(),
        )
        if id is not None:
            for table, key in (("file", "id"), ("words", "rowid"), ("link", "src")):
                db.execute(f"delete from {table} where {key} = ?", (id,))
        id = db.execute("insert into file values (?, ?, ?, ?, ?, ?)", (id, *row)).lastrowid
        db.execute("insert into words(rowid, title, body) values (?, ?, ?)", (id, file.stem, body))
        db.executemany(
            "insert into link values (?, ?)", [(id, target) for target in re.findall(r"\[\[([^\]|#]+)", body)]
        )
        changed += 1
    db.execute("commit")
    return changed


def search(db: sqlite3.Connection, ids: np.ndarray, matrix: np.ndarray, query: str, k: int = 10) -> list[int]:
    match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
    rows = db.execute(
        "select rowid from words where words match ? order by bm25(words, 4.0) limit 100", (match,)
    ).fetchall()
    near = ids[np.argsort(-(matrix @ hashed(query)))[:100]]
    scores: dict[int, float] = {}
    for ranking in ([row[0] for row in rows], near.tolist()):
        for rank, id in enumerate(ranking):
            scores[id] = scores.get(id, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda id: -scores[id])[:k]


# --- a vault


def vault(notes: int, folder: Path, seed: int = 11) -> Path:
    """Write *notes* notes below *folder*, and known-item questions; returns the questions' file."""
    pick = random.Random(seed)
    syllables = [a + b for a in "bcdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "is")]
    words = list(
        dict.fromkeys("".join(pick.choices(syllables, k=pick.choice((2, 2, 3, 3, 4)))) for _ in range(24_000))
    )
    zipf = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    people = [
        f"{pick.choice(words).title()} {pick.choice(words).title()}" for _ in range(max(60, notes // 50))
    ]
    topics = [pick.sample(words[600:], 60) for _ in range(40)]
    titles = [f"{pick.choice(topics[n % 40])} {pick.choice(words)} {n:06d}" for n in range(notes)]
    questions, day = [], datetime(2025, 1, 1)
    for n, title in enumerate(titles):
        own, who = topics[n % 40], pick.choice(people)
        body = [
            pick.choice(own) if pick.random() < 0.2 else word
            for word in pick.choices(words, cum_weights=zipf, k=pick.randint(70, 130))
        ]
        others = [
            titles[pick.randrange(n % 40, notes, 40) if pick.random() < 0.7 else pick.randrange(notes)]
            for _ in range(3)
        ]
        for at, other in zip(sorted(pick.sample(range(1, len(body)), 3), reverse=True), others, strict=True):
            body.insert(at, f"[[{other}]]")
        body.insert(pick.randrange(len(body)), who)
        at = day + timedelta(minutes=50 * n)
        text = (
            f"---\ntitle: {title}\ntype: fact\ncreated: {at:%Y-%m-%d}\nupdated: {at:%Y-%m-%d}\n"
            f"tags: [{own[0]}, {pick.choice(own)}]\nsource: session-{n // 12}\n---\n\n# {title}\n\n{' '.join(body)}.\n\n[[map {n % 40}]]\n"
        )
        file = folder / f"nodes/{at:%Y-%m}/{title}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if n % max(1, notes // 200) == 0:
            rare = sorted((w for w in set(body) if "[" not in w and w in words), key=words.index)[-12:]
            questions.append(
                {"q": " ".join([*pick.sample(rare, 3), who]), "target": str(file.relative_to(folder))}
            )
    (folder / "mocs").mkdir(exist_ok=True)
    for topic in range(40):
        lines = "".join(f"- [[{title}]]\n" for title in titles[topic::40][:60])
        (folder / f"mocs/map {topic}.md").write_text(
            f"---\ntype: moc\n---\n\n# Map {topic}\n\n{lines}", encoding="utf-8"
        )
    file = folder.with_name(f"{folder.name}.queries.json")
    file.write_text(json.dumps(questions))
    return file


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vault", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--search", type=Path, metavar="QUERIES.json")
    args = parser.parse_args()
    db = sqlite3.connect(args.index, isolation_level=None)
    db.executescript(f"pragma journal_mode=wal; pragma synchronous=normal; {TABLES}")
    began = time.process_time()
    out: dict[str, float] = {
        "changed": sync(db, args.vault),
        "sync_cpu_s": round(time.process_time() - began, 3),
    }
    if args.search:
        rows = db.execute("select id, vector from file").fetchall()
        ids = np.array([row[0] for row in rows])
        matrix = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(len(rows), -1)
        times = []
        for question in json.loads(args.search.read_text()):
            start = time.perf_counter()
            search(db, ids, matrix, question["q"])
            times.append((time.perf_counter() - start) * 1e3)
        times.sort()
        out |= {"p50_ms": round(times[len(times) // 2], 2), "p95_ms": round(times[int(len(times) * 0.95)], 2)}
    print(json.dumps(out))


if __name__ == "__main__":
    main()
