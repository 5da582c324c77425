"""The commands of a person's own hand: write, correct, take back. Each calls one function of curate.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput, NotFound
from .base import Json, Who, app, at, bar, counted, opened, say

if TYPE_CHECKING:
    from ..curate import Done
    from ..forget import Selection
    from ..home import Home

Note = Annotated[str, typer.Argument(help="A note: its path, id, alias or file name.")]


def tell(done: Done, text: str, as_json: bool) -> None:
    """What was done, and how it is undone."""
    undo = f"  (omg undo {done.cycle.rpartition('-')[2]})" if done.cycle else " already; nothing was changed"
    say({"path": done.path, "cycle": done.cycle}, as_json, text + undo)


def save(file: Path, text: str) -> None:
    """For its owner's eyes; a file that is there keeps the permissions it was given."""
    try:
        with os.fdopen(
            os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as f:
            f.write(text)
    except OSError as e:
        raise BadInput(f"{file} cannot be written ({e.strerror}); name another file") from e


@app.command()
def new(
    type: Annotated[str, typer.Argument(help="identity, preference, project, decision, fact or episode.")],
    title: Annotated[str, typer.Argument(help="A short name for the note.")],
    text: Annotated[str, typer.Option("--text", "-t", help="What it says; '-' reads standard input.")] = "",
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Write a note of your own."""
    from .. import curate

    with opened(vectors=False) as home:
        said = sys.stdin.read() if text == "-" else text
        done = curate.new(home.find(identity), type, title, said, home.clock())
        tell(done, f"wrote {done.path}" if done.cycle else f"{done.path} says that", as_json)


@app.command()
def pin(
    id: Note,
    off: Annotated[bool, typer.Option("--off", help="Unpin.")] = False,
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Put a note into every prompt, or with --off no longer."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        done = curate.pin(graph, curate.found(graph, id), home.clock(), pinned=not off)
        tell(done, f"{done.path} is {'not ' if off else ''}pinned", as_json)


@app.command()
def link(id: Note, to: Note, identity: Who = None, as_json: Json = False) -> None:
    """Relate one note to another."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        there = curate.found(graph, to)
        done = curate.link(graph, curate.found(graph, id), there, home.clock())
        tell(done, f"{done.path} links to {there}", as_json)


@app.command()
def merge(keep: Note, gone: Note, identity: Who = None, as_json: Json = False) -> None:
    """Let the first note take over the second, which stays on disk as superseded."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        other = curate.found(graph, gone)
        done = curate.merge(graph, curate.found(graph, keep), other, home.clock())
        tell(done, f"{done.path} has taken over {other}", as_json)


@app.command()
def rename(
    id: Note,
    name: Annotated[str, typer.Argument(help="New file name, or a path below the vault.")],
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Move a note; every link to it follows, and its id stays."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        path = curate.found(graph, id)
        done = curate.rename(graph, path, name, home.clock())
        tell(done, f"{path} is now {done.path}" if done.cycle else f"{path} has that name", as_json)


@app.command()
def supersede(old: Note, successor: Note, identity: Who = None, as_json: Json = False) -> None:
    """Say that the second note replaces the first."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        newer = curate.found(graph, successor)
        done = curate.supersede(graph, curate.found(graph, old), newer, home.clock())
        tell(done, f"{done.path} is replaced by {newer}", as_json)


@app.command()
def forget(
    ids: Annotated[list[str] | None, typer.Argument(help="Notes.")] = None,
    session: Annotated[str | None, typer.Option(help="Everything said in this session.")] = None,
    before: Annotated[
        str | None, typer.Option(help="Everything said before this day; notes of your own stay.")
    ] = None,
    matching: Annotated[str | None, typer.Option(help="Every note and message that holds this text.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without it the command only says what would go.")
    ] = False,
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Forget notes and the messages they came from, for good. Says first what would go."""
    from .. import curate

    if not ids and session is None and before is None and not matching:
        raise BadInput("forget what? name notes, or give --session, --before or --matching")
    with opened(vectors=False) as home:
        home.take_in()
        graph = home.find(identity)
        start = at(before, "--before", home.zone)
        what = curate.selection(
            graph,
            ids=ids or [],
            session=session,
            before_ms=start and int(start.timestamp() * 1000),
            matching=matching,
        )
        if not what:
            for path in what.left:
                print(f"omg: {path} has it, in what you wrote there yourself", file=sys.stderr)
            raise NotFound("nothing of that is remembered; nothing was changed")
        edited = {p for p in what.paths if not curate.untouched(graph, p)}
        if yes:
            curate.forget(home, graph, what)
        shown = ("paths", "messages", "again", "linking", "left")
        say(
            {"done": yes, **{name: getattr(what, name) for name in shown}},
            as_json,
            forgetting(what, edited, yes),
        )


def forgetting(what: Selection, edited: set[str], done: bool) -> str:
    """What goes, or has gone, for a person to read."""
    lines = ["forgotten:" if done else "would be forgotten:"]
    lines += [f"  {path}{'  (with what you wrote in it)' if path in edited else ''}" for path in what.paths]
    lines.append(f"  {counted(len(what.messages), 'message')}")
    if what.again:
        lines.append(f"{counted(len(what.again), 'other message')} of these notes stay, to be observed anew")
    if what.linking:
        lines.append("without their links to it: " + ", ".join(what.linking))
    lines += [f"{path} has it too, in what you wrote there: mend it yourself" for path in what.left]
    if not done:
        lines.append("Nothing was changed. It cannot be undone; add --yes to do it.")
    lines.append("OpenClaw's own transcripts and memory files are not touched.")
    return "\n".join(lines)


@app.command()
def undo(
    cycle: Annotated[
        str | None,
        typer.Argument(help="As `omg history` shows it; its end is enough. Default: your own last change."),
    ] = None,
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Take back what one cycle changed; notes edited since are left as they are."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        taken = curate.undoable(graph, cycle)
        outcome, refused = curate.take_back(graph, taken.id, home.clock())
        for path in refused:
            print(f"omg: {path} was edited since and stays as it is", file=sys.stderr)
        back = outcome.written + outcome.kept
        lines = [f"undone: {'; '.join(taken.summary) or taken.id}", *(f"  {p}" for p in back)]
        say({"cycle": taken.id, "restored": back, "refused": refused}, as_json, "\n".join(lines))
        if refused:
            raise typer.Exit(1)


@app.command()
def history(
    id: Annotated[str | None, typer.Argument(help="Only cycles that changed this note.")] = None,
    n: Annotated[int, typer.Option("-n", help="How many.")] = 20,
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """What was written in the last 30 days, and the last 50 cycles: when, and in which cycle."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        cycles = curate.cycles(graph, curate.found(graph, id) if id else None)[:n]
        say(
            [{"cycle": r.id, "kind": r.kind, "at": r.at, "summary": r.summary} for r in cycles],
            as_json,
            "\n".join(f"{r.id}  {r.kind:11}  {'; '.join(r.summary) or 'maps only'}" for r in cycles)
            or "nothing yet",
        )


@app.command()
def export(
    form: Annotated[str, typer.Option("--form", help="md or json.")] = "md",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file instead of standard output.")
    ] = None,
    identity: Who = None,
) -> None:
    """Everything that is remembered, as one page."""
    from .. import curate

    if form not in ("md", "json"):
        raise BadInput(f"--form {form!r} is neither md nor json")
    with opened(vectors=False) as home:
        text = curate.export(home.find(identity), form)
        if out:
            save(out, text)
        else:
            print(text)


@app.command()
def graph(
    html: Annotated[Path, typer.Option("--html", help="The file to write.")] = Path("omg-graph.html"),
    identity: Who = None,
) -> None:
    """Write the graph as one page to look at in a browser; it needs no network."""
    from .. import graphpage

    with opened(vectors=False) as home:
        which = home.find(identity)
        save(html, graphpage.of(which))
        print(html.absolute())


@app.command()
def rebuild(
    yes: Annotated[
        bool, typer.Option("--yes", help="Put the new notes in the place of the old at once.")
    ] = False,
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Make the notes again from the archive, as with a better model. What you wrote or touched stays."""
    with opened() as home:
        done = rebuilt(home, identity, swap=yes)
        text = f"{counted(done['after'], 'note')} instead of {done['before']}; {counted(done['kept'], 'file')} of yours kept\n{done['folder']}"
        asked = not yes and not as_json and sys.stdin.isatty()
        if asked and typer.confirm(f"{text}\nPut them in the place of the old?"):
            done = rebuilt(home, identity, swap=True)
        old = done["replaced"]
        told = f"the old notes are in {old}" if old else "look at it, then `omg rebuild --yes`"
        say(done, as_json, f"{text}\n{told}")


def rebuilt(home: Home, identity: str | None, *, swap: bool) -> dict[str, Any]:
    """By the daemon where one is up; else here, and none is started meanwhile."""
    from .. import daemon, work

    body = {"identity": identity, "swap": swap}
    with bar("rebuilding", 0) as advance:
        if (answer := work.handed(home, "/rebuild", body)) is not None:
            return answer
        with daemon.lock(home.folder):
            return work.rebuild(home, body, advance)
