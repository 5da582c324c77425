"""
A life of one memory, drawn from a seed: two processes' worth of Homes on one folder, a person at the files, a
model that is often useless, a disk that refuses any operation, and a plug that is pulled. After each step what must always hold is looked up in
the files alone.

Used by test_fuzz.py, some hundred short lives, and by bench/fuzz.py, long ones.
"""

from __future__ import annotations

import errno
import io
import json
import os
import random
import re
import shutil
import sqlite3
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from contexts import OWN, Contexts, polled, spoken, stripped
from killed import in_child
from openai_server import believed, created
from spooled import entry, hand_over

from omg.config import Config, Context, Inject, Llm, Observation
from omg.errors import BadNode, ModelUnavailable, OmgError
from omg.graph.state import TEMPORARY, process_alive
from omg.inject.decide import Prompt, slice_for
from omg.journal import Receipt
from omg.llm.replies import ModelQuestion, ModelReply
from omg.memory import Memory
from omg.node.note import parse_node
from omg.worker.nights import reflect_each

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
MAIN = "agent:main:main"
SESSIONS = (MAIN, "agent:main:main:thread:9")  # two conversations of one memory
PEER = "agent:main:telegram:direct:7"  # somebody else, who is kept waiting by none of it
REFUSED = ("open", "replace", "rename", "unlink", "link", "fsync", "scandir", "mkdir")
TOLD = (OmgError, OSError, sqlite3.Error)  # what a command prints, and a daemon logs
TOPICS = ("tea", "trains", "lamps", "paper", "maps", "boats")
GARBAGE = ("", "I have nothing to say.", '{"edits": [{"op": "crea', '{"edits": 3}', "[]")
MEANWHILE = ("say", "poll", "edit", "delete", "rename", "inject", "assemble", "take", "look")
STEPS = {
    "say": 6,
    "work": 5,
    "force": 2,
    "inject": 4,
    "assemble": 4,
    "poll": 1.5,
    "rewind": 0.5,
    "outgrow": 0.5,
    "forget": 0.5,
    "redact": 0.5,
    "edit": 2,
    "delete": 1,
    "rename": 1,
    "loose": 1,
    "look": 2,
    "wait": 2,
    "reflect": 1,
    "restart": 1,
    "again": 1,
    "kill": 1,
    "refuse": 2,
    "spoil": 1,
    "no_index": 0.5,
}


# Every file is read after each step; a text that was parsed before is not parsed again.
node_of, receipt_of = lru_cache(10_000)(parse_node), lru_cache(10_000)(Receipt.loads)


class Broken(AssertionError):
    """An invariant does not hold; the message names the seed, the steps so far and what is wrong."""


def template(folder: Path) -> Path:
    """A furnished home that lives begin as copies of: making one takes longer than living a short life."""
    home = Memory(config(folder), clock=lambda: START, embed=None)
    home.graph(home.registry.identity_of(MAIN))  # type: ignore[arg-type]
    home.close()
    return folder


def config(folder: Path) -> Config:
    return Config(
        home=folder,
        # One graph after the other, so that a seed lives the same life each time; a Crowd has several at once.
        observation=Observation(message_tokens=600, buffer_tokens=120, max_tokens_per_batch=180, parallel=1),
        llm=Llm(attempts=1, backoff_s=0),
        inject=Inject(budget_tokens=800),
        context=Context(message_tokens=400, buffer_activation=0.8),
    )


class Life:
    def __init__(self, seed: int, folder: Path, begin: Path) -> None:
        self.rng = random.Random(seed)
        self.seed, self.folder = seed, folder
        shutil.copytree(begin, folder)
        self.now = START
        self.said: dict[str, str] = {}  # id → session
        self.number = 0  # of statements
        self.forgotten: set[str] = set()  # ids; the gateway's transcript still has them
        self.drops: list[tuple[str, str]] = []  # name and text of each drop
        self.marks: dict[str, bool] = {}  # a person's words → whether they still stand
        self.served: dict[str, tuple[str, int]] = {}  # session → `system` and when it was activated
        self.contexts = Contexts()
        self.steps: list[str] = []
        self.mood = "good"
        self.meanwhile = True  # whether somebody acts while the model is asked
        self.homes = [self.open(), self.open()]

    def open(self) -> Memory:
        return Memory(config(self.folder), gateway=self.ask, clock=lambda: self.now, embed=None)

    def close(self) -> None:
        for home in self.homes:
            home.close()

    @cached_property
    def vault(self) -> Path:
        return next(self.folder.glob("graphs/main-main-*")) / "vault"

    # --- the model

    def ask(self, question: ModelQuestion) -> ModelReply:
        """An answer for each message shown, or nonsense; while it thinks, other things happen."""
        if self.meanwhile and self.rng.random() < 0.3:
            self.meanwhile = False
            self.do(self.rng.choice(MEANWHILE), self.homes[1])
            self.meanwhile = True
        if self.mood == "down":
            raise ModelUnavailable("gateway: scripted failure")
        if self.mood == "garbage":
            return ModelReply(self.rng.choice(GARBAGE), "scripted", 10, 1)
        if answer := believed(question):
            return answer
        shown = re.findall(r"^(m\d+) \S+ user: Statement (\d+): (.*)$", question.user, re.M)
        known = re.findall(r"^(n\d+) \[", question.user, re.M)
        edits = [
            created("never shown", "m1", op="supersede", node="n99"),
            created("no source", "m999"),
        ]
        for handle, number, text in shown:
            chance = self.rng.random()
            kind, title = self.rng.choice(("fact", "preference", "episode")), f"About {text.split()[-1]}"
            edit = created(f"Said {number}: {text}", handle, type=kind, title=title, priority="medium")
            if chance < 0.3 and known:
                edit |= {"op": self.rng.choice(("update", "supersede")), "node": self.rng.choice(known)}
            if chance < 0.9:
                edits.append(edit)
        now = {"task": f"Statement {shown[-1][1]}"} if shown else {}
        return ModelReply(json.dumps({"edits": edits, "now": now}), "scripted", 100, 20)

    # --- steps

    def step(self) -> None:
        name = self.rng.choices(list(STEPS), list(STEPS.values()))[0]
        self.mood = self.rng.choices(("good", "garbage", "down"), (7, 2, 1))[0]
        self.do(name, self.rng.choice(self.homes))
        self.check()

    def do(self, name: str, home: Memory) -> None:
        self.steps.append(f"{name}{self.homes.index(home)}" if home in self.homes else name)
        try:
            getattr(self, f"_{name}")(home)
        except OmgError:
            raise
        except Broken:
            raise
        except Exception as e:
            raise self.broken(f"{name} raised {traceback.format_exc()}") from e

    def _say(self, _: Memory, session: str = "", reason: str = "") -> None:
        session, entries = session or self.rng.choice(SESSIONS), []
        for _n in range(self.rng.randint(1, 3)):
            n = self.number
            self.number += 1
            said_at = self.now - timedelta(days=self.rng.choice((0, 0, 0, 3)), seconds=-n)  # some come late
            text = f"Statement {n}: I like {self.rng.choice(TOPICS)}"
            tool, answered = self.rng.random() < 0.2, self.rng.random() < 0.6
            messages = spoken(n, text, int(said_at.timestamp() * 1000), tool=tool, answered=answered)
            self.contexts.heard(session, messages)
            entries += [{"entryId": m["id"], "message": stripped(m)} for m in messages]
            self.said |= {m["id"]: session for m in messages}
        self.handed_over(
            session, entries, reason or self.rng.choices(("turn", "compaction", "reset"), (18, 1, 1))[0]
        )

    def handed_over(self, session: str, entries: list[dict[str, Any]], reason: str) -> None:
        drop = {"v": 1, "reason": reason, "agentId": "main", "sessionKey": session, "entries": entries}
        name = f"{int(self.now.timestamp() * 1000):015d}-{len(self.drops)}"
        self.drops.append((name, json.dumps(drop)))
        self.put(name, json.dumps(drop))
        if reason == "reset":
            self.contexts.rewound(session, 0)
        elif reason == "compaction":
            self.contexts.compacted(session, int(self.now.timestamp() * 1000))
        self.now += timedelta(seconds=20)

    def _poll(self, _: Memory) -> None:
        """The gateway begins a turn by itself: a heartbeat, a job, a sub-agent's report."""
        session, n = self.rng.choice(SESSIONS), self.number
        self.number += 1
        by = self.rng.choice(("heartbeat", "cron", "subagent_announce"))
        messages = polled(n, by, int(self.now.timestamp() * 1000) + 500)  # a time of their own
        self.contexts.heard(session, messages)
        self.handed_over(session, [{"entryId": m["id"], "message": stripped(m)} for m in messages], "turn")

    def _again(self, _: Memory) -> None:
        """The hook and the catching up may both bring a turn."""
        if self.drops:
            name, text = self.rng.choice(self.drops)
            self.put(f"{name}a{self.rng.randint(0, 9)}", text)

    def put(self, name: str, text: str) -> None:
        whole = self.folder / "spool" / f".{name}"
        whole.write_text(text)
        whole.replace(self.folder / "spool" / f"{name}.json")

    def _take(self, home: Memory) -> None:
        home.take_in()

    def _work(self, home: Memory) -> None:
        home.work()

    def _force(self, home: Memory) -> None:
        home.work(force=True)

    def _look(self, home: Memory) -> None:
        home.refresh(home.find())

    def _wait(self, _: Memory) -> None:
        self.now += timedelta(seconds=self.rng.choice((30, 250, 400, 4000, 90_000)))

    def _reflect(self, home: Memory) -> None:
        list(reflect_each(home.worker))

    def _restart(self, home: Memory) -> None:
        home.close()
        self.homes[self.homes.index(home)] = self.open()

    def _no_index(self, home: Memory) -> None:
        for file in self.vault.parent.glob("index.db*"):
            file.unlink(missing_ok=True)

    def _inject(self, home: Memory) -> None:
        session = self.rng.choice(SESSIONS)
        graph = home.find()
        given = slice_for(
            graph, Prompt(f"What about {self.rng.choice(TOPICS)}?", session), self.now, home.config
        )
        own = graph.state().sessions.get(session)
        at = own.activated_ms if own else 0
        before, then = self.served.get(session, ("", 0))
        if given.reason is None and session in self.served and given.system != before:
            raise self.broken("the slice changed without an activation")
        if at < then:
            raise self.broken(f"the slice went back in time, from {then} to {at}")
        if given.tokens > home.config.inject.budget_tokens:
            raise self.broken(f"a slice of {given.tokens} tokens")
        self.served[session] = (given.system, at)

    def _assemble(self, home: Memory) -> None:
        """The gateway asks what leaves a context, of this conversation or somebody else's."""
        session = self.rng.choice((*SESSIONS, *SESSIONS, PEER))
        graph = home.graph(home.registry.identity_of(session))  # type: ignore[arg-type]
        theirs = [id for id, where in self.said.items() if (where == PEER) == (session == PEER)]
        room = self.rng.choice((None, None, 700))
        if wrong := self.contexts.assemble(graph, session, room, self.now, home.config, theirs):
            raise self.broken(f"the context of {session}: {wrong}")

    def _rewind(self, _: Memory) -> None:
        session = self.rng.choice(SESSIONS)
        self.contexts.rewound(session, self.rng.randint(0, len(self.contexts.said.get(session, []))))

    def _outgrow(self, _: Memory) -> None:
        self.contexts.outgrown(self.rng.choice(SESSIONS), self.rng.randint(10, 25))

    def _forget(self, home: Memory) -> None:
        """A statement is forgotten, with the notes made of it and what a person wrote into those."""
        theirs = [id for id, where in self.said.items() if where != PEER and re.fullmatch(r"e\d+", id)]
        if len(theirs) < 2:
            return  # with the last of it the graph itself goes
        id = self.rng.choice(theirs)
        touched = home.forget(matching=f"Statement {id[1:]}:").messages
        self.nowhere(f"Statement {id[1:]}:")
        waiting, files = stored(self.folder)
        left = waiting.union(line["id"] for lines in files for line in lines)
        for gone in set(touched) - left:  # of the others only a sentence went
            self.said.pop(gone, None)
            self.forgotten.add(gone)
        self.contexts.served.clear()  # the plugin goes by none that is older than a forgetting
        self.served.clear()
        texts = "".join(f.read_text() for f in self.vault.rglob("*.md"))
        self.marks = {mark: stands and mark in texts for mark, stands in self.marks.items()}

    def _redact(self, home: Memory) -> None:
        """The words of a statement go, and it stays, with its notes and what a person wrote into those."""
        theirs = [id for id, where in self.said.items() if where != PEER and re.fullmatch(r"e\d+", id)]
        if theirs:
            words = f"Statement {self.rng.choice(theirs)[1:]}:"
            home.redact(words)
            self.nowhere(words)
            self.contexts.served.clear()

    def nowhere(self, words: str) -> None:
        for file in self.folder.rglob("*"):
            if file.is_file() and words.encode() in file.read_bytes():
                raise self.broken(f"{words!r} is still in {file.relative_to(self.folder)}")

    # --- the person

    def theirs(self) -> list[Path]:
        return sorted(p for p in self.vault.glob("nodes/*/*.md"))

    def _edit(self, _: Memory) -> None:
        if not (files := [*self.theirs(), *sorted(self.vault.glob("mocs/*.md"))]):
            return
        file, mark = self.rng.choice(files), f"PERSON-{self.seed}-{len(self.marks)}-"
        with file.open("a") as f:
            f.write(f"\n{mark}\n")
        self.marks[mark] = True

    def _delete(self, _: Memory) -> None:
        if files := self.theirs():
            file = self.rng.choice(files)
            text = file.read_text()
            file.unlink()
            for mark in self.marks:
                if mark in text:
                    self.marks[mark] = False

    def _rename(self, _: Memory) -> None:
        if files := self.theirs():
            file = self.rng.choice(files)
            file.rename(file.with_name(f"{file.stem}-moved{len(self.steps)}.md"))

    def _loose(self, _: Memory) -> None:
        mark = f"PERSON-{self.seed}-{len(self.marks)}-"
        (self.vault / "inbox" / f"loose{len(self.marks)}.md").write_text(
            f"{mark} I prefer {self.rng.choice(TOPICS)}.\n"
        )
        self.marks[mark] = True

    # --- the plug

    def _kill(self, _: Memory) -> None:
        """Another process works, and dies at one of its writes."""
        at, seed = self.rng.randint(1, 40), self.rng.random()

        def work() -> None:
            self.meanwhile, self.rng = False, random.Random(seed)
            home = self.open()
            home.work(force=True)
            self._assemble(home)

        in_child(work, at)
        self.contexts.served.clear()  # it may have cut, and died before it could say so

    # --- the disk

    def _refuse(self, home: Memory) -> None:
        """A few file operations in a row fail, wherever they are, and whoever asks for them is told or waits."""
        what = self.rng.choice(("take", "work", "force", "look", "reflect", "inject", "assemble"))
        error = self.rng.choice((errno.ENOSPC, errno.EIO, errno.EACCES))
        self.steps.append(what)
        self.meanwhile = False
        with refusing(self.rng.randint(1, 150), self.rng.randint(1, 5), error), suppress(*TOLD):
            getattr(self, f"_{what}")(home)
        self.meanwhile = True
        if what == "inject":
            self.served.clear()  # it may have activated, and failed to say so
        if what == "assemble":
            self.contexts.served.clear()  # nor what it cut

    def _spoil(self, home: Memory) -> None:
        """A page of the one graph cannot be read or written; the other's turns are observed all the same."""
        page = self.vault / "mocs" / "moc-facts.md"
        kept = page.with_suffix(".kept")
        page.rename(kept)
        if self.rng.random() < 0.5:
            page.symlink_to(kept)
        else:
            page.mkdir()
        self.now += timedelta(hours=2)  # past any pause
        self._say(home, MAIN, "compaction")
        self._say(home, PEER, "compaction")
        self.mood, self.meanwhile = "good", False
        home.work()
        self.meanwhile = True
        page.unlink() if page.is_symlink() else page.rmdir()
        kept.rename(page)
        if waiting := list(self.folder.glob("graphs/main-telegram-*/pending/*.json")):
            raise self.broken(f"somebody else waits: {[f.name for f in waiting]}")

    # --- what must always hold

    def broken(self, what: str) -> Broken:
        return Broken(f"seed {self.seed}, after {' '.join(self.steps)}: {what}")

    def check(self) -> None:
        graph = self.vault.parent
        waiting, files = stored(self.folder)
        archived = Counter(line["id"] for lines in files for line in lines)
        if lost := set(self.said) - waiting - set(archived):
            raise self.broken(f"lost: {sorted(lost)}")
        if kept := [id for id in archived if OWN.fullmatch(id)]:
            raise self.broken(f"no person said it, and it was kept: {kept}")
        if twice := [i for i, n in archived.items() if n > 1]:
            raise self.broken(f"archived twice: {twice}")
        if unlawful := self.contexts.broken(self.forgotten.union(archived)):
            raise self.broken("; ".join(unlawful))
        receipts = [receipt_of(f.read_text()) for f in (graph / "receipts").glob("[0-9]*.json")]
        observed = Counter(
            name.split(".")[0] for r in receipts if r.kind == "observation" for name in r.pending
        )
        if repeated := [name for name, n in observed.items() if n > 1]:
            raise self.broken(f"observed twice: {repeated}")
        written = {
            c.path: r for r in receipts for c in r.changes if c.path.startswith("nodes/") and c.before is None
        }
        for file in self.theirs():
            path = file.relative_to(self.vault).with_suffix("").as_posix()
            try:
                node = node_of(file.read_text(), path)
            except BadNode as e:
                raise self.broken(str(e)) from e
            if path in written and not node.sources:
                raise self.broken(f"{path} has no source")
            if unknown := [
                s.id for s in node.sources if s.id not in self.said and not s.id.startswith("inbox:")
            ]:
                raise self.broken(f"{path} cites {unknown}")
            if "never shown" in node.description or "no source" in node.description:
                raise self.broken(f"{path} was not to be written")
        if standing := [m for m, stands in self.marks.items() if stands]:
            texts = "".join(f.read_text() for f in self.vault.rglob("*.md"))
            if gone := [m for m in standing if m not in texts]:
                raise self.broken(f"a person's words are gone: {gone}")

    def finish(self) -> None:
        """Whatever happened, one undisturbed run later everything said is observed."""
        self.close()
        self.mood, self.meanwhile = "good", False
        home = self.open()
        self.homes = [home]
        self.now += timedelta(hours=2)
        home.work(force=True)
        for graph in home.registry.kept():  # once more: another process may have had a dead one's number
            graph.remove_leftovers()
        self.steps.append("finish")
        self.check()
        left = [
            *(self.folder / "spool").glob("*.json"),
            *self.folder.glob("graphs/*/pending/*"),
            *self.folder.glob("graphs/*/receipts/*.open.json"),
            *self.folder.glob("graphs/*/damaged/*"),
        ]
        # What a killed process was about to write stays while another process has its number.
        left = [
            f for f in left if not ((half := TEMPORARY.fullmatch(f.name)) and process_alive(int(half[1])))
        ]
        if left:
            raise self.broken(f"left over: {[f.name for f in left]}")
        _, files = stored(self.folder)
        if missing := set(self.said) - {line["id"] for lines in files for line in lines}:
            raise self.broken(f"never observed: {sorted(missing)}")
        self.close()


class Crowd:
    """
    Some people's turns, observed several graphs at once, with a cap on the day's tokens, imports of last year beside,
    a model that fails, and processes that die. What the threads do when is not the seed's to say: each run is another.
    """

    PEOPLE, PARALLEL = 5, 4
    CALL, CAP = 1_500, 18_750  # tokens of a call, fewer than a question has, and of a day

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.seed, self.folder = random.Random(seed), seed, folder
        self.now, self.number, self.steps = START, 0, list[str]()
        self.said: set[str] = set()
        self.under_way, self.most = 0, 0  # calls
        self.down: set[str] = set()  # people for whom the model fails
        self.guard = threading.Lock()
        self.home = self.open()

    def open(self) -> Memory:
        observation = Observation(
            buffer_tokens="turn",
            max_tokens_per_batch=40,
            parallel=self.PARALLEL,
            daily_budget_tokens=self.CAP,
        )
        llm = Llm(attempts=1, backoff_s=0, max_output_tokens=20)
        settled = Config(home=self.folder, observation=observation, llm=llm)
        return Memory(settled, gateway=self.ask, clock=lambda: self.now, embed=None)

    def ask(self, question: ModelQuestion) -> ModelReply:
        shown = re.findall(r"^(m\d+) \S+ user: (Statement (\d+) of (\w+).*)$", question.user, re.M)
        with self.guard:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(0.05)
        with self.guard:
            self.under_way -= 1
        if self.down & {name for *_, name in shown}:
            raise ModelUnavailable("gateway: scripted failure")
        if answer := believed(question):
            return answer
        edits = [created(text, m) for m, text, *_ in shown]
        return ModelReply(json.dumps({"edits": edits}), "scripted", self.CALL - 20, 20)

    def step(self) -> None:
        name = self.rng.choices(
            ("say", "bring", "start", "work", "kill", "fail", "restart", "wait"), (6, 2, 4, 2, 2, 1, 1, 2)
        )[0]
        self.steps.append(name)
        getattr(self, f"_{name}")()
        if not self.home.worker.under_way():
            self.check()

    def _say(self) -> None:
        for _ in range(self.rng.randint(1, 6)):
            self.drop(f"p{self.rng.randrange(self.PEOPLE)}", "", self.now)
            self.now += timedelta(seconds=1)

    def _bring(self) -> None:
        """An import of last year's talk."""
        name = f"p{self.rng.randrange(self.PEOPLE)}"
        then = self.now - timedelta(days=400)
        for n in range(self.rng.randint(5, 12)):
            self.drop(name, ":thread:old", then + timedelta(minutes=n))

    def drop(self, name: str, thread: str, at: datetime) -> None:
        id, ms = f"e{self.number:04}", int(at.timestamp() * 1000)
        text = f"Statement {self.number} of {name}: the {self.rng.choice(TOPICS)} are green."
        said = entry(id, text, ms + self.number)
        hand_over(self.folder, said, session=f"agent:main:telegram:direct:{name}{thread}")
        self.number += 1
        self.said.add(id)

    def _start(self) -> None:
        self.home.worker.start()

    def _work(self) -> None:
        self.home.work(force=self.rng.random() < 0.5)

    def _kill(self) -> None:
        self.settle()  # a fork takes no thread along
        in_child(lambda: self.open().work(force=True), self.rng.randint(1, 150))

    def _fail(self) -> None:
        self.down = {f"p{self.rng.randrange(self.PEOPLE)}"}

    def _restart(self) -> None:
        self.home.close()  # in the middle of what is under way
        self.home = self.open()

    def _wait(self) -> None:
        self.settle()
        self.now += timedelta(seconds=self.rng.choice((40, 4_000, 90_000)))

    def settle(self) -> None:
        until = time.monotonic() + 60
        while self.home.worker.under_way():
            if time.monotonic() > until:
                raise self.broken("what is under way does not end")
            time.sleep(0.002)

    def broken(self, what: str) -> Broken:
        return Broken(f"crowd {self.seed}, after {' '.join(self.steps)}: {what}")

    def check(self) -> None:
        waiting, files = stored(self.folder)
        archived: list[str] = []
        for lines in files:
            for session in {line["session"] for line in lines}:
                ids = [line["id"] for line in lines if line["session"] == session]
                if ids != sorted(ids) and ":thread:" not in session:  # there several imports may interleave
                    raise self.broken(f"{session} was not observed in its order: {ids}")
            archived += [line["id"] for line in lines]
        if lost := self.said - waiting - set(archived):
            raise self.broken(f"lost: {sorted(lost)}")
        if len(archived) > len(set(archived)):
            raise self.broken("archived twice")
        by_day: dict[str, list[int]] = {}
        ledger = self.folder / "ledger.jsonl"
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        for line in map(json.loads, filter(None, lines)):  # two appends at once may leave an empty line
            by_day.setdefault(line["day"], []).append(line["tokens_in"] + line["tokens_out"])
        if over := [day for day, costs in by_day.items() if sum(costs[:-1]) >= self.CAP]:
            raise self.broken(f"the cap was passed on {over}")

    def finish(self) -> None:
        """Undisturbed, everything said is observed, day by day of the cap."""
        self.down = set()
        for _ in range(40):
            self.now += timedelta(days=1)
            self.settle()
            self.home.work(force=True)
            self.check()
            if not any(self.folder.glob("graphs/*/pending/*.json")):
                break
        if left := [
            *self.folder.glob("graphs/*/pending/*.json"),
            *self.folder.glob("graphs/*/receipts/*.open.json"),
        ]:
            raise self.broken(f"left over: {[f.name for f in left]}")
        self.home.close()


@contextmanager
def refusing(first: int, times: int, error: int) -> Iterator[None]:
    """From the *first* file operation on, *times* of them fail with *error*; of sqlite, that it opens a file."""
    count = 0

    def refused(real: Any, raised: Callable[[], Exception]) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if first <= count < first + times:
                raise raised()
            return real(*args, **kwargs)

        return call

    def disk() -> Exception:
        return OSError(error, os.strerror(error))

    def index() -> Exception:
        told = sqlite3.OperationalError("disk I/O error")
        told.sqlite_errorcode = sqlite3.SQLITE_IOERR
        return told

    places: list[tuple[Any, str, Callable[[], Exception]]] = [(os, name, disk) for name in REFUSED]
    places += [(io, "open", disk), (sqlite3, "connect", index)]
    before = [getattr(module, name) for module, name, _ in places]
    for (module, name, raised), real in zip(places, before, strict=True):
        setattr(module, name, refused(real, raised))
    try:
        yield
    finally:
        for (module, name, _), real in zip(places, before, strict=True):
            setattr(module, name, real)


def stored(folder: Path) -> tuple[set[str], list[list[dict[str, Any]]]]:
    """The ids of what waits to be taken in or observed, and the lines of each file of an archive."""
    drops = [json.loads(f.read_text())["entries"] for f in folder.glob("spool/*.json")]
    turns = [json.loads(f.read_text())["messages"] for f in folder.glob("graphs/*/pending/[0-9]*.json")]
    waiting = {e["entryId"] for drop in drops for e in drop} | {m["id"] for turn in turns for m in turn}
    archives = folder.glob("graphs/*/archive/*.jsonl")
    return waiting, [[json.loads(line) for line in f.read_text().splitlines()] for f in archives]


def live(seed: int, folder: Path, begin: Path, steps: int) -> int:
    """One life of *steps* steps; returns how many there were. Raises Broken."""
    life = Life(seed, folder / f"life{seed}", begin)
    try:
        for _ in range(steps):
            life.step()
        life.finish()
    finally:
        life.close()
    shutil.rmtree(life.folder)
    return steps
