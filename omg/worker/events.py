"""
Writes and reads events.jsonl: one JSON line for each thing that happened.

    taken_in            session, messages and their tokens
    not_taken_in        session, messages, and the setting that switches OMG off for them
    observation_start   cycle, trigger, tokens, messages, model; how long the batch waited in line (waited_ms); how many
                        graphs are being observed (under_way); how many graphs wait in line (waiting)
    observation_end     the same fields, and the notes with their tokens, the compression, calls, cost, replies cut short
    edit_refused        the reason why an edit was dropped or changed, or why its note counts as the assistant's words
    observation_failed  error, tokens, duration
    activation          session, reason, tokens of the slice
    inject_busy         session, and how long a prompt waited (waited_ms); the prompt then got the session's former slice
    context_cut         session, reason; turns and tokens that were removed from the context; tokens of the remaining
                        messages; tokens of notes
    context_waited      session, duration, and whether the awaited turns were observed
    verdict_refused     kind of a nightly proposal that was not carried out, and the reason
    notes_archived      after an upgrade: the cycle that archived notes of earlier rules, and how many
    reflection_…        see worker/nights.py

Fields are numbers, names and reasons, never conversation text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from ..dates.days import time_text
from ..graph.state import append_lines, flock, parsed_object

BYTES = 5_000_000  # a larger file is renamed and a new one started; one old file is kept
POLL_S = 0.3
FOR_PROGRAMS = ("at", "event", "session", "cycle", "trigger", "under_way")  # not printed for people
EDITS = 100  # `edits_lately` counts so many


def event_of(event: str, now: datetime, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"at": now.isoformat(timespec="milliseconds"), "event": event, **fields}


def write_event(home: Path, line: Mapping[str, Any]) -> None:
    file = home / "events.jsonl"
    if full(file):
        with flock(home / "events.lock", "events.jsonl"):
            if full(file):  # look again: another process or thread may have renamed the file
                file.replace(file.with_suffix(".1.jsonl"))
    append_lines(file, [json.dumps(line, ensure_ascii=False)])


def full(file: Path) -> bool:
    try:
        return file.stat().st_size > BYTES
    except FileNotFoundError:
        return False


def event_lines(home: Path) -> Iterator[bytes]:
    """Yield the lines of the old and the new events file, oldest first."""
    for file in (home / "events.1.jsonl", home / "events.jsonl"):
        if file.exists():
            yield from file.read_bytes().splitlines()


def parsed_events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The events in *lines*, without lines that a crash left incomplete."""
    for event in map(parsed_object, lines):
        if event and "event" in event:
            yield event


def read_events(home: Path, last: int | None = None) -> list[dict[str, Any]]:
    """Return the recorded events, oldest first; with *last*, only the newest *last* events."""
    found = [*parsed_events(event_lines(home))]
    return found if last is None else found[max(0, len(found) - last) :]


def edits_lately(home: Path) -> tuple[int, int]:
    """
    Count the edits of the newest observations. Returns how many there were, and how many were refused or changed.

    Counting ends with the observation that brings the number to EDITS.
    """
    edits = refused = 0
    for event in reversed(read_events(home, last=5 * EDITS)):
        if event["event"] == "observation_end" and edits < EDITS:
            edits += int(event.get("edits") or 0)
            refused += int(event.get("dropped") or 0)
    return edits, min(edits, refused)


def follow_events(home: Path) -> Iterator[dict[str, Any]]:
    """Yield new events without end. If a new events file is started, continue with that file."""
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
            yield from parsed_events(whole.splitlines())
        time.sleep(POLL_S)


def event_text(event: Mapping[str, Any], zone: tzinfo) -> str:
    """
    Write an event as a line for people, with times in *zone*. Leaves out fields that are empty, 0 or for programs.
    """
    at, what = time_text(str(event.get("at", "")), zone, "seconds"), str(event["event"]).replace("_", " ")
    fields = [(k, v) for k, v in event.items() if k not in FOR_PROGRAMS and v not in ("", None, 0)]
    told = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in fields)
    return f"{at} {what}: {told}" if told else f"{at} {what}"
