"""
Conversations and questions of LoCoMo, LongMemEval, BEAM and plain JSONL, in one form; which of them are asked.

    LoCoMo       a list of conversations with `qa`; category 5 (adversarial) is right where the answer abstains
    LongMemEval  `haystack_sessions` with `haystack_dates`, or a sample's `data[].conversation[]`
    BEAM         a folder with `chat*.json` and `probing_questions/`, scored by rubric item
    JSONL        lines {conversation, session, role, content, timestamp, speaker?} and
                 {conversation, question, answer or rubric, category?, day?, abstain?}

One rule: nothing is said later than its session, and nothing is asked before all of it was said.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .files import file_name

LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ABSTAIN = "It is not known: nothing of the kind was said. Right is an answer that says so, in any words."
MARK = re.compile(r"\s*->->\s*[\d,\s]*$")  # of BEAM's messages: no part of the text


@dataclass(frozen=True, slots=True)
class Said:
    id: str
    role: str
    speaker: str  # "" where the role says it
    text: str
    at: datetime

    @property
    def line(self) -> str:
        return f"{self.speaker or self.role}: {self.text}"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    messages: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    gold: tuple[str, ...]  # what a right answer has in it, an item each
    benchmark: str
    category: str
    at: datetime  # when it is asked
    abstain: bool = False  # right is to say that it is not known


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    @property
    def messages(self) -> list[Said]:
        return [m for session in self.sessions for m in session.messages]


def read_all(paths: Iterable[Path]) -> list[Conversation]:
    """What lies in *paths*. Raises SystemExit, naming what is no data."""
    found = [conversation for path in paths for conversation in read_path(path)]
    ids = Counter(c.id for c in found)
    if twice := [id for id, n in ids.items() if n > 1]:
        raise SystemExit(f"--data: {', '.join(twice)} stands in more than one of the files; give it once")
    return found


def read_path(path: Path) -> Iterator[Conversation]:
    if path.is_dir():
        if (path / "probing_questions").is_dir():
            yield beam(path)
            return
        for inside in sorted(path.iterdir()):
            if inside.is_dir() or inside.suffix in (".json", ".jsonl"):
                yield from read_path(inside)
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        yield from plain(json.loads(line) for line in text.splitlines() if line.strip())
        return
    raw = json.loads(text)
    rows = raw.get("data") if isinstance(raw, dict) else raw
    first = rows[0] if isinstance(rows, list) and rows else {}
    if "haystack_sessions" in first or "questions" in first:
        yield from map(longmemeval, rows)
    elif "qa" in first:
        yield from map(locomo, rows)
    else:
        raise SystemExit(f"{path}: neither LoCoMo, LongMemEval nor JSONL; for BEAM name the chat's folder")


# --- LoCoMo


def locomo(raw: Mapping[str, Any]) -> Conversation:
    talk, id, sessions = raw["conversation"], str(raw["sample_id"]), []
    for n in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key)):
        began = datetime.strptime(talk[f"session_{n}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        said = [
            Said(t["dia_id"], "user", t["speaker"], with_image(t), began + timedelta(minutes=i))
            for i, t in enumerate(talk[f"session_{n}"])
        ]
        sessions.append(Session(f"session-{n}", tuple(said)))
    at = day_after(sessions)
    questions = [
        Question(
            f"{id}-q{n}",
            q["question"],
            (ABSTAIN if q["category"] == 5 else str(q["answer"]),),
            "LoCoMo",
            LOCOMO[q["category"]],
            at,
            q["category"] == 5,
        )
        for n, q in enumerate(raw["qa"])
        if q["category"] == 5 or "answer" in q
    ]
    return Conversation(id, tuple(sessions), tuple(questions))


def with_image(turn: Mapping[str, Any]) -> str:
    shared = f" [shares image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return str(turn["text"]) + shared


# --- LongMemEval


def longmemeval(raw: Mapping[str, Any]) -> Conversation:
    id = file_name(str(raw.get("question_id") or raw["id"]))
    if "haystack_sessions" in raw:
        talks = list(zip(raw["haystack_dates"], raw["haystack_sessions"], strict=True))
        asked = [raw]
    else:
        by_date: dict[str, list[Any]] = defaultdict(list)
        for m in raw["conversation"]:
            by_date[m["date"]].append(m)
        talks, asked = list(by_date.items()), raw["questions"]
    sessions = []
    for n, (date, talk) in enumerate(sorted(talks, key=lambda talk: longmemeval_date(talk[0]))):
        began = longmemeval_date(date)
        said = [
            Said(f"s{n}-{i}", m["role"], "", m["content"], began + timedelta(minutes=i))
            for i, m in enumerate(talk)
        ]
        sessions.append(Session(f"session-{n}", tuple(said)))
    at = longmemeval_date(raw["question_date"]) if raw.get("question_date") else day_after(sessions)
    abstain = str(raw.get("question_id") or raw.get("id")).endswith("_abs")
    questions = [
        Question(
            id if len(asked) == 1 else f"{id}-{n}",
            q["question"],
            (ABSTAIN if abstain else str(q["answer"]),),
            "LongMemEval",
            str(raw["question_type"]),
            at,
            abstain,
        )
        for n, q in enumerate(asked)
    ]
    return Conversation(id, tuple(sessions), tuple(questions))


def longmemeval_date(text: str) -> datetime:
    """2023/05/30 (Tue) 21:48"""
    return datetime.strptime(re.sub(r"\s*\(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


# --- BEAM


def beam(folder: Path) -> Conversation:
    id = file_name(f"beam-{folder.name}")
    chat = json.loads(next(iter(sorted(folder.glob("chat*.json")))).read_text(encoding="utf-8"))
    sessions: list[tuple[str, list[Said]]] = []
    at = datetime(2024, 1, 1, 9, tzinfo=UTC)  # of a chat that never says its day
    for batch in chat:
        anchor, own = batch.get("time_anchor"), list[Said]()
        for m in (m for turn in batch["turns"] for m in turn):
            if anchor := m.get("time_anchor") or anchor:
                at, anchor = beam_date(anchor), None
                own = []
            if not own:
                sessions.append((f"session-{len(sessions) + 1}", own))
            text = MARK.sub("", m["content"])
            own.append(Said(f"m{m['id']}", m["role"], "", text, at + timedelta(minutes=len(own))))
    whole = [Session(name, tuple(said)) for name, said in sessions]
    (file,) = (folder / "probing_questions").glob("*.json")
    asked_at = day_after(whole)
    questions = []
    for category, asked in json.loads(file.read_text(encoding="utf-8")).items():
        for n, q in enumerate(asked):
            abstain = category == "abstention"
            gold = (ABSTAIN,) if abstain else tuple(map(str, q["rubric"]))
            questions.append(
                Question(f"{id}-{category}-{n}", q["question"], gold, "BEAM", category, asked_at, abstain)
            )
    return Conversation(id, tuple(whole), tuple(questions))


def beam_date(text: str) -> datetime:
    return datetime.strptime(text, "%B-%d-%Y").replace(hour=9, tzinfo=UTC)


# --- JSONL


def plain(lines: Iterable[Mapping[str, Any]]) -> Iterator[Conversation]:
    talks: dict[str, dict[str, list[Said]]] = defaultdict(lambda: defaultdict(list))
    asked: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines:
        id = file_name(str(line.get("conversation") or "conversation"))
        if "question" in line:
            asked[id].append(line)
            continue
        own = talks[id][str(line.get("session") or "session-1")]
        at = utc(str(line["timestamp"]))
        mid = f"{len(talks[id])}-{len(own)}"
        own.append(Said(mid, line["role"], line.get("speaker") or "", line["content"], at))
    for id, sessions in talks.items():
        whole = sorted(
            (Session(n, tuple(said)) for n, said in sessions.items()), key=lambda s: s.messages[0].at
        )
        questions = [
            Question(
                f"{id}-q{n}",
                q["question"],
                (ABSTAIN,) if q.get("abstain") else tuple(map(str, q.get("rubric") or [q["answer"]])),
                "JSONL",
                str(q.get("category") or "all"),
                utc(q["day"]) if q.get("day") else day_after(whole),
                bool(q.get("abstain")),
            )
            for n, q in enumerate(asked[id])
        ]
        yield Conversation(id, tuple(whole), tuple(questions))


def utc(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def day_after(sessions: Sequence[Session]) -> datetime:
    """When a question is asked whose data set does not say: the day after the last word."""
    return max(m.at for s in sessions for m in s.messages) + timedelta(days=1)


# --- which questions are asked


def sample(
    conversations: Sequence[Conversation], n: int | None, seed: int, adversarial: bool
) -> dict[str, list[Question]]:
    """
    Conversation → its questions: at most *n* of each benchmark, drawn by category and then over the conversations.

    A category has the share it has in the whole, so that the points of a sample mean what those of all would.
    """
    drawn = random.Random(seed)
    by_benchmark: dict[str, dict[str, list[tuple[str, Question]]]] = defaultdict(lambda: defaultdict(list))
    for c in conversations:
        for q in c.questions:
            if adversarial or q.category != LOCOMO[5]:
                by_benchmark[q.benchmark][q.category].append((c.id, q))
    chosen: dict[str, list[Question]] = defaultdict(list)
    for categories in by_benchmark.values():
        taken: Counter[str] = Counter()
        for category, room in shares({k: len(v) for k, v in categories.items()}, n).items():
            waiting = categories[category]
            drawn.shuffle(waiting)
            for _ in range(room):
                best = min(range(len(waiting)), key=lambda i: taken[waiting[i][0]])
                id, question = waiting.pop(best)
                taken[id] += 1
                chosen[id].append(question)
    return {id: sorted(questions, key=lambda q: q.id) for id, questions in chosen.items()}


def shares(sizes: Mapping[str, int], n: int | None) -> dict[str, int]:
    """How many of *n* each category gets, by its size, what is left over to the largest remainders."""
    whole = sum(sizes.values())
    if n is None or n >= whole:
        return dict(sizes)
    exact = {k: n * size / whole for k, size in sizes.items()}
    given = {k: int(v) for k, v in exact.items()}
    for k in sorted(exact, key=lambda k: (given[k] - exact[k], k))[: n - sum(given.values())]:
        given[k] += 1
    return given
