"""
What SECURITY.md promises, under many people at once: nobody sees another's words, a model that repeats its memory
adds nothing to it, and the daemon stays as large as it was.

The short form is part of `make test`; `make trust` runs the long one (OMG_TRUST=full), and prints what it measured.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from spooled import entry, hand_over

from bench import hostile, load
from omg.config import Config, Observation
from omg.identity import identity_of_session
from omg.inject.decide import hook_result
from omg.memory import Memory
from tests.test_daemon import OFFLINE, Running, drop, eventually

FULL = os.environ.get("OMG_TRUST") == "full"
PEOPLE = 100 if FULL else 14
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Speaker:
    """Someone in one session, what else that session may be called, and a word that nobody else knows."""

    session: str
    lane: str
    canary: str


def speakers(count: int) -> list[Speaker]:
    """
    Sessions of every form that a gateway gives, for each `dmScope`, of two agents.

    Their names nearly match: one begins with another, they differ in case alone, or hold what separates names.
    """
    names = [
        *"22 222 2222 alice Alice alice.b alice/b ålice main2 @x:y.org +49170 -100 w-w".split(),
        "al ice",
    ]
    forms = [
        "{agent}:direct:{name}",  # dmScope: per-peer
        "{agent}:telegram:direct:{name}",  # per-channel-peer
        "{agent}:telegram:default:direct:{name}",  # per-account-channel-peer
        "{agent}:tlon:dm:{name}",
        "{agent}:telegram:group:{name}",
        "{agent}:discord:channel:{name}",
        "{agent}:irc:room:{name}",
        "{agent}:web-{name}",
        "{agent}:my-plugin:{name}",
    ]
    # dmScope: main, where all direct messages are the owner's session; and the one session of `global`
    keys = ["agent:main:main", "agent:work:main", "agent:main:global", "agent:work:global"]
    keys += [
        f"agent:{form.format(agent=agent, name=name)}"
        for name in names
        for form in forms
        for agent in ("main", "work")
    ]
    keys = keys[:4] + keys[4 :: max(1, len(keys) // count)] if count < 50 else keys[:count]
    return [Speaker(key, f"{key}:thread:9", f"quag{word(n)}") for n, key in enumerate(keys[:count])]


def word(number: int) -> str:
    return "".join(
        "bdfgklmnprstvz"[number // 14**n % 14] + "aeiou"[(number // 5**n + n) % 5] for n in range(4)
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A daemon under umask 000 to which everybody has told their word; it is a note of theirs."""
    home = tmp_path_factory.mktemp("trust") / "omg"
    people = speakers(PEOPLE)
    mask = os.umask(0)
    daemon = Running(home, OFFLINE)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OMG_HOME", str(home))
            daemon.end()
            daemon = Running(home, OFFLINE).ready()
        for n, who in enumerate(people):
            drop(home, f"I prefer {who.canary} tea.", who.session, f"t{n}")
        eventually(lambda: all(who.canary in everything(search(daemon, who)) for who in people), 240)
        yield daemon, people
    finally:
        os.umask(mask)
        daemon.end()


def everything(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False)


def context(session: str) -> dict[str, Any]:
    return {
        "sessionKey": session,
        "trigger": "user",
        "runId": "r1",
        "userMessage": {"id": "u1", "text": "tea"},
    }


def search(daemon: Running, who: Speaker) -> Any:
    return daemon.ask(
        "/tool", name="omg_search", params={"query": "prefer tea"}, context=context(who.session)
    )


def test_many_people_served_in_parallel_are_never_given_each_others_words(told: Any) -> None:
    """By prompt, tools, commands and memory_search's corpus, from a session and from a thread of it."""
    daemon, people = told
    canaries = {who.canary for who in people}
    assert len(canaries) == len(people)
    assert len({identity_of_session(who.session).key for who in people}) == len(people)
    paths = {who: search(daemon, who)["details"]["hits"][0]["path"] for who in people}

    def ask(n: int) -> tuple[int, int]:
        who, other = people[n], people[(n + 7) % len(people)]
        own = everything([search(daemon, who), paths[who]])
        assert who.canary in own
        leaks = 0
        for session in (who.session, who.lane):
            here = context(session)
            mine = [
                daemon.inject("Which tea do I prefer?", session),
                daemon.ask("/tool", name="omg_search", params={"query": "tea"}, context=here),
                daemon.ask("/command", args="search tea", context=here),
                daemon.ask("/corpus", op="search", params={"query": "tea"}, context=here),
            ]
            theirs = [
                daemon.ask("/tool", name="omg_open", params={"id": paths[other]}, context=here),
                daemon.ask("/tool", name="omg_search", params={"query": other.canary}, context=here),
                daemon.ask("/corpus", op="get", params={"lookup": f"omg/{paths[other]}"}, context=here),
                daemon.ask("/command", args="forget tea", context=here),
                daemon.ask("/tool", name="omg_forget", params={"query": other.canary}, context=here),
            ]
            for answer in mine:
                assert who.canary in everything(answer), (session, answer)
            given = everything(mine) + everything(theirs).replace(other.canary + '"', "").replace(
                f"'{other.canary}'", ""
            )
            answered = given.replace(paths[other], "")  # an answer may name what was asked for
            leaks += sum(word in answered for word in canaries - {who.canary})
        return 18, leaks

    with ThreadPoolExecutor(AT_ONCE) as pool:
        counted = list(pool.map(ask, range(len(people))))
    print(
        f"isolation    identities {len(people)}  requests {sum(r for r, _ in counted)}  canaries {sum(c for _, c in counted)}"
    )
    assert sum(leaks for _, leaks in counted) == 0


def test_a_session_without_a_speaker_and_a_request_without_a_session_get_nothing(told: Any) -> None:
    daemon, people = told
    for session in (
        "",
        " ",
        "unknown",
        "agent:main:cron:x",
        "agent:main:subagent:1",
        "agent:main:main:heartbeat",
        "agent:main:main ",
        "agent:main:telegram:direct:999",
        "agent:other:main",
        "x" * 9000,
    ):
        answers = [
            daemon.inject("Which tea do I prefer?", session),
            daemon.ask("/tool", name="omg_search", params={"query": "tea"}, context={"sessionKey": session}),
            daemon.ask("/command", args="search tea", context={"sessionKey": session}),
            daemon.ask("/corpus", op="search", params={"query": "tea"}, context={"sessionKey": session}),
        ]
        assert not [who.canary for who in people if who.canary in everything(answers)], session


def test_under_umask_000_every_file_with_a_persons_words_is_private(told: Any) -> None:
    daemon, _ = told
    open_to_others = [
        file.relative_to(daemon.home).as_posix()
        for file in daemon.home.rglob("*")
        if not file.is_symlink() and file.is_file() and stat.S_IMODE(file.stat().st_mode) & 0o077
    ]
    ours = [name for name in open_to_others if name != "omg.toml"]  # that one the test wrote
    assert not ours, f"{len(ours)} files, such as {ours[:12]}"
    assert stat.S_IMODE(daemon.home.stat().st_mode) == 0o700


def test_under_umask_000_files_written_by_commands_are_private(home: Path) -> None:
    """The configuration may hold a key; the export and the page hold what was said."""
    env = {**os.environ, "OMG_HOME": str(home)}

    def omg(*args: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "omg.cli", *args], env=env, umask=0, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    omg("init")
    omg("export", str(home / "all.jsonl"))
    left = [f.name for f in home.rglob("*") if f.is_file() and stat.S_IMODE(f.stat().st_mode) & 0o077]
    assert left == []


def echo(given: dict[str, Any]) -> str:
    """What a model says that has nothing better to say than what it was given."""
    text = f"{given.get('appendSystemContext', '')}\n{given.get('prependContext', '')}"
    return text.replace("<omg-memory>", "").replace("</omg-memory>", "")


def test_a_model_that_repeats_its_memory_for_200_turns_adds_nothing_to_it(home: Path) -> None:
    clock = [datetime(2026, 3, 1, 9, tzinfo=UTC)]
    config = Config(
        home=home, observation=Observation(model="offline", buffer_tokens="turn"), time={"zone": "UTC"}
    )
    opened = Memory(config, clock=lambda: clock[0], embed=None)
    session = "agent:main:main"
    turns = 200 if FULL else 24
    counts: list[int] = []
    graph = opened.graph(opened.registry.identity_of(session))
    seeds = [
        "I prefer short checklists.",
        "I live in Graz.",
        "We decided to use SQLite for the archive.",
        "I plan to visit Lisbon on 2026-05-04.",
    ]
    for n in range(turns):
        clock[0] += timedelta(minutes=10)
        asked = (
            seeds[n]
            if n < len(seeds)
            else f"What do you know about my {('checklists', 'archive', 'plans', 'town')[n % 4]}?"
        )
        body = {"sessionKey": session, "prompt": asked}
        given = hook_result(graph, body, clock[0], opened.config)
        said = echo(given) if n % 2 else f"As I remember it: {echo(given)}"
        speak(opened, session, n, clock[0], asked, said)
        opened.take_in()
        opened.work(force=True)
        counts.append(sum(e.path.startswith("nodes/") for e in graph.index.entries(status=None)))
    opened.close()
    print(f"loop         turns {turns}  notes {counts[len(seeds)]} → {counts[-1]}")
    assert counts[-1] == counts[len(seeds)] > 2


def speak(opened: Memory, session: str, n: int, at: datetime, asked: str, said: str) -> None:
    ms = int(at.timestamp() * 1000)
    turn = entry(f"u{n}", asked, ms), entry(f"a{n}", said, ms + 1000, "assistant")
    hand_over(opened.folder, *turn, session=session)


def test_under_load_the_daemon_answers_in_time_and_stays_as_large_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not FULL:
        monkeypatch.setattr(load, "HUNG_S", 60.0)  # other tests may run beside; `make trust` measures
    measured = load.measure(
        tmp_path / "omg",
        sessions=100 if FULL else 6,
        seconds=120 if FULL else 4,
        embedder="auto" if FULL else "static",
        connections=500 if FULL else 200,
        pause_s=10 if FULL else 1,
    )
    for name, figures in measured.items():
        print(f"{name:12}", "  ".join(f"{key} {value}" for key, value in figures.items()))
    assert not measured["inject"]["failed"]
    burst = measured["burst"]
    assert not burst.get("hung") and burst["answered"] > 0
    assert measured["rss_mb"]["after_burst"] < measured["rss_mb"]["early"] * 1.25 + 20
    assert measured["descriptors"]["late"] < measured["descriptors"]["early"] * 1.5 + 20
    assert measured["threads"]["after_burst"] < measured["threads"]["early"] + 30


@pytest.mark.skipif(not FULL, reason="times what others on the machine disturb; `make trust` measures")
def test_a_prompt_is_quick_while_megabytes_come_in(tmp_path: Path) -> None:
    measured = hostile.measure(tmp_path / "omg", seconds=24)
    for name, figures in measured.items():
        print(f"{name:12}", "  ".join(f"{key} {value}" for key, value in figures.items()))
    assert measured["taken"]["drops"] > 2
    assert not measured["hostile"]["failed"]
    assert measured["hostile"]["p95_ms"] <= max(50, 3 * measured["idle"]["p95_ms"])
