"""Events of the files below a folder, as far as the system tells of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer as Watch

from ..errors import error_text

log = logging.getLogger(__name__)


class VaultWatcher(FileSystemEventHandler):  # type: ignore[misc]  # watchdog has no types
    """Any event means "dirty": an atomic replace arrives only as *moved*."""

    def __init__(self, touched: Callable[[Path], None]) -> None:
        self.touched = touched

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in ("opened", "closed_no_write"):
            return
        if event.is_directory and event.event_type == "modified":
            return
        for path in (event.src_path, event.dest_path):
            if path:
                self.touched(Path(os.fsdecode(path)))


def watch_folder() -> Any:
    """Watchdog's observer; None if inotify has no instance left: then all is looked through, every so often."""
    try:
        watch = Watch()
        watch.start()
    except OSError as e:
        log.warning("edits are seen within a minute only: no folder can be watched: %s", error_text(e))
        return None
    return watch
