"""The command of the night, which cron calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import BadInput
from .base import JsonFlag, app, opened_memory, print_value, time_argument

if TYPE_CHECKING:
    from ..worker.nights import NightDone


@app.command("reflect")
def reflect_command(
    all_vaults: Annotated[
        bool,
        typer.Option("--all-vaults", help="Every graph; so it is without --identity."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(help="Go over what was noted on or after this day again, seen before or not."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; asks the model, writes nothing.")
    ] = False,
    identity: Annotated[
        str | None, typer.Option("--identity", "-i", help="Only this graph, as `omg identity list` shows it.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Tidy the graphs: maps, repetitions, contradictions, weekly and monthly reflections. Made for the night."""
    if all_vaults and identity is not None:
        raise BadInput("--all-vaults is every graph, --identity one of them: give one of the two")
    with opened_memory() as memory:
        start = time_argument(since, "--since", memory.registry.zone)
        with progress_bars() as progress:
            done = memory.reflect(identity, since=start and start.date(), dry_run=dry_run, progress=progress)
        print_nights(done, as_json, dry_run)


def print_nights(graphs: list[NightDone], as_json: bool, dry_run: bool) -> None:
    """One line a graph on stdout, what could not be done on stderr; exit code 1 if a graph failed."""
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
            print(f"omg: {g['identity']}: skipped {line}", file=sys.stderr)
    print_value(graphs, as_json, "\n".join(lines) or "no graphs yet")
    if any("error" in g for g in graphs):
        raise typer.Exit(1)


@contextmanager
def progress_bars() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A progress bar a graph on stderr, gone when done; silent where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:

        def of(identity: str) -> Callable[[int, int], None]:
            task = progress.add_task(f"reflecting on {identity}", total=None)
            return lambda done, all: progress.update(task, completed=done, total=all)

        yield of
