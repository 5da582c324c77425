"""
Reads at night what only the rules have read by day (`[observation] effort = "low"`).

The Observer is asked about many turns at once, with the notes that the rules made of them. It is shown what people said,
and the outline of what the assistant said. A batch and its mark in `State.unread` are one receipt: a night that is killed
or finds no model leaves the other batches to the next night, and repeats none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..config import Config
from ..errors import BadReply, ModelError, Stale
from ..graph.graph import Graph
from ..graph.state import State, flock
from ..inject.prompt import cut_text
from ..journal import replay_open
from ..message.envelope import cut_middle
from ..message.material import material_in
from ..message.turn import Message
from .question import WINDOW_SHARE, Observer
from .run import Observed, Said, TellObservation, observe_said

LINE_CHARS, OUTLINE_CHARS = 80, 800  # of a line of the assistant's, and of a message of its
LOCK_S = 30.0  # how long to wait for a batch that is being observed

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReadUnread:
    """What one night read: its batches, and why some were left to the next night."""

    batches: list[Observed] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def read_unread(
    graph: Graph, observer: Observer, config: Config, now: datetime, tell: TellObservation
) -> ReadUnread:
    """Let *observer*, which asks a model, read what is unread. Raises Locked."""
    done = ReadUnread()
    room = int(min(config.observation.max_tokens_per_batch, observer.window * WINDOW_SHARE))
    for said in unread_batches(graph, room, now):
        with flock(graph.folder / "observe.lock", f"the observing of {graph.identity.key}", LOCK_S):
            with graph.lock():
                replay_open(graph)
            if not graph.state().unread.keys() >= set(said.read):
                continue  # another process has read it
            try:
                if said.messages:
                    done.batches.append(observe_said(graph, said, observer, config, tell))
                else:
                    graph.update(lambda state, read=said.read: drop_read(state, read))  # type: ignore[misc]
            except Stale as e:  # forgotten meanwhile; the next night reads what is left
                log.info("%s: %s", graph.identity.key, e)
            except BadReply as e:
                done.left.append(f"{len(said.messages)} messages that rules have noted: {e}")
            except ModelError as e:  # nobody answers, or today's cap is reached
                done.left.append(f"what rules have noted and no model has read: {e}")
                break
    return done


def drop_read(state: State, read: tuple[str, ...]) -> None:
    state.unread = {key: ms for key, ms in state.unread.items() if key not in read}


def unread_batches(graph: Graph, room: int, now: datetime) -> Iterator[Said]:
    """What is unread, conversation by conversation, in batches of at most *room* tokens unless one stretch has more."""
    unread = graph.state().unread
    talks: dict[str, list[str]] = {}
    for key in sorted(unread):
        talks.setdefault(key.partition(" ")[2], []).append(key)
    read, messages, of = list[str](), list[Message](), dict[str, str]()

    def batch() -> Said:
        session = of[messages[0].id] if messages else ""
        return Said(session, graph.identity.agent, messages, now, read=tuple(read), sessions=of)

    for talk, keys in talks.items():
        for key in keys:
            said = what_matters(graph, talk, int(key.partition(" ")[0]), unread[key])
            if messages and sum(m.tokens for m in [*messages, *said]) > room:
                yield batch()
                read, messages, of = [], [], {}
            read.append(key)
            messages += [m for m in said if m.id not in of]
            of |= {m.id: talk for m in said}
    if read:
        yield batch()


def what_matters(graph: Graph, session: str, first_ms: int, last_ms: int) -> list[Message]:
    """
    Of what was said in *session* then: people's words, and outlines of what the assistant said beside them. Nothing where
    no person has said a word of their own.
    """
    ids = [id for _, at, id in graph.index.said_since(session, first_ms) if at <= last_ms]
    said = [outlined(m) for m in graph.index.messages(ids) if m.role == "assistant" or m.spoken]
    return [m for m in said if m.text.strip()] if any(m.role == "user" for m in said) else []


def outlined(message: Message) -> Message:
    """A message of the assistant's without its code and its calls: the beginning of each line; another as it is."""
    if message.role != "assistant":
        return message
    text = message.text
    for span in reversed(material_in(text)):
        if span.kind == "code":
            text = f"{text[: span.start]}[code]{text[span.end :]}"
    lines = [cut_text(" ".join(line.split()), LINE_CHARS) for line in text.splitlines() if line.strip()]
    return replace(message, text=cut_middle("\n".join(lines), OUTLINE_CHARS), calls=())
