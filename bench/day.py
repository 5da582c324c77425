#!/usr/bin/env python3
"""
Measures what a day costs: tokens asked of models per token of conversation, on four kinds of day, with vaults of three
sizes.

    python bench/day.py [--days bursts coding long quiet] [--notes 0 200 5000] [--effort full] [--every 40] [--json]
                        [--recorded FILE.jsonl.gz --data FOLDER] [--model MODEL [--api-base URL]]

    bursts   24 bursts of 250 tokens, --every so many minutes from 07:00 on     long    a talk of 60,000 tokens
    coding   6 sessions of 8,000 tokens, with tools and pasted code             quiet   nothing is said

The clock is simulated: each message is captured at its time and gets its slice (the memory for one prompt), the daemon looks
every five minutes for what is due, and the night runs at 04:10. A vault's notes have the subjects of the talk, and have had
their first night. Recorded replies answer instead of a model: those of the talk that --data names, else of a talk made here.
So the figures hold for as many edits as these replies have. A model is examined for the check only once, so that cost is
printed separately. With --model a live model answers instead. Tokens are those of o200k; a schema counts as in a request
to `gateway`.

"Cached" tokens are those that a provider may have in its cache: a beginning of 1,024 tokens or more that another request of
the last hour had, too. `x said` counts them in full, and counts input and output together. Prices: LiteLLM's list.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from cost import KINDS, kind_of
from questions.data import Said, read_all
from questions.recorded import Replies, Row, Seen, one_line, read_recorded

from omg import Memory
from omg.check import is_able
from omg.config import Config
from omg.graph.graph import Graph
from omg.identity import identity_of_session
from omg.journal import commit_receipt, new_receipt
from omg.llm.asker import Asker
from omg.llm.replies import Ledger, ModelQuestion, ModelReply
from omg.memory import MAIN
from omg.node.note import Source
from omg.plan.drafts import Plan
from omg.plan.edits import Edit
from omg.text.tokens import count_tokens
from omg.text.words import split_sentences

DAY = datetime(2026, 3, 4, 7, tzinfo=UTC)  # a Wednesday: no week or month ends
NIGHT = timedelta(hours=21, minutes=10)  # after DAY
BURST, SESSION, TALK = 250, 8_000, 60_000
MODELS = ("gpt-5-mini", "claude-haiku-4-5", "gemini/gemini-2.5-flash")
CACHED_S, CACHED_TOKENS = 3_600, 1_024
BATCH = 100  # notes written with one receipt
LINE = "{:>8} {:>9} {:>9} {:>9} {:>8} {:>7}"


@dataclass
class Talk:
    """Exchanges, each begun by a person, and the recorded replies of a model to these exchanges."""

    exchanges: list[list[Said]]
    rows: list[Row] = field(default_factory=list)


@dataclass
class Day:
    """The messages of a day, one list for each stretch of the day, and the replies, by the messages' new times."""

    stretches: list[list[Said]]
    rows: list[Row]
    ends: bool = False  # whether a session ends after each stretch

    @property
    def said(self) -> int:
        return sum(count_tokens(m.text) for stretch in self.stretches for m in stretch)


# --- a talk


THINGS = "kiln bakery garden archive ferry choir workshop greenhouse library orchard cellar studio".split()
DOINGS = "moved to|was repaired on|opens again on|is closed until|was paid for on|is to be painted by".split(
    "|"
)
PEOPLE = "Ines Tomas Ruth Anders Mina Joao Elif Peter".split()
ASIDES = (
    "That took longer than anybody had thought, but it is how it is.",
    "What would you look at first if you were in my place?",
    "The weather was no help either, with all that rain since Sunday.",
    "Tell me if anything about this seems odd to you.",
)
ADVICE = (
    "One way would be to write down who needs what, and to begin with whatever keeps the others from working.",
    "It may help to ask for two offers, and to compare what each of them leaves out.",
    "You could also leave it until the end of the month, when there is less to do.",
    "Many people keep a short list for that, and look at it once a week.",
)


def made_talk(tokens: int, seed: int) -> Talk:
    """
    Make a talk of *tokens* tokens. Every second exchange states something, and its reply makes a note of the statement.
    """
    draw, talk, at, spent = random.Random(seed), Talk([]), datetime(2025, 1, 6, tzinfo=UTC), 0
    while spent < tokens:
        n = len(talk.exchanges)
        at += timedelta(minutes=2)
        thing, who, day = draw.choice(THINGS), draw.choice(PEOPLE), f"{draw.randint(1, 28)} March 2026"
        fact = f"The {thing} of {who} in street {draw.randint(1, 999)} {draw.choice(DOINGS)} {day}, for {draw.randint(20, 900)} euros."
        words = " ".join([fact, *draw.sample(ASIDES, 2)] if n % 2 else draw.sample(ASIDES, 3))
        asked = Said(f"q{seed}-{n}", "user", "", words, at)
        told = Said(f"a{seed}-{n}", "assistant", "", " ".join(draw.choices(ADVICE, k=14)), at)
        talk.exchanges.append([asked, told])
        spent += sum(count_tokens(m.text) for m in (asked, told))
        if n % 2:
            edit = {
                "op": "create",
                "type": "episode",
                "title": f"{who}'s {thing} {n}",
                "description": fact,
                "body": f"{who} said so when the {thing} was talked about.",
                "sources": ["m1"],
            }
            talk.rows.append(
                Row(n, "observe", "", {"edits": [edit], "now": {}}, {"m1": seen(asked), "m2": seen(told)})
            )
    return talk


def read_talk(recorded: Path, data: Sequence[Path]) -> Talk:
    id = recorded.name.removesuffix(".jsonl.gz")
    (chat,) = (c for c in read_all(data) if c.id == id)
    talk = Talk([], [row for row in read_recorded(recorded) if row.kind in ("observe", "notes")])
    for m in chat.messages:
        if m.role == "user" or not talk.exchanges:
            talk.exchanges.append([])
        talk.exchanges[-1].append(m)
    return talk


def seen(said: Said) -> Seen:
    return Seen((f"{said.at:%Y-%m-%d}", f"{said.at:%H:%M}"), one_line(said.text)[:60])


# --- a day


def day_of(name: str, talk: Talk, every: int) -> Day:
    if name == "bursts":
        starts = [DAY + timedelta(minutes=every * n) for n in range(24)]
        return moved(talk, starts, BURST, most=BURST)
    if name == "coding":
        starts = [DAY + timedelta(hours=1 + 2 * n) for n in range(6)]
        return replace(with_tools(moved(talk, starts, SESSION // 2)), ends=True)
    return moved(talk, [DAY + timedelta(hours=2)] if name == "long" else [], TALK)


def moved(talk: Talk, starts: Sequence[datetime], tokens: int, most: int = 0) -> Day:
    """
    Move the exchanges of *talk* to stretches of *tokens* tokens that begin at *starts*, two minutes for each exchange.
    With *most*, cut messages to the size of a stretch, and leave out what a model noted of a cut message.
    """
    rest, stretches, to, shorter = iter(talk.exchanges), [], dict[Seen, Seen](), set[Seen]()
    for start in starts:
        stretch, left, at = list[Said](), tokens, start
        while left > 0 and (exchange := next(rest, None)):
            for m in exchange:
                share = most // 2 if most and m.role == "user" else max(left, 20)
                text = cut(m.text, share) if most else m.text
                new = replace(m, text=text, at=at)
                to[seen(m)] = seen(new)
                shorter |= {seen(m)} if text != m.text else set()
                stretch.append(new)
                left -= count_tokens(text)
            at += timedelta(minutes=2)
        stretches.append(stretch)
    rows = []
    for row in talk.rows:
        gone = {h for h, s in row.messages.items() if s in shorter}
        edits = [edit for edit in row.reply.get("edits", ()) if not gone & {*edit["sources"]}]
        messages = {h: to.get(s, s) for h, s in row.messages.items()}
        if row.kind != "observe" or to.keys() & {*row.messages.values()}:
            rows.append(replace(row, reply=row.reply | {"edits": edits}, messages=messages))
    return Day(stretches, rows)


def cut(text: str, tokens: int) -> str:
    while count_tokens(text) > tokens:
        text = text[: max(20, int(len(text) * 0.9 * tokens / count_tokens(text)))]
    return text


def with_tools(day: Day) -> Day:
    """Return *day* with pasted text and tool results added, as many tokens again."""
    draw, stretches = random.Random(5), []
    for stretch in day.stretches:
        whole: list[Said] = []
        share = 2 * sum(count_tokens(m.text) for m in stretch) // max(1, len(stretch))
        for m in stretch:
            whole.append(m)
            if m.role == "user":
                log = "\n".join(log_lines(draw, share // 2))
                whole.append(replace(m, id=f"{m.id}-tool", role="tool", speaker="run", text=log))
                whole[-2] = replace(m, text=f"{m.text}\n\n```python\n{code(draw, share // 2)}\n```")
        stretches.append(whole)
    return replace(day, stretches=stretches)


def log_lines(draw: random.Random, tokens: int) -> Iterator[str]:
    for n in range(max(1, tokens // 24)):
        yield f"07:{n % 60:02} test_{draw.choice(THINGS)}_{n} PASSED [{draw.randint(1, 99)} %] in {draw.random():.3f} s"


def code(draw: random.Random, tokens: int) -> str:
    lines = [
        f"def {draw.choice(THINGS)}_{n}(rows: list[str]) -> int:\n    return len(rows) + {n}\n"
        for n in range(max(1, tokens // 22))
    ]
    return "\n".join(lines)


# --- a home


@dataclass
class Asked:
    """Answers each question with a recorded reply, and keeps the question with its cost."""

    replies: Replies
    now: list[datetime]
    live: Asker | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    before: list[tuple[datetime, str]] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, question: ModelQuestion) -> ModelReply:
        if self.live:
            reply = self.live(question).text
        else:
            reply = json.dumps(self.replies.answer(question.user), ensure_ascii=False)
        text, now = f"{question.system}\0{question.user}", self.now[0]
        with self.guard:
            self.before = [(at, t) for at, t in self.before if (now - at).total_seconds() < CACHED_S]
            shared = max((len(os.path.commonprefix([text, t])) for _, t in self.before), default=0)  # noqa: RUF071
            self.before.append((now, text))
            cached, told, said = count_tokens(text[:shared]), count_tokens(text), count_tokens(reply)
            kind = kind_of(question.user, question.system)
            cached = cached if cached >= CACHED_TOKENS else 0
            self.rows.append({"kind": kind, "in": told, "cached": cached, "out": said})
        return ModelReply(reply, "recorded", told, said)


def opened(home: Path, now: list[datetime], asked: Asked, effort: str = "full") -> Memory:
    made = Config.model_validate(
        {
            "home": home,
            "time": {"zone": "UTC"},
            "observation": {"model": "gateway", "daily_budget_tokens": 100_000_000, "effort": effort},
            "llm": {"context_window": 200_000},
        }
    )
    return Memory(made, embed=None, gateway=asked, clock=lambda: now[0])


def know(graph: Graph, sentences: Sequence[str], notes: int) -> None:
    """Write *notes* notes of the person's, each a sentence on the talk's subjects, dated over the year before."""
    for first in range(0, notes, BATCH):
        plan = Plan(graph, DAY.date() - timedelta(days=1))
        for n in range(first, min(notes, first + BATCH)):
            line = sentences[n % len(sentences)]
            said = DAY - timedelta(days=1 + n % 365)
            title = f"{' '.join(line.split()[:4])} {n}"
            source = Source(MAIN, f"before-{n}", int(said.timestamp() * 1000))
            edit = Edit("create", title=title, description=line, type="fact", origin="user", day=said.date())
            plan.apply(replace(edit, sources=(source,)))
        with graph.lock():
            commit_receipt(graph, new_receipt("observation", DAY, plan.changes(), name=f"known-{first}"))


def settled(home: Path, sentences: Sequence[str], notes: int) -> int:
    """
    Make a home with *notes* notes, run its first night, so that later nights see only what is new, and examine the
    model. Return the tokens of the examination.
    """
    now = [DAY - timedelta(hours=3)]
    examined = Asked(Replies([]), now)
    home.mkdir()
    if not is_able(home, "recorded", examined, DAY):
        raise SystemExit("the model is not able to check")
    with opened(home, now, Asked(Replies([]), now)) as memory:
        who = identity_of_session(MAIN)
        assert who is not None
        know(memory.graph(who), sentences, notes)
        for _ in range(2):
            for night in memory.reflect():
                if error := night.get("error"):
                    raise SystemExit(f"the night of {notes} notes: {error}")
    return sum(row["in"] + row["out"] for row in examined.rows)


def lived(home: Path, day: Day, live: Asker | None, effort: str) -> list[dict[str, Any]]:
    """Live through one day and its night, and return the requests."""
    now = [DAY]
    asked = Asked(Replies(day.rows), now, live)
    told = iter(sorted(due(day), key=lambda event: event[0]))
    event = next(told, None)
    with opened(home, now, asked, effort) as memory:
        look = DAY
        while look <= DAY + NIGHT:
            while event and event[0] <= look:
                now[0] = event[0]
                say(memory, event[1])
                event = next(told, None)
            now[0] = look
            memory.worker.work()
            look += timedelta(minutes=5)
        for night in memory.reflect():
            if error := night.get("error"):
                raise SystemExit(f"the night: {error}")
        if waiting := memory.find().pending():
            raise SystemExit(
                f"{len(waiting)} turns wait after the night: {memory.worker.waits(memory.find())}"
            )
    return asked.rows


def due(day: Day) -> Iterator[tuple[datetime, list[Said] | None]]:
    """Yield each time with the exchange said then; None means that the session ends."""
    for stretch in day.stretches:
        exchange: list[Said] = []
        for m in stretch:
            if m.role == "user" and exchange:
                yield exchange[0].at, exchange
                exchange = []
            exchange.append(m)
        if exchange:
            yield exchange[0].at, exchange
        if day.ends and stretch:
            yield stretch[-1].at + timedelta(seconds=30), None


def say(memory: Memory, exchange: list[Said] | None) -> None:
    if exchange is None:
        drop = {"v": 1, "reason": "reset", "sessionKey": MAIN, "senderIsOwner": True, "entries": []}
        name = f"{int(memory.clock().timestamp() * 1000)}-end.json"
        (memory.folder / "spool" / name).write_text(json.dumps(drop))
        memory.take_in()
        return
    memory.inject(exchange[0].text)
    memory.capture(entry(m) for m in exchange)


def entry(m: Said) -> dict[str, Any]:
    value: dict[str, Any] = {"role": m.role, "content": m.text, "timestamp": m.at, "id": m.id}
    return value | ({"name": m.speaker, "tool_call_id": m.id} if m.role == "tool" else {})


# --- what is printed


def sums(rows: Sequence[dict[str, Any]], said: int) -> dict[str, Any]:
    kinds: dict[str, dict[str, int]] = defaultdict(lambda: {"requests": 0, "in": 0, "cached": 0, "out": 0})
    for row in rows:
        for kind in (row["kind"], "all"):
            kinds[kind]["requests"] += 1
            for key in ("in", "cached", "out"):
                kinds[kind][key] += row[key]
    whole = kinds["all"]
    spent = whole["in"] + whole["out"]
    return {
        "said": said,
        "ratio": round(spent / said, 2) if said else float(spent),
        "by_purpose": dict(kinds),
        "usd": {model: round(usd(model, whole), 4) for model in MODELS},
    }


def usd(model: str, row: dict[str, int]) -> float:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    price = litellm.model_cost[model]
    cached = price.get("cache_read_input_token_cost") or price["input_cost_per_token"]
    fresh = (row["in"] - row["cached"]) * price["input_cost_per_token"]
    return float(fresh + row["cached"] * cached + row["out"] * price["output_cost_per_token"])


def show(day: str, notes: int, found: dict[str, Any]) -> None:
    print(f"\n{day}, a vault of {notes:,} notes: {found['said']:,} tokens said, {found['ratio']:g} x")
    print(LINE.format("", "requests", "in", "cached", "out", "x said"))
    for kind, row in (
        (kind, found["by_purpose"][kind]) for kind in (*KINDS, "all") if kind in found["by_purpose"]
    ):
        times = f"{(row['in'] + row['out']) / found['said']:.2f}" if found["said"] else ""
        print(LINE.format(kind, row["requests"], row["in"], row["cached"], row["out"], times))
    print("  " + ", ".join(f"{model} ${price:.4f}" for model, price in found["usd"].items()), flush=True)


def main() -> None:
    args = arguments()
    if args.recorded:
        talk = read_talk(args.recorded, args.data)
    else:
        talk = made_talk(args.tokens, 1)
    sentences = [
        s
        for exchange in reversed(talk.exchanges)
        for m in exchange
        for s in split_sentences(one_line(m.text))
    ]
    sentences = [s for s in dict.fromkeys(sentences) if 40 <= len(s) <= 240][:6_000]
    report: dict[str, Any] = {
        "ratios": {day: {} for day in args.days},
        "days": {day: {} for day in args.days},
    }
    with tempfile.TemporaryDirectory(prefix="omg-day-") as made:
        config = Config.model_validate({"home": made, "llm": {"api_base": args.api_base}})
        live = Asker(config, args.model, Ledger(Path(made) / "live.jsonl", config)) if args.model else None
        for notes in args.notes:
            home = Path(made) / f"known-{notes}"
            report["examination"] = settled(home, sentences, notes)
            for name in args.days:
                day = day_of(name, talk, args.every)
                shutil.copytree(home, own := Path(made) / f"{name}-{notes}")
                found = sums(lived(own, day, live, args.effort), day.said)
                report["ratios"][name][str(notes)] = found["ratio"]
                report["days"][name][str(notes)] = found
                show(name, notes, found)
    print(f"\nthe examination of a model, once: {report['examination']:,} tokens")
    if args.json:
        print(json.dumps(report))


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--days",
        nargs="+",
        choices=("bursts", "coding", "long", "quiet"),
        default=["bursts", "coding", "long", "quiet"],
    )
    add("--notes", type=int, nargs="+", default=[0, 200, 5_000], help="sizes of the vault")
    add("--effort", choices=("full", "low"), default="full")
    add("--every", type=int, default=40, help="minutes from one burst to the next")
    add("--tokens", type=int, default=TALK, help="tokens of the talk said on a day, at most")
    add("--recorded", type=Path, help="recorded replies of a model to the talk of this name in --data")
    add("--data", type=Path, nargs="+", default=[])
    add("--model", help="a LiteLLM model that is asked in place of the replies")
    add("--api-base", default="", help="where it is served")
    add("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
