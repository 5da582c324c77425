#!/usr/bin/env python3
"""
Records the replies that `omg demo` plays: runs the sample as the demo does, and asks a model each of the demo's
questions.

    OMG_LLM_API_BASE=http://127.0.0.1:8765/v1 OMG_LLM_API_KEY=x python bench/record_demo.py openai/strong
    python bench/record_demo.py --stale     # list the questions that changed since they were recorded
    python bench/record_demo.py --keep      # keep the replies for today's questions, after you have compared the questions

Replies are written to omg/sample/replies.json as they come, unedited.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path

from omg.config import load_config
from omg.demo import (
    REPLIES,
    Recorded,
    Replay,
    prompt_digest,
    recorded_replies,
    story_in,
)
from omg.llm.asker import Asker
from omg.llm.replies import Ask, Ledger, ModelQuestion, ModelReply


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", help="a LiteLLM model")
    parser.add_argument("--stale", action="store_true", help="show the questions that have changed")
    parser.add_argument(
        "--keep", action="store_true", help="write the recorded replies beside today's questions"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="omg-record-") as name:
        folder = Path(name)
        if args.stale:
            show_stale(folder)
            return
        if not args.keep and not args.model:
            parser.error("name a model, or --stale, or --keep")
        config = load_config(folder / "asking")
        asker = None if args.keep else Asker(config, args.model, Ledger(folder / "ledger.jsonl", config))
        rows = recorded(folder, asker or Replay(recorded_replies()))
    REPLIES.write_text(json.dumps([asdict(r) for r in rows], ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{len(rows)} replies in {REPLIES}")


def recorded(folder: Path, ask: Callable[[ModelQuestion], ModelReply]) -> list[Recorded]:
    """Run the demo's sample in *folder*. Return what was asked, and what *ask* answered."""
    rows, lock = list[Recorded](), threading.Lock()

    def asked(question: ModelQuestion) -> ModelReply:
        reply = ask(question)
        with lock:
            rows.append(Recorded(question.purpose, prompt_digest(question), question.user, reply.text))
            print(f"{len(rows)}: {question.purpose}, {len(reply.text):,} characters", flush=True)
        return reply

    run_through(folder, asked)
    return rows


def run_through(folder: Path, ask: Ask) -> None:
    story = story_in(folder, ask)
    with story.memory:
        for _ in story.sessions():
            pass
        story.write_by_hand()
        story.sleep()


def show_stale(folder: Path) -> None:
    replay = Replay(recorded_replies())
    run_through(folder, replay)
    for question in replay.changed:
        row = replay.nearest(question)
        print(
            f"{question.purpose}: instructions {'changed' if row.prompt != prompt_digest(question) else 'the same'}"
        )
        lines = (text.splitlines() for text in (row.question, question.user))
        print("\n".join(unified_diff(*lines, "recorded", "asked now", n=1, lineterm="")))
    print(f"{len(replay.changed)} changed, {len(set(replay.rows) - replay.played)} not asked any more")


if __name__ == "__main__":
    main()
