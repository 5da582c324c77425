"""
What every command shares: the app, the home it opens, how it prints.

One rule: people read stdout, scripts say `--json`; an error is one line on stderr and exit code 1.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput

if TYPE_CHECKING:
    from ..memory import Memory


app = typer.Typer(
    name="omg",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON value for scripts.")]

IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity", "-i", help="Whose graph, as `omg identity list` shows it. Default: the owner's."
    ),
]


def print_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        print(f"omg {importlib.metadata.version('omg-memory')}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Observational Memory Graph: a memory for agents that you can open, read and correct."""


@contextmanager
def opened_memory(*, vectors: bool = True) -> Iterator[Memory]:
    """The memory of the home that the environment names, closed afterwards."""
    from ..memory import Memory

    with Memory(embed="configured" if vectors else None) as memory:
        yield memory


def print_value(value: Any, as_json: bool, text: str) -> None:
    print(json.dumps(value, ensure_ascii=False, default=json_value) if as_json else text)


def json_value(value: Any) -> Any:
    """What json cannot say by itself."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Any]:
    """A progress bar on stderr, gone when done; silent where stderr is no terminal. Yields `advance(n)`."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(title, total=total or None)
        yield lambda n: progress.advance(task, n)


@contextmanager
def following(waiting: Callable[[], int], advance: Callable[[int], None]) -> Iterator[None]:
    """While another process works: move the bar as what is *waiting* grows less. Nothing where nobody looks."""
    done = threading.Event()

    def follow() -> None:
        before = waiting()
        while not done.wait(0.5):
            now = waiting()
            advance(max(0, before - now))
            before = now

    looking = threading.Thread(target=follow, daemon=True)
    if sys.stderr.isatty():
        looking.start()
    try:
        yield
    finally:
        done.set()


def time_argument(text: str | None, what: str, zone: tzinfo) -> datetime | None:
    """An ISO day or time of the command line, in *zone* if it names none."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{what} {text!r} is no date; write one like 2026-02-19") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
