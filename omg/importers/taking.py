"""
Takes drops in through the spool, and a program's messages. Keeps a record of each import, by which it is undone.

    <home>/imports/<id>.jsonl   first the files, then a line for each drop, before it is taken in; last what became of it
    <home>/imports/chats.json   chat → when it was last changed, so that an older export does not bring an older copy

A killed import is continued under its id: drops that it had taken in are recognised, and add nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..graph.state import append_lines, parsed_object, read_object, write_private
from ..identity import Identity
from ..message.drop import read_drop
from ..message.turn import Turn
from .drops import Drops, JsonObject, Session, digest, drop_chunks, drop_name

if TYPE_CHECKING:
    from ..worker.intake import Intake

FOLDER, CHATS = "imports", "chats.json"


@dataclass(slots=True)
class ImportRecord:
    """The record of one import. `id` is "" as long as nothing was taken in."""

    home: Path
    files: list[str]
    id: str = ""
    drops: list[JsonObject] = field(default_factory=list)  # {graph, drop, ids}

    @property
    def file(self) -> Path:
        return self.home / FOLDER / f"{self.id}.jsonl"

    def add(self, now: datetime, graph: str, drop: str, ids: Sequence[str]) -> None:
        """Record that *drop* goes into *graph*, before it does."""
        line = {"graph": graph, "drop": drop, "ids": sorted(ids)}
        first = []
        if not self.id:
            self.id = f"import-{now:%Y%m%dT%H%M%S}-{digest(json.dumps(self.files), 2)}"
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            first = [json.dumps({"at": now.isoformat(timespec="seconds"), "files": self.files})]
        append_lines(self.file, [*first, json.dumps(line)])
        self.drops.append(line)

    def end(self, what: str, **more: Any) -> None:
        if self.id:
            append_lines(self.file, [json.dumps({"ended": what, **more})])


def records(home: Path) -> Iterator[tuple[ImportRecord, str]]:
    """Every import and its state ("" while it goes on, done, undone), the oldest first."""
    for file in sorted((home / FOLDER).glob("import-*.jsonl")):
        lines = [v for line in file.read_text("utf-8").splitlines() if (v := parsed_object(line))]
        files = [str(f) for f in (lines[0].get("files") if lines else None) or []]
        ended = [str(v["ended"]) for v in lines if "ended" in v]
        yield ImportRecord(home, files, file.stem, [v for v in lines if "drop" in v]), (ended or [""])[-1]


def record_of(home: Path, paths: Sequence[Path]) -> ImportRecord:
    """The record of an import of *paths*: that of an interrupted import, or a new one."""
    files = [str(path.resolve()) for path in paths]
    for record, ended in records(home):
        if not ended and record.files == files:
            return record
    return ImportRecord(home, files)


def known_chats(home: Path) -> dict[str, int]:
    return {k: v for k, v in read_object(home / FOLDER / CHATS).items() if isinstance(v, int)}


def import_drops(
    intake: Intake,
    drops: Drops,
    *,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda n: None,
    record: ImportRecord | None = None,
) -> JsonObject:
    """
    Take *drops* in. A drop without a new message changes nothing; with *dry_run* nothing is changed.

    *progress* is called with the bytes read since its last call. Returns the number of `messages`, of `new` ones and of
    `sessions`, what was `skipped`, and how many entries were `left_out`: instructions to a model, heartbeats, empty ones,
    and what a reader leaves out; `why_left_out` has the reasons.
    """
    messages, new, reported, entries, registry = 0, 0, 0, 0, intake.registry
    sessions: set[tuple[str, str]] = set()
    met: set[str] = set()  # ids that a dry run has counted
    for drop in drops:
        text = json.dumps(drop)
        turn = read_drop(text.encode(), registry.config.identity.members)
        if off := registry.config.switched_off(turn.agent):
            drops.reading.skipped.append(f"{turn.session}: OMG is switched off, {off}")
            continue
        fresh = unknown_ids(intake, turn) - met
        if dry_run:
            met |= fresh
        elif fresh:
            if record and (who := registry.whose(turn)):
                record.add(registry.clock(), who.key, drop_name(drop), sorted(fresh))
            write_private(intake.spool / f"{drop_name(drop)}.json", text)
            intake.take_in()
        entries += len(drop["entries"])
        messages, new = messages + len(turn.messages), new + len(fresh)
        sessions.add((turn.session, turn.session_id))
        progress(drops.reading.done - reported)
        reported = drops.reading.done
    progress(drops.reading.total - reported)
    if record and not dry_run and drops.reading.newest:
        (record.home / FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
        known = known_chats(record.home)
        newest = {k: max(v, known.get(k, 0)) for k, v in drops.reading.newest.items()}
        write_private(record.home / FOLDER / CHATS, json.dumps({**known, **newest}))
    return {
        "messages": messages,
        "new": new,
        "sessions": len(sessions),
        "skipped": drops.reading.skipped,
        "left_out": drops.reading.left_out.total() + entries - messages,
        "why_left_out": dict(drops.reading.left_out),
    }


def capture_entries(intake: Intake, who: Identity, session: str, entries: list[JsonObject]) -> int:
    """Take in a program's messages of *session*, which belongs to *who*. Returns how many were new."""
    new = 0
    for drop in drop_chunks(Session(session, session, who.agent), entries):
        text = json.dumps(drop)
        new += len(unknown_ids(intake, read_drop(text.encode(), intake.registry.config.identity.members)))
        write_private(intake.spool / f"{drop_name(drop)}.json", text)
    if entries:
        intake.take_in()
    return new


def unknown_ids(intake: Intake, turn: Turn) -> set[str]:
    """Ids of a turn's messages that its graph does not have yet; none if the turn belongs to nobody."""
    who = intake.registry.whose(turn)
    if who is None:
        return set()
    if who not in intake.registry.identities():
        return {m.id for m in turn.messages}
    return {m.id for m in intake.registry.graph(who).unseen(turn.messages)}
