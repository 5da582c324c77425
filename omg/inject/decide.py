"""
Which slice of memory a prompt is given, and when `system` is rendered anew.

`system` is rendered at an activation and then served byte for byte until the next: prompt caches depend on it. What
is learnt in between reaches the model through `prompt`. One rule: no model, no clock of our own, and no file but
index.md, now.md and two maps, at an activation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from ..config.sections import Config
from ..dates.days import MS_PER_DAY, event_span, pause_text
from ..dates.spoken import When
from ..errors import OmgError
from ..graph.graph import Graph
from ..graph.state import SessionState, State, note_window
from ..index.entries import WEAK_BELOW, Entry, Hit
from ..index.scores import ParsedQuery, parse_query
from ..message.envelope import legible_text, strip_memory, without_envelope
from ..node.maptable import OPEN_LOOPS, map_of, map_of_type
from ..node.note import text_below_head
from ..plan.edits import split_history
from ..plan.pages import persons_words
from ..text.links import with_labels
from ..text.sentences import split_sentences
from ..text.tokens import clip_text, count_tokens
from ..text.words import written_words
from .course import asks_for_course, asks_for_several, topic_of
from .named import maps_named, named_lines, projects_named
from .passages import Said, assistants_share, find_said, quoted_passages
from .prompt import render_prompt
from .sure import asks_of_memory, is_sure
from .system import cut_text, render_system_slice

SYSTEM_SHARE = 0.4  # of the budget; the rest is for what bears on the message itself
MORE_OF = 10  # of the best notes
MANY_NOTES = 4  # times as many, where a course or several things are asked for
MORE_CHARS = 600  # of one
URGENT_S = 60  # how long a cut waits for its observation before `system` goes on without
CANDIDATES = 100  # notes of a map that may be shown; a budget of 3,000 tokens holds about 80
SYSTEM_KEPT_DAYS = 7  # what was served to a session is dropped when nobody has come back for it
QUERY_CHARS = 2_000  # of a prompt; what is pasted below that says little about what is meant
FLOOR = WEAK_BELOW
FLOOR_OF_MANY = 0.05  # where a course or several things are asked for: whatever may belong to it


@dataclass(frozen=True, slots=True)
class Slice:
    """`system` and `prompt`, wrapped, "" where there is nothing to say; *reason* of an activation."""

    system: str = ""
    prompt: str = ""
    reason: str | None = None

    @property
    def tokens(self) -> int:
        """Of both."""
        return count_tokens(self.system) + count_tokens(self.prompt)


@dataclass(frozen=True, slots=True)
class Decision:
    """A slice, and what is to be kept of how it came about."""

    given: Slice
    hits_by_map: Mapping[str, int]  # map → how many entry points it lists, and how often the prompt names it
    recalled: Sequence[str]  # ids of the notes in the slice that bear on the prompt
    mocs: Sequence[str]  # on show in `system`
    epoch: int  # State.epoch when it was rendered

    def keep(self, state: State, session: str, model: str, at_ms: int, run: str = "") -> None:
        # Since it was decided something was edited or forgotten: nothing that it names goes to the disk any more.
        whole = self.epoch == state.epoch
        if not whole and not self.given.reason and session not in state.sessions:
            return  # the session itself was forgotten
        own = state.sessions.setdefault(session, SessionState())
        if whole:
            own.falls = dict(Counter(own.falls) + Counter(self.hits_by_map))
        keep_served(own, run, self.given.prompt if whole else "", self.epoch)
        if self.given.reason:
            own.system, own.mocs = (self.given.system, list(self.mocs)) if whole else ("", [])
            own.epoch = self.epoch
            own.reason, own.model = self.given.reason, model or own.model
            own.activated_ms, own.falls, own.window = at_ms, {}, 0
            for other in state.sessions.values():
                if max(other.last_ms, other.activated_ms) < at_ms - SYSTEM_KEPT_DAYS * MS_PER_DAY:
                    other.system, other.served, other.activated_ms = "", {}, 0


@dataclass(frozen=True, slots=True)
class Relevant:
    """What bears on a prompt, best first."""

    topic: ParsedQuery
    course: bool  # how it came about is asked for
    limit: int  # of the notes that are told
    hits: Sequence[Hit] = ()
    said: Sequence[Said] = ()
    maps: Collection[str] = ()  # that the prompt names


def keep_served(own: SessionState, run: str, text: str, epoch: int) -> None:
    """With OMG as the context engine: what a run was served stays with its message until the next cut (window/)."""
    if next(reversed(own.served), run) not in (run, own.assembled):
        own.served, own.raw_tokens = {}, 0  # a request came about without it: it is no more
    former = own.served if own.timeline and own.epoch == epoch else {}
    own.served = {key: served for key, served in former.items() if key != run}
    if own.raw_tokens and run and text:
        own.served[run] = text


# --- activation


def activation(
    state: State, session: str, *, now: datetime, pending_tokens: int, config: Config, model: str = ""
) -> str | None:
    """
    Why `system` is to be rendered anew for this prompt of *session*; None: it is served as it stands.

    new_session  nothing was served to it yet        model_change  another model has no cache of it
    edit         a person edited, forgot or undid    threshold     message_tokens were said since
    compaction   its context was cut                 quiet         an observation has been completed at rest
    reset        its context was dropped             idle          a long silence: either way the cache is cold

    A threshold waits until there is something new to take in, a cut until what was said is observed (for at
    most URGENT_S, should the model be down).
    """
    own, options = state.sessions.get(session), config.observation
    if own is None or not own.activated_ms:
        return "new_session"
    if own.epoch != state.epoch:
        return "edit"
    at_ms = epoch_ms_of(now)
    if own.cut_ms > own.activated_ms:
        observed = state.observed_ms >= own.cut_ms or not pending_tokens
        if observed or at_ms - own.cut_ms >= URGENT_S * 1000:
            return own.cut
    if model and own.model and model != own.model:
        return "model_change"
    if own.window >= options.message_tokens and state.observed_ms > own.activated_ms:
        return "threshold"
    idle = options.activate_after_idle
    cold = idle is not False and at_ms - max(own.last_ms, own.activated_ms) >= idle * 1000
    if state.quiet_ms > own.activated_ms and (cold or idle is False):
        return "quiet"
    return "idle" if cold else None


# --- the slice


def hook_result(
    graph: Graph,
    body: Mapping[str, Any],
    now: datetime,
    config: Config,
    tell: Callable[..., None] = lambda *_, **__: None,
) -> dict[str, str]:
    """The result of before_prompt_build for the prompt that *body* describes; what is empty is left out."""
    session, model, run, window, prompt = (
        str(body.get(key) or "") for key in ("sessionKey", "modelId", "runId", "sessionId", "prompt")
    )
    own = graph.state().sessions.get(session)
    if window and (own is None or own.session_id != window):
        graph.note(partial(note_window, session=session, session_id=window))
    given = slice_for(graph, prompt, session, now=now, config=config, model=model, run=run, tell=tell)
    result = {"appendSystemContext": given.system, "prependContext": given.prompt}
    return {key: text for key, text in result.items() if text}


def preview(graph: Graph, prompt: str, session: str, now: datetime, config: Config) -> Slice:
    """What `slice_for` would give; nothing is kept."""
    return decide_slice(graph, graph.state(), prompt, session, now=now, config=config).given


def slice_for(
    graph: Graph,
    prompt: str,
    session: str,
    now: datetime,
    config: Config,
    model: str = "",
    run: str = "",
    tell: Callable[..., None] = lambda *_, **__: None,
) -> Slice:
    """What *prompt* of *session* is given. An activation, and which maps its hits are on, are kept in the state."""
    if not config.inject.budget_tokens:
        return Slice()
    made = decide_slice(graph, graph.state(), prompt, session, now=now, config=config, model=model)
    if made.given.reason or made.hits_by_map or made.given.prompt:
        # What a session is served is on disk before it is served; what was of use may wait, so no prompt waits for it.
        keep = graph.update if made.given.reason else graph.note
        keep(lambda state: made.keep(state, session, model, epoch_ms_of(now), run))
        if made.epoch == graph.state().epoch:
            graph.uses.add(made.recalled, epoch_ms_of(now))
    if reason := made.given.reason:
        tell("activation", session=session, reason=reason, tokens=count_tokens(made.given.system))
    return made.given


def decide_slice(
    graph: Graph, state: State, prompt: str, session: str, now: datetime, config: Config, model: str = ""
) -> Decision:
    """The slice for *prompt*, from *state* as it was read."""
    budget, today = config.inject.budget_tokens, now.astimezone(graph.zone).date()
    own = state.sessions.get(session) or SessionState()
    words = strip_memory(without_envelope(legible_text(prompt))).strip()[:QUERY_CHARS]
    found = find_for(graph, state, words, session, now=now, config=config)
    hits_by_map = Counter([*(map_of(h.entry) for h in found.hits), *found.maps])
    pending = sum(p.tokens for p in graph.pending()) if own.cut_ms > own.activated_ms else 0
    reason = activation(state, session, now=now, pending_tokens=pending, config=config, model=model)
    text, cost, mocs = own.system, count_tokens(own.system), own.mocs
    if reason is None and cost > budget:
        reason = "edit"  # of omg.toml
    if reason:
        mocs = choose_maps(Counter(own.falls) + hits_by_map, own.mocs)
        text = render_system(graph, state, session, mocs, today=today, budget=round(budget * SYSTEM_SHARE))
        cost = count_tokens(text)
    silence = pause_text(now.timestamp() - own.last_ms / 1000) if own.last_ms else None
    fresh = render_fresh(graph, found, text, today, budget - cost, silence)
    recalled = [h.entry.id for h in found.hits if is_named(h.entry, text + fresh)]
    given = Slice(text, fresh, reason)
    return Decision(given, hits_by_map, recalled=recalled, mocs=mocs, epoch=state.epoch)


def is_named(entry: Entry, text: str) -> bool:
    """Whether a line of *text*, a slice, is *entry*'s."""
    return any(f"\n- {entry.handle}{end}" in text for end in (" — ", " (", "\n"))


def find_for(
    graph: Graph, state: State, words: str, session: str, *, now: datetime, config: Config
) -> Relevant:
    """What bears on a prompt of *session* with these *words*; nothing where it is not sure to answer them."""
    today, own = now.astimezone(graph.zone).date(), state.sessions.get(session) or SessionState()
    query, course = parse_query(words, today), asks_for_course(words)
    topic = parse_query(topic_of(words), today) if course else query
    topic = topic if topic.terms else query
    many = course or asks_for_several(words)
    limit = config.inject.entry_points * (MANY_NOTES if many else 1)
    if not limit or not asks_of_memory(query):
        return Relevant(topic, course, limit)
    hits = relevant_hits(graph, topic, now, limit, FLOOR_OF_MANY if many else FLOOR)
    said = find_said(graph, topic, hits, session=session, own=own, now=now, course=course)
    maps = maps_named(graph, topic)
    named = named_lines(graph, topic, {**maps, **projects_named(topic, hits)}, limit, today)
    if not is_sure(query, hits, said, graph.index.knows, graph.index.by_meaning):
        hits, said = [], []
    hits = [replace(h, entry=with_agents_mark(h.entry, state.by_hand)) for h in surest_first(hits, named)]
    if course:  # it is told by what the person said first, and by notes of the assistant's advice last
        hits.sort(key=lambda h: -h.score * assistants_share(query, h.entry.origin, course))
    return Relevant(topic, course, limit, hits, said, maps)


def surest_first(hits: Sequence[Hit], named: Sequence[Hit]) -> list[Hit]:
    """*hits* and *named* as one list, each note once, the best score first."""
    found = {h.entry.path for h in hits}
    both = [*hits, *(h for h in named if h.entry.path not in found)]
    return sorted(both, key=lambda h: -h.score) if named else both


def render_fresh(
    graph: Graph, found: Relevant, shown: str, today: date, budget: int, silence: str | None
) -> str:
    """`prompt`, beside a `system` of which *shown* is the text."""
    hits, course = found.hits, found.course
    return render_prompt(
        hits,
        shown,
        today,
        budget,
        found.limit,
        silence,
        more=more_of(graph, hits[:MORE_OF], course),
        said=quoted_passages(graph, found.topic, found.said, room=budget, course=course),
        zone=graph.zone,
        course=course,
    )


def epoch_ms_of(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def more_of(graph: Graph, hits: Iterable[Hit], course: bool) -> dict[str, str]:
    """Path → what a note says beside its description, as one line; of a *course* what it said before, too."""
    found = {}
    for hit in hits:
        with suppress(OmgError, OSError, UnicodeDecodeError):
            text, before = split_history(text_below_head(graph.vault.text(hit.entry.path)))
            more = sentences_beside(hit.entry.description, with_labels(text))
            if course and before:
                more += ["Before:", "; ".join(line.removeprefix("- ") for line in before)]
            if more:
                found[hit.entry.path] = cut_text(" ".join(more), MORE_CHARS)
    return found


def sentences_beside(line: str, text: str) -> list[str]:
    """The sentences of *text* that say more than *line* does."""
    told = written_words(line)
    said = (" ".join(sentence.split()) for sentence in split_sentences(text))
    return [s for s in said if not written_words(s) <= told]


def relevant_hits(graph: Graph, query: ParsedQuery, now: datetime, limit: int, floor: float) -> list[Hit]:
    """The notes that bear on *query*, best first."""
    # Twice as many as are named: some of them stand in `system` already.
    uses = graph.uses.times()
    hits = graph.index.search(query, 2 * limit, now=now, uses=uses, quote=False)
    return [h for h in hits if (h.why and h.score >= floor) or event_falls_on(h.entry.event, query.days)]


def event_falls_on(event: str | None, days: Iterable[When]) -> bool:
    """Whether *event* is on one of *days*: then a note bears on "what is next week?" though no word is shared."""
    when = event_span(event)
    return when is not None and any(when[0] <= d.end and when[1] >= d.start for d in days)


def choose_maps(falls: Mapping[str, int], before: Sequence[str]) -> list[str]:
    """The maps that list most entry points; else those on show before, else who and how."""
    best = sorted((p for p, n in falls.items() if n > 0), key=lambda p: (-falls[p], p))
    return list(dict.fromkeys([*best, *before, map_of_type("preference"), map_of_type("identity")]))[:2]


def render_system(
    graph: Graph, state: State, session: str, mocs: Sequence[str], *, today: date, budget: int
) -> str:
    """The `system` text of *session* as of now."""
    index = graph.index
    entries = [
        *index.entries(pinned=True),
        *index.entries(standing=True),
        *(e for type in ("identity", "preference") for e in index.entries(type=type, first=CANDIDATES)),
        *(loops := index.entries(loop="open")),
        *(e for moc in mocs for e in index.entries(moc=moc, first=CANDIDATES)),
    ]
    pages = {path: written_by_hand(graph, path, budget // 8) for path in ("index", "now", *mocs)}
    return render_system_slice(
        entries=without_agents_notes(entries, state.by_hand),
        counts=index.moc_counts() | {OPEN_LOOPS: len(loops)},
        sessions=state.sessions,
        own=session,
        mocs=mocs,
        written=pages,
        today=today,
        zone=graph.zone,
        budget=budget,
    )


def without_agents_notes(entries: Iterable[Entry], by_hand: Mapping[str, int]) -> Iterator[Entry]:
    """Those of the inbox only as a person was seen to leave them there, and never pinned: an agent writes there, too."""
    for entry in entries:
        if not entry.path.startswith("inbox/"):
            yield entry
        elif by_hand.get(entry.path) == entry.mtime:
            yield replace(entry, pinned=False)


def with_agents_mark(entry: Entry, by_hand: Mapping[str, int]) -> Entry:
    """*entry*; one of the inbox that no person was seen to leave there says of itself whose it is, and is not believed."""
    believed = not entry.path.startswith("inbox/") or by_hand.get(entry.path) == entry.mtime
    return entry if believed else replace(entry, origin="tool")


def written_by_hand(graph: Graph, path: str, budget: int) -> str:
    """What a person wrote on a page around its block; "" if the page is not there or cannot be read."""
    try:
        return clip_text(persons_words(graph.vault.text(path), path), budget)
    except (OmgError, OSError, UnicodeDecodeError):
        return ""
