"""
Loose notes as messages: what people leave in inbox/, and what the agent writes to its own memory files.

    <vault>/inbox/*.md                    a message for each paragraph, a person's
    <workspace>/memory/YYYY-MM-DD.md      a message for each line, the agent's; only where the owner's vault lies in
                                          <workspace>/memory/omg, and no older than the graph

A message's id is `inbox:<path>:<hash of the text>`, so that what is added to a note is new and the rest is not, and
its key is of the text alone: a note that is renamed says nothing new. Not here: observing them (observe.py). One
rule: nothing is moved or rewritten here; both kinds of files are only read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from .dates import day_of
from .errors import OmgError
from .graph import Graph
from .node import HISTORY, Node, parse
from .turn import Message, Turn, clean

PREFIX = "inbox:"
SESSION = "inbox"  # what such a note's source has in the place of a conversation
SETTLED_S = 60  # since the last save: nobody is writing just now
MEANT = "This was meant for `"  # a note of ours, with what could not be written elsewhere (receipt.py)
DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d\.md")
SAYS_NOTHING = re.compile(r"#{1,6}(\s|$)|<!--|---+$|```|\|[\s:|-]+\|$")


def take(graph: Graph, now: datetime, known: dict[Path, tuple[int, int]], *, force: bool = False) -> int:
    """
    Put what is new in loose notes with what is pending; returns how many messages that were.

    *known*: the files looked at before, as they were then; it is kept up. With *force* a note that was saved just
    now is taken, too.
    """
    taken = 0
    for file, name in [*notes(graph), *flushed(graph)]:
        try:
            found = file.stat()
        except FileNotFoundError:
            continue
        mark = (found.st_mtime_ns, found.st_size)
        if known.get(file) == mark or (not force and now.timestamp() - found.st_mtime < SETTLED_S):
            continue
        said_ms = round(found.st_mtime * 1000)
        try:
            messages = (
                of_note(graph, name, said_ms) if name.startswith("inbox/") else of_day(graph, file, name)
            )
        except (OmgError, OSError, UnicodeDecodeError):
            continue  # the index says what is wrong with it
        if fresh := graph.unseen(messages):
            what = hashlib.sha256("".join(m.id for m in fresh).encode()).hexdigest()[:16]
            who = graph.identity
            turn = Turn(SESSION, SESSION, who.agent, "inbox", "", "", "", tuple(fresh))
            graph.put(f"{fresh[0].timestamp:015d}-{what}", turn)
            taken += len(fresh)
        known[file] = mark
    return taken


def notes(graph: Graph) -> Iterator[tuple[Path, str]]:
    """File and path of each note in the inbox, less its own README."""
    conflicts = None
    for file in sorted((graph.vault.root / "inbox").glob("*.md")):
        path = f"inbox/{file.stem}"
        if file.stem.startswith(".") or file.stem == "README" or file.is_symlink():
            continue
        conflicts = set(graph.vault.conflicts()) if conflicts is None else conflicts
        if path not in conflicts:
            yield file, path


def flushed(graph: Graph) -> Iterator[tuple[Path, str]]:
    """OpenClaw's own notes of the days since the graph was made, where the vault lies beside them."""
    root, who = graph.vault.root, graph.identity
    if (root.parent.name, root.name) != ("memory", "omg") or who.key != f"agent:{who.agent}:main":
        return
    begun = day_of(round((graph.folder / "identity.json").stat().st_mtime * 1000), graph.zone)
    for file in sorted(root.parent.glob("????-??-??.md")):
        if (
            DAY_FILE.fullmatch(file.name)
            and (day := day_named(file))
            and day >= begun
            and not file.is_symlink()
        ):
            yield file, f"memory/{file.stem}"


def day_named(file: Path) -> date | None:
    try:
        return date.fromisoformat(file.stem)
    except ValueError:
        return None


def of_note(graph: Graph, path: str, said_ms: int) -> tuple[Message, ...]:
    """The paragraphs of a person's note; none if it is one of ours, or has a place in the graph already."""
    data = graph.vault.bytes(path)
    if data is None or graph.vault.ours(data):
        return ()
    node = parse(data.decode("utf-8"), path)
    if node.type != "note" or node.sources or node.body.lstrip().startswith(MEANT):
        return ()
    return messages("user", path, paragraphs(node), said_ms)


def paragraphs(node: Node) -> list[str]:
    """What a person wrote, in blocks; a heading goes with what is below it."""
    body = node.body.partition(f"{HISTORY}\n")[0].replace("\r\n", "\n")
    found: list[str] = []
    above = ""
    for part in re.split(r"\n\s*\n", body.strip()):
        text = part.strip()
        if text and "\n" not in text and text.startswith("#"):
            above = f"{above}\n{text}".strip()
        elif text:
            found.append(f"{above}\n{text}".strip())
            above = ""
    return [*found, above] if above else found


def of_day(graph: Graph, file: Path, name: str) -> tuple[Message, ...]:
    lines = [
        re.sub(r"^(?:[-*+]|\d+\.)\s+(?:\[.\]\s+)?", "", text.strip())
        for text in file.read_text("utf-8").split("\n")
    ]
    day = day_named(file)
    assert day is not None
    noon = datetime.combine(day, time(12), graph.zone).astimezone(UTC)
    said = [text for text in lines if text and not SAYS_NOTHING.match(text)]
    return messages("assistant", name, said, round(noon.timestamp() * 1000))


def messages(role: str, path: str, texts: list[str], said_ms: int) -> tuple[Message, ...]:
    """Through the same door as all that is said: cleaned, and without secrets."""
    entries: list[dict[str, Any]] = []
    for n, text in enumerate(texts):
        mark = hashlib.sha256(text.encode()).hexdigest()[:12]
        message = {"role": role, "content": text, "timestamp": said_ms + n, "idempotencyKey": PREFIX + mark}
        entries.append({"entryId": f"{PREFIX}{path}:{mark}", "message": message})
    return clean(entries)


def path_of(id: str) -> str | None:
    """The inbox note that a message came from; None for all others."""
    path = id.removeprefix(PREFIX).rpartition(":")[0] if id.startswith(PREFIX) else ""
    return path if path.startswith("inbox/") else None


def by_hand(message: Message) -> bool:
    """Whether a person wrote it in a note of theirs."""
    return message.role == "user" and message.id.startswith(PREFIX)
