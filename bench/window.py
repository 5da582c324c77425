#!/usr/bin/env python3
"""
Measures which facts a model still sees in a conversation longer than its window, with and without OMG as the real
gateway's context engine.

    OMG_OPENCLAW=… python bench/window.py [--turns 200] [--facts 20] [--side with|without|both] [--out FOLDER] [--json]

Each side is a gateway of its own, with a scripted model of 32,768 tokens, and with memory observed by the rules. On the side
without the engine, OMG was installed as the engine and removed again. tests/gateway/longtalk.py has the conversation. Then
comes a question for each fact of the first forty turns. Counted are the requests that have the words of the answer, and
where the words are. This measures what a model is given, not what it answers; `--out` keeps the requests for a model that
answers. The gateway's own summaries come from the scripted model, so the side without does not measure what a summary keeps.

`--script` prints what would be said and starts nothing. One JSON object on the last line with --json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS / "gateway"), str(TESTS), str(TESTS.parent)]

from agent_model import agent
from gateway import Gateway, eventually, found
from longtalk import FACTS, asked, held, measured, report, said, stands, talked, wire
from openai_server import OpenAIServer
from telegram import Telegram

SESSION = "agent:main:main"
NAMES = {"with": "with OMG's context engine", "without": "with the gateway's own"}
OMG = '[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n'


def side(which: str, turns: int, facts: int, out: Path | None) -> dict[str, Any]:
    installed = found(os.environ)
    if isinstance(installed, str):
        raise SystemExit(installed)
    config = {
        "agents": {"defaults": {"model": {"primary": "mock/mock-small"}}},
        "plugins": {"slots": {"contextEngine": "legacy"}},
    }
    began = time.monotonic()
    with OpenAIServer() as provider, Telegram() as telegram, tempfile.TemporaryDirectory() as folder:
        provider.always(agent)
        with Gateway(
            installed, Path(folder), provider.base, telegram.base, omg=OMG, config=config, plugin=False
        ) as gateway:
            gateway.omg("install", "--no-nightly", "--context-engine")
            if which == "without":
                gateway.omg("install", "--no-nightly", "--no-context-engine")
            gateway.start()
            made = talked(gateway, provider, SESSION, turns, lambda n: told(n, which, began))
            eventually(lambda: not gateway.memory.spooled(), 60, "the spool to be taken in")
            answers = asked(gateway, provider, SESSION, FACTS[:facts])
            result = measured([*made, *answers], gateway.events(SESSION))
            rows = held(answers, FACTS[:facts])
            if out:
                keep(out, which, rows, answers, gateway)
    result["seconds"] = round(time.monotonic() - began)
    result["facts"] = {
        "asked": len(rows),
        "stand": sum(row["stands"] for row in rows),
        "where": {
            place: sum(place in row["where"] for row in rows)
            for place in ("raw", "timeline", "memory", "else")
        },
        "of_all_per_question": [row["all"] for row in rows],
        "missing": [row["fact"] for row in rows if not row["stands"]],
        "unsaid": [
            f.text for f in FACTS[1:facts] if made and made[0].own and stands(wire(made[0].own[0]), f)
        ],
    }
    return result


def told(n: int, which: str, began: float) -> None:
    if n % 20 == 19:
        print(f"{which}: {n + 1} turns, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def keep(out: Path, which: str, rows: list[dict[str, Any]], answers: list[Any], gateway: Gateway) -> None:
    """Write a JSON line for each question with its request, and beside it the logs of daemon and gateway."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{which}.jsonl").open("w") as f:
        for row, turn in zip(rows, answers, strict=True):
            messages = turn.own[0].body["messages"] if turn.own else []
            f.write(json.dumps({**row, "messages": messages}, ensure_ascii=False) + "\n")
    (out / f"{which}.txt").write_text("\n\n=====\n".join(wire(t.own[0]) for t in answers if t.own))
    (out / f"{which}.gateway.log").write_text(gateway.tail(10**7))
    for name in ("omg.log", "events.jsonl"):
        if (file := gateway.home / name).exists():
            (out / f"{which}.{name}").write_bytes(file.read_bytes())


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--turns", type=int, default=200)
    args.add_argument(
        "--facts",
        type=int,
        default=20,
        help=f"how many of the {len(FACTS)} facts are said, one in every other turn",
    )
    args.add_argument("--side", choices=("with", "without", "both"), default="both")
    args.add_argument("--out", type=Path, help="keep the questions' requests and the logs in this folder")
    args.add_argument("--script", action="store_true", help="print what would be said, and start nothing")
    args.add_argument("--json", action="store_true", help="one JSON object on the last line")
    given = args.parse_args()
    if given.script:
        lines = [*(said(n) for n in range(given.turns)), *(fact.question for fact in FACTS[: given.facts])]
        print("\n".join(line[:120] for line in lines))
        if given.json:
            print(json.dumps({"script": lines}))
        return
    result = {}
    for which in ("with", "without") if given.side == "both" else (given.side,):
        result[which] = side(which, given.turns, given.facts, given.out)
        print(report(NAMES[which], result[which]))
        facts = result[which]["facts"]
        print(
            f"  words of {facts['stand']} of {facts['asked']} facts in their question's request: {facts['where']}"
        )
    if given.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
