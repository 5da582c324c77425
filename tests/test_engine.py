"""OMG as the context engine: it comes when it is asked for, the slot goes back to whoever had it, the doctor knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openclaw_command
import pytest

from omg.config.file import load_config
from omg.errors import GatewayError
from omg.memory import Memory
from omg.openclaw.doctor.gateway import check_engine
from omg.openclaw.engine import ENGINE, engine_folder, install_engine, remove_engine
from omg.openclaw.gateway import OpenClaw
from omg.openclaw.install import install_plugin

Json = dict[str, Any]
BARE: Json = {"gateway": {"mode": "local", "port": 9}, "agents": {"defaults": {"workspace": "/nowhere/ws"}}}


@pytest.fixture
def claw(tmp_path: Path, home: Path) -> OpenClaw:
    """An OpenClaw with the plugin `omg`; its gateway is down."""
    state = tmp_path / "openclaw"
    state.mkdir()
    (state / "openclaw.json").write_text(json.dumps(BARE))
    claw = OpenClaw(state, state / "openclaw.json", (str(openclaw_command.made(tmp_path / "bin")),))
    list(install_plugin(claw, home))
    return claw


def change(claw: OpenClaw, over: Json) -> None:
    claw.file.write_text(json.dumps(openclaw_command.merged(claw.config(), over)))


def examined(claw: OpenClaw) -> list[tuple[str, str]]:
    return [(f.level, f.what) for f in check_engine(claw, claw.config())]


def test_installing_omg_leaves_the_slot_alone(claw: OpenClaw) -> None:
    assert "slots" not in claw.config()["plugins"]
    assert not engine_folder(claw).exists()
    assert examined(claw) == []


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
def test_whoever_had_the_slot_gets_it_back(claw: OpenClaw, home: Path, plugins: Json) -> None:
    change(claw, {"plugins": plugins})
    before = claw.config()
    list(install_engine(claw, home))
    taken = claw.config()["plugins"]
    assert taken["slots"]["contextEngine"] == ENGINE
    assert taken["entries"][ENGINE]["config"] == {"home": str(home)}
    assert ENGINE in taken.get("allow", [ENGINE])
    assert examined(claw) == [("ok", f"{ENGINE} puts contexts together")]
    list(remove_engine(claw, home))
    after = claw.config()
    denied = [set(c["plugins"].pop("deny", [])) for c in (before, after)]
    assert after == before
    assert denied[0] == denied[1]
    assert not engine_folder(claw).exists()


def test_an_engine_that_the_user_chose_since_keeps_the_slot(claw: OpenClaw, home: Path) -> None:
    list(install_engine(claw, home))
    change(claw, {"plugins": {"slots": {"contextEngine": "lossless-claw"}}})
    ((level, what),) = examined(claw)
    assert level == "warn"
    assert "lossless-claw puts contexts together" in what
    list(remove_engine(claw, home))
    assert claw.config()["plugins"]["slots"] == {"contextEngine": "lossless-claw"}


def test_installing_it_again_and_removing_what_is_not_there_changes_nothing(
    claw: OpenClaw, home: Path
) -> None:
    list(install_engine(claw, home))
    before = claw.file.read_bytes()
    assert [step.what for step in install_engine(claw, home) if step.changed] == []
    assert claw.file.read_bytes() == before
    list(remove_engine(claw, home))
    before = claw.file.read_bytes()
    assert list(remove_engine(claw, home)) == []
    assert claw.file.read_bytes() == before


def test_a_dry_run_of_it_changes_nothing(claw: OpenClaw, home: Path) -> None:
    before = claw.file.read_bytes()
    assert list(install_engine(claw, home, dry_run=True))
    assert claw.file.read_bytes() == before
    assert not engine_folder(claw).exists()


def test_an_engine_that_openclaw_did_not_take_is_an_error(claw: OpenClaw, home: Path) -> None:
    (claw.state / "sulking").touch()
    with pytest.raises(GatewayError, match="did not install"):
        list(install_engine(claw, home))


def test_the_doctor_names_an_engine_without_effect_gone_or_old(claw: OpenClaw, home: Path) -> None:
    list(install_engine(claw, home))
    (engine_folder(claw) / "index.js").write_text("// older")
    assert [level for level, _ in examined(claw)] == ["warn"]
    list(install_engine(claw, home))
    change(claw, {"plugins": {"entries": {ENGINE: {"enabled": False}}}})
    assert "is disabled" in examined(claw)[0][1]
    change(claw, {"plugins": {"entries": {ENGINE: None}}})
    for file in engine_folder(claw).iterdir():
        file.unlink()
    engine_folder(claw).rmdir()
    assert [level for level, _ in examined(claw)] == ["fail"]


def test_a_home_that_knows_nothing_of_it_opens_as_before(claw: OpenClaw, home: Path) -> None:
    with Memory(load_config(home), embed=None) as memory:
        memory.capture([{"role": "user", "content": "I prefer tea."}])
        memory.observe()
        graph = memory.find(None)
        assert [s.timeline for s in graph.state().sessions.values()] == [""]
