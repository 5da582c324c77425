"""Has a model check what a night's verdicts would do to persons' notes.

A merge is checked against both notes; any other verdict is checked against the note that it names as its reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from ..check import Claim, Evidence, check_claims
from ..llm.replies import Ask
from ..node.note import Node
from ..plan.corrections import says_all
from ..plan.drafts import PERSONS
from ..plan.edits import one_line, split_history
from ..text.characters import with_labels
from .topics import link_of
from .verdicts import Place, ShownGroup, Verdict


@dataclass(frozen=True, slots=True)
class NightClaim:
    """
    A claim that the verdict at *place* makes. *op*: the operation of the verdict. *of*: the notes that the operation
    changes.
    """

    place: Place
    op: str
    claim: Claim
    of: tuple[Node, ...] = ()


def claims_of_night(
    shown: Sequence[ShownGroup], found: Mapping[str, Sequence[Verdict]], node_of: Callable[[str], Node]
) -> list[NightClaim]:
    """The claims that the verdicts *found* make about persons' notes in the groups *shown*."""
    claims: list[NightClaim] = []
    for s in shown:
        for n, verdict in enumerate(found.get(s.name, ()), 1):
            nodes = [node_of(s.notes[h]) for h in (verdict.node, verdict.other) if h in s.notes]
            if any(node.origin in PERSONS for node in nodes):
                of = claims_of(verdict, nodes, len(claims))
                claims += [NightClaim((s.name, n), verdict.op, c, tuple(nodes)) for c in of]
    return claims


def claims_of(verdict: Verdict, nodes: Sequence[Node], of: int) -> list[Claim]:
    """
    The claims of one *verdict*. *of*: the number of the verdict in the check. Words that the notes already have are
    no claim.
    """
    if len(nodes) < 2:
        return []
    first, last = nodes
    said = verdict.description
    made: list[Claim] = []
    if verdict.op == "merge" and said and one_line(said) not in map(text_of, nodes):
        made.append(Claim(of, "head", said, {"standing": True} if first.standing else {}, first.title))
    by: dict[str, Any] = {"by": text_of(first)}
    if verdict.op == "merge" and not says_all(first, last):
        made.append(Claim(of, "head", last.description, {"by": said or text_of(first)}))
    elif verdict.op == "supersede" and last.origin in PERSONS:
        made.append(Claim(of, "drop", last.description, {"goes": True, **by}))
    elif verdict.op == "contradict":
        made.append(Claim(of, "doubt", last.description, {"doubted": True, **by}))
    elif verdict.op == "close" and first.origin in PERSONS:
        made.append(Claim(of, "head", first.description, {"ends": first.title, "by": text_of(last)}))
    return made


def text_of(node: Node) -> str:
    main = with_labels(one_line(split_history(node.body)[0]))
    return node.description if main in node.description else f"{node.description} {main}"


def not_borne_out(
    claims: Sequence[NightClaim], ask: Ask, able: Callable[[str], bool], model: str, agent: str
) -> frozenset[Place]:
    """
    Return the places of the verdicts that the check does not support.

    A place is the name of a verdict's group and the verdict's number. If *model* is not *able* to check, all places are
    returned. *model*: the model that gave the verdicts. Raises ModelError if no model answers.
    """
    if not claims or not able(model):
        return frozenset(c.place for c in claims)
    known = {node.title: text_of(node) for c in claims for node in c.of if c.claim.part == "head"}
    evidence = Evidence((), lambda claim: (), UTC, known)
    verdicts = check_claims([c.claim for c in claims], evidence, ask, able, agent)
    answers = verdicts or ["not supported"] * len(claims)
    return frozenset(c.place for c, v in zip(claims, answers, strict=True) if v != "supported")


QUESTIONS = {
    "merge": "{} and {} seem to say the same.",
    "supersede": "{} seems to take the place of {}.",
    "contradict": "{} and {} seem to contradict each other.",
}


def questions(claims: Sequence[NightClaim], unsaid: Collection[Place]) -> list[str]:
    """
    The questions to the person, one for each rejected merge, replacement or contradiction. *unsaid*: the places of
    the rejected verdicts.
    """
    asked = {c.place: QUESTIONS[c.op].format(*map(link_of, c.of)) for c in claims if c.op in QUESTIONS}
    return [question for place, question in asked.items() if place in unsaid]
