"""The commands of a person's own hand: write, correct, take back. Each calls one function of omg/curate/."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput
from ..plural import how_many
from .base import IdentityOption, JsonFlag, app, opened_memory, print_value, progress_bar

if TYPE_CHECKING:
    from ..curate.notes import CurationResult
    from ..graph.graph import Graph
    from ..memory import Memory


NoteArgument = Annotated[str, typer.Argument(help="A note: its path, id, alias or file name.")]


def print_done(done: CurationResult, text: str, as_json: bool) -> None:
    """What was done, and how it is undone."""
    undo = f"  (omg undo {done.cycle.rpartition('-')[2]})" if done.cycle else " already; nothing was changed"
    print_value({"path": done.path, "cycle": done.cycle}, as_json, text + undo)


def save_private(file: Path, text: str) -> None:
    """For its owner's eyes; a file that is there keeps the permissions it was given."""
    try:
        with os.fdopen(
            os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as f:
            f.write(text)
    except OSError as e:
        raise BadInput(f"{file} cannot be written ({e.strerror}); name another file") from e


@app.command("new")
def new_command(
    type: Annotated[str, typer.Argument(help="identity, preference, project, decision, fact or episode.")],
    title: Annotated[str, typer.Argument(help="A short name for the note.")],
    text: Annotated[str, typer.Option("--text", "-t", help="What it says; '-' reads standard input.")] = "",
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a note of your own."""
    from ..curate.notes import new_note

    with opened_memory(vectors=False) as memory:
        said = sys.stdin.read() if text == "-" else text
        done = new_note(memory.find(identity), type, title, said, memory.clock())
        print_done(done, f"wrote {done.path}" if done.cycle else f"{done.path} says that", as_json)


@app.command("pin")
def pin_command(
    id: NoteArgument,
    off: Annotated[bool, typer.Option("--off", help="Unpin.")] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Put a note into every prompt, or with --off no longer."""
    from ..curate.notes import find_note, pin_note

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        done = pin_note(graph, find_note(graph, id), memory.clock(), pinned=not off)
        print_done(done, f"{done.path} is {'not ' if off else ''}pinned", as_json)
        if not off and (origin := graph.vault.read(done.path).origin) in ("assistant", "tool"):
            whose = "the assistant's word" if origin == "assistant" else "what a tool said"
            print(
                f"omg: it is {whose}, and is shown in every prompt once you run `omg confirm {done.path}`",
                file=sys.stderr,
            )


@app.command("link")
def link_command(
    id: NoteArgument, to: NoteArgument, identity: IdentityOption = None, as_json: JsonFlag = False
) -> None:
    """Relate one note to another."""
    from ..curate.notes import find_note, link_notes

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        there = find_note(graph, to)
        done = link_notes(graph, find_note(graph, id), there, memory.clock())
        print_done(done, f"{done.path} links to {there}", as_json)


@app.command("merge")
def merge_command(
    keep: NoteArgument, gone: NoteArgument, identity: IdentityOption = None, as_json: JsonFlag = False
) -> None:
    """Let the first note take over the second, which stays on disk as superseded."""
    from ..curate.notes import find_note, merge_into

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        other = find_note(graph, gone)
        done = merge_into(graph, find_note(graph, keep), other, memory.clock())
        print_done(done, f"{done.path} has taken over {other}", as_json)


@app.command("rename")
def rename_command(
    id: NoteArgument,
    name: Annotated[str, typer.Argument(help="New file name, or a path below the vault.")],
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Move a note; every link to it follows, and its id stays."""
    from ..curate.notes import find_note, rename_note

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        path = find_note(graph, id)
        done = rename_note(graph, path, name, memory.clock())
        print_done(done, f"{path} is now {done.path}" if done.cycle else f"{path} has that name", as_json)


@app.command("supersede")
def supersede_command(
    old: NoteArgument, successor: NoteArgument, identity: IdentityOption = None, as_json: JsonFlag = False
) -> None:
    """Say that the second note replaces the first."""
    from ..curate.notes import find_note, supersede_by

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        newer = find_note(graph, successor)
        done = supersede_by(graph, find_note(graph, old), newer, memory.clock())
        print_done(done, f"{done.path} is replaced by {newer}", as_json)


@app.command("undo")
def undo_command(
    cycle: Annotated[
        str | None,
        typer.Argument(help="As `omg history` shows it; its end is enough. Default: your own last change."),
    ] = None,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Take back what one cycle changed; notes edited since are left as they are."""
    from ..curate.undo import take_back, undoable

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        taken = undoable(graph, cycle)
        outcome, refused = take_back(graph, taken.id, memory.clock())
        for path in refused:
            print(f"omg: {path} was edited since and stays as it is", file=sys.stderr)
        back = outcome.written + outcome.kept
        what = "; ".join(taken.summary) or f"{taken.kind} {taken.id}"
        lines = [f"undone: {what}", *(f"  {undone_line(graph, path)}" for path in back)]
        print_value({"cycle": taken.id, "restored": back, "refused": refused}, as_json, "\n".join(lines))
        if refused:
            raise typer.Exit(1)


def undone_line(graph: Graph, path: str) -> str:
    return f"{path} {'is as it was before' if graph.vault.bytes(path) is not None else 'is gone again'}"


@app.command("history")
def history_command(
    id: Annotated[str | None, typer.Argument(help="Only cycles that changed this note.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 20,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """What was written in the last 30 days, and the last 50 cycles: when, and in which cycle."""
    from ..curate.notes import find_note
    from ..curate.undo import closed_cycles

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        cycles = closed_cycles(graph, find_note(graph, id) if id else None)
        # Maps that followed a person's edit are nothing that anybody did.
        cycles = [r for r in cycles if r.summary or r.kind not in ("edit", "undo")][:n]
        print_value(
            [{"cycle": r.id, "kind": r.kind, "at": r.at, "summary": r.summary} for r in cycles],
            as_json,
            "\n".join(f"{r.id}  {r.kind:11}  {'; '.join(r.summary) or 'maps only'}" for r in cycles)
            or "nothing yet",
        )


@app.command("export")
def export_command(
    form: Annotated[str, typer.Option("--form", help="md or json.")] = "md",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file instead of standard output.")
    ] = None,
    identity: IdentityOption = None,
) -> None:
    """Everything that is remembered, as one page."""
    from ..curate.export import export_graph

    if form not in ("md", "json"):
        raise BadInput(f"--form {form!r} is neither md nor json")
    with opened_memory(vectors=False) as memory:
        text = export_graph(memory.find(identity), form)
        if out:
            save_private(out, text)
        else:
            print(text)


@app.command("graph")
def graph_command(
    html: Annotated[Path, typer.Option("--html", help="The file to write.")] = Path("omg-graph.html"),
    identity: IdentityOption = None,
) -> None:
    """Write the graph as one page to look at in a browser; it needs no network."""
    from ..page.build import graph_page

    with opened_memory(vectors=False) as memory:
        which = memory.find(identity)
        save_private(html, graph_page(which))
        print(html.absolute())


@app.command("rebuild")
def rebuild_command(
    yes: Annotated[
        bool, typer.Option("--yes", help="Put the new notes in the place of the old at once.")
    ] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make the notes again from the archive, as with a better model. What you wrote or touched stays."""
    with opened_memory() as memory:
        done = rebuilt(memory, identity, swap=yes)
        text = f"{how_many(done['after'], 'note')} instead of {done['before']}; {how_many(done['kept'], 'file')} of yours kept"
        text += "" if done["replaced"] else f"\n{done['folder']}"
        asked = not yes and not as_json and sys.stdin.isatty()
        if asked and typer.confirm(f"{text}\nPut them in the place of the old?"):
            done = rebuilt(memory, identity, swap=True)
        old = done["replaced"]
        hint = "look at it, then `omg rebuild --yes`"
        if old:
            hint = f"the old notes are in {old} now"
        print_value(done, as_json, f"{text}\n{hint}")


def rebuilt(memory: Memory, identity: str | None, *, swap: bool) -> dict[str, Any]:
    """By the daemon where one is up; else here, and none is started meanwhile."""
    from ..daemon.process import daemon_lock
    from ..worker.delegate import handed_to_daemon, rebuild_each

    body = {"identity": identity, "swap": swap}
    with progress_bar("rebuilding", 0) as advance:
        if (answer := handed_to_daemon(memory.worker, "/rebuild", body)) is not None:
            return answer
        with daemon_lock(memory.folder):
            return rebuild_each(memory.worker, body, advance)
