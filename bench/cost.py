#!/usr/bin/env python3
"""
Counts the tokens that observing and nights would ask of a model, per token of conversation. Asks no model.

    python bench/cost.py --recorded FILE.jsonl.gz… --data FOLDER… [--effort full low] [--nights each] [--out DIR] [--json]

The conversations are observed with recorded replies of a model (see bench/replay.py), and each request is counted.
Replies about notes that do not exist here are lost, so `low` writes less than a model would. "Seen": tokens at the
beginning of a request that an earlier request of the same kind had, too; a provider may have them in its cache.
"Empty": the reply held no edit, no verdict, or no refused claim.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from questions.data import Conversation, read_all
from questions.recorded import Replies, groups_in, messages_in, read_recorded, served, text_of
from questions.vaults import NIGHTS, Observing, observe

from omg.text.tokens import count_tokens

KINDS = ("observe", "material", "twins", "check", "notes", "period")
LINE = "{:>8} {:>9} {:>8} {:>9} {:>9} {:>9} {:>6} {:>7}"


def main() -> None:
    args = arguments()
    files = {file.name.removesuffix(".jsonl.gz"): file for file in args.recorded}
    chats = [c for c in read_all(args.data) if c.id in files]
    said = sum(count_tokens(m.text) for c in chats for m in c.messages)
    report: dict[str, Any] = {"said": said}
    with tempfile.TemporaryDirectory(prefix="omg-cost-") as made:
        for effort in args.effort:
            os.environ["OMG_OBSERVATION_EFFORT"] = effort
            folder = (args.out or Path(made)) / effort
            asked = [row for chat in chats for row in asked_about(chat, files[chat.id], folder, args.nights)]
            report[effort] = sums(asked)
            show(effort, report[effort], said)
    if args.json:
        print(json.dumps(report))


def asked_about(chat: Conversation, recorded: Path, folder: Path, nights: str) -> list[dict[str, Any]]:
    """
    Return each request about *chat*: its kind, its tokens, the tokens seen before, the reply's tokens, and whether the
    reply is empty.
    """
    replies = Replies(read_recorded(recorded))
    with served(replies) as base:
        observe(chat, Observing(folder, "openai/recorded", base, nights))
    rows, before = [], defaultdict[str, list[str]](list)
    for messages, reply in replies.asked:
        text = "\0".join(str(m["content"]) for m in messages)
        kind = kind_of(text_of(messages), str(messages[0]["content"]))
        shared = max((len(os.path.commonprefix([text, o])) for o in before[kind]), default=0)  # noqa: RUF071 - characters are meant
        before[kind].append(text)
        rows.append(
            {
                "kind": kind,
                "in": count_tokens(text),
                "seen": count_tokens(text[:shared]),
                "out": count_tokens(json.dumps(reply, ensure_ascii=False)),
                "empty": is_empty(reply),
            }
        )
    return rows


def kind_of(user: str, system: str) -> str:
    if user.startswith("{"):
        return "check"
    if user.startswith("# New notes\n"):
        return "twins"
    if messages_in(user):
        return "material" if "tools returned" in system.partition("\n")[0] else "observe"
    return "notes" if groups_in(user) else "period"


def is_empty(reply: dict[str, Any]) -> bool:
    if "verdicts" in reply:
        return set(reply["verdicts"].values()) <= {"supported"}
    if "groups" in reply:
        return not any(group["edits"] for group in reply["groups"])
    return not reply.get("edits") and not reply.get("claims")


def sums(asked: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    found = {}
    for kind in (*KINDS, "all"):
        rows = [row for row in asked if kind in (row["kind"], "all")]
        found[kind] = {key: sum(row[key] for row in rows) for key in ("in", "seen", "out", "empty")}
        found[kind]["calls"] = len(rows)
    return found


def show(effort: str, report: dict[str, dict[str, int]], said: int) -> None:
    print(f"\n{effort}: {said:,} tokens said")
    print(LINE.format("", "requests", "empty", "in", "seen", "out", "x said", "unseen"))
    for kind, row in report.items():
        spent = row["in"] + row["out"]
        shares = (f"{spent / said:.2f}", f"{(spent - row['seen']) / said:.2f}")
        print(LINE.format(kind, row["calls"], row["empty"], row["in"], row["seen"], row["out"], *shares))


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--recorded", type=Path, nargs="+", required=True)
    add("--data", type=Path, nargs="+", required=True)
    add("--effort", nargs="+", choices=("full", "low"), default=["full", "low"])
    add("--nights", choices=NIGHTS, default="each", help="`each`: a night after each session")
    add("--out", type=Path, help="keep the vaults here")
    add("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
