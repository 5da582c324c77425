"""
The template laid into a vault: pages, forms and settings of Obsidian that a person starts from.

Not here: what is generated into the pages (plan/pages.py). One rule: what is there already is never touched, but
for what an earlier release laid down and nobody has changed since.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
from pathlib import Path

from ..config.file import shipped_folder
from ..errors import NotFound
from ..graph.graph import Graph
from ..vault.vault import FORMS

STYLE = ".obsidian/snippets/omg.css"  # laid first: it tells our settings of Obsidian from the person's own

# Size and sha256 of what an earlier release laid down (56b488b), and a later one mended.
FORMER = {
    ".obsidian/snippets/omg.css": (315, "4d926b47db04993d"),
    ".obsidian/workspace.json": (4005, "abf85938d01a0402"),
    "views/by-project.base": (1477, "964e331226ab7425"),
    "views/by-type.base": (1277, "3686abf468c6e633"),
    "views/open-loops.base": (1331, "813643c0e5b0b99f"),
    "views/recently-changed.base": (1008, "919bd23fed7d60bd"),
    "views/superseded.base": (854, "081d0298c3690869"),
}
PANE = "views/about-the-note-in-front.base"  # which the window layout of today shows


def lay_template(graph: Graph, *, again: bool = False) -> None:
    """
    Lay the template into a vault that OMG has not written to; with *again* into any. It is for what is missing:
    what is there already is never touched, and an `.obsidian/` of the person's own is not added to.

    The index note comes last: where a crash stopped this, the next opening goes on.
    """
    root, template = graph.vault.root, shipped_folder("vault_template")
    known = (graph.folder / "written.jsonl").exists()
    if known and graph.vault.wrote("index") and next(graph.vault.paths(), None) is None:
        # A drive that is not mounted, a sync that has not begun: not a person who deleted all there is.
        raise NotFound(
            f"{root}: the vault is empty, and it had notes; bring them back, or to begin anew "
            f"delete {graph.folder / 'written.jsonl'}"
        )
    renew_former(root, template)
    if known and (root / "index.md").exists() and not again:
        return
    theirs = (root / ".obsidian").exists() and not (root / STYLE).exists()
    for source in sorted(
        template.rglob("*"), key=lambda p: (p == template / "index.md", p != template / STYLE, p)
    ):
        below = source.relative_to(template)
        target = root / below
        if theirs and below.parts[0] == ".obsidian":
            continue
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            path = below.with_suffix("").as_posix()
            if source.suffix == ".md" and not path.startswith((".", FORMS)):
                graph.vault.write(path, source.read_bytes(), None)
                graph.vault.remember(path, source.read_bytes())
            else:
                lay_file(root, source, target)


def lay_file(root: Path, source: Path, target: Path) -> None:
    whole = root / f".omg-{secrets.token_hex(4)}.tmp"  # where `settle` finds what a crash leaves
    shutil.copyfile(source, whole)
    whole.replace(target)


def renew_former(root: Path, template: Path) -> None:
    """Put today's table, style or layout in the place of an earlier release's that is as it was laid down."""
    for name, known in FORMER.items():
        target = root / name
        if target.is_symlink() or not target.is_file() or target.stat().st_size != known[0]:
            continue
        data = target.read_bytes()
        if (len(data), hashlib.sha256(data).hexdigest()[:16]) == known:
            if name.endswith("workspace.json") and not (root / PANE).exists() and (root / "views").is_dir():
                lay_file(root, template / PANE, root / PANE)
            lay_file(root, template / name, target)
