"""
`omg install` on a fresh OpenClaw, by the command line, as a person would: gateway down, then up; a turn; the
doctor; out again. One boot, and each step is a fixture, done once.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import Gateway, eventually
from openai_server import OpenAIServer
from three_commands import ANSWER, QUESTION, three_commands

pytestmark = pytest.mark.gateway

SESSION = "agent:main:main"


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    yield boot(plugin=False, omg='[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n')


@pytest.fixture(scope="module")
def bare(gateway: Gateway) -> dict[str, Any]:
    return config(gateway)


@pytest.fixture(scope="module")
def while_down(gateway: Gateway, bare: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What installing said while the gateway was down, and what it wrote about our plugin."""
    return gateway.omg("install"), config(gateway)["plugins"]["entries"]["omg"]


@pytest.fixture(scope="module")
def while_up(gateway: Gateway, while_down: tuple[str, dict[str, Any]]) -> str:
    """What installing again said while it was up."""
    gateway.start()
    return gateway.omg("install")


@pytest.fixture(scope="module")
def noted(gateway: Gateway, while_up: str) -> None:
    """A turn has become a note."""
    gateway.say(SESSION, "I prefer short checklists")

    def found() -> bool:
        notes = gateway.memory.notes(SESSION) if SESSION in gateway.memory.graphs() else {}
        return any("short checklists" in text for text in notes.values())

    eventually(found, 30, "the note", why=lambda: gateway.call("omg.status"))


@pytest.fixture
def installed_now(gateway: Gateway, while_up: str) -> None:
    """Our plugin is in the running gateway, whichever test has taken it out."""
    if "omg" not in config(gateway).get("plugins", {}).get("entries", {}):
        gateway.omg("install")


def config(gateway: Gateway) -> dict[str, Any]:
    """The configuration less `meta`, where OpenClaw notes which of its versions last wrote it."""
    read: dict[str, Any] = json.loads((gateway.state / "openclaw.json").read_text())
    return {key: value for key, value in read.items() if key != "meta"}


def test_without_a_gateway_the_installer_prints_the_crontab_line(
    gateway: Gateway, while_down: tuple[str, dict[str, Any]]
) -> None:
    told, entry = while_down
    assert "20 4 * * *" in told
    assert "the daemon starts with the gateway" in told
    assert entry["enabled"] is True
    assert entry["hooks"]["allowConversationAccess"] is True
    assert entry["config"]["home"] == str(gateway.home)


@pytest.mark.usefixtures("installed_now")
def test_installing_with_a_gateway_completes_every_step(gateway: Gateway, while_up: str) -> None:
    assert "✓ have `omg reflect` run" in while_up
    assert "the daemon is up" in while_up
    before, began = config(gateway), time.monotonic()
    assert "✓" not in gateway.omg("install")
    assert config(gateway) == before
    print(f"omg install with nothing to do: {time.monotonic() - began:.1f} s")


@pytest.mark.usefixtures("noted", "installed_now")
def test_after_installing_a_turn_is_remembered_and_the_doctor_finds_nothing(gateway: Gateway) -> None:
    findings = json.loads(gateway.omg("doctor", "--json"))["findings"]
    assert [f for f in findings if f["level"] in ("warn", "fail")] == []
    assert any("talk to each other" in f["what"] for f in findings)
    assert any("nightly job is in" in f["what"] for f in findings)


@pytest.mark.usefixtures("installed_now")
def test_three_commands_of_readme_lead_to_a_prompt_with_memory(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    _, install, new = (shlex.split(command)[1:] for command in three_commands("OpenClaw"))
    began = time.monotonic()
    gateway.omg(*install)
    gateway.omg(*new)
    took_s = time.monotonic() - began
    before = len(provider.history)
    gateway.say(f"{SESSION}:thread:three-commands", QUESTION)
    assert any(ANSWER in str(r.body) for r in provider.history[before:] if r.body.get("tools"))
    print(f"README's commands for OpenClaw after pip: {took_s:.1f} s")


@pytest.mark.usefixtures("installed_now")
def test_the_scheduler_runs_the_nightly_job(gateway: Gateway) -> None:
    (job,) = [j for j in gateway.call("cron.list")["jobs"] if j.get("declarationKey") == "omg:nightly"]
    gateway.call("cron.run", id=job["id"], mode="force")

    def ran() -> Any:
        (now,) = [j for j in gateway.call("cron.list")["jobs"] if j["id"] == job["id"]]
        return now["state"].get("lastStatus") or now["state"].get("lastRunStatus")

    assert eventually(ran, 60, "the nightly job") == "ok"


@pytest.mark.usefixtures("installed_now")
def test_the_doctor_reports_a_missing_permission_and_install_restores_it(gateway: Gateway) -> None:
    over = {"plugins": {"entries": {"omg": {"hooks": {"allowConversationAccess": False}}}}}
    gateway.configure(over)
    told = gateway.omg("doctor", fails=True)
    assert "plugins.entries.omg.hooks.allowConversationAccess" in told
    gateway.omg("install")
    assert "✗" not in gateway.omg("doctor")


@pytest.mark.usefixtures("noted")
def test_uninstalling_keeps_settings_that_were_there_before_or_changed_since(
    gateway: Gateway, bare: dict[str, Any]
) -> None:
    now = json.loads((gateway.state / "openclaw.json").read_text())
    now["logging"]["level"] = "info"
    (gateway.state / "openclaw.json").write_text(json.dumps(now))
    gateway.omg("uninstall")
    assert config(gateway) == {**bare, "logging": {**bare["logging"], "level": "info"}}
    eventually(lambda: not gateway.daemons(), 15, "the daemon to end", why=gateway.survivors)
    jobs = gateway.call("cron.list")["jobs"]
    assert not [j for j in jobs if j.get("declarationKey") == "omg:nightly"]
    assert gateway.memory.notes(SESSION)
    assert os.access(gateway.home / "openclaw.json.before-omg", os.R_OK)
