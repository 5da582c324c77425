"""
What a model says of a week or a month: asked for less until it is short, and held against the notes it was shown.

One rule: a claim that names no note it was shown is dropped, and a reply that is no shorter than what it was made of
is no reflection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import BadReply
from ..llm.jsontext import TEXT, TEXTS, cut_out, object_schema
from ..llm.question import Ask, ModelQuestion
from ..node.note import Node
from ..plan.edits import one_line
from ..text.links import without_citations
from ..text.tokens import clip_text, count_tokens
from ..text.words import words_in
from .periods import (
    NOTE_TOKENS,
    Claim,
    Period,
    ReflectionDraft,
    added_text,
    substance_tokens,
    target_tokens,
)
from .topics import normalized

REFLECTION_SCHEMA = object_schema(
    "description claims",
    description=TEXT,
    claims={"type": "array", "items": object_schema("text notes", text=TEXT, notes=TEXTS)},
)
SHOWN_SHARE = 0.5  # of the model's window for what is shown
CLAIM_CHARS, LINE_CHARS = 600, 300

# What the next attempt is told when the last one came out too long. Each asks for less than the one before.
LADDER = (
    "",
    "Say it in fewer claims: join those of one thread, and drop the least important.",
    "Only outcomes now: what was decided, finished, promised or changed, in one sentence each. No course of events.",
    "At most three claims of one short sentence each. Names stay before numbers, and numbers before dates.",
)


# --- what is asked


def reflection_on(
    period: Period, nodes: Sequence[Node], ask: Ask, *, system: str, room: int, agent: str
) -> ReflectionDraft | None:
    """
    A reflection on *nodes*, or None if no attempt gave one that is shorter than they are.

    What does not fit into *room* tokens at once is looked back on in parts. Raises ModelError.
    """
    parts = []
    for part in fitting_parts(nodes, room):
        if (found := ask_until_short(period, part, ask, system=system, agent=agent)) is None:
            return None
        parts.append(found)
    if len(parts) == 1:
        return parts[0]
    said = " ".join(p.description for p in parts)
    return ReflectionDraft(said[:LINE_CHARS], tuple(c for p in parts for c in p.claims))


def fitting_parts(nodes: Sequence[Node], room: int) -> Iterator[list[Node]]:
    """*nodes* in as few parts as *room* tokens allow, of about the same size: a remnant could not be condensed."""
    sizes = [count_tokens(shown_line("e100", n)) for n in nodes]
    share = sum(sizes) / -(-sum(sizes) // room)
    part: list[Node] = []
    spent, full = 0.0, share
    for node, size in zip(nodes, sizes, strict=True):
        if part and spent + size / 2 > full:
            yield part
            part, full = [], full + share
        part.append(node)
        spent += size
    yield part


def ask_until_short(
    period: Period, nodes: Sequence[Node], ask: Ask, *, system: str, agent: str
) -> ReflectionDraft | None:
    """
    Ask up to four times, each time for less; the first reply below the target wins, else the shortest usable one.

    After Mastra's compression ladder, with three differences: the target stands in the question, a retry is
    shown what was too long, and nothing that grew is ever taken: of a reply that did, the first claims, which matter
    most, as far as they are shorter than the notes. None: no reply was of use, and the same question
    would hardly get a better one. A reply that was cut short was too long; what is whole of it counts where none
    came to its end. Raises BadReply if there was no reply at all, which may be different tomorrow.
    """
    shown = {f"e{n}": node for n, node in enumerate(nodes, 1)}
    text = "\n".join(shown_line(handle, node) for handle, node in shown.items())
    whole = substance_tokens(nodes)
    target = target_tokens(whole, len(nodes))
    best, before = None, ""  # type: ReflectionDraft | None, str
    grown: list[ReflectionDraft] = []
    unended: list[ReflectionDraft] = []
    silent: list[BadReply] = []
    for step in LADDER:
        length = f"Stay below {target} tokens in all, about {target * 3 // 4} words. {step}".strip()
        user = f"# {period.title}, {period.first} to {period.last}\n\n{text}\n\n# Length\n\n{length}{before}"
        try:
            reply = ask(ModelQuestion(system, user, schema=REFLECTION_SCHEMA, purpose="reflect", agent=agent))
        except BadReply as e:
            silent.append(e)
            continue
        try:
            found = parse_reflection(reply.text, shown)
        except BadReply as e:
            silent += [e] * reply.cut
            continue
        size = found.tokens
        if reply.cut:
            unended.append(found)
            before = "\n\nYour last answer was far too long: it was cut short."
            continue
        if size < target:
            return found
        if size < whole and (best is None or size < best.tokens):
            best = found
        grown += [found] * (size >= whole)
        lines = "\n".join(f"- {c.text}" for c in found.claims)
        before = f"\n\n# Your last answer, which had {size} tokens\n\n{found.description}\n{lines}"
    if len(silent) == len(LADDER):
        raise silent[-1]
    unended = [found for found in unended if found.tokens < whole]
    return best or next((s for s in (*(cut_claims(g, whole) for g in grown), *unended) if s), None)


def cut_claims(found: ReflectionDraft, limit: int) -> ReflectionDraft | None:
    """Its first claims, as many as stay below *limit* tokens; None if the first does not."""
    for n in range(len(found.claims) - 1, 0, -1):
        if (shorter := replace(found, claims=found.claims[:n])).tokens < limit:
            return shorter
    return None


def shown_line(handle: str, node: Node) -> str:
    """A note as the model sees it: its line, and what its text adds to that."""
    more = "".join(f"\n    {line}" for line in clip_text(added_text(node), NOTE_TOKENS).splitlines())
    by = f", {node.origin}" if node.origin in ("tool", "assistant") else ""
    return f"{handle} {node.event or node.created} [{node.type}{by}] {node.title}: {node.description}{more}"


def as_shown(nodes: Sequence[Node]) -> tuple[str, ...]:
    """What a reflection on *nodes* is made of: a reply counts for as long as it is this."""
    return tuple(shown_line(n.path, n) for n in nodes)


# --- what comes back


def parse_reflection(text: str, shown: Mapping[str, Node]) -> ReflectionDraft:
    """What of a reply can be stood behind. Raises BadReply if that is nothing."""
    value = cut_out(text, "claims", "text")
    claims: dict[str, Claim] = {}
    for item in value["claims"] if isinstance(value["claims"], list) else ():
        if (claim := to_claim(item, shown)) is not None:
            claims.setdefault(normalized(claim.text), claim)
    if not claims:
        raise BadReply("the reply holds no claim that names a note it was shown")
    said = cleaned_claim(value.get("description"), shown)
    if not said or len(said) > LINE_CHARS:
        said = next(iter(claims.values())).text[:LINE_CHARS]
    return ReflectionDraft(said, tuple(claims.values()))


def to_claim(item: Any, shown: Mapping[str, Node]) -> Claim | None:
    if not isinstance(item, Mapping):
        return None
    said, named = cleaned_claim(item.get("text"), shown), item.get("notes")
    handles = words_in(named) if isinstance(named, str) else named if isinstance(named, list) else []
    notes = tuple(dict.fromkeys(str(h).strip() for h in handles if str(h).strip() in shown))
    if not said or not notes or len(said) > CLAIM_CHARS:
        return None
    return Claim(said, tuple(shown[h] for h in notes))


def cleaned_claim(value: Any, shown: Mapping[str, Node]) -> str:
    """One line, without links and without handles: `[[x]]` or "(e3)" would mean nothing, or something else, in a note."""
    said = re.sub(r"[\[\]]", " ", without_citations(value)) if isinstance(value, str) else ""
    said = re.sub(
        r"\s{0,9}\([^\w()]{0,9}e\d{1,6}\b(?:[^\w()]{1,9}e\d{1,6}\b)*[^\w()]{0,9}\)",
        lambda m: "" if set(re.findall(r"e\d+", m[0])) <= shown.keys() else m[0],
        said,
    )
    return one_line(said)
