"""
What `omg install` changes in OpenClaw's configuration, that `omg uninstall` takes it back, and that the doctor
names each setting that is broken. The same against the real gateway: tests/gateway/test_installing.py.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openclaw_command
import pytest
from shell import omg_here

from omg.config import load_config, others_can_reach, workspace_of
from omg.errors import GatewayError, OmgError
from omg.hosts.install import carried_out
from omg.memory import Memory
from omg.openclaw.doctor import check_gateway, check_places
from omg.openclaw.graph_checks import Finding
from omg.openclaw.install import (
    OpenClaw,
    gateway_command,
    install_plugin,
    prove_installation,
    uninstall_plugin,
)

Json = dict[str, Any]
BARE: Json = {"gateway": {"mode": "local", "port": 9}}  # its workspace lies in its state folder
ALONE = {"telegram": {"dmPolicy": "allowlist", "allowFrom": ["1"]}}
OTHERS = {"telegram": {"dmPolicy": "allowlist", "allowFrom": ["1", "2"]}}


@pytest.fixture
def claw(tmp_path: Path) -> OpenClaw:
    """An OpenClaw with the barest configuration; its gateway is down."""
    state = tmp_path / "openclaw"
    state.mkdir()
    (state / "openclaw.json").write_text(json.dumps(BARE))
    return OpenClaw(state, state / "openclaw.json", (str(openclaw_command.made(tmp_path / "bin")),))


@pytest.fixture
def examined(claw: OpenClaw, home: Path) -> Iterator[Callable[[], list[Finding]]]:
    opened: list[Memory] = []

    def examine() -> list[Finding]:
        opened.append(Memory(load_config(home), embed=None))
        return list(check_gateway(opened[-1], claw))

    yield examine
    for one in opened:
        one.close()


def change(claw: OpenClaw, over: Json) -> None:
    claw.file.write_text(json.dumps(openclaw_command.merged(claw.config(), over)))


def calls(claw: OpenClaw) -> list[str]:
    file = claw.state / "calls"
    return file.read_text().splitlines() if file.exists() else []


# --- install


def test_installing_gives_the_plugin_what_it_needs_and_no_more(claw: OpenClaw, home: Path) -> None:
    steps = list(carried_out(install_plugin(claw, home)))
    entry = {
        "enabled": True,
        "hooks": {"allowConversationAccess": True},
        "config": {"home": str(home), "command": gateway_command()},
    }
    assert claw.config() == {**BARE, "plugins": {"entries": {"omg": entry}}}
    assert {"index.js", "openclaw.plugin.json"} <= {p.name for p in claw.plugin.iterdir()}
    assert (claw.plugin / "skills" / "observational-memory-graph" / "SKILL.md").exists()
    vault = claw.state / "workspace" / "memory" / "omg"
    assert load_config(home).vaults == {"agent:main:main": vault}
    assert any("your crontab" in step.note and "20 4 * * *" in step.note for step in steps)
    assert any("500,000 tokens a day" in step.what for step in steps)


def test_a_dry_run_changes_nothing(claw: OpenClaw, home: Path) -> None:
    told = [step.what for step in carried_out(install_plugin(claw, home), dry_run=True)]
    assert len(told) >= 6
    assert claw.config() == BARE
    assert not any(home.iterdir())
    assert not calls(claw)


def test_installing_again_changes_nothing_and_asks_nothing(claw: OpenClaw, home: Path) -> None:
    list(carried_out(install_plugin(claw, home)))
    before, asked = tree(claw.state.parent), calls(claw)
    assert [step.what for step in carried_out(install_plugin(claw, home)) if step.changed] == []
    assert calls(claw) == asked
    assert tree(claw.state.parent) == before


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_self_test_leaves_no_trace(claw: OpenClaw, home: Path, tmp_path: Path) -> None:
    list(carried_out(install_plugin(claw, home)))
    steps = list(prove_installation(claw, home))
    assert any("a test turn became a note" in step.what for step in steps)
    assert not any(b"selftest" in data for data in tree(tmp_path).values())
    assert not list(home.glob("graphs/*/pending/*"))


def test_if_other_people_can_write_to_the_agent_no_vault_is_put_into_its_workspace(
    claw: OpenClaw, home: Path
) -> None:
    change(claw, {"channels": OTHERS})
    list(carried_out(install_plugin(claw, home)))
    assert load_config(home).vaults == {}


def test_a_plugin_that_openclaw_did_not_install_is_an_error(claw: OpenClaw, home: Path) -> None:
    (claw.state / "sulking").touch()
    with pytest.raises(GatewayError, match="did not install"):
        list(carried_out(install_plugin(claw, home)))


def test_an_error_of_openclaw_is_shown_even_if_lines_of_advice_follow(tmp_path: Path) -> None:
    said = "Node 20: node:sqlite is unavailable; use 24.16+\nnvm install 26\nnvm use 26\nnvm alias default 26"
    claw = OpenClaw(tmp_path, tmp_path, ("sh", "-c", f"echo '{said}' >&2; exit 1"))
    with pytest.raises(GatewayError, match=r"node:sqlite is unavailable.*alias default 26$"):
        claw.run("plugins", "install")


def test_a_home_with_a_path_too_long_for_a_socket_is_refused_before_anything_changes(
    claw: OpenClaw, tmp_path: Path
) -> None:
    with pytest.raises(OmgError, match="OMG_HOME"):
        list(carried_out(install_plugin(claw, tmp_path / ("x" * 120))))
    assert claw.config() == BARE


def test_without_a_configuration_of_openclaw_the_error_says_how_to_make_one(
    claw: OpenClaw, home: Path
) -> None:
    claw.file.unlink()
    with pytest.raises(GatewayError, match="openclaw onboard"):
        list(carried_out(install_plugin(claw, home)))


# --- uninstall


@pytest.mark.parametrize(
    "before",
    [
        BARE,
        {**BARE, "plugins": {}},
        {**BARE, "plugins": {"entries": {}}},
        {**BARE, "plugins": {"allow": ["telegram"], "entries": {"telegram": {"enabled": True}}}},
        {**BARE, "plugins": {"deny": ["omg", "x"]}},
        {**BARE, "plugins": {"entries": {"omg": {"enabled": False}}}},
    ],
    ids=["no plugins", "empty", "no entries", "an allow list", "denied before", "disabled before"],
)  # fmt: skip
def test_uninstalling_leaves_the_configuration_as_it_was(claw: OpenClaw, home: Path, before: Json) -> None:
    claw.file.write_text(json.dumps(before))
    list(carried_out(install_plugin(claw, home)))
    assert claw.config() != before
    list(carried_out(uninstall_plugin(claw, home)))
    assert comparable(claw.config()) == comparable(before)
    assert (home / "openclaw.json.before-omg").exists()
    assert not claw.plugin.exists()
    again = [step.what for step in carried_out(uninstall_plugin(claw, home)) if step.changed]
    assert again == []  # there is nothing left to take out


def comparable(config: Json) -> Json:
    """A list's order is not what a person set."""
    plugins = {k: sorted(v) if isinstance(v, list) else v for k, v in config.get("plugins", {}).items()}
    return {**config, "plugins": plugins} if "plugins" in config else config


def test_the_vault_outlives_the_uninstall_and_a_second_install_finds_it(claw: OpenClaw, home: Path) -> None:
    change(claw, {"channels": OTHERS})
    list(carried_out(install_plugin(claw, home)))
    opened = Memory(load_config(home), embed=None)
    graph = opened.graph(opened.registry.identity_of("agent:main:main"))  # type: ignore[arg-type]
    opened.close()
    list(carried_out(uninstall_plugin(claw, home)))
    assert (graph.vault.root / "index.md").exists()
    change(claw, {"channels": None})
    list(carried_out(install_plugin(claw, home)))
    assert load_config(home).vaults == {}  # not a new one in the workspace


# --- doctor


BROKEN: dict[str, tuple[Json, str, str]] = {
    "conversation access removed": (
        {"plugins": {"entries": {"omg": {"hooks": {"allowConversationAccess": None}}}}},
        "fail", "hooks.allowConversationAccess",
    ),
    "conversation access refused": (
        {"plugins": {"entries": {"omg": {"hooks": {"allowConversationAccess": False}}}}},
        "fail", "hooks.allowConversationAccess",
    ),
    "prompt injection refused": (
        {"plugins": {"entries": {"omg": {"hooks": {"allowPromptInjection": False}}}}},
        "fail", "hooks.allowPromptInjection",
    ),
    "not on the allow list": ({"plugins": {"allow": ["telegram"]}}, "fail", "plugins.allow"),
    "on the deny list": ({"plugins": {"deny": ["omg"]}}, "fail", "plugins.deny"),
    "plugins switched off": ({"plugins": {"enabled": False}}, "fail", "plugins.enabled"),
    "entry disabled": ({"plugins": {"entries": {"omg": {"enabled": False}}}}, "fail", "omg.enabled"),
    "another home": ({"plugins": {"entries": {"omg": {"config": {"home": "/elsewhere"}}}}}, "fail", "config.home"),
    "the command gone": (
        {"plugins": {"entries": {"omg": {"config": {"command": ["/gone/python"]}}}}}, "fail", "config.command",
    ),
    "entry gone": ({"plugins": {"entries": {"omg": None}}}, "fail", "plugins.entries.omg"),
    "a second agent": ({"agents": {"entries": {"main": {}, "work": {}}}}, "fail", "allowAgentIdOverride"),
    "one session for all": ({"channels": OTHERS}, "warn", "session.dmScope"),
    "a vault that others' sessions see": (
        {"channels": OTHERS, "session": {"dmScope": "per-channel-peer"}}, "fail", "workspace/memory/omg",
    ),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_the_doctor_reports_exactly_what_is_broken_and_installing_again_mends_it(
    claw: OpenClaw, home: Path, examined: Callable[[], list[Finding]], broken: str
) -> None:
    list(carried_out(install_plugin(claw, home)))
    over, level, where = BROKEN[broken]
    change(claw, over)
    wrong = {(f.level, f.where): f.mend for f in examined() if f.level in ("fail", "warn")}
    if broken == "one session for all":
        assert wrong.pop(("fail", str(claw.state / "workspace/memory/omg")))
    assert len(wrong) == 1, wrong
    (((found, place), mend),) = wrong.items()
    assert found == level
    assert where in place
    assert mend
    if "channels" not in over:
        list(carried_out(install_plugin(claw, home)))
        assert {f.level for f in examined()} <= {"ok", "note"}


def test_the_doctors_command_moves_a_vault_that_other_sessions_can_see(
    claw: OpenClaw, home: Path, tmp_path: Path
) -> None:
    """Also where the path to it goes a roundabout way."""
    workspace = tmp_path / "workspace"
    change(claw, {"agents": {"defaults": {"workspace": str(workspace)}}, "channels": OTHERS})
    assert omg_here("init", f"{tmp_path}/x/../workspace/memory/omg").returncode == 0
    toml = home / "omg.toml"
    toml.write_text(toml.read_text().replace("/workspace", "/workspace/../workspace"))

    def seen() -> list[Finding]:
        with Memory(load_config(home, {}), embed=None) as memory:
            return [f for f in check_places(memory, claw, claw.config()) if f.level == "fail"]

    (finding,) = seen()
    assert omg_here(*shlex.split(finding.mend.split("`")[1])[1:]).returncode == 0
    assert seen() == []
    assert not list(workspace.rglob("*.md"))
    assert list(home.glob("graphs/*/vault/index.md"))


def test_a_plugin_of_another_version_is_named(
    claw: OpenClaw, home: Path, examined: Callable[[], list[Finding]]
) -> None:
    list(carried_out(install_plugin(claw, home)))
    (claw.plugin / "index.js").write_text("// of last year")
    assert any("another version" in f.what for f in examined())


# --- OpenClaw from outside


@pytest.mark.parametrize(
    ("channels", "reached"),
    [
        ({}, []),
        (ALONE, []),
        (OTHERS, ["telegram"]),
        ({"telegram": {}}, ["telegram"]),  # it pairs
        ({"telegram": {**ALONE["telegram"], "dmPolicy": "open"}}, ["telegram"]),
        ({"telegram": {**ALONE["telegram"], "allowFrom": ["*"]}}, ["telegram"]),
        ({"telegram": {**ALONE["telegram"], "groupPolicy": "open"}}, ["telegram"]),
        ({"telegram": {**ALONE["telegram"], "groups": {"-1": {}}}}, ["telegram"]),
        ({"telegram": {**ALONE["telegram"], "groups": {"-1": {}}, "groupPolicy": "disabled"}}, []),
        ({"telegram": {**ALONE["telegram"], "accounts": {"a": {}, "b": {"allowFrom": ["2", "3"]}}}}, ["telegram"]),
        ({"telegram": {"enabled": False}}, []),
    ],
)  # fmt: skip
def test_the_channels_say_who_can_reach_the_agent(channels: Json, reached: list[str]) -> None:
    assert others_can_reach({"channels": channels}) == reached


def test_the_workspace_is_found_where_openclaw_puts_it() -> None:
    state = Path("/s")
    assert workspace_of({}, "main", state) == Path("/s/workspace")
    assert workspace_of({}, "work", state) == Path("/s/workspace-work")
    shared = {"agents": {"defaults": {"workspace": "/w"}, "entries": {"main": {}, "work": {}}}}
    assert [workspace_of(shared, a, state) for a in ("main", "work")] == [Path("/w"), Path("/w/work")]
    own = {"agents": {"defaults": {"workspace": "/w"}, "entries": {"work": {"workspace": "/own"}}}}
    assert workspace_of(own, "work", state) == Path("/own")
