"""What can be said of a reply without reading it: empty, repeating itself, how many tokens it has."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from ..text.tokens import count_tokens
from .ledger import ModelReply
from .question import ModelQuestion


def why_useless(reply: ModelReply) -> str | None:
    """Why *reply* is of no use to anyone; None if it may be."""
    if not reply.text:
        return "sent an empty reply; if it goes on, name another model"
    if is_degenerate(reply.text):
        return "sent a reply that repeats itself without end; if it goes on, name another model"
    return None


def with_token_counts(reply: ModelReply, question: ModelQuestion) -> ModelReply:
    """*reply* with our own token counts, where the server gave none: a cap must hold there, too."""
    if reply.tokens_in or reply.tokens_out:
        return reply
    return replace(
        reply, tokens_in=count_tokens(question.system + question.user), tokens_out=count_tokens(reply.text)
    )


def without_thinking(text: str) -> str:
    """*text* without the thinking that some local models write before it."""
    return re.sub(r"\A\s*<think(ing)?>.*?(</think(ing)?>|\Z)", "", text, flags=re.DOTALL).strip()


def is_degenerate(text: str) -> bool:
    """
    Whether *text* is a model's endless loop.

    Judged by lines, and careful: a batch whose reply is refused is asked again, so a faithful list, log or
    progress bar must pass. A line that repeats at once counts as one, up to 10,000 characters of it; lines
    below 24 characters say little and count for nothing; only a line of its own 1,500 characters can loop
    in itself. (Cases: mastra-ai/mastra#24354.)
    """
    if len(text) < 2_000:
        return False
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    share: dict[str, int] = {}
    for line in lines:
        share[line] = share.get(line, 0) + len(line) + 1
    if any(size > 10_000 and size > 2 * len(line) for line, size in share.items()):
        return True
    once = [line for line, _ in itertools.groupby(lines) if len(line) >= 24]
    if len(once) >= 20 and len(set(once)) <= len(once) / 4:
        return True
    return any(is_stuck(line) for line in share if len(line) >= 1_500)


def is_stuck(line: str) -> bool:
    """Whether *line* ends in one piece said over and over, for 1,500 characters and half of its length."""
    tail = line.rstrip('`]}" ,;.')[-20_000:][::-1]  # reversed: what the end repeats is a prefix now
    reach = [0] * len(tail)  # reach[i]: how far the text from i on equals that from 0 on (Gusfield's Z array)
    left = right = 0
    for i in range(1, len(tail)):
        n = min(right - i, reach[i - left]) if i < right else 0
        while i + n < len(tail) and tail[n] == tail[i + n]:
            n += 1
        reach[i] = n
        if i + n > right:
            left, right = i, i + n
        if n >= 3 * i and i + n >= max(1_500, len(tail) / 2) and re.search(r"\w", tail[:i]):
            return True
    return False
