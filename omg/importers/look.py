"""Counts what an import would bring, before anything is written or a model is asked.

It counts messages, days, people and omissions, and estimates the cost of each way of observing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, tzinfo
from math import ceil
from typing import TYPE_CHECKING

from ..dates.days import day_of_ms
from ..errors import how_many
from ..llm.replies import limits_in_table, prompt_text
from ..text.tokens import count_tokens
from .drops import Drops, estimated_tokens, said_ms

if TYPE_CHECKING:
    from ..config import Config

# Tokens of one question besides the messages: known notes (at most 4,500; a new memory has few), and the check.
BESIDE_TOKENS = 2_500
SAID_BY_NOTES = 6.2  # tokens of messages for each token of notes, as measured (bench/LOG.md)
OUTLINED = 0.35  # share of a conversation's tokens that the model reads at night with effort = "low"


@dataclass(slots=True)
class Look:
    """The counts of the files to be imported. *tokens*: the tokens of each conversation."""

    conversations: Counter[str] = field(default_factory=Counter)  # by service
    messages: Counter[str] = field(default_factory=Counter)  # by role
    tokens: list[int] = field(default_factory=list)
    days: set[date] = field(default_factory=set)
    people: Counter[str] = field(default_factory=Counter)  # named speakers
    skipped: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)


def look_at(drops: Drops, zone: tzinfo, progress: Callable[[int], None] = lambda n: None) -> Look:
    """
    Read all of *drops* and count them. Also records in `drops.reading.newest` which copy of each chat is the newest.
    """
    look, counted, reported = Look(), Counter[str](), 0
    for session, entries in drops.sessions():
        tokens = 0
        for entry in entries:
            at_ms = said_ms(entry)
            if at_ms < drops.since_ms:
                continue
            message = entry["message"]
            look.messages["user" if message.get("role") == "user" else "assistant"] += 1
            tokens += estimated_tokens(message)
            if at_ms:
                look.days.add(day_of_ms(at_ms, zone))
            if name := (message.get("__openclaw") or {}).get("senderName"):
                look.people[str(name)] += 1
        progress(drops.reading.done - reported)
        reported = drops.reading.done
        if tokens:
            look.conversations[session.service] += not counted[session.key]
            counted[session.key] += 1
            look.tokens.append(tokens)
    look.skipped, look.left_out = drops.reading.skipped, dict(drops.reading.left_out)
    return look


@dataclass(frozen=True, slots=True)
class Price:
    """The tokens that one way of observing would read and write, and its price in US dollars; None if unknown."""

    way: str
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0


def prices(look: Look, models: Sequence[str], config: Config) -> list[Price]:
    """
    Estimate the price of each way of observing: by rules; by rules, with a model at night; by the model at once.

    The estimate counts:

    - the tokens of the messages;
    - for each question, the tokens of the instructions and of known notes;
    - for the check, two tokens for each token of the notes made.

    Prices come from LiteLLM's table, which is a file.
    """
    found = [Price("the rules, without a model")]
    model = next((m for m in models if m not in ("offline", "gateway")), "")
    if not model and "gateway" not in models:
        return found
    limits, most = limits_in_table(model), config.observation.max_tokens_per_batch
    told = count_tokens(prompt_text("observe")) + BESIDE_TOKENS

    def price(way: str, said: float, questions: int) -> Price:
        out = round(said / SAID_BY_NOTES)
        tokens_in = round(said + questions * told + 2 * out)
        usd = None
        if limits.usd_in is not None and limits.usd_out is not None:
            usd = tokens_in * limits.usd_in + out * limits.usd_out
        return Price(way, tokens_in, out, usd)

    total = sum(look.tokens)
    outlined = total * OUTLINED
    named = model or "the gateway's model"
    return [
        *found,
        price(f'the rules, and at night {named} (effort = "low")', outlined, ceil(outlined / most)),
        price(f"{named} at once", total, sum(ceil(t / most) for t in look.tokens)),
    ]


def look_text(look: Look, ways: Sequence[Price], now: str) -> str:
    """
    Return *look* as text for a person, with the estimated costs of making notes from the messages.

    *ways*: the cost by rules alone, by rules with a model at night, and by a model at once. *now*: the name of the
    configured model, or "the rules".
    """
    total = sum(look.conversations.values())
    where = ", ".join(f"{n} of {service}" for service, n in look.conversations.most_common())
    lines = [f"{how_many(total, 'conversation')} ({where})" if total else "no conversations"]
    if look.days:
        lines.append(
            f"  {how_many(look.messages.total(), 'message')} ({look.messages['user']:,} yours or other people's), "
            f"{sum(look.tokens):,} tokens, on {how_many(len(look.days), 'day')} from {min(look.days)} to {max(look.days)}"
        )
    if look.people:
        names = [name for name, _ in look.people.most_common(8)]
        more = f" and {len(look.people) - 8} more" if len(look.people) > 8 else ""
        lines.append(f"  people: {', '.join(names)}{more}")
    lines += [f"  left out: {n:,} {what}" for what, n in sorted(look.left_out.items(), key=lambda x: -x[1])]
    lines += [f"  skipped: {why}" for why in look.skipped[:5]]
    if len(look.skipped) > 5:
        lines.append(f"  skipped: {len(look.skipped) - 5} more")
    lines.append(f"estimated cost of observing (configured now: {now}):")
    for way in ways:
        usd = "price unknown" if way.usd is None else f"${way.usd:,.2f}" if way.tokens_in else "nothing"
        tokens = f", {way.tokens_in:,} tokens in, {way.tokens_out:,} out" if way.tokens_in else ""
        lines.append(f"  {usd:>13}  {way.way}{tokens}")
    return "\n".join(lines)
