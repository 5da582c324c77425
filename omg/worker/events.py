"""
events.jsonl: one JSON line for each thing that happened.

    taken_in            messages, tokens, and how far the windows are
    not_taken_in        session, messages, and what switches OMG off for it
    observation_start   cycle, trigger, tokens, messages, model, waited_ms for its turn, and how many graphs are under
                        way and waiting
    observation_end     the same and notes, their tokens, the compression, calls, cost, replies left without their end
    edit_refused        reason: an edit that was dropped, changed or noted as the assistant's
    observation_failed  error, tokens, duration
    activation          session, reason, tokens of the slice
    inject_busy         session, and how long its prompt waited; it was given what its session had before
    context_cut         session, reason, turns and tokens that left its context, tokens that stay raw and of the notes
    context_waited      session, whether what it waited for was observed, duration
    verdict_refused     what a model proposed at night and was not done: its kind, and why
    reflection_…        worker/nights.py

Fields are numbers, names and reasons, never conversation text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from ..dates.days import time_text
from ..graph.state import append_lines, flock

BYTES = 5_000_000  # the file is begun anew beyond this; one old file is kept
POLL_S = 0.3


def event_of(event: str, now: datetime, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"at": now.isoformat(timespec="milliseconds"), "event": event, **fields}


def write_event(home: Path, line: Mapping[str, Any]) -> None:
    file = home / "events.jsonl"
    if full(file):
        with flock(home / "events.lock", "events.jsonl"):
            if full(file):  # still: another process, or thread, may have begun it anew
                file.replace(file.with_suffix(".1.jsonl"))
    append_lines(file, [json.dumps(line, ensure_ascii=False)])


def full(file: Path) -> bool:
    try:
        return file.stat().st_size > BYTES
    except FileNotFoundError:
        return False


def read_events(home: Path, last: int | None = None) -> list[dict[str, Any]]:
    """The events so far, oldest first, or the *last* of them; a line torn by a crash is none."""
    found = []
    for file in (home / "events.1.jsonl", home / "events.jsonl"):
        if file.exists():
            found += [e for line in file.read_bytes().splitlines() if (e := read_event(line)) is not None]
    return found if last is None else found[max(0, len(found) - last) :]


def edits_lately(home: Path, last: int = 100) -> tuple[int, int]:
    """How many edits the latest observations proposed, about *last* of them, and how many of those were refused."""
    edits = refused = 0
    for event in reversed(read_events(home, last=5 * last)):
        if event["event"] == "observation_end" and edits < last:
            edits += int(event.get("edits") or 0)
            refused += int(event.get("dropped") or 0)
    return edits, min(edits, refused)


def last_cuts(home: Path) -> dict[str, dict[str, Any]]:
    """The last `context_cut` of each session, as far back as the events go."""
    found: dict[str, dict[str, Any]] = {}
    for file in (home / "events.1.jsonl", home / "events.jsonl"):
        if file.exists():
            lines = (line for line in file.read_bytes().splitlines() if b'"context_cut"' in line)
            cuts = [e for line in lines if (e := read_event(line)) and e["event"] == "context_cut"]
            found |= {str(e.get("session")): e for e in cuts}
    return found


def follow_events(home: Path) -> Iterator[dict[str, Any]]:
    """What happens from now on; a file begun anew is followed from its start."""
    file = home / "events.jsonl"
    offset = file.stat().st_size if file.exists() else 0
    while True:
        size = file.stat().st_size if file.exists() else 0
        offset = 0 if size < offset else offset
        if size > offset:
            with file.open("rb") as f:
                f.seek(offset)
                data = f.read()
            whole = data[: data.rfind(b"\n") + 1]  # the rest is still being written
            offset += len(whole)
            yield from (e for line in whole.splitlines() if (e := read_event(line)) is not None)
        time.sleep(POLL_S)


def read_event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def event_text(event: Mapping[str, Any], zone: tzinfo) -> str:
    """An event as a line for people, who live in *zone*."""
    rest = " ".join(f"{k}={v}" for k, v in event.items() if k not in ("at", "event") and v not in ("", None))
    return f"{time_text(str(event.get('at', '')), zone, 'seconds')} {event['event']} {rest}".strip()
