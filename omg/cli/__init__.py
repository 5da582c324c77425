"""
The command line: parse, call one function, print.

People read stdout, scripts say `--json`; an error is one line on stderr and exit code 1. Nothing here decides
anything, and nothing heavy is imported before a command needs it: `omg --help` costs a moment.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import config as configuration
from ..errors import BadInput, OmgError
from . import curate as _curate  # noqa: F401  # these four register their commands
from . import gateway as _gateway  # noqa: F401
from . import reflect as _reflect  # noqa: F401
from . import skill as _skill  # noqa: F401
from .base import Json, Who, app, at, bar, counted, following, opened, say

if TYPE_CHECKING:
    from ..home import Home
    from ..identity import Identity
    from ..turn import Message


PASSAGE_CHARS = 400  # of a message found by --raw; --json has all of it
PROBLEMS = 20  # of a file named one by one; all of them are counted


def main() -> None:
    """The entry point: an OmgError becomes one line and exit code 1."""
    os.umask(
        0o077
    )  # keys and a person's words: what is made from here on is theirs alone, whatever the shell says
    logging.basicConfig(level=logging.WARNING, format="omg: %(message)s")
    try:
        app()
    except OmgError as e:
        print(f"omg: {e}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as e:  # a full disk, a file in the place of a folder: nothing was lost
        mend = f"; see that it may be used by you, or set OMG_HOME (now {configuration.home_of()})"
        print(f"omg: {e.filename}: {e.strerror}{mend}" if e.filename else f"omg: {e}", file=sys.stderr)
        sys.exit(1)
    except sqlite3.Error as e:
        where = configuration.home_of()
        print(
            f"omg: the index could not be used ({e}); see that {where} has room and is yours", file=sys.stderr
        )
        sys.exit(1)


@app.command()
def init(
    vault: Annotated[
        Path | None, typer.Argument(help="Folder of the vault. Default: under the home.")
    ] = None,
    identity: Annotated[str, typer.Option(help="Whose vault it is.")] = "agent:main:main",
) -> None:
    """Make a home and a vault from the template; what is there already stays as it is."""
    root = lay(vault.expanduser().absolute() if vault else None, identity)
    print(
        f"home    {configuration.home_of()}\nvault   {root}\n"
        "Open the vault in Obsidian, or begin with `omg import FILE`."
    )


def lay(vault: Path | None, identity: str) -> Path:
    """Lay the template into the vault of *identity*, which from now on is *vault*; returns where it is."""
    from .. import identity as identities
    from ..furnish import furnish

    config = configuration.load()
    who = identities.of(identity, links=config.identity.links)
    if who is None:
        raise BadInput(f"{identity!r} belongs to nobody; give a session key such as agent:main:main")
    if vault is not None:
        settle_vault(config, who, vault)
    with opened(vectors=False) as home:
        graph = home.graph(who)
        with graph.lock():
            furnish(graph, again=True)
        home.refresh(graph)
        return graph.vault.root


def settle_vault(config: configuration.Config, who: Identity, vault: Path) -> None:
    """Make *vault* the vault of *who*: notes that lie elsewhere move there, and what is there already stays."""
    now = config.vaults.get(who.key, config.home / "graphs" / who.folder / "vault")
    if vault.exists() and not vault.is_dir():
        raise BadInput(f"{vault} is a file; name a folder for the vault")
    if now != vault and now.is_dir():
        if vault.is_dir() and any(vault.iterdir()):
            raise BadInput(
                f"the notes of {who.key} lie in {now}, and {vault} is not empty; name a new folder"
            )
        if vault.is_dir():
            vault.rmdir()
        vault.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(now, vault)
    vault.mkdir(parents=True, exist_ok=True)
    configuration.set_vault(config.home, who.key, vault)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="OpenClaw session JSONL (also .zst), or JSONL of role/content/timestamp."),
    ] = None,
    openclaw: Annotated[
        bool, typer.Option("--openclaw", help="Read the sessions of this machine's OpenClaw.")
    ] = False,
    agent: Annotated[str | None, typer.Option(help="With --openclaw: only this agent.")] = None,
    since: Annotated[str | None, typer.Option(help="Only what was said on or after this day.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would come in; write nothing.")
    ] = False,
    observe: Annotated[bool, typer.Option(help="Observe what came in at once.")] = True,
    as_json: Json = False,
) -> None:
    """Take in old conversations. Doing it twice adds nothing."""
    from ..importer import import_drops, openclaw_drops, read_all

    if not files and not openclaw:
        raise BadInput("nothing to import: give files, or --openclaw")
    with opened() as home:
        start = at(since, "--since")
        drops = openclaw_drops(home.config, agent, start) if openclaw else read_all(files or [], start)
        waiting = messages_waiting(home)
        with bar("importing", drops.total) as advance:
            result = import_drops(home, drops, dry_run=dry_run, progress=advance)
        observed = 0
        if observe and not dry_run:
            observe_all(home)  # what a daemon had begun by itself counts as well
            observed = max(0, waiting + result["new"] - messages_waiting(home))
        found = {**result, "observed": observed}
        for problem in result["skipped"][:PROBLEMS]:
            print(f"omg: skipped {problem}", file=sys.stderr)
        say(found, as_json, came_in(found, "would come in" if dry_run else "came in"))


def came_in(found: dict[str, Any], verb: str) -> str:
    """What an import came to, for a person: what was not taken as well, and why."""
    text = f"{counted(found['messages'], 'message')}, of them {found['new']} new, {verb}; {found['observed']} observed"
    if found["left_out"]:
        text += f"\n{found['left_out']} left out: empty, instructions to a model, or the gateway's own"
    why = Counter(problem.rpartition(": ")[2] for problem in found["skipped"])
    return text + "".join(f"\n{n} skipped: {reason}" for reason, n in why.most_common())


def messages_waiting(home: Home) -> int:
    return sum(len(p.turn().messages) for g in home.graphs() for p in g.pending())


def observe_all(home: Home, *, force: bool = True) -> dict[str, Any]:
    """Everything pending, by the daemon where one is up, with a bar; says what goes on waiting, and why."""
    from .. import work

    home.take_in()

    def waiting() -> int:
        return sum(p.tokens for g in home.graphs() for p in g.pending())

    with bar("observing", waiting()) as advance:
        with following(waiting, advance):
            answer = work.handed(home, "/work", {"force": force})
        if answer is None:
            answer = work.observe(home, {"force": force}, advance)
    for left in answer["waiting"]:
        turns = counted(left["turns"], "turn")
        print(f"omg: {turns} of {left['identity']} not observed: {left['why']}", file=sys.stderr)
    return answer


@app.command()
def observe(
    now: Annotated[
        bool, typer.Option("--now/--due", help="All that is pending, or only what is due.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Turn what is pending into notes."""
    with opened() as home:
        done = observe_all(home, force=now)
    text = f"{counted(done['messages'], 'message')} observed, {counted(done['files'], 'file')} written"
    say(done, as_json, text)
    if done["waiting"]:
        raise typer.Exit(1)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for, in plain words.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many.")] = 10,
    raw: Annotated[
        bool, typer.Option("--raw", help="Search the archived messages instead of the notes.")
    ] = False,
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Find notes, or with --raw the messages they came from."""
    from .. import tools
    from ..client import ask_daemon

    with opened() as home:
        if raw:
            graph = home.find(identity)
            values, pieces = [], []
            told: set[str] = set()
            for m, at_session, score in graph.index.search_raw(query, k, now=home.clock()):
                if m.id in told:
                    continue  # beside a better one
                beside = graph.index.around(m.id, 1)
                told |= {near.id for near in beside}
                around = [*map(shown, beside)]
                values.append({**shown(m), "session": at_session, "score": round(score, 3), "around": around})
                pieces.append("\n".join(line(near, near.id == m.id, query) for near in beside))
            return say(values, as_json, "\n\n".join(pieces) or "nothing found")
        asked = {"query": query, "k": k, "identity": identity}
        # The daemon has the vectors at hand; a process of its own would load a model for one question.
        answer = None
        with suppress(OmgError):  # one that hangs, or is of an older version
            answer = ask_daemon(home.folder, "/search", asked, timeout_s=10)
        hits = (answer if answer is not None else tools.found(home, asked))["hits"]
        lines = [
            f"{h['path']}\n    {h['description']}\n    {h['why'] or 'a little alike in meaning'}"
            for h in hits
        ]
        say(hits, as_json, "\n".join(lines) or "nothing found")


def shown(message: Message) -> dict[str, str]:
    return {"id": message.id, "role": message.role, "at": day(message.timestamp), "text": message.text}


def line(message: Message, found: bool, query: str) -> str:
    """
    What bears on *query* of a message, as it is printed: marked and with its id if it was *found*, else shorter,
    as what was said beside it.
    """
    said = passage(message.text, query, PASSAGE_CHARS if found else PASSAGE_CHARS // 3)
    text = f"{day(message.timestamp)} {message.role}: {said}"
    return f"> {text}  ({message.id})" if found else f"  {text}"


def passage(text: str, query: str, chars: int = PASSAGE_CHARS) -> str:
    """Of *text*, the stretch of about *chars* in which most of the words of *query* stand."""
    from ..index.terms import terms

    if len(text) <= chars:
        return text
    wanted = {t.match for t in terms(query)}
    parts = [*re.finditer(r"\S+", text)]
    hits = [m.start() for m in parts if wanted & {t.match for t in terms(m[0])}]
    best = max(hits, key=lambda at: sum(at <= other < at + chars * 2 // 3 for other in hits), default=0)
    start = max(0, min(best - chars // 3, len(text) - chars))
    start = text.rfind(" ", 0, start) + 1 if start else 0
    end = start + chars
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + chars // 2)
    return f"{'… ' * (start > 0)}{text[start:end]}{' …' * (end < len(text))}"


def day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="A note: its path, id, alias or file name.")],
    identity: Who = None,
    as_json: Json = False,
) -> None:
    """Show a note, what links to it, and the messages it came from."""
    from .. import curate

    with opened(vectors=False) as home:
        graph = home.find(identity)
        path = curate.found(graph, id)
        node = graph.vault.read(path)
        messages = graph.index.messages([s.id for s in node.sources])
        back = graph.index.backlinks(path)
        if as_json:
            return say({"node": node, "backlinks": back, "messages": messages}, True, "")
        print(graph.vault.text(path).rstrip())
        print("\nLinked from:", ", ".join(back) or "nothing")
        if messages:
            print("\nIt was said:")
        for m in messages:
            print(f"  {day(m.timestamp)} {m.role}: {m.text[:300]}")


@app.command()
def inject(
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="What the user would say.")],
    session: Annotated[str, typer.Option(help="Session key.")] = "agent:main:main",
    as_json: Json = False,
) -> None:
    """Show what a prompt would be given."""
    from .. import inject as injection

    with opened() as home:
        who = home.identity_of(session)
        if who is None:
            raise BadInput(f"{session!r} belongs to nobody: nothing would be injected")
        piece = injection.preview(home.graph(who), prompt, session, home.clock(), home.config)
        say(piece, as_json, f"{piece.system}\n{piece.prompt}\n({piece.tokens} tokens)")


@app.command()
def status(as_json: Json = False) -> None:
    """What is up, what is waiting and why, and what it cost."""
    from ..client import ask_daemon
    from ..tools import status as state_of
    from ..tools import status_text

    with opened(vectors=False) as home:
        answer, away = None, ""
        try:
            answer = ask_daemon(home.folder, "/status", {}, timeout_s=10)
        except OmgError as e:  # it hangs; the files say the rest
            away = str(e)
        answer = answer or {**state_of(home), "daemon": None, "away": away}
        say(answer, as_json, status_text(answer))


@app.command()
def events(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens from now on.")
    ] = False,
    last: Annotated[int, typer.Option("-n", help="How many of those so far.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Show what happened: turns taken in, observations, activations, reflections, and what they cost."""
    from itertools import chain

    from .. import events as happened

    home = configuration.load().home
    coming = happened.follow(home) if follow else ()
    for event in chain(happened.told(home, last), coming):
        print(json.dumps(event, ensure_ascii=False) if as_json else happened.text(event), flush=True)


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to make it. Default: a fresh temporary folder.")
    ] = None,
) -> None:
    """Remember the sample conversation, offline, and show what a prompt would get."""
    from ..demo import run

    run(folder)
