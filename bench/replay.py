#!/usr/bin/env python3
"""
Runs recorded conversations through the code with recorded replies of a model, and compares two checkouts.

    python bench/replay.py --recorded FILE.jsonl.gz… --data FOLDER… [--against CHECKOUT] [--observe recorded|offline]
                           [--nights offline|none|end|each] [--slices 100] [--out DIR] [--json]

    --recorded  a file with the requests and replies of one conversation: beam-3.jsonl.gz belongs to --data …/beam/3
    --data      the conversations, as for bench/qa.py
    --against   a checkout of another omg (a git worktree); both are run, and vaults and slices compared
    --observe   `offline` runs the rules, which need no replies

Prints for each conversation which of the recorded replies its requests got, then each difference as a diff. "identical"
means the same files with the same bytes, and the same slices. A slice is the memory for one prompt: here a question
about the conversation, or one of its messages. The clock is set to the conversation's days, so two runs of the same
code are identical.
"""

from __future__ import annotations

import argparse
import difflib
import json
import logging
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

# At the end: PYTHONPATH names the checkout of the omg that is run.
CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.append(str(CHECKOUT))

from questions.data import Conversation, read_all
from questions.files import file_name, in_parallel, read, write
from questions.notes import as_read, called, read_notes, sentences, stands_in
from questions.recorded import Replies, read_recorded, served
from questions.vaults import NIGHTS, Observing, commit, lane, observe, opened

DIFF_LINES, FILES_SHOWN = 24, 40
SLICES = "slices/"


def main() -> None:
    args = arguments()
    if args.child:
        run_here(json.loads(args.child))
        return
    with ExitStack() as stack:
        out = args.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omg-replay-")))
        report = replayed(args, out)
    for trouble in report["troubles"]:
        print(trouble)
    if args.json:
        print(json.dumps(report))
    sys.exit(bool(report["troubles"]))


def replayed(args: Any, out: Path) -> dict[str, Any]:
    """Run what *args* ask for into *out*, and compare. Print and return the result."""
    sides = {"this": CHECKOUT} | ({"against": args.against.resolve()} if args.against else {})
    if done := [side for side in sides if (out / side).exists()]:
        raise SystemExit(f"{out / done[0]} holds another run; name another folder for --out")
    chats = chats_of(args)
    jobs = [chat | {"side": side, "checkout": str(path)} for side, path in sides.items() for chat in chats]
    troubles = in_parallel(lambda job: run(job, out), jobs, args.parallel, "runs")
    report: dict[str, Any] = {"troubles": troubles}
    for side in sides if not troubles else ():
        runs = {chat["chat"]: read(out / side / f"{chat['chat']}.json") for chat in chats}
        print_runs(side, runs)
        report[side] = {
            chat: {k: r[k] for k in r if k not in ("given", "told", "checks")} for chat, r in runs.items()
        }
    if args.against and not troubles:
        report["differences"] = compare(out / "against", out / "this")
    return report


def chats_of(args: Any) -> list[dict[str, Any]]:
    """Return the runs to do for each conversation. Raises SystemExit if --recorded and --data do not match."""
    files = {file.name.removesuffix(".jsonl.gz"): file.resolve() for file in args.recorded}
    chats = {c.id: c for c in read_all(args.data)}
    if args.observe == "recorded" and (alone := files.keys() ^ chats.keys()):
        raise SystemExit(f"{', '.join(sorted(alone))}: give it in both --recorded and --data")
    if not chats:
        raise SystemExit("--data names no conversation")
    return [
        {
            "chat": id,
            "recorded": str(files[id]) if args.observe == "recorded" else "",
            "data": [str(path.resolve()) for path in args.data],
            "verdicts": str(args.verdicts.resolve()) if args.verdicts else "",
            "nights": args.nights or ("end" if args.observe == "recorded" else "offline"),
            "slices": (args.slices + n) // len(chats),
        }
        for n, id in enumerate(sorted(chats))
    ]


def run(job: dict[str, Any], out: Path) -> None:
    """Run one conversation with one checkout, in a separate process. Raises RuntimeError with the end of its output."""
    folder = out / job["side"]
    # Without the environment's settings: both sides run with the defaults.
    env = {k: v for k, v in os.environ.items() if not k.startswith("OMG_")} | {"PYTHONPATH": job["checkout"]}
    asked = json.dumps(job | {"folder": str(folder.resolve())})
    done = subprocess.run(
        [sys.executable, __file__, "--child", asked], capture_output=True, text=True, env=env, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{job['side']}: {job['chat']}: {(done.stdout + done.stderr)[-2000:]}")


# --- one conversation, in the process of its own


def run_here(job: dict[str, Any]) -> None:
    folder = Path(job["folder"])
    (conversation,) = (c for c in read_all(map(Path, job["data"])) if c.id == job["chat"])
    rows = read_recorded(Path(job["recorded"])) if job["recorded"] else []
    home = folder / file_name(conversation.id)
    verdicts = json.loads(Path(job["verdicts"]).read_text(encoding="utf-8")) if job["verdicts"] else {}
    replies = Replies(rows, lambda request, title: how_shown(request, title, home), verdicts)
    said = Told(replies)
    logging.getLogger("omg").addHandler(said)
    logging.getLogger("omg").setLevel(logging.INFO)
    with served(replies) as base:
        model = "openai/recorded" if rows else "offline"
        how = Observing(folder, model, base if rows else "", job["nights"])
        observe(conversation, how)
        slices = take_slices(conversation, how, job["slices"])
    write(folder / "slices" / f"{conversation.id}.json", slices)
    notes = [*vault_of(home).glob("nodes/*/*.md")]
    value = {
        "omg": commit(),
        "messages": len(conversation.messages),
        "notes": len(notes),
        "slices": len(slices),
        **replies.stat,
        "left": replies.left(),
        "given": replies.given,
        "told": said.lines,
        "checks": replies.checks,
    }
    write(folder / f"{conversation.id}.json", value)


class Told(logging.Handler):
    """Collects what the code says it dropped or refused, and after which request."""

    def __init__(self, replies: Replies) -> None:
        super().__init__()
        self.replies, self.lines = replies, list[tuple[int, str]]()

    def emit(self, record: logging.LogRecord) -> None:
        words = record.getMessage().partition(": ")[2]
        if words.startswith(("dropped ", "refused ")):
            self.lines.append((self.replies.requests, words))


def vault_of(home: Path) -> Path:
    return next(iter(sorted(home.glob("graphs/*/vault"))))


def how_shown(request: str, title: str, home: Path) -> str:
    """
    Return how much of the note *title*, as it is now, *request* shows: "whole", "in part" or "by its line"; "not found"
    if no note has this title.
    """
    made = any(home.glob("graphs/*/vault"))  # not yet made at the first request
    notes = called(read_notes(vault_of(home)), title) if made else []
    text = [part for part in sentences(notes[0].text) if part not in notes[0].description] if notes else []
    there = [stands_in(part, as_read(request)) for part in text]
    return (
        "whole"
        if notes and all(there)
        else "in part"
        if any(there)
        else "by its line"
        if notes
        else "not found"
    )


def take_slices(conversation: Conversation, how: Observing, n: int) -> list[dict[str, str]]:
    """
    Return the slices of *n* prompts on the next day: the questions, then messages of the user's, evenly over time.
    """
    at = conversation.questions[0].at if conversation.questions else conversation.messages[-1].at
    prompts = [(q.at, q.text) for q in conversation.questions][:n]
    said = [m.text for m in conversation.messages if m.role == "user"]
    left = min(n - len(prompts), len(said))
    prompts += [(at, said[i * len(said) // left]) for i in range(left)]
    now, taken = [at], []
    with opened(conversation.id, how, lambda: now[0]) as memory:
        for number, (now[0], text) in enumerate(prompts):
            given = memory.inject(text, session=lane(f"asked {number}"), dry_run=True)
            taken.append({"asked": text, "system": given.system, "prompt": given.prompt})
    return taken


# --- the comparison


def files_of(side: Path) -> dict[str, bytes]:
    """Return the files of the vaults, and each slice as a file."""
    found = {}
    for home in sorted(p for p in side.iterdir() if (p / "graphs").is_dir()):
        vault = vault_of(home)
        for file in sorted(vault.rglob("*")):
            name = file.relative_to(vault)
            if file.is_file() and not any(part.startswith(".") for part in name.parts):
                found[f"{home.name}/{name}"] = file.read_bytes()
    for file in sorted((side / "slices").iterdir()):
        for n, given in enumerate(read(file), 1):
            found[f"{SLICES}{file.stem}/{n}"] = "\n\n".join(given.values()).encode()
    return found


def compare(one: Path, other: Path) -> dict[str, Any]:
    """Print each difference as a diff. Return the counts of differences."""
    a, b = files_of(one), files_of(other)
    different = [name for name in a.keys() | b.keys() if a.get(name) != b.get(name)]
    different.sort(key=lambda name: ("/nodes/" not in name, name))  # maps and slices follow from the notes
    for name in different[:FILES_SHOWN]:
        before, after = (side.get(name, b"").decode("utf-8", "replace").splitlines() for side in (a, b))
        labels = (f"{side.name}/{name}" for side in (one, other))
        lines = [*difflib.unified_diff(before, after, *labels, n=1, lineterm="")]
        print("\n".join(lines[:DIFF_LINES] or [f"{name}: the line ends differ, or one side is empty"]))
        if len(lines) > DIFF_LINES:
            print(f"… {len(lines) - DIFF_LINES} more lines of {name}")
    if more := different[FILES_SHOWN:]:
        print(f"… and {len(more)} more: {', '.join(more)}")
    slices = [name for name in a.keys() | b.keys() if name.startswith(SLICES)]
    counts = {
        "identical": not different,
        "files": len(a.keys() | b.keys()) - len(slices),
        "files_different": sum(not name.startswith(SLICES) for name in different),
        "files_new": len(b.keys() - a.keys()),
        "files_gone": len(a.keys() - b.keys()),
        "slices": len(slices),
        "slices_different": sum(name.startswith(SLICES) for name in different),
    }
    print(
        f"{'different' if different else 'identical'}: {counts['files_different']} of {counts['files']} files differ"
        f" ({counts['files_new']} new, {counts['files_gone']} gone), {counts['slices_different']} of {counts['slices']} slices"
    )
    return counts


def print_runs(side: str, runs: dict[str, Any]) -> None:
    for chat, r in runs.items():
        print(
            f"{side} ({r['omg']}): {chat}: {r['messages']} messages, {r['notes']} notes; requests: {r['hits']} known,"
            f" {r['misses']} unknown, {r['again']} again; references: {r['references']}, of them {r['lost']} lost;"
            f" asked whether new notes are there already: {r['twins']} times, {r['twin_chars']:,} characters;"
            f" edits and verdicts that no request got: {len(r['left'])}"
        )
        for left in r["left"]:
            print(f"    {left}")


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    inputs(parser)
    add = parser.add_argument
    add("--against", type=Path, help="a checkout of another omg, to compare with")
    add("--observe", choices=("recorded", "offline"), default="recorded")
    add("--nights", choices=NIGHTS, help="default: end, with --observe offline: offline")
    add("--slices", type=int, default=100)
    add("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def inputs(parser: Any) -> None:
    """Add the options that bench/fidelity.py also has."""
    add = parser.add_argument
    add("--recorded", type=Path, nargs="+", default=[])
    add("--data", type=Path, nargs="+", default=[])
    add(
        "--verdicts",
        type=Path,
        help="a careful model's answers to the check, by claim; default: supported",
    )
    add("--out", type=Path, help="keep the vaults here; default: a temporary folder")
    add("--parallel", type=int, default=2)
    add("--json", action="store_true", help="one JSON object on the last line")


if __name__ == "__main__":
    main()
