"""
Makes the pictures of README and docs: the page and a vault's graph, from the demo, and the plot of docs/answers.md.

    make pictures           all pictures, into docs/pictures/; needs Debian's Chromium

The demo's memory is made anew, so a picture shows what `omg demo` gives. The plot's figures are read from the first
table of docs/answers.md.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import CHROMIUM, Browser
from questions.curve import Dot, as_svg
from served_page import served

from omg.config import load_config
from omg.demo import DEMO_SESSION, NIGHT, PROMPTS, run_demo
from omg.graph.graph import Graph
from omg.journal import closed_files, read_receipt
from omg.memory import Memory

PICTURES = ROOT / "docs" / "pictures"
ANSWERS = ROOT / "docs" / "answers.md"
WIDE, PHONE = 1000, 360
MOST_BYTES = 150_000
WAYS = ("rules", "low", "full")  # ways of observing, as named in the table
FONT = (
    '"Liberation Sans", sans-serif'  # as wide as what most people's browsers take; Debian's is a fifth wider
)
ESTIMATE = re.compile(r"(\.\d+|1\.0)(?: \((\.\d+) … (\.\d+|1\.0)\))?(?:, ([\d,]+) tokens)?")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pictures of README and docs.")
    parser.add_argument("--out", type=Path, default=PICTURES)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    (out / "answers.svg").write_text(as_svg(dots_in(ANSWERS.read_text("utf-8"))) + "\n", "utf-8")
    if not CHROMIUM:
        sys.exit("the plot is made; the other pictures need Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, demo_memory(Path(folder) / "demo") as memory:
        take_pictures(memory, out, Path(folder) / "profile")
    for file in sorted(out.iterdir()):
        print(f"{file.stat().st_size:>8,} {file}")
        if file.stat().st_size > MOST_BYTES:
            sys.exit(f"{file} is larger than {MOST_BYTES:,} bytes")


def dots_in(page: str) -> list[Dot]:
    """
    Return the dots of the plot: the figures in the first table of docs/answers.md and in the line below the table.
    """
    table = page[page.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    budgets = [int(cell.replace(",", "")) for cell in re.findall(r"\| ([\d,]+)(?: tokens)? (?=\|)", table[0])]
    dots = []
    for line in table[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        name = re.sub(r"[*`]|, no model", "", name)
        name = f"OMG, {name}" if name in WAYS else name.replace("search over the messages", "search")
        for n, cell in enumerate(cells):
            if found := ESTIMATE.match(cell):
                tokens = int(found[4].replace(",", "")) if found[4] else budgets[n]
                dots.append(Dot(name, tokens, *(float(found[i]) for i in (1, 2, 3)), 0))
    for name, words in (("no memory", "No memory: "), ("the whole history", "The whole history: ")):
        rest = page.partition(words)[2]
        found = ESTIMATE.match(rest)
        assert found, f"{ANSWERS}: {words!r} has no figure"
        tokens = re.search(r"([\d,]+) tokens", rest.partition("\n")[0]) if name != "no memory" else None
        at = int(tokens[1].replace(",", "")) if tokens else 0
        dots.append(Dot(name, at, *(float(found[i]) for i in (1, 2, 3)), 0))
    return sorted(dots, key=lambda dot: not dot.row.startswith("OMG"))


@contextlib.contextmanager
def demo_memory(folder: Path) -> Iterator[Memory]:
    """Make the demo's memory, as on the morning after its night, when the owner's prompts were asked."""
    with contextlib.redirect_stdout(io.StringIO()):
        run_demo(folder)
    now = NIGHT + timedelta(hours=6)
    with Memory(load_config(folder / "home", {}), clock=lambda: now) as memory:
        for prompt in (prompt for prompt, session in PROMPTS if session == DEMO_SESSION):
            now += timedelta(minutes=7)
            at = int(now.timestamp() * 1000)
            memory.capture([{"role": "user", "content": prompt, "timestamp": at}], session=DEMO_SESSION)
            memory.inject(prompt, session=DEMO_SESSION)
        memory.observe()
        yield memory


def take_pictures(memory: Memory, out: Path, profile: Path) -> None:
    graph = memory.find(DEMO_SESSION)
    browser = Browser(profile)
    try:
        with served(memory) as page:
            base = f"{page.origin}{page.session.base}/"
            browser.open(page.link)
            note = f"note?path={most_told(graph)}"
            views = {"memory": "", "note": note, "given": "given", "days": f"days?at={last_talk(graph)}"}
            for name, address in views.items():
                for width, suffix in ((WIDE, ""), (PHONE, "-phone")):
                    show(browser, base + address, width)
                    (out / f"{name}{suffix}.png").write_bytes(picture(browser, width))
            show(browser, base + "graph", WIDE)
            (out / "graph.png").write_bytes(picture(browser, WIDE, "svg.graph"))
    finally:
        browser.close()


def most_told(graph: Graph) -> str:
    """Return the person's note with the longest history, as an example of a note."""
    notes = (graph.vault.read(e.path) for e in graph.index.entries() if e.path.startswith("nodes/"))
    best = max(notes, key=lambda n: (n.body.count("\n- "), len(n.sources), len(n.links), n.path))
    return best.path


def last_talk(graph: Graph) -> int:
    """Return the number of cycles since the last talk of which notes were made: the night, undos, a forgetting."""
    cycles = map(read_receipt, (f for f in reversed(closed_files(graph)) if "-maps-" not in f.name))
    made = (r.kind == "observation" and any("nodes/" in c.path for c in r.changes) for r in cycles)
    return next(n for n, notes in enumerate(made) if notes)


def show(browser: Browser, url: str, width: int) -> None:
    browser.size(width)
    browser.open(url)
    browser.js(f"document.body.style.fontFamily = {json.dumps(FONT)}")


def picture(browser: Browser, width: int, part: str = "body") -> bytes:
    """Return *part* of the page as PNG: slightly wider than high, or on a phone twice as high as wide."""
    x, y, wide, high = browser.js(
        f"(r => [r.x, r.y, r.width, r.height])(document.querySelector({part!r}).getBoundingClientRect())"
    )
    most = width * (0.92 if width > PHONE else 2)
    clip = {"x": x, "y": y, "width": wide, "height": min(high, most), "scale": 1}
    taken = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    main()
