"""
Points over the tokens that a question's memory costs, of several runs, as a table and as a plot (SVG).

A run is a folder of bench/qa.py with a label, such as "rules". Each context that it has judged is a dot: `slice` belongs
to the curve of its label, and so does `tools`, apart from it; the others have names of their own. All dots stand for the
same questions: those that every run has judged. Intervals as in report.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log10
from pathlib import Path

from .contexts import CONTEXTS
from .files import file_name, read
from .report import figure, mean, number, span, table

OWN_NAMES = {"none": "no memory", "last": "last messages", "full": "whole history", "raw": "plain search"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = (
    860,
    460,
    60,
    20,
    200,
    50,
)  # of the plot, in pixels; then its margins
# Light and dark as the reader's system has them.
STYLE = (
    "rect{fill:#fff}text{fill:#22252b}.grid{stroke:#ddd}"
    "@media(prefers-color-scheme:dark){rect{fill:#15171c}text{fill:#e7e8ec}.grid{stroke:#3a3f4a}}"
)
COLOURS = ("#3b6fb6", "#c2571a", "#2f8f5b", "#7a4fa3", "#8a8a8a", "#6b7280", "#b03060", "#a08000")


@dataclass(frozen=True, slots=True)
class Dot:
    """One context of one run. *tokens*: of memory, the mean of a question. Points 0..1 with their 95 % interval."""

    row: str
    tokens: int
    points: float
    low: float
    high: float
    n: int


def curve(runs: Sequence[tuple[str, Path]], judge: str, seed: int) -> list[Dot]:
    """The dots of *runs*, (label, folder) each, rows together. Raises SystemExit where no question is judged in all."""
    found = [
        (row_name(label, context), values)
        for label, folder in runs
        for context in CONTEXTS
        if (values := judged(folder, judge, context))
    ]
    common = set.intersection(*(set(values) for _, values in found)) if found else set()
    if not common:
        raise SystemExit(f"no question is judged by {judge} in all of {', '.join(str(r) for _, r in runs)}")
    dots = []
    for row, values in found:
        kept = [values[id] for id in sorted(common)]
        dots.append(
            Dot(
                row, round(mean(tokens for tokens, _ in kept)), **figure([points for _, points in kept], seed)
            )
        )
    return sorted(dots, key=lambda dot: (dot.row, dot.tokens))


def row_name(label: str, context: str) -> str:
    if context in OWN_NAMES:
        return OWN_NAMES[context]
    return label if context == "slice" else f"{label} with {context}"


def judged(folder: Path, judge: str, context: str) -> dict[str, tuple[int, float]]:
    """Of each question that is judged: the tokens of memory that were read, and the points."""
    found = {}
    for file in sorted((folder / "judgements" / file_name(judge) / context).glob("*.json")):
        points = read(file)["points"]
        found[file.stem] = (
            read(folder / "answers" / context / file.name)["tokens"],
            sum(points) / len(points),
        )
    return found


def as_table(dots: Sequence[Dot]) -> str:
    return table(
        ["", "tokens a question", "points", "95 %"],
        [[d.row, f"{d.tokens:,}", number(d.points), span(asdict(d))] for d in dots],
    )


def as_svg(dots: Sequence[Dot]) -> str:
    """The plot: tokens on a logarithmic axis, points from 0 to 1, a line through each row, its interval as a bar."""
    rows: Mapping[str, list[Dot]] = defaultdict(list)
    for dot in dots:
        rows[dot.row].append(dot)  # type: ignore[index]
    least, most = 100, max(1_000, *(dot.tokens for dot in dots))

    def x(tokens: int) -> float:
        share = (log10(max(tokens, least)) - log10(least)) / (log10(most) - log10(least))
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(points: float) -> float:
        return round(TOP + (1 - points) * (HEIGHT - TOP - BOTTOM), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
    ]
    for tenth in range(0, 11, 2):
        at = y(tenth / 10)
        parts.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end">{tenth / 10:g}</text>')
    for tokens in (100, 500, 1_500, 3_000, 10_000, 100_000):
        if tokens <= most:
            parts.append(
                f'<text x="{x(tokens)}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{f"{tokens:,}" if tokens > least else "none"}</text>'
            )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">tokens of memory a question</text>'
    )
    for n, (name, row) in enumerate(rows.items()):
        colour = COLOURS[n % len(COLOURS)]
        line = " ".join(f"{x(dot.tokens)},{y(dot.points)}" for dot in row)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for dot in row:
            at = x(dot.tokens)
            parts.append(f'<path d="M{at} {y(dot.low)}V{y(dot.high)}" stroke="{colour}" opacity=".4"/>')
            parts.append(f'<circle cx="{at}" cy="{y(dot.points)}" r="4" fill="{colour}"/>')
        at = TOP + 14 + 20 * n
        parts.append(f'<circle cx="{WIDTH - RIGHT + 20}" cy="{at - 4}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 32}" y="{at}">{name}</text>')
    return "\n".join([*parts, "</svg>"])
