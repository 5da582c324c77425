"""Builds the Observer's question to the model: instructions, known notes, and the messages.

It reads only the index, which finds the notes that the messages may be about."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from ..config import Config
from ..dates.days import event_span
from ..errors import BadNode, BadReply, NotFound
from ..graph.graph import Graph
from ..inbox import PREFIX
from ..index.archived import APART_MS, last_messages
from ..index.rows import plain_body
from ..index.search import ALONE
from ..index.store import Entry
from ..llm.replies import Ask, ModelQuestion, cut_out, instructions, object_schema
from ..message.envelope import MEMORY_NOTES, cut_middle
from ..message.turn import Message, fenced_code
from ..node.note import GENERATED, TYPES
from ..plan.corrections import is_proposal
from ..plan.drafts import Plan
from ..plan.edits import split_history, without_part
from ..rules.observer import derive_edit, speaker
from ..text.tokens import clip_text, count_tokens
from ..text.words import split_sentences, stems_of, told_words
from .reply import HINTS, ParsedReply, ShownToObserver, parse_value, quoted_reply

# Known notes get KNOWN_LEAST tokens and KNOWN_PER_NEW for each token of the messages, at most KNOWN_TOKENS and at most
# KNOWN_SHARE of the model's window. With .4 and 3,500, 6 of 92 updates in BEAM 11 named a note that was not shown.
KNOWN_LEAST, KNOWN_PER_NEW = 700, 0.6
KNOWN_TOKENS, KNOWN_SHARE = 4_500, 0.1
HITS, SURE = 8, 12  # hits for each message; the first SURE of all hits come before the loops that are due
# How many notes are shown with their body, the characters of a body, and the share of the budget for bodies.
WITH_BODY, BODY_CHARS, BODY_SHARE = 12, 400, 0.4
# How many notes are shown, and how many of these may be the assistant's:
# old advice must not crowd out other notes.
MOST_NOTES, OF_ASSISTANT = 56, 20
NEAR_LOOP_DAYS, LOOPS = 10, 12  # open loops due within NEAR_LOOP_DAYS, at most LOOPS of them
# The new messages may answer the last ANSWERED messages, for which ANSWERED_HITS notes are found. All notes of a graph
# with at most FEW are shown: "It's a 2018, I looked in the papers" shares no word with the note on the car.
ANSWERED, ANSWERED_HITS, FEW = 4, 6, 12
# Most characters that a message shows of code, of text that looks passed on, and of a tool's call.
EXCERPT_CHARS, PASSED_CHARS, CALL_CHARS = 400, 800, 300
# Characters of text from tools or passed on: the least to ask about, the most of one piece and of all pieces; and of a
# message without such text.
LEAST_MATERIAL, PIECE_CHARS, MATERIAL_CHARS, TOPIC_CHARS = 200, 1_500, 16_000, 160
# Most characters of an assistant's reply, and of each of its lines. ENTRY_WORTH: the worth of a heading or a numbered
# line; a word of the person that only one line has is worth 1.
REPLY_CHARS, LINE_CHARS, ENTRY_WORTH = 1_600, 300, 0.3
ENTRY = re.compile(r"\s{0,3}(?:#{1,6}|\d{1,2}[.)])\s")
WINDOW_SHARE = 0.5  # share of a model's window for the turns; the rest is for prompt, known notes and reply

READ_AGAIN = """# Notes that rules made of the messages below

Word for word, sentence by sentence. Update each that says too little or something wrong; where several are one thing, supersede each of them with the same title and description. Create no note beside one that says it.
"""
WAITING = "inbox/"  # folder of loose notes, which are still to be read


@dataclass(frozen=True, slots=True)
class Observer:
    """
    Who reads the messages: a model, or the rules in omg/rules/ if `ask` is None.

    `window`: how many tokens the model takes in; the smallest number, if there are several models. `able`: whether a
    named model is good enough to check notes (`check.is_able`).
    """

    ask: Ask | None = None
    model: str = "offline"
    window: int = 128_000
    able: Callable[[str], bool] = lambda model: True


@dataclass(frozen=True, slots=True)
class TalkSoFar:
    """The state of a conversation before the messages that the question is about."""

    session: str
    current: Mapping[str, str]  # the conversation's hints
    before: Sequence[Message] = ()  # what was said right before


def shown_notes(
    plan: Plan, messages: Sequence[Message], so_far: TalkSoFar, observer: Observer, config: Config
) -> ShownToObserver:
    """Collect what the Observer is shown: *messages*, and as many known notes as `previous_observer_tokens` allows."""
    graph, session, current, before = plan.graph, so_far.session, so_far.current, so_far.before
    budget = room_for_known(config, observer.window, messages)
    now = "\n".join(f"{key}: {current[key]}" for key in HINTS if current.get(key))
    now = clip_text(now, budget)
    budget -= count_tokens(now)
    made = notes_made_of(plan, messages)
    session_asked = session if observer.ask else None
    found = known_notes(plan, messages, now=now, session=session_asked, before=before)
    # Proposals of the assistant are not shown among the known notes, or the same words of a person would not
    # be noted. A model decides whether a proposal made from these messages is accepted
    # (`ShownToObserver.proposals`).
    waiting = {e.path for e in (*found, *made.values()) if is_proposal(graph, e)}
    plan.waiting |= waiting
    if observer.ask is None or is_small_model(config, observer):
        made = {path: e for path, e in made.items() if path not in waiting}
    notes, bodies = within_budget(plan, [e for e in found if e.path not in made.keys() | waiting], budget)
    notes = [*made.values(), *notes]
    handles = {e.path: f"n{n}" for n, e in enumerate(by_subject(notes), 1)}
    shown = {e.path: e for e in notes}
    return ShownToObserver(
        {f"m{n}": (session, m) for n, m in enumerate(messages, 1)},
        {handle: shown[path] for path, handle in handles.items()},
        graph.zone,
        now,
        {handles[path]: body for path, body in bodies.items()},
        max(0, count_known(graph) - len(notes)),
        before,
        notes_of_pages(graph, messages),
        made=frozenset(handles[path] for path in made),
    )


def notes_of_pages(graph: Graph, messages: Sequence[Message]) -> dict[str, int]:
    """
    Message id → the number of notes made from the message, for messages that a tool returned or a person passed on.
    """
    made = graph.index.notes_by_source([m.id for m in messages if m.material])
    return {id: len({note.path for note in notes}) for id, notes in made.items()}


def notes_made_of(plan: Plan, messages: Sequence[Message]) -> dict[str, Entry]:
    """Return the active notes that an earlier reading made from *messages*, by path."""
    index = plan.graph.index
    made = index.notes_by_source([m.id for m in messages])
    paths = {note.path for notes in made.values() for note in notes if note.status == "active"}
    entries = [index.entry(path) for path in paths - plan.drafts.keys() - plan.moved.keys()]
    found = [e for e in entries if e is not None and e.path.startswith("nodes/")]
    return {e.path: e for e in sorted(found, key=lambda e: (e.updated, e.path))}


def room_for_known(config: Config, window: int, messages: Sequence[Message]) -> int:
    """The tokens allowed for known notes beside *messages*. Replies of the assistant count in full length."""
    fixed = config.observation.previous_observer_tokens
    if fixed == "auto":
        new = sum(count_tokens(message_text(m)) for m in messages)
        return min(KNOWN_LEAST + int(KNOWN_PER_NEW * new), KNOWN_TOKENS, int(window * KNOWN_SHARE))
    return sys.maxsize if fixed is False else fixed


def known_notes(
    plan: Plan, messages: Sequence[Message], *, now: str, session: str | None, before: Sequence[Message] = ()
) -> list[Entry]:
    """
    Return the notes that *messages* may be about, best first.

    *now*: the task, state and next step of the conversation, as text. The result has:
    - notes drafted in this batch
    - notes found by a search for each message and for *now*
    - open loops that are due about the day of the last message
    - if *session* is given, because a model observes: notes about what was said just before *messages*, and all notes
      of a small graph
    - if *session* is None: notes made from the user's latest message in *before*, unless this message is old

    The search uses vectors only if *session* is given.
    """
    graph, at = plan.graph, datetime.fromtimestamp(messages[-1].timestamp / 1000, UTC)
    texts = [m.text for m in messages if m.role != "tool"]
    ranked = notes_found(graph, [*texts, now], at, vectors=session is not None)
    due = due_loops(graph, at.astimezone(graph.zone).date())
    since = messages[0].timestamp
    last = notes_of_last(graph, before, since) if session is None else []
    more = [] if session is None else notes_unnamed(graph, session, since)
    found = {
        e.path: e
        for e in (*last, *ranked[:SURE], *due, *ranked, *more)
        if e.path not in plan.drafts and e.path not in plan.moved
    }
    return [*reversed(plan.entries()), *found.values()]


def notes_found(graph: Graph, texts: Iterable[str], at: datetime, *, vectors: bool) -> list[Entry]:
    """The hits of the index for each of *texts*, best first. *vectors*: also search by meaning."""
    best: dict[str, tuple[float, Entry]] = {}
    for text in dict.fromkeys(text[:1000] for text in texts if text.strip()):
        for hit in graph.index.search(text, HITS, now=at, how=ALONE._replace(vectors=vectors)):
            if hit.entry.path.startswith(WAITING) or hit.entry.type in GENERATED:
                continue  # generated pages, and loose notes, which may hold these very messages
            if hit.entry.status == "active" and hit.score > best.get(hit.entry.path, (-1.0, None))[0]:
                best[hit.entry.path] = (hit.score, hit.entry)
    return [e for _, e in sorted(best.values(), key=lambda b: (-b[0], b[1].path))]


def notes_of_last(graph: Graph, before: Sequence[Message], since_ms: int) -> list[Entry]:
    """
    Return the notes made from the user's latest message in *before*; none if this message is old.

    The new messages may correct these notes.
    """
    said = [m.id for m in before if m.role == "user" and since_ms - m.timestamp <= APART_MS]
    made = graph.index.notes_by_source(said[-1:])
    paths = dict.fromkeys(note.path for notes in made.values() for note in notes)
    return [e for path in paths if (e := graph.index.entry(path)) and e.status == "active"]


def notes_unnamed(graph: Graph, session: str, since_ms: int) -> list[Entry]:
    """
    Return notes that the new messages may mean even if the notes share no word with the messages.

    - notes about the messages just before *since_ms*
    - all notes, if the graph has only a few

    Notes of tools are left out.
    """
    answered = graph.index.ask(last_messages, session, since_ms, ANSWERED)
    near = [m for m in answered if m is answered[-1] or since_ms - m.timestamp <= APART_MS]
    texts = [m.text for m in near if m.role != "tool"]
    before = notes_found(graph, texts, datetime.fromtimestamp(since_ms / 1000, UTC), vectors=True)
    few = graph.index.entries() if count_known(graph) <= FEW else []
    more = [*before[:ANSWERED_HITS], *(e for e in few if e.path.startswith("nodes/"))]
    # No notes of tools: beside text of a web page, a person's words are trusted less.
    return [e for e in more if e.origin != "tool"]


def due_loops(graph: Graph, day: date) -> list[Entry]:
    """
    Return the open loops (things to do) whose day is near *day*, the nearest first.

    The Observer is shown these notes, because the new messages may close a loop or move its day.
    """
    near = []
    for entry in graph.index.entries(loop="open"):
        span = event_span(entry.event)
        away = span and max((span[0] - day).days, (day - span[1]).days, 0)
        if away is not None and away <= NEAR_LOOP_DAYS and entry.path.startswith("nodes/"):
            near.append((away, entry.path, entry))
    return [entry for *_, entry in sorted(near, key=lambda n: n[:2])[:LOOPS]]


def count_known(graph: Graph) -> int:
    """The number of active notes."""
    return sum(graph.index.moc_counts().values())


def within_budget(plan: Plan, found: Sequence[Entry], budget: int) -> tuple[list[Entry], dict[str, str]]:
    """
    As many notes of *found* as fit into *budget* tokens, and path → body for some of them.

    A body is what the note says beyond its description. Only the first WITH_BODY (12) notes can have one. No body is
    added once BODY_SHARE (40 %) of *budget* is used.
    """
    notes: list[Entry] = []
    bodies: dict[str, str] = {}
    spent = 0
    for entry in fewer_notes(found):
        spent += count_tokens(note_line("n00", entry))
        if spent > budget:
            break
        notes.append(entry)
        body = beyond_line(plan, entry) if len(notes) <= WITH_BODY else ""
        cost = count_tokens(body) + 4
        if body and spent + cost <= budget * BODY_SHARE:
            bodies[entry.path] = body
            spent += cost
    return notes, bodies


def fewer_notes(found: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the first MOST_NOTES of *found*, at most OF_ASSISTANT of them from the assistant."""
    left, advice = MOST_NOTES, OF_ASSISTANT
    for entry in found:
        if left and (entry.origin != "assistant" or advice):
            left, advice = left - 1, advice - (entry.origin == "assistant")
            yield entry


def beyond_line(plan: Plan, entry: Entry) -> str:
    """
    The body of *entry* beyond its description. Only the end of a long body is given, since it has the newest
    additions.
    """
    known = entry.path in plan.drafts
    try:
        node = plan.draft(entry.path).node
    except (NotFound, BadNode):
        return ""
    if not known:
        plan.drafts.pop(node.path, None)
    main = plain_body(split_history(node.body)[0], node.title)
    text = " ".join(without_part(main, node.description)[0].split())
    return text if len(text) <= BODY_CHARS else "… " + text[-BODY_CHARS:].partition(" ")[2]


def by_subject(entries: Sequence[Entry]) -> list[Entry]:
    """Reorder *entries* so that each is followed by the others on the same subject."""
    rest, ordered = list(entries), []
    while rest:
        first, *rest = rest
        same = [e for e in rest if is_same_subject(first, e)]
        ordered += [first, *same]
        rest = [e for e in rest if e not in same]
    return ordered


def is_same_subject(a: Entry, b: Entry) -> bool:
    linked = a.path in b.links or b.path in a.links
    return linked or bool(told_words(a.title) & told_words(b.title))


def note_line(handle: str, entry: Entry) -> str:
    what = [entry.type]
    what += ["standing"] if entry.standing else []
    what += [f"on {entry.event}"] if entry.event else []
    what += [f"loop {entry.loop}"] if entry.loop else []
    what += [f"said {entry.updated}"] if entry.updated else []
    return f"{handle} [{', '.join(what)}] {entry.title}: {entry.description}"


def render_question(shown: ShownToObserver) -> str:
    """
    Render the user part of the question: known notes, the conversation's state, and the messages.

    Each note and each message begins with its handle, such as `n1` or `m1`.
    """
    lines = {
        h: note_line(h, e) + (f"\n    {shown.bodies[h]}" if h in shown.bodies else "")
        for h, e in shown.notes.items()
    }
    known = [line for h, line in lines.items() if h not in shown.made]
    made = [line for h, line in lines.items() if h in shown.made]
    again = "\n".join([READ_AGAIN, *made, "\n"]) if made else ""
    more = f"(and {shown.more} more, none of them nearer to these messages)" if shown.more else ""
    notes = "\n".join([*(known or ["(none yet)"] * (not more)), *([more] if more else [])])
    now = f"# Now, before these messages\n\n{shown.now}\n\n" if shown.now else ""
    head = f"# Notes that exist\n\n{notes}\n\n{again}{now}# Messages\n"
    around = words_around(m for _, m in shown.messages.values())
    return head + "\n".join(message_lines(shown, lambda m: message_text(m, around.get(m.id, ()))))


def render_material(shown: ShownToObserver) -> str:
    """
    The user part of the question about text that tools returned or people passed on; "" if there is too little text.
    """
    pieces = sum(len(part) for _, m in shown.messages.values() for part in long_passed_on(m))
    if pieces < LEAST_MATERIAL:
        return ""
    chars = max(LEAST_MATERIAL, min(PIECE_CHARS, MATERIAL_CHARS // len(shown.messages)))
    known = [note_line(h, e) for h, e in shown.notes.items() if e.origin == "tool"]
    notes = "\n".join(known) or "(none yet)"
    lines = message_lines(shown, lambda m: material_text(m, chars))
    return f"# Notes that exist\n\n{notes}\n\n# Messages\n" + "\n".join(lines)


def message_lines(shown: ShownToObserver, text: Callable[[Message], str]) -> list[str]:
    """
    One line for each message, with handle, time, speaker and *text*. A line with the day precedes the messages of
    that day.
    """
    lines, day, talk = [], None, ""
    for handle, (session, m) in shown.messages.items():
        if talk not in ("", session):
            lines.append("\n=== another conversation ===")
            day = None
        talk = session
        at = datetime.fromtimestamp(m.timestamp / 1000, shown.zone)
        if at.date() != day:
            day = at.date()
            lines.append(f"\n--- {at:%A %Y-%m-%d} ---")
        lines.append(f"{handle} {at:%H:%M} {message_label(m)}: {text(m)}".rstrip())
    return lines


def words_around(messages: Iterable[Message]) -> dict[str, set[str]]:
    """
    Map each assistant's message to the words that a person said just before and after.

    Returns message id → the stems of these words, without stop words.
    """
    found: dict[str, set[str]] = {}
    words, since = set[str](), list[str]()
    for m in messages:
        if m.role == "assistant":
            found[m.id] = set(words)
            since.append(m.id)
        elif m.role == "user":
            words = set(stems_of(m.spoken))
            for id in since:
                found[id] |= words
            since = []
    return found


def message_text(m: Message, around: Collection[str] | None = None) -> str:
    """
    Return the text of a message as the Observer is shown it.

    - Of a tool's result, only the length is shown. The marks in MEMORY_NOTES are shown as they are.
    - Passed-on text and pasted code in a person's message are marked, and cut if they are long.
    - An assistant's message is treated like a person's, unless *around* is given. With *around*, code is cut to its
      beginning, and other text to the lines that matter most (`reply_excerpt`).

    *around*: words that a person said next to the assistant's message.
    """
    if m.role == "tool":
        return m.text if m.text in MEMORY_NOTES else f"[{len(m.text):,} characters, not shown]"
    calls = "".join(f"\n    calls {c.name}({cut_middle(c.arguments, CALL_CHARS)})" for c in m.calls)
    if m.role == "assistant" and around is not None:
        return reply_excerpt(m.with_parts(fenced_code(m.text), beginning_of_code), around) + calls
    return m.with_parts(m.material, in_place_of_material) + calls


def reply_excerpt(text: str, around: Collection[str]) -> str:
    """
    Shorten an assistant's reply to REPLY_CHARS, at the cost of its least important lines.

    The first and the last line are kept. The other lines are kept by worth, and at equal worth from the top:
    - each word that a line shares with *around* adds 1, divided by the number of lines that share this word
    - a heading or a numbered line adds ENTRY_WORTH

    "…" stands for each gap. A shorter reply is returned whole.
    """
    if len(text) <= REPLY_CHARS:
        return text
    parts = [part for line in text.splitlines() if line.strip() for part in parts_of_line(line)]
    shared = [stems_of(part).keys() & around for part in parts]
    common = Counter(word for words in shared for word in words)
    worth = [
        sum(1 / common[w] for w in words) + ENTRY_WORTH * bool(ENTRY.match(part))
        for words, part in zip(shared, parts, strict=True)
    ]
    worth[0] = worth[-1] = math.inf
    kept, room = set[int](), REPLY_CHARS
    for n in sorted(range(len(parts)), key=lambda n: -worth[n]):
        if len(parts[n]) <= room:
            kept.add(n)
            room -= len(parts[n])
    return "\n".join(parts[n] if n in kept else "…" for n in range(len(parts)) if n in kept or n - 1 in kept)


def parts_of_line(line: str) -> list[str]:
    """Split a long *line* into sentences of at most LINE_CHARS characters. A short line is returned whole."""
    sentences = [line] if len(line) <= LINE_CHARS else split_sentences(line)
    return [cut_middle(sentence, LINE_CHARS) for sentence in sentences]


def beginning_of_code(kind: str, text: str) -> str:
    cut = f"{text[:EXCERPT_CHARS]}\n[… {len(text):,} characters of code]"
    return text if len(text) <= EXCERPT_CHARS else cut


def in_place_of_material(kind: str, text: str) -> str:
    what, most = ("pasted to work on", EXCERPT_CHARS) if kind == "code" else ("looks passed on", PASSED_CHARS)
    if len(text) <= most:
        return f"[{what}:\n{text}\n]"
    return f"[{what}, {len(text):,} characters, which begin:\n{text[:most]}\n…]"


def material_text(m: Message, chars: int) -> str:
    """
    The text that a tool returned or a person passed on, at most *chars* of each part. If there is none, the beginning
    of the message.
    """
    if parts := long_passed_on(m):
        return "\n".join(cut_middle(part, chars) for part in parts)
    return " ".join(m.spoken.split())[:TOPIC_CHARS]


def long_passed_on(m: Message) -> list[str]:
    """
    Return the texts in *m* that are not shown whole in the question about the conversation.

    - of a tool's message: the whole result, unless a tool of OMG returned it
    - of any other message: each passed-on text longer than PASSED_CHARS, except code
    """
    if m.text in MEMORY_NOTES:
        return []
    parts = [m.text[s.start : s.end] for s in m.material if s.kind != "code"]
    return [part for part in parts if m.role == "tool" or len(part) > PASSED_CHARS]


def message_label(m: Message) -> str:
    if m.role == "tool":
        return f"TOOL RESULT of {m.tool or 'a tool'}"
    return f"user {' '.join(m.sender.split())}".rstrip() if m.role == "user" else "assistant"


def observer_prompt(name: str, config: Config, agent: str) -> str:
    own = config.observation.agents.get(agent)
    return instructions(
        name, own.instruction if own and own.instruction is not None else config.observation.instruction
    )


# --- The Observer for small models: one message a call. The model gives only `type` and `text` of a fact; the note quotes
# the sentence of the user that says the fact.


# Limits of a reply about one message: without a limit in the grammar, small models do not stop.
FACTS, FACT_CHARS = 6, 240
SMALL_WINDOW = 16_000  # tokens; below it `style = "auto"` asks message by message

FACT_SCHEMA = object_schema(
    "type text",
    type={"type": "string", "enum": list(TYPES)},
    text={"type": "string", "maxLength": FACT_CHARS},
)
FACTS_SCHEMA = object_schema("facts", facts={"type": "array", "maxItems": FACTS, "items": FACT_SCHEMA})


def is_small_model(config: Config, observer: Observer) -> bool:
    style = config.observation.style
    return style == "turnwise" or (style == "auto" and observer.window < SMALL_WINDOW)


def message_by_message(shown: ShownToObserver, ask: Ask, config: Config, agent: str) -> Iterator[ParsedReply]:
    """
    Yield a small model's reply about each message of *shown*.

    A message whose reply cannot be read is skipped. Raises BadReply if no reply could be read.
    """
    system = observer_prompt("observe-turnwise", config, agent)
    read, failed = 0, None
    for handle, (_, message) in shown.messages.items():
        by_person = message.role == "user" or message.id.startswith(PREFIX)
        words = message.spoken
        if not by_person or not words:
            continue
        line = f"{speaker(message)}: {words}"
        reply = ask(ModelQuestion(system, line, schema=FACTS_SCHEMA, purpose="observe", agent=agent))
        try:
            facts = cut_out(reply.text, "facts", "text")["facts"]
        except BadReply as e:
            failed = e
            continue
        read += 1
        edits = [
            edit
            for f in (facts if isinstance(facts, list) else ())
            if isinstance(f, dict)
            and (edit := derive_edit(f, handle, message, notes=shown.notes, zone=shown.zone))
        ]
        parsed = quoted_reply(parse_value({"edits": edits}, shown))
        parsed.cut = int(reply.cut)
        yield parsed
    if failed and not read:
        raise BadReply("the model's replies hold no `facts`; nothing was marked observed") from failed
