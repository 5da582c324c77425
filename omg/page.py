"""
The graph as one HTML page for a browser, with search, filters, and links from note to note.

The page shows the vault at one moment and does not follow it. It holds the notes' full text: whoever has the file has the
memory. Only OMG's two scripts run in it, which the page's policy names by their hash, and nothing else is loaded.

force-graph (assets/force-graph.min.js) draws it: a maintained library of 173 kB that handles 10,000 notes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html as markup
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import OmgError

if TYPE_CHECKING:
    from .graph.graph import Graph
    from .index.store import Entry

PAGE_FOLDER = Path(__file__).parent / "assets"
LIBRARY = PAGE_FOLDER / "force-graph.min.js"

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

OTHER = "#9aa0ad"  # a person's own note, or a type of their own


def graph_page(graph: Graph) -> str:
    """The page of *graph* as its index knows it: notes of every status, logs left out."""
    entries = [entry for entry in graph.index.entries(status=None) if entry.type != "log"]
    bodies = {}
    for entry in entries:
        with contextlib.suppress(OmgError):  # gone or broken since the index saw it: shown without its text
            bodies[entry.path] = graph.vault.read(entry.path).body
    links = [(entry.path, target) for entry in entries for target in entry.links]
    root = graph.vault.root
    return page_html(entries, links, f"Memory of {graph.identity.key}", bodies=bodies, root=root)


def page_html(
    entries: Iterable[Entry],
    links: Iterable[tuple[str, str]],
    title: str,
    *,
    bodies: Mapping[str, str],
    root: Path | None = None,
) -> str:
    """
    The page's whole text.

    `links` are pairs of paths; one that leads to no entry, or to its own note, is left out. `bodies` holds
    the markdown below each note's frontmatter, by path. With `root`, the vault's folder, a note can be opened
    in Obsidian.
    """
    entries = list(entries)
    place = {entry.path: i for i, entry in enumerate(entries)}
    pairs = dict.fromkeys((place[a], place[b]) for a, b in links if a in place and b in place and a != b)
    data = {
        "title": title,
        "root": root.absolute().as_posix() if root else None,
        "types": page_types(entries),
        "notes": [page_note(entry, bodies.get(entry.path, "")) for entry in entries],
        "links": [list(pair) for pair in pairs],
    }
    script, library = (PAGE_FOLDER / "graph.js").read_text("utf-8"), LIBRARY.read_text("utf-8")
    parts = {
        "title": markup.escape(title),
        "policy": content_policy(library, script),
        "style": (PAGE_FOLDER / "graph.css").read_text("utf-8"),
        "data": inert_json(data),
        "library": library,
        "script": script,
    }
    # One pass: a part that happens to contain a marker is never filled in itself.
    return re.sub(r"<!--(\w+)-->", lambda m: parts[m[1]], (PAGE_FOLDER / "graph.html").read_text("utf-8"))


def page_note(entry: Entry, body: str) -> dict[str, Any]:
    """What the page knows of one note; what is empty is left out. 10,000 notes are a few MB of it."""
    day = (entry.event or "")[:10] or entry.created or entry.updated
    shown = {
        "path": entry.path,
        "id": entry.id,
        "type": entry.type,
        "title": entry.title,
        "description": entry.description,
        "priority": entry.priority,
        "status": entry.status,
        "pinned": entry.pinned,
        "standing": entry.standing,
        "loop": entry.loop,
        "event": entry.event,
        "day": str(day) if day else None,
        "updated": str(entry.updated) if entry.updated else None,
        "tags": list(entry.tags),
        "body": body.strip(),
    }
    return {key: value for key, value in shown.items() if value}


def page_types(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Every type there is: ours first and in our order, then a person's own."""
    counts = Counter(entry.type for entry in entries)
    order = [*(t for t in COLOURS if t in counts), *sorted(t for t in counts if t not in COLOURS)]
    return [{"name": t, "colour": COLOURS.get(t, OTHER), "count": counts[t]} for t in order]


def inert_json(data: Any) -> str:
    """JSON that cannot close the HTML element around it or open a comment."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def content_policy(*scripts: str) -> str:
    """A Content-Security-Policy under which only these scripts run, and no address is ever asked."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    ours = " ".join(f"'sha256-{digest}'" for digest in hashes)
    # force-graph adds its own few rules of style at run time, hence unsafe-inline: text never becomes style.
    style = "style-src 'unsafe-inline'"
    return f"default-src 'none'; script-src {ours}; {style}; base-uri 'none'; form-action 'none'"
