"""OMG as the context engine: it comes when it is asked for, the slot goes back to whoever had it, the doctor knows."""

from __future__ import annotations

import json
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import openclaw_command
import pytest
from spooled import entry, hand_over

from omg.config import Config, Context, Observation, load_config
from omg.context import cut_context
from omg.dates.days import time_text
from omg.hosts.install import carried_out
from omg.memory import Memory
from omg.openclaw.doctor import MISSED_TURNS, check_engine, check_loaded, check_turns, examine_home
from omg.openclaw.install import (
    ENGINE,
    OpenClaw,
    engine_folder,
    install_engine,
    install_plugin,
    remove_engine,
)
from omg.text.tokens import count_tokens
from omg.worker.schedule import note_asked
from omg.worker.status import home_status, status_text

Json = dict[str, Any]
MAIN = "agent:main:main"
NOON = 1_772_366_400_000
BARE: Json = {"gateway": {"mode": "local", "port": 9}}  # its workspace lies in its state folder


@pytest.fixture
def claw(tmp_path: Path, home: Path) -> OpenClaw:
    """An OpenClaw with the plugin `omg`; its gateway is down."""
    state = tmp_path / "openclaw"
    state.mkdir()
    (state / "openclaw.json").write_text(json.dumps(BARE))
    claw = OpenClaw(state, state / "openclaw.json", (str(openclaw_command.made(tmp_path / "bin")),))
    list(carried_out(install_plugin(claw, home)))
    return claw


def change(claw: OpenClaw, over: Json) -> None:
    claw.file.write_text(json.dumps(openclaw_command.merged(claw.config(), over)))


def examined(claw: OpenClaw) -> list[tuple[str, str]]:
    return [(f.level, f.what) for f in check_engine(claw, claw.config())]


@pytest.mark.parametrize(
    "plugins",
    [
        {},
        {"slots": {"contextEngine": "lossless-claw"}},
        {"slots": {"memory": "memory-core"}},
        {"slots": {"memory": "memory-core", "contextEngine": "legacy"}, "allow": ["omg", "browser"]},
        {"allow": ["omg", "browser"], "deny": [ENGINE, "other"]},
    ],
)
def test_uninstalling_gives_the_slot_back_to_its_former_owner(
    claw: OpenClaw, home: Path, plugins: Json
) -> None:
    change(claw, {"plugins": plugins})
    before = claw.config()
    list(carried_out(install_engine(claw, home)))
    taken = claw.config()["plugins"]
    assert taken["slots"]["contextEngine"] == ENGINE
    assert taken["entries"][ENGINE]["config"] == {"home": str(home)}
    assert ENGINE in taken.get("allow", [ENGINE])
    assert examined(claw) == [("ok", f"{ENGINE} puts contexts together")]
    list(carried_out(remove_engine(claw, home)))
    after = claw.config()
    denied = [set(c["plugins"].pop("deny", [])) for c in (before, after)]
    assert after == before
    assert denied[0] == denied[1]
    assert not engine_folder(claw).exists()


def test_an_engine_that_the_user_chose_later_keeps_the_slot(claw: OpenClaw, home: Path) -> None:
    list(carried_out(install_engine(claw, home)))
    change(claw, {"plugins": {"slots": {"contextEngine": "lossless-claw"}}})
    ((level, what),) = examined(claw)
    assert level == "warn"
    assert "lossless-claw puts contexts together" in what
    list(carried_out(remove_engine(claw, home)))
    assert claw.config()["plugins"]["slots"] == {"contextEngine": "lossless-claw"}


def test_a_dry_run_or_a_second_install_or_a_second_removal_changes_nothing(
    claw: OpenClaw, home: Path
) -> None:
    before = claw.file.read_bytes()
    assert list(carried_out(install_engine(claw, home), dry_run=True))
    assert claw.file.read_bytes() == before
    assert not engine_folder(claw).exists()
    list(carried_out(install_engine(claw, home)))
    before = claw.file.read_bytes()
    assert [step.what for step in carried_out(install_engine(claw, home)) if step.changed] == []
    assert claw.file.read_bytes() == before
    list(carried_out(remove_engine(claw, home)))
    before = claw.file.read_bytes()
    assert list(carried_out(remove_engine(claw, home))) == []
    assert claw.file.read_bytes() == before


def test_the_doctor_names_a_missing_or_outdated_engine(claw: OpenClaw, home: Path) -> None:
    list(carried_out(install_engine(claw, home)))
    (engine_folder(claw) / "index.js").write_text("// older")
    assert [level for level, _ in examined(claw)] == ["warn"]
    change(claw, {"plugins": {"entries": {ENGINE: None}}})
    for file in engine_folder(claw).iterdir():
        file.unlink()
    engine_folder(claw).rmdir()
    assert [level for level, _ in examined(claw)] == ["fail"]


def snapshot(claw: OpenClaw, **health: Any) -> list[tuple[str, str, str]]:
    """What the doctor makes of what the running gateway says of itself."""
    (claw.state / "health").write_text(json.dumps({"ok": True, **health}))
    return [(f.level, f.what, f.mend) for f in check_loaded(claw, claw.config())]


def test_the_doctor_reports_an_engine_that_is_not_loaded_or_that_the_gateway_quarantined(
    claw: OpenClaw, home: Path
) -> None:
    bad = {"engineId": ENGINE, "operation": "compact", "reason": "it threw", "failedAt": 1}
    both = {"contextEngines": {"quarantined": [bad]}, "plugins": {"loaded": ["omg"], "errors": []}}
    assert snapshot(claw, **both) == []  # nobody asked for it here
    list(carried_out(install_engine(claw, home)))
    ((level, what, mend),) = snapshot(claw, **both)
    assert (level, what) == ("fail", f"the gateway has put {ENGINE} out of use: it threw (compact)")
    assert "restart the gateway" in mend
    assert "--no-context-engine" in mend
    failed = {"loaded": ["omg"], "errors": [{"id": ENGINE, "error": "a syntax error"}]}
    ((level, what, _),) = snapshot(claw, plugins=failed)
    assert (level, what) == ("fail", f"the gateway could not load {ENGINE}: a syntax error")
    ((level, what, mend),) = snapshot(claw, plugins={"loaded": ["omg"], "errors": []})
    assert (level, mend) == ("warn", "restart the gateway")
    assert snapshot(claw, plugins={"loaded": ["omg", ENGINE], "errors": []}) == []
    (claw.state / "health").unlink()
    assert [f.level for f in check_loaded(claw, claw.config())] == ["warn"]


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ({"slots": {"contextEngine": "lossless-claw"}}, "lossless-claw puts contexts together"),
        ({"entries": {ENGINE: {"enabled": False}}}, "is disabled"),
        ({"deny": [ENGINE]}, "is denied"),
        ({"allow": ["omg"]}, "is not among the plugins allowed"),
    ],
)
def test_the_doctor_says_why_an_engine_has_no_effect_and_what_to_do(
    claw: OpenClaw, home: Path, over: Json, why: str
) -> None:
    list(carried_out(install_engine(claw, home)))
    change(claw, {"plugins": over})
    (found,) = check_engine(claw, claw.config())
    assert (found.level, why in found.what) == ("warn", True)
    assert "run `omg install --context-engine`" in found.mend
    assert "--no-context-engine" in found.mend


def offline(home: Path) -> Config:
    """As `omg install` left it, but observed by the rules, and with a small window."""
    options = {"observation": Observation(model="offline"), "context": Context(message_tokens=1000)}
    return load_config(home).model_copy(update=options)


def said(memory: Memory, turns: int) -> None:
    for n in range(turns):
        memory.capture(
            [
                {"role": "user", "content": f"I prefer tea number {n}."},
                {"role": "assistant", "content": "Noted."},
            ]
        )


def test_the_doctor_reports_a_conversation_that_bypasses_the_engine(claw: OpenClaw, home: Path) -> None:
    def unasked(memory: Memory) -> list[tuple[str, str]]:
        return [(f.where, f.what) for f in examine_home(memory, claw) if "ran without" in f.what]

    with Memory(offline(home), embed=None) as memory:
        said(memory, MISSED_TURNS + 1)
        assert unasked(memory) == []  # nobody asked for the engine
        list(carried_out(install_engine(claw, home)))
        assert unasked(memory) == []  # these were before it
        said(memory, MISSED_TURNS - 1)
        assert unasked(memory) == []  # as after a reset, or while a turn runs
        memory.observe()
        said(memory, 1)
        ((where, what),) = unasked(memory)
        assert where == MAIN
        assert what.startswith(f"{MISSED_TURNS} turns ran without {ENGINE}")
        assert all("command-line backends" in f.mend for f in check_turns(memory.find(None), 1))
        graph = memory.find(None)
        graph.update(partial(note_asked, session=MAIN, at_ms=memory.registry.now_ms() + 1))
        assert unasked(memory) == []


def test_status_lists_each_cut_with_time_and_reason_and_only_if_the_engine_is_installed(
    claw: OpenClaw, home: Path
) -> None:
    with Memory(offline(home), embed=None) as memory:
        turns = [(f"I prefer the number {n}. " + "And so on. " * 20, NOON + 1000 * n) for n in range(1, 31)]
        messages = [
            {"role": role, "content": text, "timestamp": at + (role == "assistant")}
            for text, at in turns
            for role in ("user", "assistant")
        ]
        memory.capture(messages)
        memory.observe()
        assert "context_engine" not in home_status(memory.worker)
        assert "contexts" not in status_text(home_status(memory.worker), UTC)
        list(carried_out(install_engine(claw, home)))
        assert "0 sessions, 0 shortened" in status_text(home_status(memory.worker), UTC)
        graph, session = memory.find(None), MAIN
        graph.update(partial(note_asked, session=session, at_ms=memory.registry.now_ms()))
        body = {"sessionKey": session, "messages": messages}
        made = cut_context(
            graph,
            body,
            now=memory.clock(),
            config=memory.config,
            tell=partial(memory.registry.tell, graph=MAIN),
        )
        answer = home_status(memory.worker)
        found = answer["graphs"][0]["sessions"][session]["context"]
        assert found["raw_tokens"] == made.raw
        assert found["notes_tokens"] == count_tokens(made.text)
        text = status_text(answer, UTC)
        assert "1 session, 1 shortened" in text
        assert (
            f"in place of {found['cut_turns']} turns that were cut; last cut {time_text(found['cut'], UTC)}"
            in text
        )
        assert "came from a cache" not in text  # nobody has said so
        usage = {"input": 100, "output": 7, "cacheRead": 900, "cacheWrite": 0, "cost": {"total": 0.1}}
        hand_over(home, entry("u", "Noted.", NOON + 90_000, "assistant", usage=usage))
        memory.take_in()
        assert "90% of its prompt tokens came from a cache" in status_text(home_status(memory.worker), UTC)
        list(carried_out(remove_engine(claw, home)))
        assert "context" not in home_status(memory.worker)["graphs"][0]["sessions"][session]
