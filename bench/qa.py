#!/usr/bin/env python3
"""
Measures how well an assistant answers questions about old chats with OMG's memory, with no memory, and with the whole
chat.

    python bench/qa.py --data FILE|FOLDER… --out DIR --observe MODEL|offline --answer MODEL --judge MODEL [--questions N]
                       [--context none last full raw slice vault tools] [--budget TOKENS] [--against DIR] [--json]
    python bench/qa.py --curve LABEL=DIR… --out DIR [--json]

    none   nothing, so answers are guesses    raw    a search over the sentences that were said, to the budget
    last   the last messages, to the budget   slice  what a prompt is given on the day of the question, to the budget
    full   the whole conversation             vault  every note, whole
    tools  the slice, and up to four calls of omg_search (also `raw`) and omg_open

Any LiteLLM model; `--api-base` (or one for each) names a server. Conversations are observed session by session through
the library, each on its own day. The answerer quotes the words that decide its answer; an answer whose quotes do
not stand in its own context counts as unknown. The judge sees question, gold answer and answer; the order of answers is random.

Each item is kept as a file in --out, so a killed run continues when started again; another --judge judges the same
answers.
Another run's points on the same questions are compared with `--against`: a paired difference, with its interval.
`--curve` asks no model. It reads the folders of finished runs, one for each budget and way of observing, and writes
curve.md and curve.svg into --out: points over the tokens that a question's answerer read.
bench/questions/exclusions.json names gold answers that are plainly wrong, with the reason: they are left out.
PYTHONPATH may name another checkout, to measure its omg. OMG_OBSERVATION_EFFORT=low with `--nights each` measures the
effort `low`; use another --out for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

# At the end: PYTHONPATH may name the checkout of another omg, to be measured with this bench.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from questions.answers import Item, answer, prompt_hash
from questions.contexts import CONTEXTS, SHARED, context_file, make_contexts
from questions.curve import as_svg, as_table, curve
from questions.data import Conversation, Question, read_all, sample
from questions.files import in_parallel, read, write
from questions.judge import judge, shuffled
from questions.model import Model, connections
from questions.report import difference, measured, observed, page, points_of
from questions.vaults import NIGHTS, Observing, observe, opened

from omg import Memory

STAGES = ("observe", "contexts", "answer", "judge", "report")
EXCLUSIONS = Path(__file__).parent / "questions" / "exclusions.json"
READ = (
    "data",
    "questions",
    "seed",
    "adversarial",
    "budget",
    "observe",
    "nights",
)  # options that contexts depend on
ANSWERED = ("answer", "prompt")  # options that answers depend on, too


def main() -> None:
    args = arguments()
    if args.curve:
        draw(args)
        sys.exit(0)
    conversations = read_all(args.data)
    chosen = sample(conversations, args.questions, args.seed, args.adversarial)
    excluded = {
        row["question"]: row["reason"] for row in json.loads(args.exclude.read_text(encoding="utf-8"))
    }
    left_out = {q.id: excluded[q.id] for asked in chosen.values() for q in asked if q.id in excluded}
    chosen = {id: [q for q in asked if q.id not in excluded] for id, asked in chosen.items()}
    settings = keep_settings(args)
    how = Observing(
        args.vaults or args.out / "vaults", args.observe, args.observe_base or args.api_base, args.nights
    )
    troubles: list[str] = []
    for stage in STAGES[:-1]:
        if args.stage in (stage, "all"):
            troubles += work(stage, args, conversations, chosen, how)
    report: dict[str, Any] = {}
    if args.stage in ("report", "all"):
        report = reported(args, settings, conversations, chosen, how) | {"excluded": left_out}
        write(args.out / "report.json", report)
        write(args.out / "report.md", page(report))
        print(page(report))
    if args.json:
        print(json.dumps({**report, "troubles": troubles}))
    sys.exit(bool(troubles))


def draw(args: Any) -> None:
    """Write the curve of the runs that `--curve` names."""
    runs = [(label, Path(folder)) for label, _, folder in (run.partition("=") for run in args.curve)]
    dots = curve(runs, args.judge, args.seed)
    write(args.out / "curve.md", as_table(dots))
    write(args.out / "curve.svg", as_svg(dots))
    print(as_table(dots))
    if args.json:
        print(json.dumps({"curve": [asdict(dot) for dot in dots]}))


def work(
    stage: str,
    args: Any,
    conversations: Sequence[Conversation],
    chosen: Mapping[str, Sequence[Question]],
    how: Observing,
) -> list[str]:
    """Do what is left of one stage. Return what went wrong."""
    asked = [c for c in conversations if chosen.get(c.id)]
    items = [item for context in args.context for item in in_turn(context, asked, chosen)]
    if stage == "observe":
        return in_parallel(lambda c: observe(c, how), asked or conversations, args.parallel, "observed")
    if stage == "contexts":
        return in_parallel(
            lambda c: make_contexts(c, chosen[c.id], args.context, args.budget, how, args.out),
            asked,
            args.parallel,
            "conversations read",
        )
    if stage == "judge":
        model = Model(args.judge, args.judge_base or args.api_base, args.timeout)
        with connections():
            return in_parallel(
                lambda item: judge(item, args.out, model), shuffled(items, args.seed), args.parallel, "judged"
            )
    model = Model(args.answer, args.answer_base or args.api_base, args.timeout)
    with connections(), ExitStack() as stack:
        memories, opening = dict[str, Memory](), Lock()

        def memory(of: Item) -> Memory:
            id, at = of.conversation.id, of.question.at
            with opening:
                if id not in memories:
                    memories[id] = stack.enter_context(opened(id, how, lambda: at, args.budget))
                return memories[id]

        return in_parallel(
            lambda item: answer(item, args.out, model, lambda: memory(item)), items, args.parallel, "answered"
        )


def in_turn(
    context: str, asked: Sequence[Conversation], chosen: Mapping[str, Sequence[Question]]
) -> list[Item]:
    """
    Return the requests of one context in order. If a conversation's questions share the text: conversation by
    conversation, so that the text is cached. Else one question of each conversation in turn, so that a reader of
    several in a row meets no conversation twice.
    """
    items = [(n, Item(q, c, context)) for c in asked for n, q in enumerate(chosen[c.id])]
    if context not in SHARED:
        items.sort(key=lambda numbered: numbered[0])
    return [item for _, item in items]


def keep_settings(args: Any) -> dict[str, Any]:
    """Keep the settings of --out, and refuse other ones: a folder with two models or two samples means nothing."""
    file = args.out / "run.json"
    was = read(file) or {}
    if args.stage == "observe":
        return was
    keys = READ + (ANSWERED if args.stage in ("answer", "all") else ())
    settings = vars(args) | {"data": sorted(p.name for p in args.data), "prompt": prompt_hash("answer.md")}
    now = {key: settings[key] for key in keys}
    if other := [key for key in keys if key in was and was[key] != now[key]]:
        what = "; ".join(f"{key} was {was[key]!r}, is {now[key]!r}" for key in other)
        raise SystemExit(f"{args.out} holds another run ({what}); name another folder for --out")
    write(file, was | now)
    return was | now


def reported(
    args: Any,
    settings: Mapping[str, Any],
    conversations: Sequence[Conversation],
    chosen: Mapping[str, Sequence[Question]],
    how: Observing,
) -> dict[str, Any]:
    by_benchmark: dict[str, list[Question]] = defaultdict(list)
    records: dict[str, list[Any]] = defaultdict(list)
    for c in conversations:
        if not (asked := chosen.get(c.id)):
            continue
        by_benchmark[asked[0].benchmark] += asked
        records[asked[0].benchmark].append(read(how.record(c.id)) or {})
    by_benchmark["all"] = [q for asked in by_benchmark.values() for q in asked]
    records["all"] = [r for some in records.values() for r in some]
    benchmarks = {}
    for name, asked in by_benchmark.items():
        if name == "all" and len(by_benchmark) == 2:
            continue  # the same settings again
        part = measured(args.out, args.judge, args.context, asked, args.seed)
        if args.against:
            part["against"] = [
                {
                    "one": context,
                    "other": f"{args.against.name}: {context}",
                    **difference(ours, theirs, args.seed),
                }
                for context in args.context
                if (ours := points_of(args.out, args.judge, context, asked))
                and (theirs := points_of(args.against, args.judge, context, asked))
            ]
        benchmarks[name] = part | {"observing": observed(records[name])}
    made = records["all"] + [
        read(context_file(args.out, c, q.id)) for c in args.context for q in by_benchmark["all"]
    ]
    run = {
        "omg": " ".join(sorted({str(m["omg"]) for m in made if m and m.get("omg")})),
        **{key: settings.get(key) for key in ("observe", "nights", "budget", "seed", "answer")},
        "judge": args.judge,
        "prompts": {"answer.md": settings.get("prompt"), "judge.md": prompt_hash("judge.md")},
    }
    return {"run": run, "benchmarks": benchmarks}


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, nargs="+", default=[])
    add("--out", type=Path, required=True, help="everything is kept here")
    add("--vaults", type=Path, help="where the observed conversations are; default: OUT/vaults")
    add("--stage", choices=(*STAGES, "all"), default="all")
    add("--context", choices=CONTEXTS, nargs="+", default=["none", "raw", "slice", "full"])
    add("--budget", type=int, default=3_000, help="tokens of last, raw and slice")
    add(
        "--questions",
        type=int,
        help="at most so many questions of each benchmark, spread over its categories; default: all",
    )
    add("--adversarial", action="store_true", help="LoCoMo's category 5 too")
    add("--seed", type=int, default=1)
    add("--exclude", type=Path, default=EXCLUSIONS)
    add("--observe", default="offline", metavar="MODEL")
    add(
        "--nights",
        choices=NIGHTS,
        default="offline",
        help="when to reflect: once at the end, by rules (offline) or by the model (end); or by the model after each session",
    )
    add("--answer", default="openai/strong", metavar="MODEL")
    add("--judge", default="openai/strong", metavar="MODEL")
    add("--against", type=Path, help="the folder of another run, to compare with on the same questions")
    add(
        "--curve",
        nargs="+",
        default=[],
        metavar="LABEL=DIR",
        help="draw the curve of these runs, and ask nothing",
    )
    add("--api-base", default="", help="a server for all three models")
    for role in ("observe", "answer", "judge"):
        add(f"--{role}-base", default="", help=argparse.SUPPRESS)
    add("--timeout", type=float, default=7_000, help="seconds for one request of answerer or judge")
    add(
        "--parallel", type=int, default=8, help="how many conversations, and later requests, at the same time"
    )
    add("--json", action="store_true", help="one JSON object on the last line")
    args = parser.parse_args()
    if bad := [run for run in args.curve if not Path(run.partition("=")[2] or "?").is_dir()]:
        parser.error(f"--curve takes LABEL=DIR, where DIR is the folder of a run: {', '.join(bad)}")
    if not (args.data or args.curve):
        parser.error("--data is needed: a file or folder of conversations")
    return args


if __name__ == "__main__":
    main()
