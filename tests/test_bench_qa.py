"""bench/qa.py: a scripted answerer and judge get the points that they have earned, and nothing else does."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import qa
from openai_server import Fail, Request, created
from questions.answers import checked

from omg.check import fixed_cases

BENCH = Path(__file__).parents[1] / "bench"
# Two conversations, each with two questions that its own words decide and one that nothing does.
SAID = {
    "ann": {"cat": "I adopted a grey cat called Miso.", "brother": "My brother Tom lives in Oslo."},
    "bob": {"boat": "I bought a red boat named Petrel.", "job": "I work as a baker in Lisbon."},
}
GOLD = {"cat": "Miso", "brother": "Oslo", "boat": "Petrel", "job": "baker"}


def toy(folder: Path, unanswerable: bool = True) -> Path:
    lines: list[dict[str, Any]] = []
    for who, said in SAID.items():
        for n, (about, text) in enumerate(said.items()):
            day = f"2024-03-0{n + 1}T10:00:00"
            lines.append(
                {"conversation": who, "session": f"s{n}", "role": "user", "content": text, "timestamp": day}
            )
            question = f"What about the {about}?"
            lines.append(
                {"conversation": who, "question": question, "answer": GOLD[about], "category": f"c{n}"}
            )
        if unanswerable:
            lines.append(
                {"conversation": who, "question": "Which car?", "abstain": True, "category": "unknown"}
            )
    file = folder / "toy.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return file


def memory_in(request: Request) -> str:
    return re.search(r"<memory>\n(.*?)\n</memory>", request.user, re.S)[1]  # type: ignore[index]


def asked(request: Request) -> str:
    return request.user.rpartition("Question: ")[2].removeprefix("What about the ").removesuffix("?")


def right(request: Request) -> Any:
    """An answerer that knows everything and quotes what it knows it by; a judge that compares words."""
    if request.system.startswith("You grade"):
        return judged(request)
    if asked(request) not in GOLD:
        return {"answer": "I don't know.", "quotes": []}
    said = next(text for texts in SAID.values() for about, text in texts.items() if about == asked(request))
    return {"answer": GOLD[asked(request)], "quotes": [said]}


def judged(request: Request) -> Any:
    gold, _, answer = request.user.partition("\n\nThe answer:\n")
    if "It is not known" in gold:
        return {"points": [int("know" in answer)]}
    return {"points": [int(any(g in gold and g in answer for g in GOLD.values()))]}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, openai_server):
    """qa.py in this process; returns what it prints with --json."""
    monkeypatch.setenv("OMG_EMBEDDING_MODEL", "none")
    data = toy(tmp_path)

    def run(*args: str, out: str = "out") -> Any:
        words = ["--data", str(data), "--out", str(tmp_path / out), "--api-base", openai_server.base]
        monkeypatch.setattr(sys, "argv", ["qa.py", *words, "--json", *args])
        with pytest.raises(SystemExit) as ended:
            qa.main()
        assert ended.value.code in (0, False), capsys.readouterr().out
        return json.loads(capsys.readouterr().out.strip().splitlines()[-1])

    return run


def rows(report: Any) -> Any:
    return report["benchmarks"]["JSONL"]["contexts"]


@pytest.mark.parametrize(("known", "points"), [(set(GOLD), 1.0), (set(), 1 / 3), ({"cat", "job"}, 2 / 3)])
def test_the_benchmark_counts_the_points_of_a_model_that_knows_some_answers(
    run, openai_server, known, points
):
    def says(request: Request) -> Any:
        if request.system.startswith("You grade") or asked(request) in known or asked(request) not in GOLD:
            return right(request)
        return {"answer": "Something else", "quotes": [memory_in(request).splitlines()[-1]]}

    openai_server.always(says)
    full = rows(run("--context", "full"))["full"]
    assert full["points"] == pytest.approx(points, abs=1e-4) and full["n"] == 6
    assert full["low"] <= full["points"] <= full["high"] and full["refused"] == 0
    assert full["categories"]["unknown"]["points"] == 1


def test_an_answer_that_quotes_text_outside_the_given_context_counts_as_unknown(run, openai_server):
    openai_server.always(right)
    none, last = (
        rows(run("--context", "none", "last", "--budget", "25"))[context] for context in ("none", "last")
    )
    # The answerer says what is right, and quotes what stands in the other message, which is not within the budget.
    assert last["refused"] == 2 and last["points"] == pytest.approx(4 / 6, abs=1e-4)
    assert none["refused"] == 0  # there is nothing to quote in nothing: a guess is a guess
    judged = [r for r in openai_server.history if r.system.startswith("You grade")]
    assert len(judged) == 12 - 2
    assert not any(text in r.user for r in judged for said in SAID.values() for text in said.values())


def test_a_conversation_is_observed_day_by_day_and_resumes_after_a_failure(run, openai_server):
    def note(request: Request) -> Any:
        return {"edits": [created("Has a cat.", "m1", title="Cat", links=[])]}

    openai_server.replies(note, Fail(401))
    observe = ("--stage", "observe", "--observe", "openai/strong", "--parallel", "1", "--questions", "1")
    with pytest.raises(AssertionError, match=r"s1 waits: .*401"):
        run(*observe)
    openai_server.replies(note)
    assert run(*observe) == {"troubles": []} and len(openai_server.history) == 3
    assert [
        re.search(r"2024-03-0\d", r.user.partition("# Messages")[2])[0] for r in openai_server.history
    ] == [  # type: ignore[index]
        "2024-03-01",
        "2024-03-02",
        "2024-03-02",
    ]
    openai_server.always(right)
    report = run("--context", "vault", "--observe", "openai/strong", "--questions", "1")
    observing = report["benchmarks"]["JSONL"]["observing"]
    assert len(openai_server.checks) == 2
    calls = 2 + 2 + len(fixed_cases())  # two observations, their checks, and the examination of the model
    assert (observing["messages"], observing["tokens per 100 messages"]) == (2, calls * 120 * 100 / 2)
    assert rows(report)["vault"]["tokens median"] > 20


@pytest.mark.parametrize(
    ("quotes", "counts"),
    [
        (["adopted a GREY  cat"], True),
        (["“Miso’s” bowl — it is"], True),
        (["I adopted … called Miso"], True),
        (["adopted a black cat"], False),
        (["adopted a grey cat", "My brother lives in Oslo"], False),
        (["a"], False),
        ([], False),
        ("Miso", False),
    ],
)
def test_a_quotation_is_found_in_the_context_despite_changed_punctuation(quotes, counts):
    context = 'I adopted a grey\ncat called **Miso**. "Miso\'s" bowl - it is blue.'
    found = checked(json.dumps({"answer": "Miso", "quotes": quotes}), context)
    assert (found["refused"] == "") is counts
