"""Commands: import, observe, search, inject, status, events, demo."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import BadInput, OmgError, how_many
from .terminal import (
    IdentityOption,
    JsonFlag,
    app,
    configuration,
    existing_home,
    following,
    opened_memory,
    print_value,
    progress_bar,
    time_argument,
    warn,
)

if TYPE_CHECKING:
    from datetime import tzinfo

    from ..graph.graph import Graph
    from ..importers.drops import Drops
    from ..importers.taking import ImportRecord
    from ..memory import Memory
    from ..message.turn import Message
    from ..worker.worker import WorkDone


PASSAGE_CHARS = 400  # printed of a message that --raw finds; --json prints the whole message
PROBLEMS = 20  # problems of a file that are printed; the others are only counted


@app.command("import")
def import_command(
    files: Annotated[
        list[Path] | None,
        Argument(
            help="An export (ChatGPT, Claude.ai, Gemini), a folder or file of histories or memories, or JSONL."
        ),
    ] = None,
    found: Annotated[
        bool, Option("--found", help="List the histories on this machine without reading them.")
    ] = False,
    openclaw: Annotated[
        bool,
        Option(
            "--openclaw", help="Read the sessions of this machine's OpenClaw, and its MEMORY.md and memory/."
        ),
    ] = False,
    agent: Annotated[str | None, Option(help="With --openclaw: only this agent.")] = None,
    since: Annotated[str | None, Option(help="Only what was said on or after this day.")] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Import without asking.")] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only show what was found, and how much is new; write nothing.")
    ] = False,
    observe: Annotated[bool, Option(help="Turn the imported messages into notes at once.")] = True,
    as_json: JsonFlag = False,
) -> None:
    """
    Import old conversations, after showing what they hold and what observing them costs. A second import adds nothing.
    """
    from ..export import is_own_export
    from ..importers import import_drops, openclaw_drops, read_drops
    from ..importers.taking import known_chats, record_of
    from ..worker.worker import other_model_of_daemon

    if found:
        return list_found(as_json)
    if bool(files) == openclaw:
        raise BadInput(
            "give either files or --openclaw, not both"
            if openclaw
            else "nothing to import: give files, or --openclaw; --found lists the histories on this machine"
        )
    if agent is not None and not openclaw:
        raise BadInput("--agent works only with --openclaw, and without files")
    if files and any(map(is_own_export, files)):
        return take_own_exports(files, as_json)
    with opened_memory() as memory, stopped_halfway():
        if observe and not dry_run and (theirs := other_model_of_daemon(memory.worker)):
            raise BadInput(
                f"the running daemon would observe the import with {theirs}, not with this command's model; stop the"
                " daemon first, with `omg down`"
            )
        start = time_argument(since, "--since", memory.registry.zone)

        def drops(newest: dict[str, int]) -> Drops:
            """Return the drops to import. *newest*: chat → time in ms of the chat's newest copy; older copies are left
            out."""
            made = openclaw_drops(memory.config, agent, start) if openclaw else read_drops(files or [], start)
            made.reading.newest.update(newest)
            made.reading.place = place_of(memory)
            return made

        first = drops(known_chats(memory.folder))
        reading = drops(look_first(memory, first, yes=yes or dry_run, observe=observe, quiet=as_json))
        record = record_of(memory.folder, files or [memory.folder.parent])
        waiting, before = messages_waiting(memory), notes_kept(memory)
        with progress_bar("importing", reading.reading.total) as advance:
            result = import_drops(memory.intake, reading, dry_run=dry_run, progress=advance, record=record)
        if not dry_run:
            record.end("done")
        observed, left = 0, False
        if observe and not dry_run:
            left = bool(observe_all(memory)["waiting"])
            # messages that a daemon observed meanwhile count, too
            observed = max(0, waiting + result["new"] - messages_waiting(memory))
        told = {**result, "import": record.id, "observed": observed, "notes": more_notes(memory, before)}
        print_imported(memory, told, record, as_json, dry_run=dry_run)
    if (left and not observed) or (result["skipped"] and not result["messages"]):
        raise typer.Exit(1)


def print_imported(
    memory: Memory, told: dict[str, Any], record: ImportRecord, as_json: bool, *, dry_run: bool
) -> None:
    """Print what an import took in and which notes it made. Print unreadable lines on stderr."""
    from ..importers.taking import became, became_text

    for problem in told["skipped"][:PROBLEMS]:
        warn(f"skipped {problem}")
    text = import_summary(told, "would come in" if dry_run else "came in")
    if record.id:
        text += "\n" + became_text(became(memory.registry.graphs(), record), record.id)
    print_value(told, as_json, text)


def take_own_exports(files: list[Path], as_json: bool) -> None:
    """Import what `omg export` wrote. All notes come in one cycle, which `omg undo` takes back."""
    from ..export import is_own_export, take_export
    from ..memory import MAIN

    if other := [f for f in files if not is_own_export(f)]:
        raise BadInput(f"{other[0]} is not an export of OMG, unlike the other files; import it by itself")
    with opened_memory(vectors=False) as memory:
        owner = memory.registry.identity_of(MAIN)
        if owner is None:
            raise BadInput(memory.registry.why_nobodys(MAIN))
        for file in files:
            taken = take_export(memory.registry, memory.graph(owner), file)
            text = f"{how_many(taken.notes, 'note')} and {how_many(taken.messages, 'message')} came in"
            if taken.forgotten:
                text += f"\n{taken.forgotten} left out: removed earlier by `omg forget`"
            if taken.skipped:
                text += f"\n{taken.skipped} skipped in {file}: unreadable; if the file was cut short, export again"
            print_value(asdict(taken), as_json, text)


def list_found(as_json: bool) -> None:
    """Print the histories on this machine, with their size."""
    from ..importers.drops import size_of
    from ..importers.recognise import found_here

    found = [(title, path, size_of(path)) for title, path in found_here(Path.home())]
    lines = [
        f"{size / 1e6:>9,.1f} MB  {title:<14}  omg import {shlex.quote(str(path))}"
        for title, path, size in found
    ]
    values = [{"title": title, "path": str(path), "bytes": size} for title, path, size in found]
    print_value(values, as_json, "\n".join(lines) or "no histories of assistants on this machine")


def place_of(memory: Memory) -> Callable[[str, str, str], str | None]:
    """
    Return a function that finds the graph for an imported conversation of a client.

    The function takes (client, session, folder) and returns the session key to import under. The key leads to the graph
    that the client's hooks write to. If `omg install` never connected the client, the key leads to the owner's graph;
    if the hooks write to no graph, the function returns None.
    """
    from ..hosts.sessions import file_name, new_session
    from ..importers.drops import key_of

    def place(client: str, session: str, folder: str) -> str | None:
        if (known := new_session(memory.folder, client, session, folder)) is not None:
            return known.writes
        return key_of(file_name(session), client=client)

    return place


def look_first(memory: Memory, drops: Drops, *, yes: bool, observe: bool, quiet: bool) -> dict[str, int]:
    """
    Print what an import would take in and cost, then ask whether to go on.

    - With *yes*, or if there is nothing to observe, do not ask.
    - Without a terminal, refuse an import whose messages a model would observe.
    - With *quiet*, print on stderr, because stdout is for JSON.

    *drops* may hold several copies of one chat. Returns chat → time in ms of its newest copy; the import leaves older
    copies out. Raises Exit if the person says no or the import is refused.
    """
    from ..importers.look import look_at, look_text, prices

    with progress_bar("looking", drops.reading.total) as advance:
        look = look_at(drops, memory.registry.zone, advance)
    models = memory.worker.observing()
    ways = prices(look, memory.worker.models(), memory.config)
    text = look_text(look, ways, "the rules" if models == ["offline"] else models[0])
    print(text, file=sys.stderr if quiet else sys.stdout)
    if yes or not look.tokens:
        return drops.reading.newest
    if sys.stdin.isatty():
        print("go on? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes", "j", "ja"):
            raise typer.Exit(1)
    elif observe and models != ["offline"]:
        warn(
            "nothing was imported, because observing asks a model, which may cost money; add --yes to agree, or"
            " --no-observe to import the messages without making notes yet"
        )
        raise typer.Exit(1)
    return drops.reading.newest


@contextmanager
def stopped_halfway() -> Iterator[None]:
    """At Ctrl-C, print that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        warn("stopped; what came in is kept; run the same command to import the rest")
        raise


def notes_kept(memory: Memory) -> dict[str, int]:
    """Folder of a vault → how many notes it has."""
    return {
        str(g.vault.root): sum(e.path.startswith("nodes/") for e in g.index.entries(status=None))
        for g in memory.registry.graphs()
    }


def more_notes(memory: Memory, before: dict[str, int]) -> dict[str, int]:
    """Folder of a vault → how many notes were added since *before*; only vaults with new notes."""
    return {vault: more for vault, n in notes_kept(memory).items() if (more := n - before.get(vault, 0)) > 0}


def import_summary(found: dict[str, Any], verb: str) -> str:
    """Return an import's result as text: what came in, what was left out, and why."""
    read, new = how_many(found["messages"], "message"), how_many(found["new"], "new one")
    text = f"{read}: {new} {verb}, {found['observed']} observed"
    text += "".join(f"\n{how_many(n, 'new note')} in {vault}" for vault, n in found["notes"].items())
    if found["observed"] and not found["notes"]:
        text += "\nno note was added; `omg history` lists the notes that changed"
    if found["left_out"]:
        reasons = sorted(found["why_left_out"].items(), key=lambda pair: -pair[1])
        rest = found["left_out"] - sum(found["why_left_out"].values())
        reasons += [("empty messages or messages of the gateway itself", rest)] if rest > 0 else []
        text += f"\n{found['left_out']} left out: " + ", ".join(f"{n} {what}" for what, n in reasons)
    why = Counter(problem.rpartition(": ")[2] for problem in found["skipped"])
    return text + "".join(f"\n{n} skipped: {reason}" for reason, n in why.most_common())


def messages_waiting(memory: Memory) -> int:
    return sum(len(p.turn().messages) for g in memory.registry.graphs() for p in g.pending())


def observe_all(memory: Memory, *, force: bool = True) -> WorkDone:
    """Observe all pending turns, with a progress bar; say what still waits, and why."""
    memory.take_in()

    def waiting() -> int:
        return sum(p.tokens for g in memory.registry.graphs() for p in g.pending())

    models = memory.worker.models()
    if waiting() and models[0] != "offline" and not memory.worker.away(models):
        warn(f"asking {', else '.join(models)}; Ctrl-C stops it, and the rest is observed later")
    with progress_bar("observing", waiting()) as advance, following(waiting, advance):
        answer = memory.observe(force=force)
    for left in answer["waiting"]:
        warn(f"{how_many(left['turns'], 'turn')} of {left['identity']} not observed: {left['why']}")
    return answer


@app.command("observe")
def observe_command(
    now: Annotated[
        bool,
        Option(
            "--now/--due", help="Observe all pending messages (the default), or only messages that are due."
        ),
    ] = True,
    as_json: JsonFlag = False,
) -> None:
    """Turn pending messages into notes."""
    with opened_memory() as memory:
        done = observe_all(memory, force=now)
    text = f"{how_many(done['messages'], 'message')} observed, {how_many(done['files'], 'file')} written"
    print_value(done, as_json, text)
    if done["waiting"]:
        raise typer.Exit(1)


@app.command("search")
def search_command(
    query: Annotated[str, Argument(help="What to look for, in plain words.")],
    k: Annotated[int, Option("-k", "-n", min=1, help="How many.")] = 10,
    raw: Annotated[bool, Option("--raw", help="Search the archived messages instead of the notes.")] = False,
    weak: Annotated[
        bool,
        Option("--weak", help="Also print notes that hardly match; --json always includes them."),
    ] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Find notes and messages. --raw shows whole messages. With --json, `at` is the time of a message."""
    from ..client import ask_daemon
    from ..tools.tools import search_answer

    with opened_memory() as memory:
        if raw:
            graph = memory.find(identity)
            values, pieces = [], []
            shown: set[str] = set()
            for m, at_session, score in graph.index.search_raw(query, k, now=memory.clock()):
                if m.id in shown:
                    continue  # shown already, beside a better hit
                beside = graph.index.around(m.id, 1)
                shown |= {near.id for near in beside}
                around = [message_value(near, graph.zone) for near in beside]
                found = {"session": at_session, "score": round(score, 3), "around": around}
                values.append(message_value(m, graph.zone) | found)
                pieces.append(
                    "\n".join(message_line(near, graph.zone, near.id == m.id, query) for near in beside)
                )
            return print_value(values, as_json, "\n\n".join(pieces) or "nothing found")
        asked = {"query": query, "k": k, "identity": identity}
        # The daemon has the vectors in memory; this process would load a model for one question.
        answer = None
        with suppress(OmgError):  # the daemon hangs
            answer = ask_daemon(memory.folder, "/search", asked, timeout_s=10)
        if answer is None:
            answer = search_answer(memory.registry, asked)
        hits, said = answer["hits"], answer["said"]
        notes = hits_text(hits, weak) or f"nothing found{' in the notes' if said else ''}"
        lines = [notes, *["What was said:"] * bool(said), *(s["line"] for s in said)]
        if all(h["weak"] for h in hits):
            lines.append(elsewhere(memory.find(identity)))
        text = "\n".join(lines)
        ranked = sorted([*hits, *said], key=lambda f: -f["score"])
        print_value(ranked[:k], as_json, text)


def elsewhere(graph: Graph) -> str:
    """
    Return a hint on where to search if no note fits well.

    The hint names `omg search --raw`. It also says how many turns are not observed yet, if any.
    """
    turns = len(graph.pending())
    waits = f"{how_many(turns, 'turn')} not observed yet (`omg observe` does it now); " if turns else ""
    return f"{waits}`omg search --raw` looks through what was said"


def hits_text(hits: list[dict[str, Any]], weak: bool) -> str:
    """Return *hits* as text for a person. Without *weak*, weak hits are only counted."""
    shown = [h for h in hits if weak or not h["weak"]]
    lines = [
        f"{h['path']}\n    {h['description']}\n    {h['why'] or 'slightly similar in meaning'}" for h in shown
    ]
    if left := len(hits) - len(shown):
        lines.append(f"{'' if shown else 'nothing found; '}weak hits not shown: {left}; --weak shows them")
    return "\n".join(lines)


def message_value(message: Message, zone: tzinfo) -> dict[str, Any]:
    from ..dates.days import day_of_ms

    day = day_of_ms(message.timestamp, zone)
    return {"id": message.id, "role": message.role, "at": str(day), "text": message.text}


def message_line(message: Message, zone: tzinfo, found: bool, query: str) -> str:
    """
    Return one line for *message*, as `omg search --raw` prints it: the part about *query*.

    *found*: whether *message* is a result of the search. A result gets a mark and its id. A message before or after a
    result gets a third of the space.
    """
    from ..dates.days import day_of_ms
    from ..index.store import terms_of
    from ..inject.passages import passage_of

    words = [term.shown.lower() for term in terms_of(query)]
    said = passage_of(message, words, PASSAGE_CHARS if found else PASSAGE_CHARS // 3)
    text = f"{day_of_ms(message.timestamp, zone)} {said.speaker}: {said.text}"
    return f"> {text}  ({message.id})" if found else f"  {text}"


@app.command("inject")
def inject_command(
    prompt: Annotated[str, Option("--prompt", "-p", help="The prompt to try, in the words of a user.")],
    session: Annotated[
        str,
        Option("--identity", "-i", "--session", help="Whose memory: an identity, or the key of a session."),
    ] = "agent:main:main",
    as_json: JsonFlag = False,
) -> None:
    """Show which memory a prompt would be given."""
    with opened_memory() as memory:
        piece, note = memory.explain(prompt, session=session)
        parts = (piece.system, piece.prompt, f"({piece.tokens} tokens)", note)
        print_value({**asdict(piece), "note": note}, as_json, "\n".join(filter(None, parts)))


@app.command("status")
def status_command(as_json: JsonFlag = False) -> None:
    """Show what runs, what waits and why, and what models cost."""
    from ..client import ask_daemon
    from ..hosts.sessions import heartbeat_line, heartbeats
    from ..worker.status import home_status, status_text

    with opened_memory(vectors=False) as memory:
        answer, away = None, ""
        try:
            answer = ask_daemon(memory.folder, "/status", {}, timeout_s=10)
        except OmgError as e:  # the daemon hangs; the rest is read from the files
            away = str(e)
        answer = answer or {**home_status(memory.worker), "daemon": None, "away": away}
        beats, zone = heartbeats(memory.folder), memory.registry.zone
        text = [status_text(answer, zone), *(heartbeat_line(beat, zone) for beat in beats)]
        print_value({**answer, "hosts": beats}, as_json, "\n".join(text))


@app.command("events")
def events_command(
    follow: Annotated[
        bool, Option("--follow", "-f", help="Keep printing new events as they happen.")
    ] = False,
    last: Annotated[int, Option("-n", min=0, help="How many past events to show first.")] = 20,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Show the latest events, such as observations, and what models cost today and in the last 30 days."""
    from datetime import UTC, datetime

    from ..dates.days import time_zone
    from ..llm.replies import Ledger
    from ..worker.events import event_text, follow_events, read_events
    from ..worker.status import cost_lines, costs_of

    config = configuration(existing_home())
    home, zone = config.home, time_zone(config.time.zone)

    def show(events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            print(json.dumps(event, ensure_ascii=False) if as_json else event_text(event, zone), flush=True)

    show(read_events(home, last))
    if not as_json:
        costs = costs_of(Ledger(home / "ledger.jsonl", config), datetime.now(UTC))
        print("\n".join(cost_lines(costs)), flush=True)
    show(follow_events(home) if follow else ())


@app.command("demo")
def demo_command(
    folder: Annotated[
        Path | None, Option(help="Where to make the demo's memory. Default: a new temporary folder.")
    ] = None,
    offline: Annotated[
        bool, Option("--offline", help="Use only rules, without the recorded replies of a model.")
    ] = False,
) -> None:
    """Show on a sample what OMG remembers, tidies, undoes, forgets, and gives to prompts. Needs no key."""
    from ..demo import run_demo

    run_demo(folder, offline=offline)
