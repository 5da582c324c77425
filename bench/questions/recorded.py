"""
Recorded requests of the Observer and the Reflector, and a server that answers new requests with their replies.

Requests change with the code, so nothing is looked up by its bytes:

    an edit     goes to the first request that shows one of the messages it cites and none before the latest of them.
                Messages are known by day and time, or by the beginning of their text where two have one time.
    a verdict   goes to the group of the same notes; to each group that has its notes, where no recorded group is the same.
    a look back goes to the request about the same week or month, the second attempt to the second.

Notes are known by title, then by description. Each edit is given once, so a second request about the same messages
gets no edits. The check's claims are answered by recorded verdicts, else as supported. What is not known is answered with nothing; `stat` counts hits, misses and references.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# Lines of a request: "--- Friday 2024-05-10 ---", "m1 09:00 user: …", "n3 [fact, …] Title: …", "e1 2024-06-05 [fact] Title: …",
# "# g1: the same, …", "# Week 23 of 2024, 2024-06-03 to 2024-06-09".
DAY = re.compile(r"^--- \w+ (\d{4}-\d\d-\d\d) ---$")
MESSAGE = re.compile(r"^([a-z]+\d+) (\d\d:\d\d) [^:\n]{0,80}:(.*)$")
NOTE = re.compile(r"^([a-z]+\d+) (?:\d\S* )?\[[^\]]*\] (.+)$", re.M)
GROUP = re.compile(r"^# (g\d+)\b", re.M)
PERIOD = re.compile(r"^# (.+), \d{4}-\d\d-\d\d to ", re.M)
BEGINNING = 60  # characters by which a text is known


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as a request shows it."""

    at: tuple[str, str]  # day, time
    begins: str


@dataclass(frozen=True, slots=True)
class Titled:
    """A note as a request shows it."""

    title: str
    begins: str  # its description


def one_line(text: str) -> str:
    return " ".join(text.split())


def messages_in(text: str) -> dict[str, Seen]:
    found, day = dict[str, Seen](), ""
    for line in text.splitlines():
        if m := DAY.match(line):
            day = m[1]
        elif day and (m := MESSAGE.match(line)):
            found.setdefault(m[1], Seen((day, m[2]), one_line(m[3])[:BEGINNING]))
    return found


def notes_in(text: str) -> dict[str, Titled]:
    found = dict[str, Titled]()
    for m in NOTE.finditer(text):
        title, _, description = m[2].partition(": ")
        found.setdefault(m[1], Titled(title.strip(), one_line(description)[:BEGINNING]))
    return found


def groups_in(text: str) -> dict[str, dict[str, Titled]]:
    _, *parts = GROUP.split(text)
    return {name: notes_in(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def title_of(text: str) -> str:
    """Of a request about a week or a month."""
    found = PERIOD.search(text)
    return found[1] if found else ""


def same_messages(old: Mapping[str, Seen], new: Mapping[str, Seen]) -> dict[str, str]:
    """Old handle → new handle."""
    places: dict[tuple[str, str], list[str]] = {}
    for handle, seen in new.items():
        places.setdefault(seen.at, []).append(handle)
    alone = Counter(seen.at for seen in old.values())
    found = {}
    for handle, seen in old.items():
        there = places.get(seen.at, [])
        same = [h for h in there if new[h].begins == seen.begins]
        if same or (len(there) == 1 and alone[seen.at] == 1):
            found[handle] = (same or there)[0]
    return found


def same_notes(old: Mapping[str, Titled], new: Mapping[str, Titled]) -> dict[str, str]:
    """Old handle → new handle."""
    by_title = {note.title.casefold(): h for h, note in reversed([*new.items()])}
    by_text = {note.begins: h for h, note in reversed([*new.items()]) if note.begins}
    found = {h: by_title.get(note.title.casefold()) or by_text.get(note.begins) for h, note in old.items()}
    return {h: there for h, there in found.items() if there}


@dataclass
class Row:
    """One recorded request and its reply."""

    n: int
    kind: str  # observe, notes, period
    request: str
    reply: dict[str, Any]
    messages: dict[str, Seen] = field(default_factory=dict)
    notes: dict[str, Titled] = field(default_factory=dict)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Row:
        text = text_of(raw["messages"])
        return cls(raw["n"], raw["kind"], text, json.loads(raw["reply"]), messages_in(text), notes_in(text))

    @cached_property
    def edits(self) -> list[tuple[str, dict[str, Any]]]:
        """Edits of notes by their number, verdicts by their group and number."""
        if self.kind == "observe":
            return [(str(i), edit) for i, edit in enumerate(self.reply["edits"], 1)]
        groups = self.reply["groups"] if self.kind == "notes" else ()
        return [(f"{g['group']}.{i}", edit) for g in groups for i, edit in enumerate(g["edits"], 1)]


def text_of(messages: Any) -> str:
    content = messages[-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def read_recorded(file: Path) -> list[Row]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [Row.of(json.loads(line)) for line in lines]


def check_in(request: str) -> dict[str, Any] | None:
    """The question of the check that *request* is; None for any other."""
    try:
        asked = json.loads(request)
        return asked if isinstance(asked["claims"], dict) else None
    except (ValueError, TypeError, KeyError):
        return None


def exam_answer(asked: Mapping[str, Any]) -> dict[str, str] | None:
    """The right answers where *asked* is a question of the examination of models, which no recorded chat has."""
    file = Path(__file__).parents[2] / "omg" / "prompts" / "check-cases.json"
    texts = [claim.get("text") for claim in asked["claims"].values()]
    for case in json.loads(file.read_text(encoding="utf-8")):
        if [claim["text"] for claim in case["claims"].values()] == texts:
            return {n: claim["expect"].split(" or ")[0] for n, claim in case["claims"].items()}
    return None


class Replies:
    """
    The recorded replies of one conversation. `given` says which edit was given in answer to which request, and how much
    of a note that it updates the request showed; *shown* says that of a request and a title.
    """

    def __init__(
        self,
        rows: list[Row],
        shown: Callable[[str, str], str] = lambda request, title: "unknown",
        verdicts: Mapping[str, str] | None = None,
    ) -> None:
        self.rows, self.shown, self.verdicts = rows, shown, verdicts or {}
        self.given: list[dict[str, Any]] = []
        self.checks: list[
            dict[str, Any]
        ] = []  # what the check was asked, and where it had no recorded answer
        self.requests = 0
        self.asked: list[
            tuple[list[dict[str, Any]], dict[str, Any]]
        ] = []  # the requests' messages, the replies
        self.lock = threading.Lock()
        self.stat = Counter(
            {"hits": 0, "misses": 0, "again": 0, "references": 0, "lost": 0, "twins": 0, "twin_chars": 0}
        )
        self._given = set[tuple[int, str]]()
        self._attempts = Counter[str]()

    def answer(self, request: str) -> dict[str, Any]:
        with self.lock:
            if (asked := check_in(request)) is not None:
                return self._check(asked)
            self.requests += 1
            if request.startswith(
                "# New notes\n"
            ):  # whether they are in the vault already: no recorded reply says
                self.stat["twins"] += 1
                self.stat["twin_chars"] += len(request)
                return {"same": []}
            if messages := messages_in(request):
                return self._edits(request, messages)
            if groups := groups_in(request):
                return self._verdicts(groups)
            return self._look_back(request)

    def _check(self, asked: dict[str, Any]) -> dict[str, Any]:
        """As a careful model once said of the same claim; what it was not asked is supported."""
        if (expected := exam_answer(asked)) is not None:
            return {"verdicts": expected}
        keys = {n: json.dumps(claim, sort_keys=True) for n, claim in asked["claims"].items()}
        self.checks.append(asked | {"unknown": [n for n, key in keys.items() if key not in self.verdicts]})
        return {"verdicts": {n: self.verdicts.get(key, "supported") for n, key in keys.items()}}

    def left(self) -> list[str]:
        """The edits and verdicts that no request has got."""
        given = {(g["row"], g["edit"]) for g in self.given}
        return [f"{row.n}, edit {i}" for row in self.rows for i, _ in row.edits if (row.n, i) not in given]

    def _edits(self, request: str, messages: Mapping[str, Seen]) -> dict[str, Any]:
        notes, last = notes_in(request), max(seen.at for seen in messages.values())
        found, now, known = list[Any](), dict[str, Any](), False
        for row in (row for row in self.rows if row.kind == "observe"):
            if not (there := same_messages(row.messages, messages)):
                continue
            known, same = True, same_notes(row.notes, notes)
            if [*row.messages][-1] in there and self._first(row, "now"):
                now = row.reply.get("now") or {}
            for i, edit in row.edits:
                cited = [h for h in edit["sources"] if h in row.messages]
                shown = [there[h] for h in cited if h in there]
                if not shown or max(row.messages[h].at for h in cited) > last or not self._first(row, i):
                    continue
                self.stat["references"] += len(cited)
                self.stat["lost"] += len(cited) - len(shown)
                edit = edit | {"sources": shown}
                place = {"request": self.requests, "place": str(len(found) + 1), "row": row.n, "edit": i}
                if (old := edit.get("node")) in row.notes:
                    edit["node"] = self._note(old, row.notes, same)
                    place["shown"] = self.shown(request, notes.get(edit["node"], row.notes[old]).title)
                edit["links"] = [self._note(h, row.notes, same) for h in edit.get("links") or ()]
                self.given.append(place)
                found.append(edit)
        self.stat["misses" if not known else "hits" if found else "again"] += 1
        return {"edits": found, "now": now}

    def _first(self, row: Row, part: str) -> bool:
        """Whether this *part* of a reply is asked for the first time."""
        new = (row.n, part) not in self._given
        self._given.add((row.n, part))
        return new

    def _note(self, handle: str, old: Mapping[str, Titled], same: Mapping[str, str]) -> str:
        if handle not in old:
            return handle  # the title of another edit of the reply
        self.stat["references"] += 1
        self.stat["lost"] += handle not in same
        return same.get(handle, old[handle].title)

    def _verdicts(self, groups: Mapping[str, Mapping[str, Titled]]) -> dict[str, Any]:
        found = {name: list[Any]() for name in groups}
        judged = {name: self._judged(notes) for name, notes in groups.items()}
        self.stat["hits" if any(judged.values()) else "misses"] += 1
        for name, row, group, same in ((name, *j) for name, rows in judged.items() for j in rows):
            for i, edit in row.edits:
                named = {key: edit[key] for key in ("node", "other") if edit.get(key)}
                if i.partition(".")[0] != group or not same.keys() >= {*named.values()}:
                    continue
                edit = edit | {key: same[handle] for key, handle in named.items()}
                if edit not in found[name]:
                    found[name].append(edit)
                    place = f"{name}, edit {len(found[name])}"
                    self.given.append({"request": self.requests, "place": place, "row": row.n, "edit": i})
        return {"groups": [{"group": name, "edits": edits} for name, edits in found.items()]}

    def _judged(self, notes: Mapping[str, Titled]) -> list[tuple[Row, str, dict[str, str]]]:
        """The recorded groups of the same *notes*, and which is which; if there is none, those that share some."""
        rows = (row for row in self.rows if row.kind == "notes")
        all = [(row, group, shown) for row in rows for group, shown in groups_in(row.request).items()]
        near = [(row, group, shown, same_notes(shown, notes)) for row, group, shown in all]
        exact = [near for near in near if len(near[3]) == len(near[2]) == len(notes)]
        return [(row, group, same) for row, group, _, same in exact or near if same]

    def _look_back(self, request: str) -> dict[str, Any]:
        notes, heading = notes_in(request), title_of(request)
        rows = [
            (row, same)
            for row in self.rows
            if row.kind == "period" and title_of(row.request) == heading
            if 2 * len(same := same_notes(row.notes, notes)) >= len(notes)
        ]
        self.stat["hits" if rows else "misses"] += 1
        if not rows:
            return {"description": "", "claims": []}
        asked = "\n".join([heading, *(note.title for note in notes.values())])
        row, same = rows[min(self._attempts[asked], len(rows) - 1)]
        self._attempts[asked] += 1
        claims = []
        for claim in row.reply["claims"]:
            self.stat["references"] += len(claim["notes"])
            self.stat["lost"] += sum(h not in same for h in claim["notes"])
            claims.append(claim | {"notes": [same[h] for h in claim["notes"] if h in same]})
        return row.reply | {"claims": claims}


@contextmanager
def served(replies: Replies) -> Iterator[str]:
    """An OpenAI-compatible server on loopback that answers with *replies*; its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = replies.answer(text_of(body["messages"]))
            replies.asked.append((body["messages"], reply))
            said = json.dumps(reply, ensure_ascii=False)
            size = sum(len(str(m["content"])) for m in body["messages"]) // 4
            used = {"prompt_tokens": size, "completion_tokens": len(said) // 4}
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
            value = {
                "id": "recorded",
                "object": "chat.completion",
                "created": 0,
                "model": "recorded",
                "choices": [choice],
                "usage": used | {"total_tokens": sum(used.values())},
            }
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
