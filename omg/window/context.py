"""
One session of the context engine: which messages leave the context, and what stands for them.

Only observed turns are cut: their receipt is closed, and they are in the archive. A cut and the text in its place
stay the same, byte for byte, until the next cut or until a person edits or forgets something, because prompt caches
depend on it. Both are saved in the graph's state before the gateway gets them. In doubt, the messages stay as they
are. cut.py decides which turns go.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import accumulate, takewhile
from typing import Any

from ..config import Config
from ..dates.days import day_of_ms
from ..graph.graph import Graph
from ..graph.state import SessionState, State
from ..index.archived import said_under, standing_paths
from ..inject.prompt import NO_LONGER, SAID_LEAD, WAITING_LEAD
from ..journal import has_open_receipt
from ..message.drop import clean_entries, content_of, is_no_persons, to_epoch_ms
from ..message.turn import Message, said_at
from ..plan.pages import hints_that_hold
from ..text.characters import WIKILINK
from ..text.tokens import count_tokens
from .cut import (
    LAST_TURNS,
    SPEAKERS,
    Shown,
    note_lines_of,
    raw_tokens,
    render_timeline,
    said_lines_of,
    tokens_of,
    turns_to_cut,
    uncounted,
    whole_turns,
)

# --- Messages that a conversation has from another one, from which it was forked.
#
# The gateway copies the messages, and memory keeps each once, under the conversation it was said in. A message is the same only where the run that it began is the same.


Row = tuple[str, int, str]  # role, time and id of an archived message


def rows_copied(graph: Graph, session: str, given: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Archived messages of other conversations that the *given* messages of *session* may be copies of."""
    begun = [(run_key(m), to_epoch_ms(m.get("timestamp")) or 0) for m in given]
    begun = [(key, at) for key, at in begun if key]
    found = graph.index.ask(said_under, [key for key, _ in begun]) if begun else []
    lasts = {other: at for other, at in found if other != session}  # the last that was said there
    rows: list[Row] = []
    for other, last in lasts.items():
        until = next((at for _, at in begun if at > last), None)  # from here on it was said here
        since = min(at for where, at in found if where == other)
        rows += [row for row in graph.index.said_since(other, since) if until is None or row[1] < until]
    return rows


def run_key(message: Mapping[str, Any]) -> str:
    """The key of a message that began a run; "" for any other message."""
    run = message.get("idempotencyKey")
    if message.get("role") != "user" or not isinstance(run, str) or not run:
        return ""
    return Message("", "user", "", 0, idempotency=run).key


# --- Notes that an earlier request was served, put before the same message again, byte for byte.
#
# A prompt's fresh notes stand before it in its own request only: the gateway keeps none of them. In the next one they
# would be missing, and from there on no provider's cache would hold. So they are added again until the next cut,
# which changes the prefix anyway. A text is left out if a note that it names was edited, forgotten or superseded
# (an edit empties `served`: inject/decide.py, forget/), or if there is no room for it.


NOTE_LINE = re.compile(r"- (\S.*?) (?:— |\()")
BY_RUN = ":user"  # ends the idempotency key of the message that began a run, behind the run's id


def served_again(
    graph: Graph, given: Sequence[Mapping[str, Any]], gone: Collection[int], own: SessionState
) -> dict[int, str]:
    """Message index → the notes served with it, for messages that are not *gone* and notes that all still hold."""
    if not own.served:
        return {}
    found: dict[int, str] = {}
    for i, message in enumerate(given):
        key = str(message.get("idempotencyKey") or "")
        if key.endswith(BY_RUN) and i not in gone and (text := own.served.get(key.removesuffix(BY_RUN))):
            found[i] = text
    named = {i: notes_named(text) for i, text in found.items()}
    paths = {name: graph.index.find(name) for name in set().union(*named.values())}
    standing = graph.index.ask(standing_paths, {path for path in paths.values() if path})
    return {i: text for i, text in found.items() if all(paths[name] in standing for name in named[i])}


def notes_named(text: str) -> set[str]:
    """The names of the notes that *text* presents as current."""
    lines = [line for line in text.splitlines() if NO_LONGER not in line]
    notes = takewhile(lambda line: line not in (SAID_LEAD, WAITING_LEAD), lines)
    links = (link.partition("|")[0] for line in lines for link in WIKILINK.findall(line))
    return {m[1] for line in notes if (m := NOTE_LINE.match(line))} | set(links)


def fitting(again: Mapping[int, str], room: int) -> dict[int, str]:
    """The first entries of *again* that fit into *room* tokens; a later one never displaces an earlier one."""
    costs = accumulate(count_tokens(text) for text in again.values())
    kept = sum(1 for _ in takewhile(lambda cost: cost <= room, costs))
    return dict(list(again.items())[:kept])


def runs_kept(
    own: SessionState, given: Sequence[Mapping[str, Any]], again: Mapping[int, str]
) -> dict[str, str]:
    """The served texts to keep: those *again* put into the context, and those of a run whose message is not among the *given* yet."""
    runs = {i: str(m.get("idempotencyKey") or "").removesuffix(BY_RUN) for i, m in enumerate(given)}
    here = {run for i, run in runs.items() if i not in again}
    newest = next(reversed(own.served), "")
    stay = {runs[i] for i in again} | ({newest} - here)
    return {run: text for run, text in own.served.items() if run in stay}


# --- Which turns may leave the context: those whose messages are all observed.
#
# In doubt, a turn counts as not observed. cut.py decides which of them leave, and when.


def observed_turns(context: RequestContext, soon: Iterable[tuple[str, int]] = ()) -> set[int]:
    """
    The turns whose messages are all observed and archived, or forgotten.

    A turn that the gateway began by itself counts as the person's turns around it, which may refer to it. *soon*: places of
    pending messages that count as observed.
    """
    graph = context.graph
    again = graph.pending_keys()  # what a forgetting left without a note waits once more
    rows = [*graph.index.said_since(context.session, context.since_ms()), *context.copied()]
    archived = Counter((role, at) for role, at, mid in rows if mid not in again)
    archived.update(soon)
    found, own, waiting = set(), set(), set()
    for n, turn in enumerate(context.turns):
        if n in context.alike or not context.is_spoken(turn):
            continue
        # Several may be said in one millisecond, and only some of them be observed.
        missing = [i for i in turn if archived[context.place(i)] < context.here[context.place(i)]]
        if missing and not is_accounted_for(context, turn, missing):
            waiting.add(n)
        elif missing and context.is_no_persons(turn):
            own.add(n)
        else:
            found.add(n)
    persons = sorted(found | waiting)
    around = {n: persons[max(0, (at := bisect(persons, n)) - 1) : at + 1] for n in own}
    return found | {n for n in own if waiting.isdisjoint(around[n])}


def waiting_places(graph: Graph, session: str) -> Iterator[tuple[str, int]]:
    """The places of the pending messages of *session*."""
    for pending in graph.pending():
        turn = graph.readable(pending)
        if turn is not None and turn.session == session:
            yield from ((m.role, m.timestamp) for m in turn.messages)


def is_accounted_for(context: RequestContext, turn: range, missing: Sequence[int]) -> bool:
    """Whether every *missing* message of *turn* was forgotten, is empty, or was not said to a person."""
    own = context.is_no_persons(turn)
    entries = ({"entryId": str(i), "message": context.given[i]} for i in turn)
    keys = {m.id: m.key for m in clean_entries(entries, context.asked)}
    names = {i: {keys.get(str(i), ""), context.own_place(i)} for i in missing}
    gone = context.graph.tombstones.messages(set().union(*names.values()))
    left = [i for i in missing if gone.isdisjoint(names[i])]
    # A message that memory does not keep still counts: it may answer a report that came during a person's turn.
    if any(str(i) in keys or (not own and says_something(context.given[i])) for i in left):
        return False
    return bool(gone or len(missing) < len(turn) or own)


def says_something(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    # An outline, or nothing that can be read.
    if "chars" in message or not isinstance(content, str | list | None):
        return True
    if message.get("role") == "user":
        return not is_no_persons(message) and bool(content_of(content)[0].strip())
    return bool(clean_entries([{"entryId": "alone", "message": message}]))


# Of what the model's window has room for, at the most: raw messages, and notes; the turn that goes on needs the rest.
ROOM_SHARE, NOTES_SHARE = 0.5, 0.25
MOST_SERVED = 1.5  # of the threshold, with what messages were served before them, while nothing can be cut
RUN_KEY_CHARS = 6  # enough to tell apart the runs that began in one second
ARCHIVE_ROLES = {"toolResult": "tool"}  # of the gateway → as the archive has them


@dataclass(frozen=True, slots=True)
class Cut:
    """
    What is to be done. *cut*: indices of the messages that go; none where *text* is "". *served*: index of a message →
    what is put before it again. *told*: *text* stands for what was said between these times, too, in ms.
    """

    text: str = ""
    cut: tuple[int, ...] = ()
    served: Mapping[int, str] = field(default_factory=dict)
    raw: int = 0  # tokens of what stays
    reason: str = ""  # of a new text: threshold or edit
    waits: bool = False  # something is to be observed at once
    blocks: bool = False  # and the turn waits for that
    told: tuple[int, int] = (0, 0)


class RequestContext:
    """The messages of one request, split into turns, the turns that were cut before, and the tokens they may have."""

    def __init__(
        self, graph: Graph, session: str, own: SessionState, body: Mapping[str, Any], config: Config
    ) -> None:
        self.graph, self.session, self.own = graph, session, own
        self.asked = config.identity.members  # as `clean_entries` has it
        self.threshold, self.notes = budgets(config, body.get("tokenBudget"), own)
        self.floor = config.context.kept_raw(self.threshold)
        self._copied: list[Row] | None = None
        given = body.get("messages")
        messages = given if isinstance(given, list) else []
        self.given: list[Mapping[str, Any]] = [m if isinstance(m, Mapping) else {} for m in messages]
        self.messages = [uncounted(m) for m in self.given]
        self.turns = whole_turns(self.messages)
        self.here = Counter(self.place(i) for i in range(len(self.given)))
        self.beginnings = [beginning(self.given[turn[0]]) for turn in self.turns]
        often = Counter(self.beginnings)
        # Of turns that begin alike nobody could tell later which of them was cut.
        self.alike = {n for n, begins in enumerate(self.beginnings) if often[begins] > 1}
        # A turn that has grown is another one: what it gained would be nowhere.
        known = {
            n
            for n, (turn, begins) in enumerate(zip(self.turns, self.beginnings, strict=True))
            if own.cut_turns.get(begins) == len(turn) and n not in self.alike
        }
        # Of what was cut only outlines come, or megabytes: what it cost is known from then.
        self.costs = {n: cost for n in known if (cost := own.cut_tokens.get(self.beginnings[n]))}
        self.cut = known.intersection(range(len(self.turns) - LAST_TURNS))
        self.came_back = self.cut != known  # somebody went back to what was cut, and on from there
        for n in set(range(len(self.turns))) - (self.cut & self.costs.keys()):
            for i in self.turns[n]:
                self.messages[i] = replace(self.messages[i], tokens=tokens_of(self.given[i]))
        self.served: dict[int, str] = {}  # index of a message → what is put before it again, if there is room

    @property
    def weighed(self) -> list[Shown]:
        """The messages, each counted with the tokens of the notes served with it."""
        return [
            replace(m, tokens=m.tokens + count_tokens(self.served[i])) if i in self.served else m
            for i, m in enumerate(self.messages)
        ]

    def place(self, i: int) -> tuple[str, int]:
        """The key that finds a message in the archive, where ids of calls and details may differ."""
        role = str(self.given[i].get("role"))
        return ARCHIVE_ROLES.get(role, role), to_epoch_ms(self.given[i].get("timestamp")) or 0

    def copied(self) -> list[Row]:
        if self._copied is None:
            self._copied = rows_copied(self.graph, self.session, self.given)
        return self._copied

    def is_no_persons(self, turn: range) -> bool:
        """Whether *turn* is one that the gateway began by itself, such as a heartbeat, or a command to us."""
        prompts = [self.given[i] for i in turn if self.messages[i].role == "user"]
        return bool(prompts) and all(map(is_no_persons, prompts))

    def own_place(self, i: int) -> str:
        """The place of a message as a forgetting keeps it; "" where another was said in that millisecond."""
        place = self.place(i)
        return said_at(*place) if place[1] and self.here[place] == 1 else ""

    def going(self, cut: Collection[int], observed: Collection[int]) -> list[int]:
        """The turns that go besides those *cut*, if all of the *observed* may."""
        return turns_to_cut(
            self.weighed, self.turns, cut, observed, threshold=self.threshold, floor=self.floor
        )

    def since_ms(self) -> int:
        return min((at for i in range(len(self.given)) if (at := self.place(i)[1])), default=0)

    def told_before_ms(self) -> int:
        """The time up to which a timeline made now covers all that was said; what a summary replaced is left out."""
        return self.since_ms() if self.is_spoken(range(len(self.messages))) else 0

    def is_spoken(self, messages: range) -> bool:
        """Whether somebody said all of *messages*; a summary counts as said by nobody."""
        return all(self.messages[i].role in SPEAKERS for i in messages)

    def indices(self, turns: Iterable[int]) -> list[int]:
        return [i for n in sorted(turns) for i in self.turns[n]]

    def raw_from(self, cut: Collection[int]) -> int:
        """When the first message behind all that was *cut* was said."""
        behind = self.indices(range(max(cut) + 1, len(self.turns)))
        return next((at for i in behind if (at := self.place(i)[1])), 0)

    def tokens(self, turns: Iterable[int]) -> int:
        return sum(
            self.costs.get(n) or sum(self.messages[i].tokens for i in self.turns[n]) for n in set(turns)
        )


def beginning(message: Mapping[str, Any]) -> str:
    """A key that identifies a turn. Times alone do not: a channel may give whole seconds, and two runs may begin in
    one."""
    begun = f"{message.get('role')} {to_epoch_ms(message.get('timestamp')) or 0}"
    run = run_key(message)[:RUN_KEY_CHARS]
    return f"{begun} {run}" if run else begun


def cut_context(
    graph: Graph, body: Mapping[str, Any], *, now: datetime, config: Config, tell: Callable[..., None]
) -> Cut:
    """Decide what leaves the context. *body* has sessionKey, runId, the gateway's messages and tokenBudget."""
    session, state = str(body.get("sessionKey") or ""), graph.state()
    own = state.sessions.get(session) or SessionState()
    own = replace(own, served={run: text for run, text in own.served.items() if run != body.get("missed")})
    context = RequestContext(graph, session, own, body, config)
    context.cut |= beginning_of_cut(context)
    raw = raw_tokens(context.messages, context.turns, context.cut)
    if own.epoch == state.epoch:
        context.served = served_again(graph, context.given, set(context.indices(context.cut)), own)
    fresh = turns_to_go(context)
    cut = context.cut.union(fresh)
    raw -= context.tokens(fresh)
    waits, blocks = what_waits(context, cut, state, config, raw)
    stale = own.timeline_epoch != state.epoch or not own.timeline or context.came_back
    reason = "threshold" if fresh else "edit" if cut and stale else ""
    text, late = own.timeline, False
    if reason:
        sources = sources_of(context, cut)
        late = not graph.pending_keys().isdisjoint(sources)
        text = timeline_of(context, cut, sources, now)
    cost, saved = count_tokens(text), context.tokens(cut)
    request = partial(note_request, session=session, run=str(body.get("runId") or ""), raw=raw)
    if not cut or not text or cost >= saved:  # never longer than without us
        graph.note(partial(request, served=runs_kept(own, context.given, {}), raw_from=0))
        return Cut(waits=waits, blocks=blocks)
    room = min(saved - cost, round(MOST_SERVED * context.threshold) - raw)
    served = {} if fresh else fitting(context.served, room)
    request = partial(request, served=runs_kept(own, context.given, served), raw_from=context.raw_from(cut))
    graph.note(request)
    if reason and (fresh or text != own.timeline or not late):
        epoch, told_before_ms = state.epoch, context.told_before_ms()

        def keep(state: State) -> None:
            own = state.sessions.setdefault(session, SessionState())
            # Since it was rendered something was edited or forgotten: nothing that it names goes to the disk any more.
            own.timeline = text if state.epoch == epoch else ""
            # Where some cut messages are to be observed again, the text is rendered anew each time until they are.
            own.timeline_epoch = epoch if own.timeline and not late else -1
            own.cut_turns = {context.beginnings[n]: len(context.turns[n]) for n in cut}
            own.cut_tokens = {context.beginnings[n]: context.tokens([n]) for n in cut}
            own.told_before_ms, own.context_cut_ms = told_before_ms, round(now.timestamp() * 1000)

        graph.update(keep)
        tell(
            "context_cut", session=session, reason=reason, turns=len(fresh), tokens=context.tokens(fresh),
            raw_tokens=raw, notes_tokens=cost,
        )  # fmt: skip
        own = replace(own, told_before_ms=told_before_ms)
    told = told_times(graph, session, own)
    return Cut(text, tuple(context.indices(cut)), served, raw, reason, waits, blocks, told)


def told_times(graph: Graph, session: str, own: SessionState) -> tuple[int, int]:
    """The times between which the cut's text covers all that was said; (0, 0) while some of it is not observed."""
    late = any(at < own.told_before_ms for _, at in waiting_places(graph, session))
    return (0, 0) if late else (own.cut_ms, own.told_before_ms)


def budgets(config: Config, room: object, own: SessionState) -> tuple[int, int]:
    """
    The tokens of raw messages at which the context is cut, and the tokens that its notes may have. *room*: what is
    left of the window.
    """
    given = isinstance(room, int | float) and not isinstance(room, bool) and room > 0
    left = float(room) if given else math.inf  # type: ignore[arg-type]
    threshold = max(1, int(min(config.context.message_tokens, left * ROOM_SHARE)))
    notes = int(min(config.context.notes_tokens(threshold), left * NOTES_SHARE))
    if config.context.share_token_budget:
        threshold += max(0, notes - count_tokens(own.timeline))
    return threshold, notes


def turns_to_go(context: RequestContext) -> list[int]:
    """The turns that are cut now. None while a receipt is open, because its notes cannot be found yet."""
    if raw_tokens(context.weighed, context.turns, context.cut) < context.threshold:
        return []
    observed = observed_turns(context)  # first: a receipt that is closed behind it is no trouble
    return [] if has_open_receipt(context.graph) else context.going(context.cut, observed)


def what_waits(
    context: RequestContext, cut: Collection[int], state: State, config: Config, raw: int
) -> tuple[bool, bool]:
    """
    Whether pending turns are to be observed now, and whether this turn waits for it because turns could leave then.

    Raw messages can stay above the threshold for good: those from before OMG was installed are never observed.
    """
    graph, threshold = context.graph, context.threshold
    pending, could = sum(p.tokens for p in graph.pending()), False
    if pending and raw >= threshold:
        soon = observed_turns(context, waiting_places(graph, context.session))
        could = bool(context.going(cut, soon))
    ails = state.failures or state.error  # the model is down, or a cap reached: nothing would come of it
    blocks = could and not ails and raw >= config.context.blocked_from(threshold)
    return could or 0 < config.observation.step_of(threshold) <= pending, blocks


def note_request(
    state: State, session: str, run: str, raw: int, served: Mapping[str, str], raw_from: int
) -> None:
    """Record how the context of a run was put together."""
    if (own := state.sessions.get(session)) is None:
        return
    # Less what was forgotten since.
    own.served = {key: text for key, text in served.items() if key in own.served}
    own.assembled = next(reversed(own.served), run)
    own.raw_tokens, own.raw_from_ms = raw, raw_from


def beginning_of_cut(context: RequestContext) -> set[int]:
    """
    The first turns that belong to the cut although the gateway's messages now begin earlier or later than at the last cut.

    If they begin earlier: turns that the timeline covers already. If later: the rest of a turn that was cut, an answer without
    its question.
    """
    own, found = context.own, set[int]()
    for n, turn in enumerate(context.turns[:-LAST_TURNS]):
        left = [i for i in turn if not own.cut_ms < context.place(i)[1] < own.told_before_ms]
        if len(left) == len(turn):
            break
        if not left or own.cut_turns.get(beginning(context.given[left[0]])) == len(left):
            found.add(n)
    if not found and context.turns[:-LAST_TURNS] and context.given[0].get("role") != "user":
        began = context.since_ms()
        starts = [(int(key.split()[1]), count) for key, count in own.cut_turns.items()]
        _, count = max((start for start in starts if start[0] <= began), default=(0, 0))
        found = {0} if len(context.turns[0]) < count else found
    found -= context.cut
    return found & observed_turns(context) if found else found


# --- what stands for it


def sources_of(context: RequestContext, cut: Iterable[int]) -> dict[str, int]:
    """
    Archive ids and times of what was *cut*, and of what was said before the oldest message in the request.

    The gateway sends the newest eight bytes of transcript for each token of the model's window. Messages that its own summary
    or a reset replaced are left out.
    """
    places = {context.place(i) for i in context.indices(cut)}
    since = context.since_ms()
    told = context.told_before_ms()
    rows = context.graph.index.said_since(
        context.session, min(told, context.own.cut_ms + 1) if told else since
    )
    ids = {mid: at for role, at, mid in rows if at < since or (role, at) in places}
    return ids | {mid: at for role, at, mid in context.copied() if (role, at) in places}


def timeline_of(context: RequestContext, cut: Iterable[int], ids: Mapping[str, int], now: datetime) -> str:
    graph, own, zone = context.graph, context.own, context.graph.zone
    before = own.cut == "reset" and own.at_ms <= own.cut_ms  # they are of another conversation
    hints = [] if before else hints_that_hold(own, now.astimezone(zone).date(), zone)
    stood = day_of_ms(own.at_ms, zone) if own.at_ms else None
    told = [*note_lines_of(graph, ids), *said_lines_of(graph, ids)]
    said = max(len(ids), len(context.indices(cut)))
    return render_timeline(told, hints, stood, messages=said, budget=context.notes)
