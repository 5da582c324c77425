"""bench/qa.py: a scripted answerer and judge get the points that they have earned, and nothing else does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import qa
from openai_server import Fail, Hang, Request, created
from questions.answers import checked
from questions.data import Conversation, read_all, sample

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
def test_an_answerer_gets_the_points_of_what_it_knows(run, openai_server, known, points):
    def says(request: Request) -> Any:
        if request.system.startswith("You grade") or asked(request) in known or asked(request) not in GOLD:
            return right(request)
        return {"answer": "Something else", "quotes": [memory_in(request).splitlines()[-1]]}

    openai_server.always(says)
    full = rows(run("--context", "full"))["full"]
    assert full["points"] == pytest.approx(points, abs=1e-4) and full["n"] == 6
    assert full["low"] <= full["points"] <= full["high"] and full["refused"] == 0
    assert full["categories"]["unknown"]["points"] == 1


def test_an_answer_borrowed_from_another_question_counts_as_unknown_and_no_judge_is_asked(run, openai_server):
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


def test_a_run_that_is_killed_goes_on_and_comes_to_the_same_report(run, openai_server, tmp_path):
    openai_server.always(right)
    whole = run("--context", "full", "slice", out="whole")
    requests = len(openai_server.history)
    openai_server.history.clear()
    # As another process, killed while its fifth question waits for an answer.
    openai_server.replies(*[right] * 4, Hang())
    command = [sys.executable, str(BENCH / "qa.py"), "--data", str(tmp_path / "toy.jsonl"), "--parallel", "1"]
    command += [
        "--out",
        str(tmp_path / "out"),
        "--api-base",
        openai_server.base,
        "--context",
        "full",
        "slice",
    ]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while len(openai_server.history) < 5 and killed.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    killed.kill()
    assert killed.wait() == -9 and len(openai_server.history) == 5
    resumed = run("--context", "full", "slice")
    assert len(openai_server.history) == requests + 1  # the one that was under way is asked again, no other
    assert without_times(resumed) == without_times(whole)
    assert run("--context", "full", "slice") and len(openai_server.history) == requests + 1


def test_a_conversation_is_observed_on_its_days_and_goes_on_where_its_model_failed(run, openai_server):
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
    assert (observing["messages"], observing["tokens per 100 messages"]) == (2, 24_000)
    assert rows(report)["vault"]["tokens median"] > 20


def without_times(report: Any) -> Any:
    if isinstance(report, dict):
        return {k: without_times(v) for k, v in report.items() if k != "seconds"}
    return [*map(without_times, report)] if isinstance(report, list) else report


def test_another_judge_judges_the_same_answers_and_another_answerer_is_refused(run, openai_server, tmp_path):
    openai_server.always(right)
    run("--context", "full")
    asked = len(openai_server.history)
    openai_server.always({"points": [0]})
    strict = run("--context", "full", "--judge", "openai/strict")
    assert {r.model for r in openai_server.history[asked:]} == {"strict"}
    assert rows(strict)["full"]["points"] == 0
    with pytest.raises(AssertionError, match="another run"):
        run("--context", "full", "--answer", "openai/other")


def test_two_runs_are_compared_question_by_question(run, openai_server, tmp_path):
    openai_server.always(right)
    run("--context", "full", out="before")
    openai_server.always(lambda r: judged(r) if "You grade" in r.system else "no JSON at all")
    after = run("--context", "full", "--against", str(tmp_path / "before"))
    (found,) = after["benchmarks"]["JSONL"]["against"]
    assert (found["one"], found["other"], found["n"]) == ("full", "before: full", 6)
    assert found["difference"] == -1 and found["decided"]
    assert rows(after)["full"]["refused"] == 6
    assert "before: full" in (tmp_path / "out/report.md").read_text()


def test_the_answerer_may_call_tools_four_times_and_quote_what_they_gave(run, openai_server):
    def says(request: Request) -> Any:
        if request.system.startswith("You grade"):
            return judged(request)
        given = [m["content"] for m in request.body["messages"] if m["role"] == "tool"]
        if len(given) < 6 and not (given and "No calls are left" in given[-1]):
            search = {"query": "cat brother boat work", "raw": len(given) == 0}
            return json.dumps({"tool_calls": [{"name": "omg_search", "arguments": search}]})
        assert len(given) == 5
        return right(request)

    openai_server.always(says)
    tools = rows(run("--context", "tools", "--budget", "0"))["tools"]
    assert (tools["points"], tools["refused"]) == (1, 0)
    assert tools["tokens median"] > 0


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
def test_a_quote_stands_in_the_context_whatever_copying_did_to_its_marks(quotes, counts):
    context = 'I adopted a grey\ncat called **Miso**. "Miso\'s" bowl - it is blue.'
    found = checked(json.dumps({"answer": "Miso", "quotes": quotes}), context)
    assert (found["refused"] == "") is counts


def test_a_sample_has_the_categories_of_the_whole_and_all_conversations(tmp_path):
    def talk(name: str, questions: int) -> dict[str, Any]:
        category = [4] * (questions * 3 // 4) + [2] * (questions // 4)
        return {
            "sample_id": name,
            "conversation": {
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi.", "blip_caption": "a cat"}],
            },
            "qa": [{"question": f"{n}?", "answer": n, "category": c} for n, c in enumerate(category)]
            + [{"question": "Trap?", "adversarial_answer": "x", "category": 5}],
        }

    file = tmp_path / "locomo.json"
    file.write_text(json.dumps([talk("a", 40), talk("b", 8), talk("c", 8)]))
    conversations = read_all([file])
    assert conversations[0].messages[0].line == "Ann: Hi. [shares image: a cat]"
    chosen = sample(conversations, 12, 1, adversarial=False)
    assert chosen == sample(conversations, 12, 1, adversarial=False) != sample(conversations, 12, 2, False)
    assert {id: len(asked) for id, asked in chosen.items()} == {"a": 4, "b": 4, "c": 4}
    every = [q.category for asked in chosen.values() for q in asked]
    assert (every.count("single-hop"), every.count("temporal")) == (9, 3)
    (trap,) = [q for q in sample(conversations, None, 1, adversarial=True)["b"] if q.abstain]
    assert trap.category == "adversarial"


def test_longmemeval_and_beam_are_read_in_the_order_of_their_days(tmp_path):
    (tmp_path / "long.json").write_text(
        json.dumps(
            [
                {
                    "question_id": "q1_abs",
                    "question_type": "multi-session",
                    "question": "Which car?",
                    "answer": "no car is mentioned",
                    "question_date": "2023/06/01 (Thu) 10:00",
                    "haystack_dates": ["2023/05/30 (Tue) 21:48", "2023/05/20 (Sat) 02:00"],
                    "haystack_sessions": [
                        [{"role": "user", "content": "later"}],
                        [{"role": "user", "content": "sooner"}],
                    ],
                }
            ]
        )
    )
    chat = tmp_path / "7"
    (chat / "probing_questions").mkdir(parents=True)
    turns = [
        [{"role": "user", "id": 0, "time_anchor": "March-03-2024", "content": "Hello ->-> 1,1"}],
        [{"role": "assistant", "id": 1, "content": "Hi."}],
        [{"role": "user", "id": 2, "time_anchor": "March-09-2024", "content": "Again ->-> 1,2"}],
    ]
    (chat / "chat.json").write_text(json.dumps([{"turns": turns}]))
    probes = {"abstention": [{"question": "Which?", "rubric": ["no"]}]}
    probes["summarization"] = [{"question": "What?", "rubric": ["one", "two"]}]
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(probes))
    beam, long = read_all([tmp_path])
    assert isinstance(long, Conversation) and [m.text for m in long.messages] == ["sooner", "later"]
    assert long.questions[0].abstain and f"{long.questions[0].at:%Y-%m-%d}" == "2023-06-01"
    assert [[m.text for m in s.messages] for s in beam.sessions] == [["Hello", "Hi."], ["Again"]]
    assert f"{beam.sessions[1].messages[0].at:%m-%d}" == "03-09"
    assert [(q.id, q.abstain, len(q.gold)) for q in beam.questions] == [
        ("beam-7-abstention-0", True, 1),
        ("beam-7-summarization-0", False, 2),
    ]


def test_the_curve_has_each_run_at_the_tokens_that_it_read(run, openai_server, tmp_path):
    """The same questions in all; a row with two budgets is one line of the plot; contexts have names of their own."""
    openai_server.always(right)
    for budget in (40, 3000):
        run("--context", "slice", "--budget", str(budget), out=f"rules{budget}")
    run("--context", "full", out="whole")
    runs = [f"rules={tmp_path}/rules40", f"rules={tmp_path}/rules3000", f"rules={tmp_path}/whole"]
    dots = run("--curve", *runs, out="curve")["curve"]
    assert [(d["row"], d["n"]) for d in dots] == [("rules", 6), ("rules", 6), ("whole history", 6)]
    assert dots[0]["tokens"] <= 40 < dots[1]["tokens"] <= 3000
    plot = (tmp_path / "curve/curve.svg").read_text()
    assert plot.count("<polyline") == 2 and plot.count("<circle") == 3 + 2
    assert f"| whole history | {dots[2]['tokens']} | 1.000 |" in (tmp_path / "curve/curve.md").read_text()


def test_a_curve_of_runs_that_share_no_question_is_refused(run, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(AssertionError, match="no question is judged"):
        run("--curve", f"rules={tmp_path}/empty")
