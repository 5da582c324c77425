"""One file an item, whole or not there: a run that is killed loses what it was waiting for and nothing else."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")


def write(file: Path, value: Any) -> None:
    """*value* as JSON, or text as it is, in the place of what was there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    whole = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    whole.write_text(text + "\n", encoding="utf-8")
    whole.replace(file)


def read(file: Path) -> Any:
    """What `write` wrote; None if it is not there."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def file_name(text: str) -> str:
    """*text* as the name of a file or folder."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._") or "_"


def in_parallel(do: Callable[[Item], object], items: Iterable[Item], parallel: int, what: str) -> list[str]:
    """*do* each item, *parallel* at a time; what went wrong with which. One that fails stops no other."""
    troubles: list[str] = []
    with ThreadPoolExecutor(parallel) as pool:
        asked = {pool.submit(do, item): item for item in items}
        for n, done in enumerate(as_completed(asked), 1):
            if (error := done.exception()) is not None:
                troubles.append(f"{what}: {type(error).__name__}: {error}")
                print(troubles[-1], flush=True)
            elif n % 20 == 0 or n == len(asked):
                print(f"{what}: {n} of {len(asked)}", flush=True)
    return troubles
