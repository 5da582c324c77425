"""
Commands on notes: list, show, open, new, pin, link, merge, rename, supersede, forget, undo, history, export, rebuild,
reflect, ui.
Each command that changes something calls one function of omg/curate.py.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlencode

import typer
from typer import Argument, Option

from ..errors import BadInput, NotFound, how_many
from .terminal import (
    IdentityOption,
    JsonFlag,
    app,
    existing_home,
    opened_graph,
    opened_memory,
    print_value,
    progress_bar,
    time_argument,
    warn,
)

if TYPE_CHECKING:
    from ..curate import CurationResult, OpenNote
    from ..forget.selection import Selection
    from ..graph.graph import Graph
    from ..index.store import Entry
    from ..memory import Memory
    from ..worker.nights import NightDone

    PairEdit = Callable[[Graph, str, str, datetime], CurationResult]  # an edit of one note with another

OBSIDIAN_VAULTS = (  # where Obsidian keeps the list of its vaults: Linux, Flatpak, macOS
    ".config/obsidian/obsidian.json",
    ".var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json",
    "Library/Application Support/obsidian/obsidian.json",
)

SHOWN_CHARS = 300  # of each message below a note


@app.command("list")
def list_command(
    type: Annotated[
        str | None, Argument(help="identity, preference, project, decision, fact or episode.")
    ] = None,
    n: Annotated[int | None, Option("-n", min=1, help="How many. Default: all.")] = None,
    retired: Annotated[bool, Option("--all", help="Also list dormant and superseded notes.")] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the notes, newest first."""
    from ..node.note import TYPES

    if type is not None and type not in TYPES:
        raise BadInput(f"{type!r} is not a type of note; types: {', '.join(TYPES)}")
    with opened_graph(identity) as graph:
        entries = graph.index.entries(status=None if retired else "active")
        notes = [e for e in entries if e.path.startswith("nodes/") and type in (None, e.type)]
        notes.sort(key=lambda e: (-changed_day(e).toordinal(), e.path))
        notes = notes[:n]
        print_value(notes, as_json, "\n".join(map(list_line, notes)) or "no notes yet")


def changed_day(entry: Entry) -> date:
    """Return the day of a note, from its properties or else from its file."""
    return entry.updated or date.fromtimestamp(entry.mtime / 1e9)


def list_line(entry: Entry) -> str:
    from ..provenance import origin_mark

    marks = filter(None, ("" if entry.status == "active" else entry.status, origin_mark(entry.origin)))
    return f"{changed_day(entry)}  {entry.path}{''.join(f' ({m})' for m in marks)}  {entry.description}"


@app.command("show")
def show_command(
    id: Annotated[str, Argument(help="A note: its path, id, alias or file name.")],
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a note, what links to it, and the messages it came from."""
    from ..curate import open_note
    from ..dates.days import day_of_ms
    from ..text.words import cut_text

    with opened_graph(identity) as graph:
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
            print(f"  {day_of_ms(m.timestamp, graph.zone)} {m.role}: {cut_text(m.text, SHOWN_CHARS)}")
        if any(len(m.text) > SHOWN_CHARS for m in note.messages):
            print("  (… marks left-out text; --json prints the whole message)")


def note_page(note: OpenNote, said: str, file: Path) -> str:
    """
    Return the text that `omg show` prints for *note*.

    The text has the title, the description *said*, the properties in words (type, status, days, origin), the path
    *file* and the body.
    """
    from ..tools.reading import note_marks

    node = note.node
    text = node.body.strip().removeprefix(f"# {node.title}\n").strip()
    text = text.removeprefix(said).strip()
    marks = note_marks(node) + ", pinned" * node.pinned
    head = [f"# {node.title}", said, f"({marks})", str(file)]
    return "\n".join(filter(None, head)) + (f"\n\n{text}" if text else "")


@app.command("open")
def open_command(
    id: Annotated[str | None, Argument(help="A note. Default: the whole vault.")] = None,
    editor: Annotated[
        bool,
        Option("--editor", help="Open it in $VISUAL or $EDITOR, even if Obsidian knows the vault."),
    ] = False,
    identity: IdentityOption = None,
) -> None:
    """Open a note or the vault: in Obsidian if Obsidian knows the vault, else in $VISUAL or $EDITOR."""
    from ..curate import find_note

    with opened_graph(identity) as graph:
        place = graph.vault.file(find_note(graph, id)) if id else graph.vault.root
    # After the memory is closed: an editor may stay open for hours.
    subprocess.run(opener(place, editor=editor), check=False)


def opener(place: Path, *, editor: bool) -> list[str]:
    """Return the command that opens *place*. Raises NotFound if neither Obsidian nor an editor can open *place*."""
    launcher = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if not editor and launcher and is_in_obsidian(place):
        return [launcher, f"obsidian://open?path={quote(str(place), safe='')}"]
    if command := os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        return [*shlex.split(command), str(place)]
    raise NotFound(
        f"{place} is in no vault that Obsidian knows, and no editor is set; set EDITOR, or open it by hand"
    )


def is_in_obsidian(place: Path) -> bool:
    """Whether *place* lies in a folder that Obsidian has opened as a vault."""
    from ..graph.state import read_object

    for name in OBSIDIAN_VAULTS:
        with suppress(KeyError, TypeError, AttributeError):  # the file is missing, or in an unknown form
            vaults = read_object(Path.home() / name)["vaults"].values()
            if any(place.resolve().is_relative_to(Path(v["path"]).resolve()) for v in vaults):
                return True
    return False


NoteArgument = Annotated[str, Argument(help="A note: its path, id, alias or file name.")]


def print_done(done: CurationResult, text: str, as_json: bool) -> None:
    """Print what was done, and how to undo it."""
    undo = f"  (omg undo {done.cycle.rpartition('-')[2]})" if done.cycle else " already; nothing was changed"
    print_value({"path": done.path, "cycle": done.cycle}, as_json, text + undo)


@app.command("new")
def new_command(
    type: Annotated[str, Argument(help="identity, preference, project, decision, fact or episode.")],
    title: Annotated[str, Argument(help="A short name for the note.")],
    text: Annotated[str, Option("--text", "-t", help="What it says; '-' reads standard input.")] = "",
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a note of your own."""
    from ..curate import new_note

    with opened_graph(identity) as graph:
        said = sys.stdin.read() if text == "-" else text
        done = new_note(graph, type, title, said, datetime.now(UTC))
        print_done(done, f"wrote {done.path}" if done.cycle else f"{done.path} says that", as_json)


@app.command("pin")
def pin_command(
    id: NoteArgument,
    off: Annotated[bool, Option("--off", help="Unpin.")] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Put a note into every prompt; --off stops this."""
    from ..curate import find_note, pin_note

    with opened_graph(identity) as graph:
        done = pin_note(graph, find_note(graph, id), datetime.now(UTC), pinned=not off)
        print_done(done, f"{done.path} is {'not ' if off else ''}pinned", as_json)
        if not off and (origin := graph.vault.read(done.path).origin) in ("assistant", "tool"):
            whose = "the assistant" if origin == "assistant" else "a tool"
            warn(
                f"the note comes from {whose}; every prompt shows the note only after you run `omg confirm {done.path}`"
            )


def edit_pair(edit: PairEdit, ids: tuple[str, str], identity: str | None, as_json: bool, done: str) -> None:
    """Call *edit* on the notes *ids*, then print the first note's path, the verb *done*, and the second note's path."""
    from ..curate import find_note

    with opened_graph(identity) as graph:
        path, other = (find_note(graph, id) for id in ids)
        result = edit(graph, path, other, datetime.now(UTC))
        print_done(result, f"{result.path} {done} {other}", as_json)


@app.command("link")
def link_command(
    id: NoteArgument, to: NoteArgument, identity: IdentityOption = None, as_json: JsonFlag = False
) -> None:
    """Link one note to another."""
    from ..curate import link_notes

    edit_pair(link_notes, (id, to), identity, as_json, "links to")


@app.command("merge")
def merge_command(
    keep: NoteArgument, gone: NoteArgument, identity: IdentityOption = None, as_json: JsonFlag = False
) -> None:
    """Merge the second note into the first. The second stays on disk as superseded."""
    from ..curate import merge_into

    edit_pair(merge_into, (keep, gone), identity, as_json, "has taken over")


@app.command("rename")
def rename_command(
    id: NoteArgument,
    name: Annotated[str, Argument(help="New file name, or a path below the vault.")],
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Move a note; every link to it follows, and its id stays."""
    from ..curate import find_note, rename_note

    with opened_graph(identity) as graph:
        path = find_note(graph, id)
        done = rename_note(graph, path, name, datetime.now(UTC))
        print_done(done, f"{path} is now {done.path}" if done.cycle else f"{path} has that name", as_json)


@app.command("supersede")
def supersede_command(
    old: NoteArgument, successor: NoteArgument, identity: IdentityOption = None, as_json: JsonFlag = False
) -> None:
    """Say that the second note replaces the first."""
    from ..curate import supersede_by

    edit_pair(supersede_by, (old, successor), identity, as_json, "is replaced by")


@app.command("undo")
def undo_command(
    cycle: Annotated[
        str | None,
        Argument(
            help="The name of a cycle (one set of changes) from `omg history`, or the last characters of that name. Default: your own last change."
        ),
    ] = None,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Undo one cycle of changes, or a whole import. Notes that were edited since stay unchanged."""
    from ..curate import take_back, undoable

    if cycle and cycle.startswith("import-"):
        return undo_whole_import(cycle, as_json)
    with opened_graph(identity) as graph:
        taken = undoable(graph, cycle)
        outcome, refused = take_back(graph, taken.id, datetime.now(UTC))
        for path in refused:
            since = "edited" if graph.vault.bytes(path) is not None else "renamed or deleted"
            warn(
                f"{path} was {since} after that change and is left as it is; `omg history {path}` lists its changes"
            )
        back = outcome.written + outcome.kept
        what = "; ".join(taken.summary) or f"{taken.kind} {taken.id}"
        there = {path: graph.vault.bytes(path) is not None for path in back}
        lines = [f"undone: {what}"]
        lines += [f"  {path} {'is as it was before' if there[path] else 'is gone again'}" for path in back]
        print_value({"cycle": taken.id, "restored": back, "refused": refused}, as_json, "\n".join(lines))
        if refused:
            raise typer.Exit(1)


def undo_whole_import(id: str, as_json: bool) -> None:
    from ..importers.taking import find_import, undo_import

    with opened_memory(vectors=False) as memory:
        undone = undo_import(memory.registry, find_import(memory.folder, id), memory.clock())
    for path in undone.refused:
        warn(
            f"{path} was changed after the import and is left as it is; `omg history {path}` lists its changes"
        )
    text = f"undone: {undone.id}; {how_many(undone.messages, 'message')} and {how_many(len(undone.restored), 'note')} are as before"
    print_value(asdict(undone), as_json, text)
    if undone.refused:
        raise typer.Exit(1)


@app.command("history")
def history_command(
    id: Annotated[
        str | None, Argument(help="List only the cycles (sets of changes) that changed this note.")
    ] = None,
    n: Annotated[int, Option("-n", min=1, help="How many.")] = 20,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the changes of the last 30 days, and at least the last 50 cycles."""
    from ..curate import closed_cycles, find_note

    with opened_graph(identity) as graph:
        cycles = closed_cycles(graph, find_note(graph, id) if id else None)
        # Cycles that only updated maps after a person's edit are left out.
        cycles = [r for r in cycles if r.summary or r.kind not in ("edit", "undo")][:n]
        print_value(
            [{"cycle": r.id, "kind": r.kind, "at": r.at, "summary": r.summary} for r in cycles],
            as_json,
            "\n".join(f"{r.id}  {r.kind:11}  {'; '.join(r.summary) or 'maps only'}" for r in cycles)
            or "nothing yet",
        )


@app.command("export")
def export_command(
    out: Annotated[Path, Argument(help="A new folder; or a file of JSON lines, if it ends with .jsonl.")],
    identity: IdentityOption = None,
) -> None:
    """Write everything that is remembered: notes, messages and sources, as `omg import` reads them."""
    from ..export import write_folder, write_lines

    with opened_graph(identity) as graph:
        if waiting := len(graph.pending()):
            warn(f"{how_many(waiting, 'turn')} not observed yet, so not exported: run `omg observe` first")
        (write_lines if out.suffix == ".jsonl" else write_folder)(graph, out)
        print(f"wrote {out}")


@app.command("ui")
def ui_command(
    note: Annotated[str | None, Argument(help="Open the page at the graph around this note.")] = None,
    port: Annotated[int, Option(min=0, max=65535, help="A port of 127.0.0.1. Default: any free port.")] = 0,
    show: Annotated[bool, Option("--open", help="Open it in this machine's browser.")] = False,
) -> None:
    """
    See and correct what is remembered, in a browser on this machine. Prints a link that works once. Ctrl-C ends the
    page.
    """
    import webbrowser

    from ..client import fleet_of
    from ..graph.state import write_private
    from ..ui.serve import serve_page

    if fleet_of(existing_home()) is not None:
        raise BadInput(
            "the memory of this home is on a fleet server, which has no page; `omg ui` needs a home whose memory is on this machine"
        )
    start = f"graph?{urlencode({'path': note})}" if note else ""
    with opened_memory() as memory:
        file = memory.folder / "page.html"

        def ready(link: str) -> None:
            print(f"{link}\nThe link works once, within 15 minutes. Ctrl-C ends the page.", flush=True)
            if show:  # the browser reads the link from a private file, because other users see a command's arguments
                write_private(file, f'<meta http-equiv="refresh" content="0; url={link}">')
                webbrowser.open(file.as_uri())

        try:
            serve_page(memory, port, ready, start)
        finally:
            file.unlink(missing_ok=True)


@app.command("rebuild")
def rebuild_command(
    yes: Annotated[bool, Option("--yes", help="Replace the old notes by the new ones at once.")] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make the notes again from the archive, for example with a better model. Notes that you wrote or changed stay."""
    with opened_memory() as memory:
        done = rebuilt(memory, identity, swap=yes)
        cycle, kept = done["cycle"], how_many(done["kept"], "file")
        now, before = how_many(done["after"], "note"), done["before"]
        text = (
            f"the vault has {now} now, and had {before}"
            if cycle
            else f"the new vault has {now}, yours {before}"
        )
        text += f"; {kept} that you wrote or changed {'was' if done['kept'] == 1 else 'were'} kept\n"
        look = f"{done['folder']}\nlook at it, then `omg rebuild --yes`"
        print_value(
            done, as_json, text + (f"`omg undo {cycle}` brings the old notes back" if cycle else look)
        )


def rebuilt(memory: Memory, identity: str | None, *, swap: bool) -> dict[str, Any]:
    """Rebuild in the daemon if one is up; else in this process, and keep a daemon from starting meanwhile."""
    from ..daemon import daemon_lock
    from ..worker.nights import rebuild_each
    from ..worker.worker import handed_to_daemon

    body = {"identity": identity, "swap": swap}
    with progress_bar("rebuilding", 0):
        if (answer := handed_to_daemon(memory.worker, "/rebuild", body)) is not None:
            return answer
        with daemon_lock(memory.folder):
            return rebuild_each(memory.worker, body)


# --- `omg forget`: lists what each choice would take; with `--yes`, forgets it. Names what OMG cannot reach.


SHOWN = ("paths", "messages", "again", "linking", "left", "trash", "beyond")


@app.command("forget")
def forget_command(
    ids: Annotated[list[str] | None, Argument(help="Notes.")] = None,
    session: Annotated[str | None, Option(help="Everything said in this session.")] = None,
    before: Annotated[
        str | None, Option(help="Everything said before this day; notes of your own stay.")
    ] = None,
    matching: Annotated[
        str | None, Option(help="Every note and message that holds this text, in any spelling.")
    ] = None,
    redact: Annotated[
        bool,
        Option(
            "--redact", help="With --matching: remove only the text; the rest of each note and message stays."
        ),
    ] = False,
    only: Annotated[
        bool, Option("--only", help="With notes: forget only the notes; the messages they came from stay.")
    ] = False,
    yes: Annotated[
        bool,
        Option("--yes", help="Forget. Without --yes the command only lists what each choice would remove."),
    ] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Forget notes and what was said for them; a sentence that another note needs stays. Without --yes, only list what would go."""
    from ..curate import forget_selection
    from ..forget.places import looked_through
    from ..forget.selection import said_again

    spoken = {"session": session, "before": before, "matching": matching or None}
    refuse_mixed(ids or [], spoken, redact=redact, only=only)
    with opened_memory(vectors=False) as memory:
        memory.take_in()
        graph = graph_to_forget(memory, identity, session)
        start = time_argument(before, "--before", memory.registry.zone)
        said = {
            "session": session,
            "before_ms": start and int(start.timestamp() * 1000),
            "matching": matching,
        }
        choices = forget_choices(graph, ids or [], redact=redact, **said)
        chosen = "redact" if redact else "only" if only else "forget"
        what = choices[chosen]
        if not any(choices.values()) or (yes and not what):
            for place in unreached(what):
                warn(place)
            raise NotFound("OMG remembers nothing that fits; nothing was changed")
        shown = {chosen: what} if yes or redact or only else choices
        text = "\n".join(choice_lines(graph, shown, said_again(graph, what, memory.clock()), done=yes))
        if yes:
            looked = ", ".join(f"{n:,} {name}" for n, name in looked_through(graph))
            text += f"\nlooked through: {looked}"
            forget_selection(memory.intake, graph, what)
        taken = {name: {f: getattr(w, f) for f in SHOWN} for name, w in choices.items()}
        print_value({"done": yes, "choice": chosen, **taken[chosen], "choices": taken}, as_json, text)


def refuse_mixed(ids: Sequence[str], spoken: dict[str, str | None], *, redact: bool, only: bool) -> None:
    """
    Refuse arguments of `omg forget` that do not go together.

    *ids*: the notes. *spoken*: the values of --session, --before and --matching. Raises BadInput in three cases:

    - Nothing is named: no *ids*, and only None in *spoken*.
    - --redact (*redact*) is given without --matching, or together with notes, --session or --before.
    - --only (*only*) is given without notes, or together with any other option.
    """
    given = {name for name, value in spoken.items() if value is not None} | ({"notes"} if ids else set())
    if not given:
        raise BadInput("forget what? name notes, or give --session, --before or --matching")
    if redact and given != {"matching"}:
        raise BadInput("--redact takes out a text: give it with --matching, and with nothing else")
    if only and (redact or given != {"notes"}):
        raise BadInput("--only is for notes: name them, and nothing else")


def graph_to_forget(memory: Memory, identity: str | None, session: str | None) -> Graph:
    """
    Return the graph in which `omg forget` is to forget.

    - If *identity* is given: the graph of this identity.
    - If only *session* is given, and a graph has messages of this session: that graph.
    - In all other cases: the owner's graph.

    Raises BadInput if several graphs have messages of *session*.
    """
    from ..forget.places import every_message

    if identity is None and session is not None:
        said_in = [g for g in memory.registry.graphs() if any(s == session for s, _ in every_message(g))]
        if len(said_in) > 1:
            keys = ", ".join(graph.identity.key for graph in said_in)
            raise BadInput(f"several graphs have something of {session!r}; give --identity, one of: {keys}")
        if said_in:
            return said_in[0]
    return memory.find(identity)


def forget_choices(graph: Graph, ids: list[str], *, redact: bool, **said: Any) -> dict[str, Selection]:
    """
    Return what each possible way to forget would remove, as name of the way → Selection.

    - "forget": the notes and the messages. This way is always possible.
    - "redact": only the words of --matching. It is possible if --matching is the only argument.
    - "only": the notes without their messages. It is possible if notes are the only arguments.

    *said*: `session`, `before_ms` and `matching`. Raises BadInput if *redact* is set and the words cannot be redacted.
    """
    from ..curate import find_note, select_to_forget
    from ..forget.places import holding
    from ..forget.selection import Wanted, select, select_words

    matching, others = said["matching"], said["session"] or said["before_ms"]
    held = holding(graph, matching) if matching else None
    choices: dict[str, Selection] = {"forget": select_to_forget(graph, ids=ids, held=held, **said)}
    if matching and not ids and not others:
        # The replacement text itself cannot be taken out.
        with nullcontext() if redact else suppress(BadInput):
            choices["redact"] = select_words(graph, matching, held)
    if ids and not matching and not others:
        choices["only"] = select(graph, Wanted([find_note(graph, id) for id in ids], alone=True))
    return choices


def choice_lines(graph: Graph, shown: dict[str, Selection], again: Sequence[str], *, done: bool) -> list[str]:
    """
    Return the lines that say what would be removed; with *done*, what was removed.

    *shown*: the result of `forget_choices`. *again*: texts of messages that stay, although they repeat a removed note.
    """
    from ..curate import is_untouched
    from ..forget.places import BLANK
    from ..forget.selection import told_before

    # name → heading before, heading after, and how to do it
    choices = {
        "forget": ("would be forgotten:", "forgotten:", "add --yes to forget it all"),
        "redact": (
            f"or only the words would be replaced by {BLANK} in:",
            f"replaced by {BLANK} in:",
            "--redact --yes for the text alone",
        ),
        "only": (
            "or only these notes (the messages stay):",
            "notes forgotten (the messages stay):",
            "--only --yes for the notes alone",
        ),
    }
    lines: list[str] = []
    for name, what in shown.items():
        lines.append(choices[name][done])
        for path in what.paths:
            written = not what.redacts and not is_untouched(graph, path)
            lines.append(f"  {path}{'  (with what you wrote in it)' * written}")
            if not what.redacts and (before := told_before(graph, path)):
                lines.append(f"    before: {before}")
        lines += [f"  {path}" for path in what.trash]
        lines += [
            f"  a part of a longer message is removed: {gone!r}; this stays: {left!r}"
            for _, left, gone in what.cut
        ]
        if what.messages:
            lines.append(f"  {how_many(len(what.messages), 'message')}")
        if what.again:
            lines.append(
                f"kept, and observed again later: {how_many(len(what.again), 'other message')} that these notes came from"
            )
        if what.linking:
            lines.append(
                "these files stay, but lose their links to what is forgotten: " + ", ".join(what.linking)
            )
    lines += [
        f"another message says the same and is kept; --matching WORDS forgets that message, too: {text}"
        for text in again
    ]
    if not done:
        how = ", ".join(choices[name][2] for name in shown)
        lines.append(f"Nothing was changed yet. Forgetting cannot be undone; {how}.")
    for what in shown.values():
        lines += [place for place in unreached(what) if place not in lines]
    if not any("the gateway's own transcripts" in place for what in shown.values() for place in what.beyond):
        lines.append("OpenClaw's own transcripts and memory files are not touched.")
    return lines


def unreached(what: Selection) -> list[str]:
    """
    Return a line for each file that may still hold the forgotten text.

    OMG does not change these files. A line names the file, and says why or what to do.
    """
    left = [f"you also wrote it in {path}: remove it there yourself" for path in what.left]
    return [*left, *(f"the text may still be in {place}" for place in what.beyond)]


# --- The nightly command, which cron calls.


@app.command("reflect")
def reflect_command(
    all_vaults: Annotated[
        bool, Option("--all-vaults", help="Every graph, which is also the default.")
    ] = False,
    since: Annotated[
        str | None,
        Option(help="Look again at everything noted on or after this day."),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would be done; asks the model, writes nothing.")
    ] = False,
    identity: Annotated[
        str | None, Option("--identity", "-i", help="Only this graph, as `omg identity list` shows it.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Tidy the graphs: merge repetitions, find contradictions, write maps and reflections. Meant to run at night."""
    if all_vaults and identity is not None:
        raise BadInput("--all-vaults means every graph, --identity one graph: give only one of these options")
    with opened_memory() as memory:
        start = time_argument(since, "--since", memory.registry.zone)
        with progress_bar("reflecting", 0):
            done = memory.reflect(identity, since=start and start.date(), dry_run=dry_run)
        print_nights(done, as_json, dry_run)


def print_nights(graphs: list[NightDone], as_json: bool, dry_run: bool) -> None:
    """Print one line for each graph on stdout, and what failed on stderr; exit code 1 if a graph failed."""
    lines = []
    for g in graphs:
        lines.append(
            f"{g['identity']}: {g.get('error') or g['headline']}"
            + (f" (cycle {g['cycle']})" if g.get("cycle") else "")
        )
        if dry_run:
            told = (*g.get("summary", ()), *g.get("proposed", ()))
            lines += [f"  {line}" for line in (*told, *(f"not {line}" for line in g.get("refused", ())))]
        for line in () if as_json else g.get("skipped", ()):
            warn(f"{g['identity']}: skipped {line}")
    print_value(graphs, as_json, "\n".join(lines) or "no graphs yet")
    if any("error" in g for g in graphs):
        raise typer.Exit(1)
