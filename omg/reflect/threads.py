"""
A week or a month without a model: its notes by thread, in their own words.

Pure and deterministic. One rule: nothing is said that does not stand in a note; what a tool said stands in that note
only; and what comes out is shorter than the notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, zip_longest

from ..node.fields import PRIORITIES
from ..node.note import Node
from ..text.tokens import count_tokens
from .periods import Claim, ReflectionDraft, substance_tokens, target_tokens
from .topics import TopicItem, dot_product, feature_weights

SAME_THREAD = 0.25  # cosine of two notes' words; in a week, those that most of its notes have count nothing
THREADS_NAMED = 3  # threads that the line on the whole names


def notes_by_thread(nodes: Sequence[Node]) -> ReflectionDraft | None:
    """What *nodes*, in the order they happened, come to; None if that is no shorter, or all of it is a tool's."""
    threads = threads_of([n for n in nodes if n.origin != "tool"])
    if not threads:
        return None
    whole = substance_tokens(nodes)
    target = target_tokens(whole, len(nodes))
    line = threads_named(threads)
    spent, said = count_tokens(line), set[str]()
    for node in best_of_each(threads):
        spent += count_tokens(f"\n{node.description}")
        if said and spent >= target:
            break
        said.add(node.path)
    claims = [
        Claim(" ".join(n.description for n in thread if n.path in said), tuple(thread))
        for thread in threads
        if any(n.path in said for n in thread)
    ]
    if rest := [n for thread in threads if said.isdisjoint(n.path for n in thread) for n in thread]:
        claims.append(Claim("", tuple(rest)))
    found = ReflectionDraft(line, tuple(claims), by_rule=True)
    return found if found.tokens < whole else None


def threads_of(nodes: Sequence[Node]) -> list[list[Node]]:
    """
    Notes that link to one another, or share the words that tell them from the others; what matters most first. A week
    of a month is a thread of its own.
    """
    heads = list(range(len(nodes)))

    def head(n: int) -> int:
        while heads[n] != n:
            n = heads[n]
        return n

    weights = feature_weights(
        [TopicItem(n.path, n.title, n.description, frozenset(f"#{t}" for t in n.tags)) for n in nodes]
    )
    for a, b in combinations(range(len(nodes)), 2):
        if "reflection" in (nodes[a].type, nodes[b].type):
            continue
        if are_linked(nodes[a], nodes[b]) or dot_product(weights[a], weights[b]) >= SAME_THREAD:
            heads[head(b)] = head(a)
    found: dict[int, list[Node]] = {}
    for n, node in enumerate(nodes):
        found.setdefault(head(n), []).append(node)
    return sorted(found.values(), key=lambda t: (min(map(rank_of, t)), -len(t)))


def are_linked(a: Node, b: Node) -> bool:
    return a.path in (*b.links, *b.wikilinks) or b.path in (*a.links, *a.wikilinks)


def rank_of(node: Node) -> int:
    return PRIORITIES.index(node.priority)


def best_of_each(threads: Sequence[Sequence[Node]]) -> Iterator[Node]:
    """The note of each thread that matters most, then the second of each, and so on; of equals the last, which knows more."""
    ranked = [
        [node for *_, node in sorted((rank_of(node), -n, node) for n, node in enumerate(thread))]
        for thread in threads
    ]
    for turn in zip_longest(*ranked):
        yield from (node for node in turn if node is not None)


def threads_named(threads: Sequence[Sequence[Node]]) -> str:
    """One line on the whole: its threads, each by the title of its best note, a week's by what comes first in it."""
    best = [node for node, _ in zip(best_of_each(threads), threads, strict=False)]
    names = [n.description.partition(";")[0] if n.type == "reflection" else n.title for n in best]
    more = len(names) - THREADS_NAMED
    return "; ".join([*names[:THREADS_NAMED], *([f"{more} more"] if more > 0 else [])])
