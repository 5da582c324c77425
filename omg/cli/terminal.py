"""
What the commands share: the app that they are registered on, opening the home, printing, progress.

Results go to stdout: as text for people, as JSON with `--json`. An error is one line on stderr, with exit code 1.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ..client import default_home
from ..errors import BadInput, NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from ..config import Config
    from ..graph.graph import Graph
    from ..memory import Memory

PRINT_EVERY_S = 10.0  # between two lines of progress, where no bar can be shown

app = typer.Typer(
    name="omg",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

JsonFlag = Annotated[bool, Option("--json", help="Print one JSON value for scripts.")]

IdentityOption = Annotated[
    str | None,
    Option("--identity", "-i", help="Whose graph, as `omg identity list` shows it. Default: the owner's."),
]


def existing_home() -> Path:
    """Return the home that the environment names. Raises NotFound if OMG_HOME is no folder, because it may be mistyped."""
    home = default_home()
    if os.environ.get("OMG_HOME") and not home.is_dir():
        raise NotFound(
            f"OMG_HOME is {home}, which is no folder; correct it, or make a home there with `omg init`"
        )
    return home


def configuration(home: Path | None = None) -> Config:
    """The configuration of *home*, by default of the home that the environment names."""
    from ..config import load_config

    return load_config(home)


@contextmanager
def opened_memory(*, vectors: bool = True, make: bool = False) -> Iterator[Memory]:
    """The memory of the home that the environment names, closed afterwards. *make*: make the home if it is missing."""
    from ..memory import Memory

    if not make:
        existing_home()
    with Memory(embed="configured" if vectors else None) as memory:
        yield memory


@contextmanager
def opened_graph(identity: str | None) -> Iterator[Graph]:
    """The graph of *identity*, or of the owner, in the home that the environment names."""
    with opened_memory(vectors=False) as memory:
        yield memory.find(identity)


def warn(text: str) -> None:
    """Print a line on stderr."""
    print(f"omg: {text}", file=sys.stderr, flush=True)


def print_value(value: Any, as_json: bool, text: str) -> None:
    if as_json:
        from pydantic_core import to_jsonable_python

        text = json.dumps(to_jsonable_python(value), ensure_ascii=False)
    print(text)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Any]:
    """A progress bar on stderr, removed when done; lines of text if stderr is no terminal. Yields `advance(n)`."""
    if not sys.stderr.isatty():
        yield printed_progress(title, total)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total or None)
        yield lambda n: progress.advance(task, n)


def printed_progress(title: str, total: int) -> Callable[[int], None]:
    """`advance(n)`, which prints the progress on stderr, at most every PRINT_EVERY_S seconds."""
    done, printed = 0, time.monotonic()

    def advance(n: int) -> None:
        nonlocal done, printed
        done += n
        if time.monotonic() - printed >= PRINT_EVERY_S:
            printed = time.monotonic()
            warn(f"{title}: {min(100, 100 * done // total) if total else 0} %")

    return advance


@contextmanager
def following(waiting: Callable[[], int], advance: Callable[[int], None]) -> Iterator[None]:
    """While another process works, move the bar as *waiting* decreases."""
    done = threading.Event()
    look_every_s = 0.5 if sys.stderr.isatty() else PRINT_EVERY_S

    def follow() -> None:
        before = waiting()
        while not done.wait(look_every_s):
            now = waiting()
            advance(max(0, before - now))
            before = now

    threading.Thread(target=follow, daemon=True).start()
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
