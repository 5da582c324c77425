"""Hands work to the daemon of the home, if one is up that asks the same model as this process would."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..client import ask_daemon
from .worker import Worker

log = logging.getLogger(__name__)

DAY_S = 86_400.0  # deadline of work in the daemon: to observe an archive of years takes many calls of a model


def other_model_of_daemon(worker: Worker) -> str:
    """What a running daemon observes with, if this command was told another model; else ""."""
    found = ask_daemon(worker.registry.folder, "/health", {}, timeout_s=10)
    if found is None or found.get("fleet") or found.get("observer") == worker.models():
        return ""
    return ", else ".join(found.get("observer") or ["an earlier version's model"])


def handed_to_daemon(worker: Worker, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    The daemon's answer to *body*; None if none is up, or if this command was told to ask another model than the daemon's,
    by a configuration that changed since the daemon was started or by `OMG_OBSERVATION_MODEL`.
    """
    if theirs := other_model_of_daemon(worker):
        log.warning(
            "the daemon observes with %s, this command was told %s and does the work itself; `omg down` stops the daemon",
            theirs,
            ", else ".join(worker.models()),
        )
        return None
    return ask_daemon(worker.registry.folder, path, dict(body), timeout_s=DAY_S)
