"""
The template of a vault: pages, forms and settings of Obsidian that a person starts with.

plan/pages.py generates what goes into the pages. Existing files are never touched.
"""

from __future__ import annotations

import secrets
import shutil

from ..config import shipped_folder
from ..errors import NotFound
from ..graph.graph import Graph
from ..vault.vault import FORMS

STYLE = ".obsidian/snippets/omg.css"  # laid first: where it is, the settings of Obsidian are OMG's


def lay_template(graph: Graph, *, again: bool = False) -> None:
    """
    Add the template's missing files to a vault that OMG has not written to; with *again* to any vault. Existing files are
    never touched, and nothing is added to the person's own `.obsidian/`.

    The index note comes last. If a crash stops this, the next opening goes on.
    """
    root, template = graph.vault.root, shipped_folder("vault_template")
    known = (graph.folder / "written.jsonl").exists()
    if known and graph.vault.wrote("index") and next(graph.vault.paths(), None) is None:
        # More likely an unmounted drive, or a sync that has not begun, than a person who deleted everything.
        raise NotFound(
            f"{root}: the vault is empty, and it had notes; bring them back, or to begin anew "
            f"delete {graph.folder / 'written.jsonl'}"
        )
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
                whole = root / f".omg-{secrets.token_hex(4)}.tmp"  # `settle` removes one that a crash left
                shutil.copyfile(source, whole)
                whole.replace(target)
