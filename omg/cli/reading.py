"""Commands that read notes: list, show and open."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from ..errors import BadInput, NotFound
from .base import IdentityOption, JsonFlag, app, opened_memory, print_value

if TYPE_CHECKING:
    from ..curate import OpenNote
    from ..index.store import Entry

OBSIDIAN_VAULTS = (  # where Obsidian keeps the list of its vaults: Linux, Flatpak, macOS
    ".config/obsidian/obsidian.json",
    ".var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json",
    "Library/Application Support/obsidian/obsidian.json",
)


@app.command("list")
def list_command(
    type: Annotated[
        str | None, typer.Argument(help="identity, preference, project, decision, fact or episode.")
    ] = None,
    n: Annotated[int | None, typer.Option("-n", min=1, help="How many. Default: all.")] = None,
    retired: Annotated[bool, typer.Option("--all", help="Dormant and superseded notes too.")] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the notes, those of the last day first."""
    from ..node.fields import TYPES

    if type is not None and type not in TYPES:
        raise BadInput(f"{type!r} is no type of note; there are: {', '.join(TYPES)}")
    with opened_memory(vectors=False) as memory:
        entries = memory.find(identity).index.entries(status=None if retired else "active")
        notes = [e for e in entries if e.path.startswith("nodes/") and type in (None, e.type)]
        notes.sort(key=lambda e: (-changed_day(e).toordinal(), e.path))
        notes = notes[:n]
        print_value(notes, as_json, "\n".join(map(list_line, notes)) or "no notes yet")


def changed_day(entry: Entry) -> date:
    """The day in its properties, else that of its file."""
    return entry.updated or date.fromtimestamp(entry.mtime / 1e9)


def list_line(entry: Entry) -> str:
    status = "" if entry.status == "active" else f" ({entry.status})"
    return f"{changed_day(entry)}  {entry.path}{status}  {entry.description}"


@app.command("show")
def show_command(
    id: Annotated[str, typer.Argument(help="A note: its path, id, alias or file name.")],
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a note, what links to it, and the messages it came from."""
    from ..curate import open_note
    from ..dates.days import day_of_ms

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        note = open_note(graph, id)
        if as_json:
            found = {"node": note.node, "backlinks": note.backlinks, "messages": note.messages}
            return print_value(found, True, "")
        entry = graph.index.entry(note.node.path)
        said = entry.description if entry else note.node.description
        print(note_page(note, said, graph.vault.file(note.node.path)))
        print("\nLinked from:", ", ".join(note.backlinks) or "nothing")
        if note.messages:
            print("\nIt was said:")
        for m in note.messages:
            print(f"  {day_of_ms(m.timestamp, graph.zone)} {m.role}: {m.text[:300]}")


def note_page(note: OpenNote, said: str, file: Path) -> str:
    """Title, what it *said* in a line, what is known of the note, its file, and its text; no properties but in words."""
    from ..provenance import origin_mark
    from ..tools.reading import day_marks, status_marks

    node = note.node
    status, loop = status_marks(node)
    marks = (
        node.type,
        status,
        "pinned" if node.pinned else "",
        loop,
        *day_marks(node.event, node.updated),
        origin_mark(node.origin),
    )
    text = node.body.strip().removeprefix(f"# {node.title}\n").strip()
    text = text.removeprefix(said).strip()
    head = [f"# {node.title}", said, f"({', '.join(filter(None, marks))})", str(file)]
    return "\n".join(filter(None, head)) + (f"\n\n{text}" if text else "")


@app.command("open")
def open_command(
    id: Annotated[str | None, typer.Argument(help="A note; nothing: the whole vault.")] = None,
    editor: Annotated[
        bool, typer.Option("--editor", help="In $VISUAL or $EDITOR, though Obsidian knows the vault.")
    ] = False,
    identity: IdentityOption = None,
) -> None:
    """Open a note or the vault: in Obsidian if it knows the vault, else in $VISUAL or $EDITOR."""
    from ..curate import find_note

    with opened_memory(vectors=False) as memory:
        vault = memory.find(identity).vault
        place = vault.file(find_note(memory.find(identity), id)) if id else vault.root
    # After the memory is closed: an editor may stay open for hours.
    subprocess.run(opener(place, editor=editor), check=False)


def opener(place: Path, *, editor: bool) -> list[str]:
    """The command that opens *place*. Raises NotFound, naming *place*, where there is none."""
    launcher = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if not editor and launcher and is_in_obsidian(place):
        return [launcher, f"obsidian://open?path={quote(str(place), safe='')}"]
    if command := os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        return [*shlex.split(command), str(place)]
    raise NotFound(
        f"{place}: no vault of Obsidian's holds it, and neither VISUAL nor EDITOR is set; set EDITOR, or open it by hand"
    )


def is_in_obsidian(place: Path) -> bool:
    """Whether *place* lies in a folder that Obsidian has opened as a vault."""
    for name in OBSIDIAN_VAULTS:
        try:
            vaults = json.loads((Path.home() / name).read_text(encoding="utf-8"))["vaults"].values()
            if any(place.resolve().is_relative_to(Path(v["path"]).resolve()) for v in vaults):
                return True
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # not there, or in a form that we do not know
    return False
