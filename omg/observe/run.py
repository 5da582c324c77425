"""
Observes one batch: turns pending messages into notes.

A model is asked up to four questions about each piece of a conversation (`ask_about`). Without a model, the rules of
omg/rules/ answer in the same form. No lock of the vault is held while a model is asked.

A batch is marked observed only after every answer was understood. One receipt writes the notes together with this mark,
so that no batch is read twice.

With `[observation] effort = "low"`, the rules of omg/rules/ read each turn in the daytime. At night a model
reads many turns in one question (`read_unread`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from ..check import Claim, Verdict, check_claims
from ..config import Config
from ..dates.days import day_of_ms
from ..errors import BadNode, BadReply, ModelError, NotFound, Stale, how_many
from ..forget.erase import finish_forgetting
from ..graph.graph import Graph, Pending
from ..graph.state import SessionState, State, copied_state, flock, read_object, write_private
from ..inbox import INBOX_SESSION, PREFIX, inbox_path
from ..index.archived import last_messages
from ..journal import Change, Outcome, Rebase, Receipt, commit_receipt, note_hints, receipt_id, replay_open
from ..llm.asker import reply_to_failure
from ..llm.replies import Ask, ModelQuestion, ModelReply, instructions
from ..message.envelope import cut_middle
from ..message.turn import Message, material_in, split_halves, split_messages
from ..node.markdown import wikilink
from ..node.note import Node
from ..plan.corrections import accepted_proposals, settle_proposals, take_up
from ..plan.drafts import Plan
from ..plan.mentions import link_names
from ..provenance import second_try
from ..rules.observer import derive_edit, observe_offline, with_strangers
from ..text.words import cut_text
from .question import (
    WINDOW_SHARE,
    Observer,
    TalkSoFar,
    is_small_model,
    message_by_message,
    notes_of_last,
    observer_prompt,
    render_material,
    render_question,
    shown_notes,
)
from .reply import (
    HINTS,
    OBSERVER_SCHEMA,
    ParsedReply,
    ShownToObserver,
    claims_in,
    evidence_for,
    parse_answer,
    parse_value,
    proposed_by,
    quoted_reply,
    settled_reply,
)
from .twins import SAME_SCHEMA, likely_twins, render_twins, with_twins

# So many messages before a piece are shown, because its first message may accept a proposal made in them.
LOOKED_BACK = 6
KEPT_REPLIES = "replies.json"  # in the graph's folder: the replies of a batch that could not be observed yet

log = logging.getLogger(__name__)

TellObservation = Callable[..., None]  # called with (event, **fields), for events.jsonl


@dataclass(slots=True)
class Observed:
    """What observing one batch did, as numbers and reasons."""

    # not the receipt: it has the text of every file, and an import has thousands of batches
    cycle: str
    outcome: Outcome
    notes: int = 0  # written
    messages: int = 0
    tokens_in: int = 0  # of the turns
    tokens_out: int = 0  # of the notes
    edits: int = 0  # edits proposed
    dropped: list[str] = field(default_factory=list)  # why edits were dropped or changed

    def told(self) -> dict[str, Any]:
        """The fields for events.jsonl."""
        return {
            "cycle": self.cycle,
            "tokens": self.tokens_in,
            "messages": self.messages,
            "notes": self.notes,
            "files": len(self.outcome.written),
            "note_tokens": self.tokens_out,
            "compression": round(self.tokens_in / self.tokens_out, 1) if self.tokens_out else None,
            "edits": self.edits,
            "dropped": len(self.dropped),
        }


@dataclass(frozen=True, slots=True)
class Said:
    """One batch: pending turns, or archived messages that no model has read, but only the rules of omg/rules/."""

    session: str
    agent: str
    messages: Sequence[Message]
    at: datetime  # the time of the receipt
    pending: Sequence[Pending] = ()
    # added to State.unread: a model has to read it at night
    unread: Mapping[str, int] = field(default_factory=dict)
    read: tuple[str, ...] = ()  # keys of State.unread that a model reads now
    # message id → its conversation, if that is not *session*
    sessions: Mapping[str, str] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(p.tokens for p in self.pending) or sum(m.tokens for m in self.messages)

    @property
    def made_of(self) -> str:
        return "|".join([*(p.name for p in self.pending), *self.read])


def pending_batches(pending: Sequence[Pending], limit: int) -> Iterator[list[Pending]]:
    """
    Divide *pending* into batches of one conversation each, in the order of time.

    A batch may have more than *limit* tokens in two cases:
    - a single file has more
    - the next file holds the result of a tool call in the batch: call and result stay together

    A full batch ends at the longest pause in its second half, where people most likely changed the subject.
    """
    by_session: dict[str, list[Pending]] = {}
    for p in pending:
        by_session.setdefault(p.session, []).append(p)
    batch: list[Pending] = []
    for files in by_session.values():
        for p in files:
            if batch and sum(b.tokens for b in batch) + p.tokens > limit and not answers_call(batch, p):
                size = size_to_pause([*batch, p])
                yield batch[:size]
                batch = batch[size:]
            batch.append(p)
        if batch:
            yield batch
            batch = []


def size_to_pause(files: Sequence[Pending]) -> int:
    """
    Return how many of *files* to observe together, up to the longest pause between two files.

    - The last file is left for later: the batch is full without the last file.
    - The batch has at least half of the tokens of all files before the last.
    - A call and its result stay together.
    """
    said = list(accumulate(p.tokens for p in files[:-1]))
    ends = [n for n in range(1, len(files)) if 2 * said[n - 1] >= said[-1]]
    ends.sort(key=lambda n: (files[n].at_ms - files[n - 1].at_ms, n), reverse=True)
    return next((n for n in ends if not answers_call(files[:n], files[n])), len(files) - 1)


def answers_call(batch: Sequence[Pending], following: Pending) -> bool:
    """Whether *following* holds the result of a tool call in *batch*."""
    # The gateway may shorten its context between the two; the result is then in a later file than the call.
    made = {call.id for p in batch for m in p.turn().messages for call in m.calls}
    return any(m.call_id in made for m in following.turn().messages if m.call_id)


def observe_batch(
    graph: Graph,
    batch: Sequence[Pending],
    observer: Observer,
    config: Config,
    tell: TellObservation = lambda *a, **k: None,
    *,
    again: bool = False,
) -> Observed:
    """
    Observe the pending turns of *batch*, all of one session, as `observe_said` does. *again*: mark them for a second
    reading by a model at night.
    """
    turns = [p.turn() for p in batch]
    session = turns[-1].session
    messages = [m for t in turns for m in t.messages]
    first, last = (end((m.timestamp for m in messages), default=0) for end in (min, max))
    unread = {f"{first:015d} {session}": last} if again and messages else {}
    said = Said(session, turns[-1].agent, messages, last_said(messages), batch, unread)
    return observe_said(graph, said, observer, config, tell)


@dataclass(slots=True)
class Batch:
    """A batch that is being observed: its plan, and what its conversation is about so far."""

    plan: Plan
    said: Said
    observer: Observer
    config: Config
    before: list[Message]  # the last messages before the next piece
    current: dict[str, str]  # the conversation's hints; empty at night, since the hints tell of a later time
    shared: list[str]  # names of the hints that other conversations may see
    hints: dict[str, str] = field(default_factory=dict)  # hints that replies have set
    edits: int = 0  # edits proposed
    cut: int = 0  # replies whose end is missing
    dropped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def observe_said(
    graph: Graph,
    said: Said,
    observer: Observer,
    config: Config,
    tell: TellObservation = lambda *a, **k: None,
) -> Observed:
    """
    Observe *said* and write the notes.

    Nothing is written if this raises:
    - ModelError, if no model answered
    - Stale, if some of *said* was forgotten while the model was asked
    """
    started, id = time.monotonic(), receipt_id(said.at, of=said.made_of)
    told = {"session": said.session, "tokens": said.tokens, "messages": len(said.messages)}
    tell("observation_start", cycle=id, **told, model=observer.model)
    redactions, kept = graph.state().redactions, KeptReplies(graph, observer)
    batch = begun(graph, said, replace(observer, ask=kept if observer.ask else None), config)
    with kept:
        pieces = pieces_of(batch)
        while pieces:
            piece = pieces.pop(0)
            shown = shown_of(batch, piece)
            replies = ask_about(batch, piece, shown)
            if replies is None:  # a reply was cut short
                pieces[:0] = split_halves(piece)
                continue
            for reply in replies:
                add_to_plan(batch, reply)
            batch.before = [*batch.before, *piece][-LOOKED_BACK:]
    finish_plan(batch)
    observed = write_batch(batch, id=id, redactions=redactions)
    if observer.ask is not None:
        kept.file.unlink(missing_ok=True)
    for why in observed.dropped:
        tell("edit_refused", session=said.session, reason=why.partition(": ")[2] or why)
    ms = round((time.monotonic() - started) * 1000)
    about = {"session": said.session, "model": observer.model, "cut": batch.cut, "duration_ms": ms}
    tell("observation_end", **about, **observed.told())
    return observed


def begun(graph: Graph, said: Said, observer: Observer, config: Config) -> Batch:
    messages = said.messages
    day = day_of_ms(messages[-1].timestamp, graph.zone) if messages else datetime.now(UTC).date()
    own = graph.state().sessions.get(said.session) or SessionState()
    current = {} if said.read else {key: getattr(own, key) for key in HINTS}
    before = said_last(graph, said.session, messages)
    return Batch(Plan(graph, day), said, observer, config, before, current, list(own.shared))


def pieces_of(batch: Batch) -> list[tuple[Message, ...]]:
    """Split the messages of *batch* into pieces that fit into the model's window."""
    messages, observer = batch.said.messages, batch.observer
    by_sentence = observer.ask is None or is_small_model(batch.config, observer)
    if batch.plan.graph.identity.scope == "group" and by_sentence:
        messages = with_strangers(messages)  # a model is shown the names as they are
    return split_messages(
        messages, int(min(batch.config.observation.max_tokens_per_batch, observer.window * WINDOW_SHARE))
    )


def shown_of(batch: Batch, piece: Sequence[Message]) -> ShownToObserver:
    """Collect what the Observer is shown: the messages of *piece*, and known notes."""
    said, graph = batch.said, batch.plan.graph
    so_far = TalkSoFar(said.session, batch.current, batch.before)
    shown = shown_notes(batch.plan, piece, so_far, batch.observer, batch.config)
    talks = {h: (said.sessions.get(m.id, talk), m) for h, (talk, m) in shown.messages.items()}
    return replace(shown, messages=talks, proposals=proposals_of(graph, piece))


def ask_about(batch: Batch, piece: Sequence[Message], shown: ShownToObserver) -> list[ParsedReply] | None:
    """
    Ask the model about *piece*, and return the checked replies. Return None if the first reply was cut short and
    *piece* can be halved: the caller then asks about each half.

    Up to four questions are asked:
    - what the person and the assistant said
    - whether new notes are the same as existing notes that were not shown (twins.py)
    - whether the messages support the new notes (check.py)
    - what tools returned, or people passed on

    A small model is asked about one message at a time. Without a model, the rules answer.
    """
    graph, observer, config, agent = batch.plan.graph, batch.observer, batch.config, batch.said.agent
    if observer.ask is None:
        recent = {e.path for e in notes_of_last(graph, batch.before, piece[0].timestamp)}
        found = observe_offline(piece, list(shown.notes.values()), graph.zone, batch.before[-1:], recent)
        both = (found, {"edits": agents_own_notes(shown)})
        return [settled_reply(parse_value(edits, shown), shown, []) for edits in both]
    if is_small_model(config, observer):
        return list(message_by_message(shown, observer.ask, config, agent))
    reply = asked(observer.ask, "observe", render_question(shown), config, agent)
    if reply.cut and len(split_halves(piece)) > 1:
        log.info("%s: a reply about %d messages was cut short", observer.model, len(piece))
        return None
    parsed = parse_answer(reply, shown, observer.model)
    if batch.said.read:  # the reply's hints are out of date
        parsed.hints = {}
    parsed = without_twins(batch.plan, parsed, shown, observer.ask, agent)
    replies = [checked(parsed, shown, observer, reply.model, agent)]
    if material := render_material(shown):
        reply = asked(observer.ask, "observe-material", material, config, agent)
        told = parse_answer(reply, shown, observer.model, material=True)
        replies.append(settled_reply(told, shown, []))
    return replies


def add_to_plan(batch: Batch, reply: ParsedReply) -> None:
    see_that_it_stands(batch.plan.graph)
    batch.plan.apply_all(reply.edits)
    take_up_all(batch.plan, reply.taken)
    batch.hints |= reply.hints
    batch.current |= reply.hints
    batch.shared = [k for k in HINTS if k in (reply.shared if k in reply.hints else batch.shared)]
    batch.edits += reply.proposed
    batch.cut += reply.cut
    batch.dropped += reply.dropped
    batch.refused += reply.refused


def see_that_it_stands(graph: Graph) -> None:
    """
    Raise Stale if the whole *graph* was forgotten while the model was asked. Without this check, the next search
    would create the index of the forgotten graph again.
    """
    if not graph.folder.is_dir():
        raise Stale("the whole graph was forgotten while the model was asked")


def take_up_all(plan: Plan, paths: Iterable[str]) -> None:
    for path in paths:
        # Meanwhile a person removed the proposal, or the note that it corrects.
        with suppress(NotFound, BadNode):
            take_up(plan, path)


def finish_plan(batch: Batch) -> None:
    """
    Complete the plan after all pieces of the batch were read.

    - turn each proposal that the person accepted into a note of the person
    - settle the other proposals that the batch touches
    - link the names of notes that drafted notes mention
    - record in each inbox file what became of the file

    If a model reads archived messages at night (`Said.read`), the first and the last step are left out.
    """
    plan, said = batch.plan, batch.said
    graph, messages = plan.graph, said.messages
    if not said.read:
        before = said_last(graph, said.session, messages)
        take_up_all(plan, accepted_proposals(graph, before, messages))
    settle_proposals(plan, sorted(plan.waiting))
    link_names(plan, [p for p, d in plan.drafts.items() if d.text != d.before], graph.index.entries())
    if not said.read:
        file_loose_notes(plan, messages)


def asked(ask: Ask, prompt: str, text: str, config: Config, agent: str) -> ModelReply:
    """Ask the model about *text* under the instructions called *prompt*."""
    system = observer_prompt(prompt, config, agent)
    return reply_to_failure(ask, ModelQuestion(system, text, OBSERVER_SCHEMA, "observe", agent))


def without_twins(
    plan: Plan, parsed: ParsedReply, shown: ShownToObserver, ask: Ask, agent: str
) -> ParsedReply:
    """
    Turn new notes in *parsed* into updates of existing notes that say the same.

    The model decides in a second question. The model is asked only if an existing note that it has not seen resembles a
    new note. Otherwise *parsed* is returned unchanged.
    """
    see_that_it_stands(plan.graph)
    twins = likely_twins(plan, parsed, shown)
    if twins is None:
        return parsed
    question = ModelQuestion(
        instructions("observe-twins", ""), render_twins(twins, parsed.edits), SAME_SCHEMA, "observe", agent
    )
    return with_twins(parsed, twins, reply_to_failure(ask, question))


def checked(
    parsed: ParsedReply, shown: ShownToObserver, observer: Observer, model: str, agent: str
) -> ParsedReply:
    """
    Check *parsed*, the reply of *model*. If the model cannot do the check, the notes become quotations of the person.
    Raises ModelError if the model does not answer.
    """
    assert observer.ask is not None
    claims, evidence = claims_in(parsed, shown), evidence_for(parsed, shown)
    able, answers = observer.able(model), list[tuple[Claim, Verdict]]()
    while able and claims:
        verdicts = check_claims(claims, evidence, observer.ask, observer.able, agent)
        if verdicts is None:  # another model answered the check
            able = False
            break
        more = list(zip(claims, verdicts, strict=True))
        answers, claims = answers + more, second_try(proposed_by(parsed), more)
    return settled_reply(parsed, shown, answers) if able else quoted_reply(parsed)


def proposals_of(graph: Graph, messages: Sequence[Message]) -> list[Node]:
    """The proposals made from *messages*."""
    made = graph.index.notes_by_source([m.id for m in messages if m.role == "user"])
    found = []
    for path in dict.fromkeys(note.path for notes in made.values() for note in notes):
        with suppress(NotFound, BadNode):
            node = graph.vault.read(path)
            if node.proposes and node.status == "active":
                found.append(node)
    return found


class KeptReplies:
    """
    Asks a model, and keeps its answers about a batch until the batch is observed. If a later answer fails, earlier
    answers need not be paid for again.
    """

    def __init__(self, graph: Graph, observer: Observer) -> None:
        self.ask, self.model = observer.ask, observer.model
        self.file, self.last = graph.folder / KEPT_REPLIES, ""
        self.kept = read_object(self.file)

    def __call__(self, question: ModelQuestion) -> ModelReply:
        assert self.ask is not None
        asked = "\0".join((self.model, question.purpose, question.system, question.user))
        self.last = hashlib.blake2b(asked.encode("utf-8", "replace"), digest_size=16).hexdigest()
        if self.last not in self.kept:
            reply = self.ask(question)
            self.kept[self.last] = {"text": reply.text, "cut": reply.cut, "model": reply.model}
        known = self.kept[self.last]
        model = str(known.get("model") or self.model)
        return ModelReply(str(known["text"]), model, 0, 0, cut=bool(known["cut"]))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            return
        if issubclass(kind, BadReply):  # the last reply could not be used
            self.kept.pop(self.last, None)
        if self.kept:
            write_private(self.file, json.dumps(self.kept, ensure_ascii=False))


def said_last(graph: Graph, session: str, messages: Sequence[Message]) -> list[Message]:
    """The messages of *session* right before *messages*."""
    return graph.index.ask(last_messages, session, messages[0].timestamp, LOOKED_BACK) if messages else []


def agents_own_notes(shown: ShownToObserver) -> list[Any]:
    """
    Turn each note that the agent wrote into the inbox into a fact.

    Used without a model. Such a note is a statement already, so the rules need not search for one.
    """
    own = {h: m for h, (_, m) in shown.messages.items() if m.role == "assistant" and m.id.startswith(PREFIX)}
    made = (
        derive_edit({"type": "fact", "text": m.text}, h, m, notes=shown.notes, zone=shown.zone)
        for h, m in own.items()
    )
    return [edit for edit in made if edit]


def file_loose_notes(plan: Plan, messages: Sequence[Message]) -> None:
    """
    Add a line to each inbox file among *messages*, with links to the notes made from the file.

    The file's own words stay. If no note was made from the file, the line says so.
    """
    ids: dict[str, set[str]] = {}
    for m in messages:
        if path := inbox_path(m.id):
            ids.setdefault(path, set()).add(m.id)
    for path, own in ids.items():
        written = [d.node for d in plan.drafts.values() if d.text != d.before]
        links = [wikilink(n.path, n.title) for n in written if any(s.id in own for s in n.sources)]
        kept = own & {s.id for n in written for s in n.sources}
        day = day_of_ms(messages[-1].timestamp, plan.graph.zone)
        line = f"- {day}: " + (f"filed as {', '.join(links)}" if links else "read; no note was made of it")
        if links and kept != own:  # some paragraphs are in no other note
            line += f"; {len(own - kept)} of {len(own)} paragraphs are only here"
        try:
            draft = plan.draft(path)
        except (NotFound, BadNode):
            continue  # meanwhile a person renamed, removed or broke the file
        if not draft.ours:
            plan.rewrite(draft, draft.node, Rebase(history=line))


def write_batch(batch: Batch, *, id: str, redactions: int) -> Observed:
    """
    Write the receipt, the files, the archive and the index, under the vault's lock. *redactions*: the state's count
    of redactions when the batch began.
    """
    plan, said = batch.plan, batch.said
    graph, session, messages = plan.graph, said.session, said.messages
    silent = session == INBOX_SESSION or bool(said.read)  # the batch is no conversation, or an old one
    with graph.lock():
        replay_open(graph)
        finish_forgetting(graph)
        check_still_there(graph, said, redactions)
        said_ms = round(last_said(messages).timestamp() * 1000)
        hints = {**batch.hints, "shared": batch.shared} if batch.hints and not silent else {}
        # Some messages were forgotten while the model was asked.
        if graph.tombstones.messages(m.id for m in messages):
            hints = {}
        live = {**hints, "last_ms": said_ms} | ({"at_ms": said_ms} if hints else {})
        changes = plan.changes()
        told = cleared_next_steps(graph, plan) | ({} if silent else {session: live})
        now = now_change(graph, plan, session, told)
        summary = tuple(
            f"{'renamed' if c.after is None else 'wrote' if c.before is None else 'changed'} {c.path}"
            for c in changes
            if c.path.startswith("nodes/")
        )
        receipt = Receipt(
            id=id,
            kind="observation",
            at=said.at.isoformat(timespec="seconds"),
            changes=(*changes, *([now] if now else [])),
            pending=tuple(p.name for p in said.pending),
            hints=told,
            unread=dict(said.unread),
            read=said.read,
            summary=(*summary, *batch.refused),
            tokens=plan.written_tokens(),
        )
        outcome = commit_receipt(graph, receipt)
        graph.vault.settle()  # else an import would keep every former version of every map
    notes = sum(c.path.startswith("nodes/") and c.after is not None for c in receipt.changes)
    return Observed(
        receipt.id,
        outcome,
        notes,
        len(messages),
        tokens_in=said.tokens,
        tokens_out=receipt.tokens,
        edits=batch.edits,
        dropped=[*batch.dropped, *plan.dropped],
    )


def check_still_there(graph: Graph, said: Said, redactions: int) -> None:
    """Raise Stale if a part of *said* was forgotten while the model was asked."""
    if graph.state().redactions != redactions:
        raise Stale("words were removed from the notes meanwhile; this batch was not written")
    there = {m for p in said.pending if p.file.exists() for m in p.turn().messages}
    if said.read:  # *said* holds only outlines; `redactions` shows whether words were removed
        kept = {m.id for m in graph.index.messages([m.id for m in said.messages])}
        there = {m for m in said.messages if m.id in kept and graph.state().unread.keys() >= set(said.read)}
    if there != set(said.messages):
        raise Stale("messages of this batch were forgotten meanwhile; this batch was not written")


def last_said(messages: Sequence[Message]) -> datetime:
    return datetime.fromtimestamp(max((m.timestamp for m in messages), default=0) / 1000, UTC)


def now_change(
    graph: Graph, plan: Plan, session: str, told: Mapping[str, Mapping[str, Any]]
) -> Change | None:
    """
    Return the change of the page Now, or None if the page stays the same.

    The page shows the hints of all conversations, with the new hints *told*, and the open loops as *plan* leaves them.
    """
    # A copy: prompts served meanwhile must not show changes that are not written yet.
    state, day = copied_state(graph.state()), plan.day
    if session == INBOX_SESSION:  # a loose note may be of a day long past
        latest = max((own.last_ms for own in state.sessions.values()), default=0)
        day = max(day, day_of_ms(latest, graph.zone))
    note_hints(state, told)
    return plan.maps.now_change(state.sessions, day)


def cleared_next_steps(graph: Graph, plan: Plan) -> dict[str, dict[str, Any]]:
    """
    Return hints that clear the assistant's next step, if the step is done.

    Returns session → hints, for each session whose hint `next` names a note that *plan* marks as done.
    """
    done = {path for path, draft in plan.drafts.items() if draft.node.loop == "done"}
    names = plan.maps.names
    return {
        session: {"next": "", "at_ms": own.at_ms}
        for session, own in graph.state().sessions.items()
        if done and names and own.next and done & {path for _, path in names.found_in(own.next)}
    }


# --- At night: a model reads what only the rules have read.


# Most characters of a line in the outline of an assistant's message, and of the whole outline
LINE_CHARS, OUTLINE_CHARS = 80, 800
LOCK_S = 30.0  # seconds; the longest wait for another batch to be observed


@dataclass(slots=True)
class ReadUnread:
    """The result of one night's reading: its batches, and why some messages were left to the next night."""

    batches: list[Observed] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def read_unread(
    graph: Graph, observer: Observer, config: Config, now: datetime, tell: TellObservation
) -> ReadUnread:
    """Let *observer*, which asks a model, read the messages that only rules have read. Raises Locked."""
    done = ReadUnread()
    room = int(min(config.observation.max_tokens_per_batch, observer.window * WINDOW_SHARE))
    for said in unread_batches(graph, room, now):
        with flock(graph.folder / "observe.lock", f"the observing of {graph.identity.key}", LOCK_S):
            with graph.lock():
                replay_open(graph)
            if not graph.state().unread.keys() >= set(said.read):
                continue  # another process has read this batch
            try:
                if said.messages:
                    done.batches.append(observe_said(graph, said, observer, config, tell))
                else:
                    graph.update(lambda state, read=said.read: drop_read(state, read))  # type: ignore[misc]
            except Stale as e:  # messages were forgotten meanwhile; the next night reads the others
                log.info("%s: %s", graph.identity.key, e)
            except BadReply as e:
                done.left.append(
                    f"{how_many(len(said.messages), 'message')} that a model should read and only rules have read so far: {e}"
                )
            except ModelError as e:  # nobody answers, or today's cap is reached
                done.left.append(
                    f"the messages that a model should read and only rules have read so far: {e}"
                )
                break
    return done


def drop_read(state: State, read: tuple[str, ...]) -> None:
    state.unread = {key: ms for key, ms in state.unread.items() if key not in read}


def unread_batches(graph: Graph, room: int, now: datetime) -> Iterator[Said]:
    """
    Yield the messages in `State.unread`, conversation by conversation, in batches of at most *room* tokens. One entry
    of `State.unread` is never split, even if its messages have more than *room* tokens.
    """
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
    The words of people in *session* between the two times, and outlines of the assistant's messages. Empty if no
    person said anything.
    """
    ids = [id for _, at, id in graph.index.said_since(session, first_ms) if at <= last_ms]
    said = [outlined(m) for m in graph.index.messages(ids) if m.role == "assistant" or m.spoken]
    return [m for m in said if m.text.strip()] if any(m.role == "user" for m in said) else []


def outlined(message: Message) -> Message:
    """
    Shorten an assistant's message to the beginning of each line, without code and calls. Any other message is
    returned as it is.
    """
    if message.role != "assistant":
        return message
    code = [span for span in material_in(message.text) if span.kind == "code"]
    text = message.with_parts(code, lambda kind, part: "[code]")
    lines = [cut_text(" ".join(line.split()), LINE_CHARS) for line in text.splitlines() if line.strip()]
    return replace(message, text=cut_middle("\n".join(lines), OUTLINE_CHARS), calls=())
