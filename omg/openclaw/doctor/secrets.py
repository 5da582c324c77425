"""
The doctor at what an older version kept: secrets that today's rules take out on arrival.

In the archive, in what is pending and in the notes; a person's notes, too, of which each word stays but the
secret. Nothing is shown of what was found. Its one rule: where a file was changed by another meanwhile, it waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...errors import BadInput, BadNode, Stale
from ...graph.files import write_private
from ...graph.graph import Graph
from ...graph.state import State, forget_served
from ...message.drop import redacted_arguments
from ...message.stored import message_from_json, message_to_json, turn_from_json, turn_to_json
from ...message.turn import Message
from ...node.note import parse_node
from ...node.properties import split_head
from ...plural import how_many
from ...secrets import redact
from .finding import Finding


def check_secrets(graph: Graph) -> Iterator[Finding]:
    found = sum(_mend(graph, write=False))
    if found:
        yield Finding(
            "warn",
            f"{how_many(found, 'secret')} that an older version kept; today's rules take them out",
            graph.identity.key,
            "omg doctor --fix replaces them, in the archive, in what is pending and in the notes",
            lambda: take_out(graph),
        )


def take_out(graph: Graph) -> None:
    """Replace what today's rules find, and make anew whatever was made of it."""
    with graph.lock():
        if sum(_mend(graph, write=True)):
            graph.vault.settle(0)
            graph.update(forget_slices)
            graph.index.rebuild(graph.vault, graph.folder / "archive")


def forget_slices(state: State) -> None:
    """A slice that was served may quote what is gone."""
    for session in state.sessions.values():
        forget_served(session)
        session.task, session.state, session.next = (
            redact(t)[0] for t in (session.task, session.state, session.next)
        )
    state.epoch += 1


def _mend(graph: Graph, *, write: bool) -> Iterator[int]:
    """How many secrets each file has; with *write* they are gone behind it."""
    for file in sorted((graph.folder / "archive").glob("*.jsonl")):
        yield _archive(file, write)
    for p in graph.pending():
        with suppress(BadInput, FileNotFoundError):
            turn = turn_from_json(p.file.read_text(encoding="utf-8"))
            messages = tuple(map(redacted_arguments, turn.messages))
            if write and messages != turn.messages:
                write_private(p.file, turn_to_json(replace(turn, messages=messages)))
            yield _more(turn.messages, messages)
    for path in graph.vault.paths():
        with suppress(OSError, Stale, BadNode):
            yield _note(graph, path, write)


def _more(before: tuple[Message, ...], after: tuple[Message, ...]) -> int:
    return sum(b.redacted - a.redacted for a, b in zip(before, after, strict=True))


def _archive(file: Path, write: bool) -> int:
    found, lines = 0, []
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        with suppress(BadInput, ValueError):  # a damaged line stays as it is
            message, session = message_from_json(line)
            clean = redacted_arguments(message)
            if clean != message:
                found += _more((message,), (clean,))
                line = message_to_json(clean, session) + "\n"
        lines.append(line)
    if found and write:
        write_private(file, "".join(lines))
    return found


DESCRIPTION = re.compile(r"^description: .*$", re.M)  # what of a note's head is words


def _words(text: str, body: int) -> tuple[str, int]:
    """*text* with the secrets out of its description and its body; ids and sources stay as they are."""
    said, found = redact(text[body:])
    head = text[:body]
    if m := DESCRIPTION.search(head):
        line, more = redact(m[0])
        line = line.replace(": [redacted", ": (redacted", 1) if line.startswith("description: [") else line
        head, found = head[: m.start()] + line + head[m.end() :], found + more
    return head + said, found


def _note(graph: Graph, path: str, write: bool) -> int:
    data = graph.vault.bytes(path)
    if data is None:
        return 0
    try:
        text = data.decode("utf-8")
        clean, found = _words(text, split_head(text)[1])
        parse_node(clean, path)
    except (UnicodeDecodeError, BadNode):
        return 0
    if found and write:
        ours = graph.vault.ours(data)
        graph.vault.write(path, clean.encode("utf-8"), data)
        if not ours:
            graph.vault.mark_not_ours(path)
    return found
