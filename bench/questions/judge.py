"""
The judge: question, gold answer and answer, in no order, without a word of where the answer came from.

    {"points": [0, .5 or 1 for each item of the gold answer], "why"}

One rule: an answer that counts as unknown is wrong, and no judge is asked; to say that one does not know is right only
where nothing is known.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .answers import Item, answer_file, prompt, prompt_hash
from .data import Question
from .files import file_name, read, write
from .model import Model, Spent, ask, json_in

TRIES = 2  # of a judge whose reply is no judgement


def judgement_file(out: Path, judge: str, context: str, question: str) -> Path:
    return out / "judgements" / file_name(judge) / context / f"{file_name(question)}.json"


def shuffled(items: Sequence[Item], seed: int) -> list[Item]:
    return random.Random(seed).sample(items, len(items))


def judge(item: Item, out: Path, model: Model) -> None:
    """Judge the answer to *item*, unless this judge has, by the same prompt."""
    given = read(answer_file(out, item.context, item.question.id))
    if given is None:
        raise RuntimeError(
            f"{item.question.id}: not answered with {item.context!r}; run --stage answer first"
        )
    file = judgement_file(out, model.name, item.context, item.question.id)
    mark = {"question": item.question.id, "answer": given["answer"], "prompt": prompt_hash("judge.md")}
    known = read(file)
    if known and mark.items() <= known.items():
        return
    if given["refused"] or (given["abstains"] and not item.question.abstain):
        write(
            file, {**mark, "points": [0] * len(item.question.gold), "why": "counts as unknown", "by": "code"}
        )
        return
    spent = Spent()
    for _ in range(TRIES):
        messages = [
            {"role": "system", "content": prompt("judge.md")},
            {"role": "user", "content": user_text(item.question, given["answer"])},
        ]
        said = ask(model, messages, spent)
        value = json_in(said.text)
        if (points := points_in(value.get("points"), len(item.question.gold))) is not None:
            why = str(value.get("why") or "")
            write(file, {**mark, "points": points, "why": why, "by": model.name, **spent.value()})
            return
    raise RuntimeError(f"{item.question.id}: no judgement in the judge's reply: {said.text[:200]!r}")


def user_text(question: Question, answer: str) -> str:
    items = "\n".join(f"{n}. {text}" for n, text in enumerate(question.gold, 1))
    return f"Question: {question.text}\n\nA right answer says:\n{items}\n\nThe answer:\n{answer}"


def points_in(value: Any, n: int) -> list[float] | None:
    """A judge's points, if they are *n*, each 0, .5 or 1, and no half where there is but one."""
    allowed = (0, 1) if n == 1 else (0, 0.5, 1)
    if (
        not isinstance(value, list)
        or len(value) != n
        or any(isinstance(p, bool) or p not in allowed for p in value)
    ):
        return None
    return [float(p) for p in value]
