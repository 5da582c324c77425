#!/usr/bin/env python3
"""
How well an assistant answers questions about the past with what this memory gives it, beside no memory and the whole past.

    python bench/qa.py --data FILE|FOLDER… --out DIR --observe MODEL|offline --answer MODEL --judge MODEL [--questions N]
                       [--context none last full raw slice vault tools] [--budget TOKENS] [--against DIR] [--json]

    none   nothing: what can be guessed       raw    a search over the messages themselves, to the budget
    last   the last messages, to the budget   slice  what a prompt is given on the day of the question, to the budget
    full   the whole conversation             vault  every note, whole
    tools  the slice, and up to four calls of omg_search, omg_open and a search over the messages

Any LiteLLM model; `--api-base` (or one for each) names a server. Conversations are observed session by session through
the library, on the days they were had. The answerer quotes the words that decide its answer; an answer whose quotes do
not stand in its own context counts as unknown. The judge sees question, gold answer and answer, in no order.

All is kept in --out, a file an item: killed and run again, it goes on; another --judge judges the same answers.
Another run's points on the same questions are compared with `--against`: a paired difference, with its interval.
`bench/questions/exclusions.json` names gold answers that are plainly wrong, with the reason: they are not asked.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

# At the end: PYTHONPATH may name the checkout of another omg, to be measured with this bench.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from questions.data import read_all
from questions.files import in_parallel
from questions.vaults import NIGHTS, Observing, observe, prepare_environment

STAGES = ("observe", "contexts", "answer", "judge", "report")


def main() -> None:
    args = arguments()
    prepare_environment(args.observe_base or args.api_base)
    conversations = read_all(args.data)
    how = Observing(
        args.vaults or args.out / "vaults", args.observe, args.observe_base or args.api_base, args.nights
    )
    troubles: list[str] = []
    if args.stage in ("observe", "all"):
        troubles = in_parallel(lambda c: observe(c, how), conversations, args.parallel, "observed")
    if args.json:
        print(json.dumps({"troubles": troubles}))
    sys.exit(bool(troubles))


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True, help="everything is kept here")
    parser.add_argument(
        "--vaults", type=Path, help="where the observed conversations are; default: OUT/vaults"
    )
    parser.add_argument("--stage", choices=(*STAGES, "all"), default="all")
    parser.add_argument("--observe", default="offline", metavar="MODEL")
    parser.add_argument(
        "--nights",
        choices=NIGHTS,
        default="offline",
        help="reflect once in the end, by rules or (end) by the model; each: after every session",
    )
    parser.add_argument("--api-base", default="", help="a server for all models")
    parser.add_argument("--observe-base", default="")
    parser.add_argument(
        "--parallel", type=int, default=8, help="conversations, then requests, at the same time"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
