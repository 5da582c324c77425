"""
Points with their intervals, tokens and costs, of what a run's folder holds.

Intervals are 95 %, from 10,000 resamples of the questions, seeded. Two contexts, or two runs, are compared on the same
questions, as a paired difference. One rule: only what is judged counts, and how much is not is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from .answers import answer_file
from .contexts import CONTEXTS, context_file
from .data import Question
from .files import read
from .judge import judgement_file

RESAMPLES = 10_000
Points = dict[str, float]  # question → 0..1


def points_of(out: Path, judge: str, context: str, questions: Iterable[Question]) -> Points:
    """Of each question that is judged, the mean over the items of its gold answer."""
    judged = {q.id: read(judgement_file(out, judge, context, q.id)) for q in questions}
    return {id: sum(j["points"]) / len(j["points"]) for id, j in judged.items() if j}


def interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    array = np.asarray(values)
    drawn = np.random.default_rng(seed).integers(0, len(array), (RESAMPLES, len(array)))
    low, high = np.percentile(array[drawn].mean(axis=1), [2.5, 97.5])
    return round(float(low), 4), round(float(high), 4)


def mean(values: Iterable[float]) -> float:
    all_ = list(values)
    return round(sum(all_) / len(all_), 4) if all_ else 0.0


def figure(values: Sequence[float], seed: int) -> dict[str, Any]:
    low, high = interval(values, seed)
    return {"points": mean(values), "low": low, "high": high, "n": len(values)}


def difference(one: Points, other: Points, seed: int) -> dict[str, Any]:
    """*one* less *other*, on the questions of both; *decided* if the interval leaves out 0."""
    both = sorted(one.keys() & other.keys())
    found = figure([one[id] - other[id] for id in both], seed)
    decided = bool(both) and (found["low"] > 0 or found["high"] < 0)
    return {"difference": found.pop("points"), **found, "decided": decided}


def measured(
    out: Path, judge: str, contexts: Sequence[str], questions: Sequence[Question], seed: int
) -> dict[str, Any]:
    """Of one benchmark: each context's figures, and the paired differences."""
    points = {c: points_of(out, judge, c, questions) for c in contexts}
    rows = {c: row(out, c, points[c], questions, seed) for c in contexts}
    for c in contexts:
        for name, of in (("of full", "full"), ("over none", "none")):
            if of in points and of != c and (both := points[c].keys() & points[of].keys()):
                ours, theirs = mean(points[c][id] for id in both), mean(points[of][id] for id in both)
                if of == "none":
                    rows[c][name] = round(ours - theirs, 4)
                elif theirs:
                    rows[c][name] = round(ours / theirs, 4)
    pairs = [
        {"one": a, "other": b, **difference(points[a], points[b], seed)}
        for b, a in combinations([c for c in CONTEXTS if c in contexts], 2)
    ]
    return {"contexts": rows, "paired": pairs}


def row(out: Path, context: str, points: Points, questions: Sequence[Question], seed: int) -> dict[str, Any]:
    by_category: dict[str, list[float]] = defaultdict(list)
    for q in questions:
        if q.id in points:
            by_category[q.category].append(points[q.id])
    given = [read(context_file(out, context, q.id)) for q in questions]
    answers = [a for q in questions if (a := read(answer_file(out, context, q.id)))]
    # Tools add to what the context was; before it is answered the context is what is known.
    tokens = [a["tokens"] for a in answers] or [g["tokens"] for g in given if g]
    return {
        **figure(list(points.values()), seed),
        "asked": len(questions),
        "answered": len(answers),
        "refused": sum(bool(a["refused"]) for a in answers),
        "abstained": sum(a["abstains"] for a in answers),
        "tokens median": percentile(tokens, 50),
        "tokens p95": percentile(tokens, 95),
        "model tokens": [round(mean(a[k] for a in answers)) for k in ("tokens_in", "tokens_out")],
        "seconds": round(mean(a["seconds"] for a in answers), 1),
        "usd": round(sum(a["usd"] for a in answers), 4),
        "categories": {k: figure(v, seed) for k, v in sorted(by_category.items())},
    }


def percentile(values: Sequence[float], share: float) -> int:
    return round(float(np.percentile(values, share))) if values else 0


def observed(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What it took to observe some conversations."""
    keys = ("messages", "calls", "tokens_in", "tokens_out", "night_tokens", "usd", "seconds")
    sums = dict.fromkeys(keys, 0.0)
    for record in records:
        for key in keys:
            sums[key] += record.get(key, 0)
    per = 100 / sums["messages"] if sums["messages"] else 0.0
    return {
        **{key: round(value, 4 if key == "usd" else None) for key, value in sums.items()},
        "tokens per 100 messages": round((sums["tokens_in"] + sums["tokens_out"]) * per),
        "night tokens per 100 messages": round(sums["night_tokens"] * per),
    }


# --- as a page


def page(report: Mapping[str, Any]) -> str:
    """*report* for a person."""
    run = report["run"]
    parts = [
        f"# Questions answered\n\nomg {run['omg']} · observed by {run['observe']} (nights: {run['nights']}) · "
        f"answered by {run['answer']} · judged by {run['judge']} · budget {run['budget']} · seed {run['seed']} · "
        + " · ".join(f"{name} {hash}" for name, hash in run["prompts"].items())
    ]
    for name, part in report["benchmarks"].items():
        rows, categories = (
            part["contexts"],
            sorted({k for r in part["contexts"].values() for k in r["categories"]}),
        )
        parts.append(f"## {name}")
        head = [
            "context",
            "points",
            "95 %",
            "n",
            "tokens (p95)",
            "of full",
            "over none",
            "refused",
            "abstained",
            "usd",
        ]
        parts.append(
            table(
                head,
                [
                    [
                        c,
                        number(r["points"] if r["n"] else None),
                        span(r) if r["n"] else "",
                        f"{r['n']} of {r['asked']}",
                        f"{r['tokens median']:,} ({r['tokens p95']:,})",
                        number(r.get("of full")),
                        number(r.get("over none")),
                        str(r["refused"]),
                        str(r["abstained"]),
                        f"{r['usd']:g}",
                    ]
                    for c, r in rows.items()
                ],
            )
        )
        if categories:
            counts = {
                k: max(r["categories"].get(k, {}).get("n", 0) for r in rows.values()) for k in categories
            }
            parts.append(
                table(
                    ["", *(f"{k} ({counts[k]})" for k in categories)],
                    [
                        [c, *(number(r["categories"].get(k, {}).get("points")) for k in categories)]
                        for c, r in rows.items()
                    ],
                )
            )
        if pairs := [p for p in part["paired"] + part.get("against", []) if p["n"]]:
            parts.append(
                table(
                    ["paired", "difference", "95 %", "n"],
                    [
                        [
                            f"{p['one']} − {p['other']}",
                            f"{p['difference']:+.3f}" + " *" * p["decided"],
                            span(p),
                            str(p["n"]),
                        ]
                        for p in pairs
                    ],
                )
            )
        if cost := part.get("observing"):
            parts.append(
                f"Observed: {cost['messages']:,} messages, {cost['tokens per 100 messages']:,} tokens per 100 of them "
                f"(nights {cost['night tokens per 100 messages']:,}), {cost['calls']} calls, "
                f"{cost['seconds']:,} s, ${cost['usd']:g}."
            )
    if left_out := report["excluded"]:
        parts.append("Left out, as the gold answer is wrong:")
        parts.append("\n".join(f"- {id}: {why}" for id, why in left_out.items()))
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def span(value: Mapping[str, Any]) -> str:
    return f"{value['low']:.3f} … {value['high']:.3f}"
