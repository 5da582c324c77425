"""
Decides which notes a prompt is given, and when `system` is rendered anew.

Rendering `system` anew is called an activation. Between two activations every prompt gets the same bytes of
`system`, so that the provider's prompt cache keeps working. News reaches the model through `prompt`.
This module calls no model and reads no clock. At an activation it reads index.md, now.md and two maps; it reads
no other file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import regex

from ..config import Config
from ..dates.days import MS_PER_DAY, pause_text
from ..embed import asks_encoder
from ..errors import OmgError
from ..graph.graph import Graph
from ..graph.state import SessionState, State, note_given, note_session_id
from ..index.index import prompts_first
from ..index.links import told_by
from ..index.search import FOR_PROMPT, ParsedQuery, parse_query
from ..index.store import WEAK_BELOW, Entry, Hit, Term, terms_of
from ..message.envelope import legible_text, strip_memory, without_envelope
from ..message.statements import asks
from ..node.note import MOCS, OPEN_LOOPS, TYPES, map_of_type, page_title, text_below_head
from ..plan.edits import split_history, told_text
from ..plan.pages import (
    above_topic,
    filed_day,
    is_topic,
    maps_of,
    persons_words,
    project_of_map,
    standing_loops,
    standing_of,
    week_of,
)
from ..text.characters import fold_text, with_labels, without_citations
from ..text.tokens import clip_text, count_tokens
from ..text.words import (
    STOP,
    common_stems,
    cut_text,
    is_english,
    singular_form,
    split_sentences,
    told_words,
    written_words,
)
from ..vault.vault import SAYING
from .passages import Passage, Said, assistants_share, find_said, quoted_passages, with_what_followed
from .prompt import Found, Standing, event_falls_on, render_prompt, render_system_slice

# --- Whether a message asks for the course of something: an order, a count, a summary.
#
# The answer to such a question needs many lines and short passages rather than details. A wrong guess only
# costs some detail. The lists are short on purpose: four times as many phrases found no more (bench/LOG.md).


COURSE = re.compile(
    r"\b(?:order|sequence|timeline|chronolog\w*|how (?:many|often)|summar\w+|overview|recap|history|over time|so far"
    r"|reihenfolge|wie (?:viele|oft)|zusammenfass\w*|fasse?|überblick|verlauf|bisher"
    r"|orden|cuánt[ao]s|resum\w+|hasta ahora|ordre|combien|résum\w+|jusqu'ici)\b"
    r"|顺序|几次|总结|到现在|順番|何回|まとめ|これまで",
    re.I,
)
# Words of a question for a course that do not name its topic.
ASKING_WORDS = re.compile(
    rf"{COURSE.pattern}|\b(?:list|mention\w*|throughout|conversations?|chats?|discuss\w*|brought|only|aspects?|items?|topics?"
    r"|different|three|four|five|six|seven|eight|nine|ten)\b",
    re.I,
)
COURSE_ASKED_CHARS = 2_000


def asks_for_course(text: str) -> bool:
    """Return whether *text* asks for an order, a count or a summary, which needs many notes but few details."""
    return bool(COURSE.search(text[:COURSE_ASKED_CHARS]))


def topic_of(text: str) -> str:
    """Return the topic in *text*: the text without words that ask for an order, a count or a summary."""
    return " ".join(ASKING_WORDS.sub(" ", text).split())


# --- How surely a note or message must answer before a prompt gets any memory. Most prompts need none.
#
#     asks_of_memory   whether the prompt has a word that could name a subject
#     sureness         how surely the notes and messages that were found answer the prompt
#
# Pure. Each figure was measured, leaving out one conversation at a time (bench/silence.py, bench/LOG.md).


# The least `sureness`: for any prompt, and for a prompt in the first person.
SURE, SURE_OF_OWN = 0.36, 0.19
# The least cosine if the encoder (embed.py) alone decides, also in the first person. Chosen on half of bench/talks.toml.
SURE_BY_ENCODER = 0.25
# For Chinese by the static table, for which all Chinese texts are similar: the least sum of a cosine and
# BY_PAIRS times the share of the prompt's character pairs. Chosen on all of bench/talks.toml.
SURE_IN_CHINESE, BY_PAIRS = 0.685, 0.5
CHINESE = regex.compile(r"\p{Han}"), regex.compile(r"[\p{Hiragana}\p{Katakana}]")
# Factor for a message's score: messages share words with unrelated prompts more often than notes do.
SAID_SHARE = 0.7
# Factor for a message's share of the prompt's words: in a small archive all words are common.
WRITTEN_ALONE = 0.5
NAMES_SHARE = 0.5  # factor if the prompt has names, and no note or message has one of these
NAME_KNOWN = 0.1  # added if a note or message has one of the prompt's names
# Weight of the best cosine's excess over a typical cosine. Cosines are higher in other languages than English.
MEANING, TYPICAL, TYPICAL_ELSE = 0.8, 0.4, 0.55

OF_ONES_OWN = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ich|mir|mich|mein\w*|wir|uns\w*|je|j'|moi|mon|ma|mes|nous|notre|nos"
    r"|did you|you (?:wrote|suggested|recommended|proposed|advised|gave|made|listed|named|worked out|booked)"
    r"|yo|mi|mis|nosotros|nuestr\w+|remember|remind|told|said|mentioned|again|last time)\b",
    re.I,
)
NAME_WITHIN = re.compile(r"(?<=[^.?!:\s] )[^\W\d_][\w’'-]*")
GERMAN = re.compile(r"\b(?:der|die|das|und|ist|mein\w*|dein\w*|eine?|nicht|wie|wer|wann|hat|habe|haben)\b")

# Words that ask nothing of memory. A message with no other words and no date gets no memory.
SMALL_TALK = frozenset(
    """
    ack alright amazing awesome bye cheers continue cool correct done exactly excellent fine good great haha hello hey
    hi hm hmm lol love maybe morning evening night nice nope okay ok oh perfect proceed repeat right sorry sounds start stop
    super test thank thanks thx understood welcome well wow yeah yep yup
    """.split()
)
PHRASE = re.compile(
    r"\W*+(?:(?:thanks?|thank\ you|ok(?:ay)?|great|perfect|cool|yes|no|hm+)\b\W*+){0,3}"
    r"(?:sounds\ (?:good|great|fine|like\ a\ plan)|never\ ?mind|(?:one|just\ a)\ (?:moment|sec|second|minute)(?:\ please)?"
    r"|(?:that|this|it)(?:['’]s|\ is|\ was|\ looks|\ sounds)(?:\ (?:very|really|so|super))?"
    r"\ (?:helpful|great|good|perfect|fine|all|right|correct|funny|nice|interesting)|let\ me\ (?:think|see)"
    r"|no\ (?:worries|problem)|got\ it|makes\ sense|good\ luck|see\ you(?:\ later)?|take\ care|go\ (?:on|ahead)"
    r"|how\ are\ you(?:\ today)?)\W*+(?:(?:thanks?|thank\ you|please|then|now)\W*+)?",
    re.I,
)


# Words without a subject in a question about days; common English verbs and days are in text/words.toml.
ASKING_OF_DAYS = told_words(
    "happened news latest calendar agenda plans schedule datum passiert los neues neu gab gab's war waren wurde haben"
    " hatten habe gemacht gesagt besprochen geplant steht es seit bis wir ich alles etwas welches"
)


# If a prompt asks for details, it is given a page's notes as well as the page.
DETAILS = re.compile(
    r"\b(?:details?|detailed|exactly|everything|word for word|genau|einzelheiten|ausführlich|alles)\b", re.I
)
HOW = re.compile(r"\s*(?:how|why|wie|warum)\b", re.I)
NAMED = re.compile(r"\b(?:the|an?|my|your|our|his|her|their)\s+(\w+)", re.I)
# The beginning of a request: "Tell me what …", "Please list everything …". The verb of a request names no subject.
REQUEST = re.compile(
    r"\A\W*(?:please\W+)?\w+\W+(?:(?:me|us|mir|uns)\W+)?(?=(?:what|which|everything|alle?s?|(?<=,\s)(?:was|woran|welche\w*))\b)",
    re.I,
)


def of_days_alone(query: ParsedQuery) -> ParsedQuery:
    """Return *query* without its terms, if it asks for days and names no subject: everything said on those days answers
    it. Examples: "What happened yesterday?", "Plans for today", "Tell me what I did in spring". Return any other
    *query* unchanged."""
    if not query.days or not (len(query.terms) <= 1 or asks(query.text) or REQUEST.match(query.text)):
        return query  # "Plan my Sunday run."
    words = query.text
    for start, end in sorted({(when.at, when.after) for when in query.days}, reverse=True):
        words = f"{words[:start]},{words[end:]}"
    words = REQUEST.sub("", words)
    # Common verbs name no subject, except in "the coach" and "How do plants grow in winter?"
    verbs = () if HOW.match(words) else common_stems() - told_words(" ".join(NAMED.findall(words)))
    subjects = told_words(words) - ASKING_OF_DAYS - frozenset(verbs)
    return query if subjects else replace(query, terms=())


def asks_of_memory(query: ParsedQuery) -> bool:
    """Return whether *query* asks for days or has a word that may name a subject. "ok thanks" and "how are you
    today?" have none."""
    if PHRASE.fullmatch(query.text[:200]):
        return False
    words = {t.shown.lower() for t in query.terms} - STOP - SMALL_TALK
    return bool(query.days) or any(any(map(str.isalnum, word)) for word in words)


def sureness(
    query: ParsedQuery,
    hits: Sequence[Hit],
    said: Sequence[Said],
    known: Callable[[str], bool],
    by_meaning: bool,
) -> float:
    """Return how surely *hits* and *said*, both best first, answer *query*: from 0 to about 1. *known*: tells for a
    word whether a note or message has the word. *by_meaning*: whether the search used vectors besides words.

    A *query* with days gets 1 in two cases: it has no other terms, or it asks about what the user did or said
    (`is_of_own`)."""
    if query.days and (not query.terms or is_of_own(query)):
        return 1.0
    shares = [max(SAID_SHARE * min(1.0, s.share), WRITTEN_ALONE * s.words) for s in said]
    sure = max([*(hit.score for hit in hits), *shares], default=0.0)
    if names := list(names_in(query.text)):
        sure = sure + NAME_KNOWN if any(map(known, names)) else sure * NAMES_SHARE
    if not by_meaning:
        return sure
    near = max([0.0, *(s.cosine for s in said), *(h.cosine or 0.0 for h in hits)])
    # A message said a moment ago has no vector yet.
    fresh = max((share for s, share in zip(said, shares, strict=True) if not s.cosine), default=0.0)
    typical = TYPICAL if is_english(query.text) else TYPICAL_ELSE
    return max(fresh, sure + MEANING * (near - typical))


def is_sure(graph: Graph, query: ParsedQuery, hits: Sequence[Hit], said: Sequence[Said]) -> bool:
    """Return whether *hits* and *said* answer *query* surely enough. `sureness` decides, with two exceptions. These
    need vectors, a *query* without days, and at least one statement in *said*:
    - a *query* in a language that the encoder reads: the best cosine decides
    - a *query* in Chinese: the best cosine plus the share of *query*'s pairs of characters that a message has"""
    if said and graph.index.by_meaning and not query.days:
        cosines = [hit.cosine or 0.0 for hit in hits]
        if asks_encoder(graph.index.embedder, query.text):
            return max([*cosines, *(s.cosine for s in said)]) >= SURE_BY_ENCODER
        if CHINESE[0].search(query.text) and not CHINESE[1].search(query.text):
            # A new message has no cosine.
            pairs = [(s.cosine or TYPICAL_ELSE) + BY_PAIRS * s.words for s in said]
            return max([*cosines, *pairs]) >= SURE_IN_CHINESE
    sure = sureness(query, hits, said, graph.index.knows, graph.index.by_meaning)
    return sure >= (SURE_OF_OWN if is_of_own(query) else SURE)


def is_of_own(query: ParsedQuery) -> bool:
    """Return whether *query* is in the first person, or about what was said earlier."""
    return bool(OF_ONES_OWN.search(query.text))


def names_in(text: str) -> Iterator[str]:
    """Yield the capitalised words within sentences of *text*; none in German, where every noun is capitalised."""
    if not GERMAN.search(text):
        for m in NAME_WITHIN.finditer(text):
            word = re.sub(r"['’]s?$", "", m[0])
            if word[:1].isupper() and word.lower() not in STOP:
                yield word


# --- The maps, topics and projects that a prompt names, and their best lines. Names are the titles of maps and of
# project notes, and the types of notes. A line's score is the share of the prompt's words that belong to the name
# (one half in "List my projects"); a prompt is given the line if that score would suffice for a note.


def named_in(query: ParsedQuery, names: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Find the names whose words all occur in *query*. Return path → share. The share (0 to 1) says how many of the
    query's words belong to the name. Possessives ("meine") and MAP_WORDS ("list") do not lower the share.
    *names*: pairs of path and name."""
    asked = word_forms(term for term in query.terms if not OF_ONES_OWN.fullmatch(term.shown))
    found: dict[str, float] = {}
    for path, name in names:
        words = name_forms(name)
        if words and words <= asked:
            share = len(words) / len(words | (asked - MAP_WORDS))
            found[path] = max(share, found.get(path, 0.0))
    return found


MAP_WORDS = frozenset(("map", "list", "show", "topic"))


@lru_cache(maxsize=1024)  # every prompt is compared with the names of all maps
def name_forms(name: str) -> frozenset[str]:
    return word_forms(terms_of(name))


def word_forms(terms: Iterable[Term]) -> frozenset[str]:
    return frozenset(singular_form(fold_text(term.shown).lower()) for term in terms)


def named_lines(
    graph: Graph, query: ParsedQuery, named: Mapping[str, float], limit: int, today: date
) -> list[Hit]:
    """Return the best notes of the maps and projects in *named*, at most *limit* for each. *named*: path → the share of
    *query* that the name covers; a map or project with a share below SURE is skipped. A project's notes are those that
    link to it. Returns no note if *query* asks for days, because the search finds the notes of those days."""
    found: dict[str, Hit] = {}
    for path, share in sorted(named.items(), key=lambda of: -of[1]) if not query.days else ():
        for entry in lines_of(graph, path, limit, today) if share >= SURE else ():
            found.setdefault(entry.path, Hit(entry, share, f"on [[{path}]]"))
    return [*found.values()]


def pages_asked_for(graph: Graph, query: ParsedQuery) -> list[Hit]:
    """Return the pages on the weeks or months that *query* asks for. A page's score is the share of the query's words
    that name the days: 1/2 in "What happened in March?", since "what" and "in" do not count."""
    found: dict[str, Hit] = {}
    asked = word_forms(query.terms)
    for when in query.days:
        names = name_forms(when.phrase)
        share = len(names) / len(asked | names) if names else 0.0
        length = (when.end - when.start).days + 1
        if share < SURE or not 7 <= length <= LONGEST_ASKED:
            continue
        days = [when.start + timedelta(n) for n in range(length)]
        entries = [graph.index.entry(path) for path in sorted({f"reflections/{day:%Y-%m}" for day in days})]
        if length == 7 or not any(entries):
            entries = [graph.index.entry(path) for path in sorted({*map(week_of, days)})]
        found |= {e.path: Hit(e, share, f"of {when.phrase}") for e in entries if e}
    return [*found.values()]


def lines_of(graph: Graph, path: str, limit: int, today: date) -> list[Entry]:
    """Return the best *limit* notes of the map or project at *path*. Notes of the highest priority come first, among
    equals the newest. The map OPEN_LOOPS lists things still to be done; these notes come by due day."""
    if path == OPEN_LOOPS:
        return standing_loops(graph.index.entries(loop="open"), today)[:limit]
    project = project_of_map(path)
    if is_topic(path) and graph.index.entry(project):
        path = project
    moc = path if path.startswith("mocs/") else None
    found = graph.index.entries(moc=moc, links_to=None if moc else path, first=limit)
    entries = [e for e in found if e.type in (*TYPES, "note", "reflection")]
    entries.sort(key=lambda e: filed_day(e) or date.min, reverse=True)
    return sorted(entries, key=lambda e: e.rank)


MAPS_GIVEN = 2  # topics given because of the notes found for a prompt
FALLS_ON = 2  # found notes that a topic must hold; the best note counts for two


def topics_of(graph: Graph, hits: Sequence[Hit], named: Mapping[str, float]) -> list[Hit]:
    """Return the topics that bear on a prompt, as hits. A topic is a map that groups related notes.
    - If the prompt names the map of a type ("List my projects"): the topics below this map, at most MANY_NOTES.
    - Otherwise at most MAPS_GIVEN: topics that the prompt names, then topics with the best hit or several hits.
    A topic without a model's summary is left out: it adds nothing to its notes. *named*: what `named_in` returned."""
    falls: Counter[str] = Counter()
    for n, hit in enumerate(hits):
        for moc in filter(is_topic, maps_of(hit.entry, loop=False)):
            falls[moc] += FALLS_ON if n == 0 else 1
    best = [moc for moc, n in falls.most_common() if n >= FALLS_ON]
    if lists := [moc for moc, share in named.items() if share >= SURE and not is_topic(moc)]:
        entries = [e for e in graph.index.entries(type="moc") if above_topic(e) in lists]
    else:
        paths = [*dict.fromkeys([*filter(is_topic, named), *best])][: 2 * MAPS_GIVEN]
        entries = [e for e in map(graph.index.entry, paths) if e]
    score = max((hit.score for hit in hits), default=1.0)
    most = MANY_NOTES if lists else MAPS_GIVEN
    told = (e for e in entries if e.status == "active" and more_of(graph, False, (), e))
    return [Hit(e, score, "a map of the notes that were found") for e in islice(told, most)]


SYSTEM_SHARE = 0.3  # share of the budget for `system`; `prompt` has the rest
MANY_NOTES = 4  # times as many notes, if a course is asked for
MORE_CHARS = 300  # of a note's text
MAP_CHARS = 500  # of a model's text on a topic
PAGE_CHARS = 1_500  # of the page on a week or month that is asked for
URGENT_S = 60  # how long a cut waits for its observation before `system` goes on without
# Types whose best notes `system` has, with the number of candidates.
SHOWN = {"identity": 100, "preference": 40, "project": 40}
FEW_NOTES = 20  # if a vault has no more notes, `system` may have all
SYSTEM_KEPT_DAYS = 7  # after so many days without a prompt, a session's served text is dropped
QUERY_CHARS = (
    2_000  # characters of a prompt that are searched; text pasted below says little about the question
)
LONGEST_ASKED = 92  # most days asked for, if pages are given
FLOOR = WEAK_BELOW
FLOOR_OF_COURSE = 0.05  # if a course is asked for: all notes that may belong to it


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of a session; *model* and *run* are "" if the host names none."""

    text: str
    session: str
    model: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class Slice:
    """The memory for one prompt: the texts `system` and `prompt`. Each is wrapped, or "" without content. *reason*:
    why `system` was rendered anew; None if it was not."""

    system: str = ""
    prompt: str = ""
    reason: str | None = None

    @property
    def tokens(self) -> int:
        """The number of tokens of both texts."""
        return count_tokens(self.system) + count_tokens(self.prompt)


@dataclass(frozen=True, slots=True)
class Decision:
    """A slice, and the record of how it was decided."""

    given: Slice
    recalled: Sequence[str]  # ids of the notes in the slice that bear on the prompt
    epoch: int  # State.epoch when the slice was rendered
    hits: Sequence[Hit] = ()  # the notes that were weighed, best first
    said: Sequence[Passage] = ()  # the quotations that were weighed

    def keep(self, state: State, asked: Prompt, at_ms: int) -> None:
        # If something was edited or forgotten since the decision, the slice's text is not written to disk.
        """Store the decision in *state*, for the session of *asked*."""
        whole = self.epoch == state.epoch
        if not whole and not self.given.reason and asked.session not in state.sessions:
            return  # the session itself was forgotten
        own = state.sessions.setdefault(asked.session, SessionState())
        keep_served(own, asked.run, self.given.prompt if whole else "", self.epoch)
        if self.given.reason:
            own.system, own.epoch = self.given.system if whole else "", self.epoch
            own.reason, own.model = self.given.reason, asked.model or own.model
            own.activated_ms, own.window = at_ms, 0
            for other in state.sessions.values():
                if max(other.last_ms, other.activated_ms) < at_ms - SYSTEM_KEPT_DAYS * MS_PER_DAY:
                    other.system, other.served, other.activated_ms = "", {}, 0


@dataclass(frozen=True, slots=True)
class Relevant:
    """The notes, maps and quotations that bear on a prompt, best first."""

    topic: ParsedQuery
    course: bool  # whether the prompt asks for a course
    limit: int  # the most notes that are told
    hits: Sequence[Hit] = ()
    said: Sequence[Said] = ()
    maps: Collection[str] = ()  # maps that the prompt names
    pages: Collection[str] = ()  # pages of the weeks and months that the prompt asks for


def keep_served(own: SessionState, run: str, text: str, epoch: int) -> None:
    """Store the text that the run *run* was given. Stores nothing unless OMG is the client's context engine.
    context.py repeats the text in each later request, before the run's message, until the context is cut. Texts
    stored under an older *epoch* are dropped."""
    if next(reversed(own.served), run) not in (run, own.assembled):
        own.served, own.raw_tokens = {}, 0  # a request was made without the served text: that text is gone
    former = own.served if own.timeline and own.epoch == epoch else {}
    own.served = {key: served for key, served in former.items() if key != run}
    if own.raw_tokens and run and text:
        own.served[run] = text


# --- activation


def activation(
    state: State, session: str, *, now: datetime, pending_tokens: int, config: Config, model: str = ""
) -> str | None:
    """
    Return why `system` must be rendered anew for this prompt; None if the present `system` is served again.

        new_session     the session has no `system` yet
        edit            a person changed the memory
        compaction      the session's context was cut
        reset           the session's context was dropped
        model_change    the prompt goes to another model, which has not cached `system`
        threshold       message_tokens were said since the last activation, and something was observed since
        quiet           the conversation was observed while it rested, and "idle" also holds or is switched off
        idle            the session was silent so long that the provider's cache is lost anyway

    "compaction" and "reset" wait until the messages before the cut are observed. The wait ends after URGENT_S,
    because the model may not answer.
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
    """Return the result of before_prompt_build for the prompt in *body*, without empty fields."""
    session, model, run, session_id, prompt = (
        str(body.get(key) or "") for key in ("sessionKey", "modelId", "runId", "sessionId", "prompt")
    )
    own = graph.state().sessions.get(session)
    if session_id and (own is None or own.session_id != session_id):
        graph.note(partial(note_session_id, session=session, session_id=session_id))
    given = slice_for(graph, Prompt(prompt, session, model, run), now, config, tell)
    result = {"appendSystemContext": given.system, "prependContext": given.prompt}
    return {key: text for key, text in result.items() if text}


def result_given_before(graph: Graph, session: str, config: Config) -> dict[str, str]:
    """Return the result of before_prompt_build with the latest `system` of *session*; {} if missing or outdated."""
    state = graph.state()
    own = state.sessions.get(session)
    if own is None or not own.system or own.epoch != state.epoch or not config.inject.budget_tokens:
        return {}
    return {"appendSystemContext": own.system}


def preview(graph: Graph, prompt: str, session: str, now: datetime, config: Config) -> Slice:
    """Return what `slice_for` would return. Changes no state."""
    return decide_slice(graph, graph.state(), Prompt(prompt, session), now, config).given


@prompts_first.answering()
def slice_for(
    graph: Graph,
    asked: Prompt,
    now: datetime,
    config: Config,
    tell: Callable[..., None] = lambda *_, **__: None,
) -> Slice:
    """Return the slice for *asked*. Records an activation in the state."""
    if not config.inject.budget_tokens:
        return Slice()
    made = decide_slice(graph, graph.state(), asked, now, config)
    if made.given.reason or made.given.prompt:
        # An activation is written to disk before the slice is served. Counts of use are written later: no prompt waits.
        keep = graph.update if made.given.reason else graph.note
        keep(lambda state: made.keep(state, asked, epoch_ms_of(now)))
    if made.recalled and made.epoch == graph.state().epoch:
        graph.uses.add(made.recalled, epoch_ms_of(now))
    if graph.notes_given and made.epoch == graph.state().epoch:
        with suppress(OSError):  # the prompt is answered even if the disk is full
            note_given(graph.folder, record_of(made, asked.session, epoch_ms_of(now)))
    if reason := made.given.reason:
        tell("activation", session=asked.session, reason=reason, tokens=count_tokens(made.given.system))
    return made.given


def decide_slice(graph: Graph, state: State, asked: Prompt, now: datetime, config: Config) -> Decision:
    """Choose the notes and quotations (the slice) for the prompt *asked*. Does not change *state*."""
    budget, today = config.inject.budget_tokens, now.astimezone(graph.zone).date()
    own = state.sessions.get(asked.session) or SessionState()
    words = strip_memory(without_envelope(legible_text(asked.text))).strip()[:QUERY_CHARS]
    found, said = find_for(graph, state, words, asked.session, now=now, config=config), list[Passage]()
    pending = sum(p.tokens for p in graph.pending()) if own.cut_ms > own.activated_ms else 0
    reason = activation(
        state, asked.session, now=now, pending_tokens=pending, config=config, model=asked.model
    )
    text, cost = own.system, count_tokens(own.system)
    if reason is None and cost > budget:
        reason = "edit"  # somebody lowered the budget in omg.toml
    if reason:
        mocs = choose_maps([*(h.entry.map for h in found.hits), *found.maps])
        text = render_system(
            graph, state, asked.session, mocs, today=today, budget=round(budget * SYSTEM_SHARE)
        )
        cost = count_tokens(text)
    silence = pause_text(now.timestamp() - own.last_ms / 1000) if own.last_ms else None
    passages = noted_in(said, quoted_passages(graph, found.topic, found.said, room=budget - cost))
    more = partial(more_of, graph, found.course, found.pages)
    days = found.topic.days
    asks_day = bool(days and not found.topic.terms) and asks(words) and asks_of_memory(found.topic)
    told = Found(found.hits, found.limit, more, passages, silence, days, asks_day)
    fresh = render_prompt(told, text, today, graph.zone, budget - cost)
    recalled = [h.entry.id for h in found.hits if is_named(h.entry, text + fresh)]
    given = Slice(text, fresh, reason)
    return Decision(given, recalled, state.epoch, found.hits, said)


def noted_in(seen: list[Passage], passages: Iterable[Passage]) -> Iterator[Passage]:
    """Yield *passages*. Each passage is added to *seen* when the caller takes it."""
    for passage in passages:
        seen.append(passage)
        yield passage


TOLD_HITS, BEGINNING = 24, 40  # notes in a record; characters that identify a quotation


def record_of(made: Decision, session: str, at_ms: int) -> dict[str, Any]:
    """Return a record of what a prompt was given and why, without words of the conversation. graph/state.py stores
    the record, for a person to read later."""
    system, prompt = made.given.system, made.given.prompt
    flat = " ".join(prompt.split())
    quoted = [p for p in made.said if " ".join(p.text[:BEGINNING].split()) in flat]
    return {
        "at": at_ms,
        "session": session,
        "reason": made.given.reason,
        # Counted by lines, because the counts of lines are cached already.
        "tokens": [sum(map(count_tokens, text.splitlines(keepends=True))) for text in (system, prompt)],
        "notes": [
            [hit.entry.path, round(hit.score, 2), hit.why, place_in(hit.entry, system, prompt)]
            for hit in made.hits[:TOLD_HITS]
        ],
        "said": [passage.at_ms for passage in quoted],
    }


def place_in(entry: Entry, system: str, prompt: str) -> str:
    """Return the part of the slice that names *entry*: "prompt" or "system"; "" if neither does."""
    if is_named(entry, prompt):
        return "prompt"
    return "system" if is_named(entry, system) else ""


def is_named(entry: Entry, text: str) -> bool:
    """Return whether *text*, a slice, has a line for *entry*."""
    return any(f"\n- {entry.handle}{end}" in text for end in (" — ", " (", "\n"))


def find_for(
    graph: Graph, state: State, words: str, session: str, *, now: datetime, config: Config
) -> Relevant:
    """Return what bears on a prompt of *session* with these *words*; nothing if no note or message surely answers
    the prompt."""
    today = now.astimezone(graph.zone).date()
    query = of_days_alone(parse_query(words, today))
    course = asks_for_course(words) or bool(query.days and not query.terms)
    topic = parse_query(topic_of(words), today) if course and query.terms else query
    topic = topic if topic.terms else query
    limit = config.inject.entry_points * (MANY_NOTES if course else 1)
    if not limit or not asks_of_memory(query):
        return Relevant(topic, course, limit)
    hits = relevant_hits(graph, topic, now, limit, FLOOR_OF_COURSE if course else FLOOR)
    said = find_said(graph, topic, hits, session=session, now=now, course=course)
    types = [(path, type) for type, (path, _, _) in MOCS.items()]
    if len(topic.terms) == 1:  # "What are my plans?", not "the plan of the API"
        types.append((OPEN_LOOPS, "plan"))
    maps = named_in(topic, (*graph.index.maps().items(), *types))
    projects = named_in(topic, ((h.entry.path, h.entry.title) for h in hits if h.entry.type == "project"))
    pages = pages_asked_for(graph, query)
    named = [*named_lines(graph, topic, {**maps, **projects}, limit, today), *pages]
    if not is_sure(graph, query, hits, said):
        hits, said = [], []
    elif not course:
        said = with_what_followed(graph, hits, said, session=session, now=now)
    hits = [replace(h, entry=with_agents_mark(h.entry, state.by_hand)) for h in surest_first(hits, named)]
    if pages and not query.terms and not DETAILS.search(words):
        hits, said = less_what_pages_tell(graph, [h.entry for h in pages], hits, said)
    asked = {h.entry.path for h in pages}
    if course:  # the person's words come first, notes on the assistant's advice last
        hits.sort(
            key=lambda h: (
                h.entry.path not in asked,
                -h.score * assistants_share(query, h.entry.origin, course),
            )
        )
    fallen = topics_of(graph, hits[:limit], maps)
    return Relevant(topic, course, limit + len(fallen), [*fallen, *hits], said, maps, asked)


def less_what_pages_tell(
    graph: Graph, pages: Sequence[Entry], hits: Sequence[Hit], said: Sequence[Said]
) -> tuple[list[Hit], list[Said]]:
    """Return *hits* and *said* without notes that *pages* summarise, and without those notes' messages. A note that
    changed after its page was written stays."""
    told = graph.index.ask(told_by, [page.path for page in pages])
    written = max((page.updated or date.min for page in pages), default=date.min)
    kept = [h for h in hits if h.entry.path not in told or (h.entry.updated or date.min) > written]
    made = graph.index.notes_by_source([s.message.id for s in said])
    return kept, [s for s in said if told.isdisjoint(note.path for note in made.get(s.message.id, ()))]


def surest_first(hits: Sequence[Hit], named: Sequence[Hit]) -> list[Hit]:
    """Return *hits* and *named* as one list, each note once, the best score first."""
    found: dict[str, Hit] = {}
    for h in sorted((*hits, *named), key=lambda h: -h.score) if named else hits:
        found.setdefault(h.entry.path, h)
    return [*found.values()]


def epoch_ms_of(at: datetime) -> int:
    return round(at.timestamp() * 1000)


# Leads the text of a note if the user changed only its description.
OLDER = "From before the user changed the line above:"


def more_of(graph: Graph, course: bool, pages: Collection[str], entry: Entry) -> str:
    """Return the text of *entry* beyond its description, on one line. *course*: add the note's former statements.
    The text is longer if *entry* is one of *pages*."""
    try:
        whole = graph.vault.text(entry.path)
        if entry.type == "moc":
            more = sentences_beside(entry.description, standing_of(whole))
            return cut_text(" ".join(more), MAP_CHARS)
        body = text_below_head(whole)
        text, before = told_text(body), split_history(body)[1]
    except (OmgError, OSError, UnicodeDecodeError):
        return ""
    more = sentences_beside(entry.description, without_citations(text))
    if more and SAYING & graph.vault.theirs(whole.encode()) == {"description"}:
        more = [OLDER, *more]
    if course and before:
        more += ["Before:", with_labels("; ".join(line.removeprefix("- ") for line in before))]
    return cut_text(" ".join(more), PAGE_CHARS if entry.path in pages else MORE_CHARS)


def sentences_beside(line: str, text: str) -> list[str]:
    """Return the sentences of *text* that say more than *line*."""
    told = written_words(line)
    said = (" ".join(sentence.split()) for sentence in split_sentences(text))
    return [s for s in said if not written_words(s) <= told]


def relevant_hits(graph: Graph, query: ParsedQuery, now: datetime, limit: int, floor: float) -> list[Hit]:
    """Return the notes that bear on *query*, best first."""
    # Twice *limit*, because `system` has some of the notes already.
    hits = graph.index.search(query, 2 * limit, now=now, uses=graph.uses.all(), how=FOR_PROMPT)
    if floor == FLOOR and not query.days:
        # the page on a week or month repeats notes that the search finds as well
        hits = [h for h in hits if h.entry.type != "reflection"]
    return [
        h
        for h in hits
        if (h.why and (h.score >= floor or not query.terms)) or event_falls_on(h.entry.event, query.days)
    ]


def choose_maps(falls: Iterable[str]) -> list[str]:
    """Return the two maps that hold the most hits. *falls*: the map of each hit. If the hits are in fewer than two
    maps, the maps of preferences and identity are added."""
    best = (path for path, _ in Counter(falls).most_common(2))
    return list(dict.fromkeys([*best, map_of_type("preference"), map_of_type("identity")]))[:2]


def render_system(
    graph: Graph, state: State, session: str, mocs: Sequence[str], *, today: date, budget: int
) -> str:
    """Return the `system` text of *session* as of now."""
    index = graph.index
    entries = [
        *index.entries(pinned=True),
        *index.entries(standing=True),
        *(e for type, most in SHOWN.items() for e in index.entries(type=type, first=most)),
        *index.entries(loop="open"),
    ]
    few = sum(index.moc_counts().values()) <= FEW_NOTES
    # A topic whose description is only its title holds only notes of tools and pages.
    topics = [
        e for e in index.entries(type="moc") if is_topic(e.path) and e.description != page_title(e.path)[1]
    ]
    pages = {path: written_by_hand(graph, path, budget // 8) for path in ("index", "now", *mocs)}
    given = Standing(
        entries=list(without_agents_notes(entries, state.by_hand)),
        others=list(without_agents_notes(index.entries() if few else (), state.by_hand)),
        topics=topics,
        sessions=state.sessions,
        written=pages,
    )
    return render_system_slice(given, session, today, graph.zone, budget)


def without_agents_notes(entries: Iterable[Entry], by_hand: Mapping[str, int]) -> Iterator[Entry]:
    """
    Yield *entries* without the inbox notes that an agent may have written.

    *by_hand*: path of an inbox note → its mtime (ns) when a person wrote it. An inbox note is yielded only if it still
    has this mtime. It is yielded as not pinned.
    """
    for entry in entries:
        if not entry.path.startswith("inbox/"):
            yield entry
        elif by_hand.get(entry.path) == entry.mtime:
            yield replace(entry, pinned=False)


def with_agents_mark(entry: Entry, by_hand: Mapping[str, int]) -> Entry:
    """Return *entry*. An inbox note that an agent may have written gets the origin "tool", whatever its file says.
    *by_hand*: path → mtime (ns) of each inbox note that a person wrote."""
    believed = not entry.path.startswith("inbox/") or by_hand.get(entry.path) == entry.mtime
    return entry if believed else replace(entry, origin="tool")


def written_by_hand(graph: Graph, path: str, budget: int) -> str:
    """Return what a person wrote on the page at *path*, outside of the block that OMG generates. The text is cut to
    *budget* tokens. Returns "" if the page is missing or cannot be read."""
    try:
        return clip_text(persons_words(graph.vault.text(path), path), budget)
    except (OmgError, OSError, UnicodeDecodeError):
        return ""
