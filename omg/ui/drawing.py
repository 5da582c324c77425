"""
Pictures as SVG, made on the server: a note with its surroundings, and bars by day.

networkx places the notes. A picture consists of links and shapes, without scripts or styles: the keyboard reaches every
note, and the page's Content-Security-Policy allows the picture.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from ..index.store import Entry, entries_where
from ..text.words import cut_text
from .request import Asked

Link = tuple[str, str]

# One colour per type, here and in the vault's graph.json; all readable on a light and on a dark ground.
COLOURS = {
    "identity": "#e5617a",
    "preference": "#ee9b4b",
    "project": "#4a90e2",
    "decision": "#9a75dd",
    "fact": "#45a97c",
    "episode": "#2fa9bb",
    "reflection": "#cfa52f",
    "moc": "#7d879c",
    "index": "#7d879c",
    "now": "#7d879c",
}
KIND_NAMES = {"moc": "map"}  # types that a person knows by another name
OTHER = "#9aa0ad"  # a note without a type, or of a type that a person made up

Box = tuple[float, float, float, float]  # left, top, right, bottom

NAME_CHARS, CHAR_WIDTH = 26, 6.6
SPREAD = 0.75  # below 1: a few far notes leave more room to the others
STEPS = 60  # steps of the layout; more steps hardly move the notes


def neighbourhood(
    db: sqlite3.Connection, start: str, most: int, *, pages: bool = True
) -> tuple[list[Entry], list[Link]]:
    """
    Return at most *most* notes (the one at *start*, then its nearest and newest neighbours) and the links between them.
    Leave out logs and superseded notes; without *pages*, leave out maps, Now and the index too.
    """
    seen = dict.fromkeys(row for (row,) in db.execute("select id from note where path = ?", (start,)))
    passed = ("log",) if pages else ("log", "moc", "index", "now")
    front = list(seen)
    while front and len(seen) < most:
        marks = ", ".join("?" * len(front))
        found = db.execute(
            f"""select n.id from (select dst as id from link where src in ({marks}) and dst is not null
                union select src from link where dst in ({marks})) l join note n on n.id = l.id
            where n.type not in ({", ".join("?" * len(passed))}) and n.status <> 'superseded'
            order by n.type not in ('moc', 'index'), coalesce(n.updated, n.created) desc, n.path limit ?""",
            (*front, *front, *passed, most + len(seen)),
        )
        front = [row for (row,) in found if row not in seen][: most - len(seen)]
        seen |= dict.fromkeys(front)
    rows = list(seen)
    marks = ", ".join("?" * len(rows))
    entries = entries_where(db, f"where id in ({marks})", rows)
    pairs = db.execute(
        f"select distinct src, dst from link where src in ({marks}) and dst in ({marks})", (*rows, *rows)
    )
    links = {tuple(sorted((entries[a].path, entries[b].path))) for a, b in pairs if a != b}
    return [entries[row] for row in rows], [(a, b) for a, b in sorted(links)]


def drawn_graph(
    asked: Asked, entries: Sequence[Entry], links: Sequence[Link], centre: str, *, large: bool = False
) -> str:
    """
    Draw *entries* and *links* around *centre*. Each note in the picture has a name, and links to its page. A note is left
    out if its name finds no room; the note *centre* is always drawn.
    """
    width, height = (840, max(600, 7 * len(entries))) if large else (640, 400)
    places = placed([e.path for e in entries], links, centre, width, height)
    degrees = {e.path: sum(e.path in pair for pair in links) for e in entries}
    titles = Counter(e.title for e in entries)
    dots, names = dict[str, str](), list[str]()
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in places.values()]
    for entry in sorted(entries, key=lambda e: (e.path != centre, -degrees[e.path])):
        x, y = places[entry.path]
        radius = 11 if entry.path == centre else round(5 + min(5, math.sqrt(degrees[entry.path])), 1)
        kind = f" ({KIND_NAMES.get(entry.type, entry.type)})" * (titles[entry.title] > 1)
        name = name_beside(cut_text(entry.title, NAME_CHARS) + kind, (x, y), radius, width, taken)
        if not name and entry.path != centre:
            continue
        names.append(name)
        address = escape(asked.link("graph" if large else "note", path=entry.path))
        place = "centre" if entry.path == centre else "dot"
        dots[entry.path] = (
            f'<a href="{address}" class="{place}"><title>{escape(entry.title + kind)}</title>'
            f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{COLOURS.get(entry.type, OTHER)}"/></a>'
        )
    lines = [
        f'<line x1="{places[a][0]}" y1="{places[a][1]}" x2="{places[b][0]}" y2="{places[b][1]}"/>'
        for a, b in links
        if a in dots and b in dots
    ]
    label = escape(f"{len(dots)} notes around {next(e.title for e in entries if e.path == centre)}")
    head = f'<svg class="graph" viewBox="0 0 {width} {height}" role="group" aria-label="{label}">'
    return "".join([head, *lines, *dots.values(), *names, "</svg>"])


def name_beside(shown: str, place: tuple[float, float], radius: float, width: int, taken: list[Box]) -> str:
    """Write the name *shown* beside, below or above *place* and add its box to *taken*. Return "" if all is taken."""
    x, y = place
    long = len(shown) * CHAR_WIDTH
    right, left, below = x + radius + 5, x - radius - 5 - long, radius + 10
    sides = [(start, y + down) for down in (0, -10, 10) for start in (right, left)]
    for start, level in (*sides, (x - long / 2, y + below), (x - long / 2, y - below)):
        box = (start, level - 8, start + long, level + 8)
        if box[0] > 0 and box[2] < width and not any(overlap(box, other) for other in taken):
            taken.append(box)
            at, anchor = {right: (right, "start"), left: (x - radius - 5, "end")}.get(start, (x, "middle"))
            return f'<text x="{at:.0f}" y="{level + 4:.0f}" text-anchor="{anchor}" aria-hidden="true">{escape(shown)}</text>'
    return ""


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def placed(
    paths: Sequence[str], links: Sequence[Link], centre: str, width: int, height: int
) -> dict[str, tuple[float, float]]:
    """
    Return the place of each path in the picture, with *centre* in its middle. The same notes and links always get the
    same places.
    """
    import networkx

    drawn = networkx.Graph()
    drawn.add_nodes_from(paths)
    drawn.add_edges_from(links)
    start = (
        networkx.shell_layout(drawn, [[centre], [p for p in paths if p != centre]])
        if len(paths) > 1
        else None
    )
    spread = 2.2 / math.sqrt(max(1, len(paths)))
    found = networkx.spring_layout(drawn, k=spread, pos=start, fixed=[centre], iterations=STEPS, seed=1)
    offsets = {p: (float(x - found[centre][0]), float(y - found[centre][1])) for p, (x, y) in found.items()}
    xs, ys = zip(*offsets.values(), strict=True)

    def scaled(offset: float, among: Sequence[float], room: int, edge: int) -> float:
        furthest = max(
            abs(other) for other in among if (other < 0) is (offset < 0)
        )  # on the same side of the centre
        share = abs(offset / (furthest or 1)) ** SPREAD
        return round(room / 2 + math.copysign(share, offset) * (room / 2 - edge), 1)

    return {p: (scaled(x, xs, width, 70), scaled(y, ys, height, 24)) for p, (x, y) in offsets.items()}


# --- bars


BAR_WIDTH, BAR_GAP, BAR_HEIGHT = 14, 4, 120
SHADES = ("bar1", "bar2", "bar3", "bar4", "bar5")  # classes of the page's style


def drawn_bars(days: Mapping[str, Mapping[str, float]], names: Sequence[str], what: str) -> str:
    """Draw one bar a day, with one shade for each of *names*. *days* maps each day to name → amount."""
    most = max((sum(parts.values()) for parts in days.values()), default=0.0) or 1.0
    width = len(days) * (BAR_WIDTH + BAR_GAP)
    parts = []
    for n, (day, amounts) in enumerate(days.items()):
        y = float(BAR_HEIGHT)
        told = ", ".join(f"{name} {amounts[name]:,.4g}" for name in names if amounts.get(name))
        bars = []
        for shade, name in enumerate(names):
            if amount := amounts.get(name, 0.0):
                high = max(1.0, amount / most * (BAR_HEIGHT - 4))
                y -= high
                bars.append(
                    f'<rect class="{SHADES[min(shade, len(SHADES) - 1)]}" x="{n * (BAR_WIDTH + BAR_GAP)}" y="{y:.1f}"'
                    f' width="{BAR_WIDTH}" height="{high:.1f}"/>'
                )
        parts.append(f"<g><title>{escape(day)}: {escape(told or 'nothing')}</title>{''.join(bars)}</g>")
    label = escape(f"{what} by day, at most {most:,.4g}")
    return (
        f'<svg class="bars" viewBox="0 0 {max(width, 1)} {BAR_HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{label}">{"".join(parts)}</svg>'
    )
