"""
The agent's own model, lent to the Observer by a gateway that goes on running: through an install, a changed
setting, a reload of the plugin and another plugin's arrival. One boot and one install for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import Gateway, eventually

pytestmark = pytest.mark.gateway

MAIN = "agent:main:main"
EACH_TURN = '[observation]\nbuffer_tokens = "turn"\n'


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    yield boot(plugin=False, omg=EACH_TURN).start()


@pytest.fixture(scope="module", autouse=True)
def installed(gateway: Gateway) -> str:
    """What installing said; a first preference is noted."""
    told = gateway.omg("install")
    noted(gateway, "short checklists")
    return told


def noted(gateway: Gateway, what: str) -> None:
    """Say it; the agent's own model makes it a note."""
    gateway.say(MAIN, f"I prefer {what}")

    def found() -> bool:
        notes = gateway.memory.notes(MAIN) if MAIN in gateway.memory.graphs() else {}
        return any(f"prefers {what}" in text for text in notes.values())

    eventually(
        found, 40, f"the note about {what}", why=lambda: json.dumps(gateway.call("omg.status"), indent=1)
    )


def test_installing_into_a_running_gateway_makes_the_agents_model_the_observer(
    gateway: Gateway, installed: str
) -> None:
    assert "✓ the Observer is the agent's own model (mock/mock-1), asked through the gateway" in installed
    assert 'model = "gateway"' in (gateway.home / "omg.toml").read_text()


def test_status_and_doctor_name_the_model_that_answered(gateway: Gateway) -> None:
    for command in ("status", "doctor"):
        told = gateway.omg(command, fails=None)
        assert "the agent's own model, asked through the gateway (mock/mock-1 answered last)" in told
        assert "not now" not in told


def test_an_import_beside_the_gateway_is_observed_by_its_model(gateway: Gateway) -> None:
    file = gateway.folder / "chat.jsonl"
    message = {"role": "user", "content": "I prefer paper maps", "timestamp": "2026-03-02T08:15:00Z"}
    file.write_text(json.dumps(message) + "\n")
    assert "1 observed" in gateway.omg("import", "--yes", str(file))
    events = [json.loads(line) for line in (gateway.home / "events.jsonl").read_text().splitlines()]
    assert {e["model"] for e in events if e["event"] == "observation_end"} == {"gateway"}


def test_the_model_of_the_gateway_still_observes_after_a_setting_changed(gateway: Gateway) -> None:
    gateway.configure({"plugins": {"entries": {"omg": {"config": {"trimToolResults": True}}}}})
    noted(gateway, "window seats")


def test_the_gateways_model_observes_after_the_plugin_was_reloaded(gateway: Gateway) -> None:
    gateway.run("plugins", "reload", "omg")
    noted(gateway, "green tea")


def test_the_gateways_model_observes_after_another_plugin_was_installed(gateway: Gateway) -> None:
    other = gateway.folder / "other"
    other.mkdir()
    manifest = {"id": "other", "name": "Other", "description": "x", "version": "0.1.0"}
    manifest |= {"activation": {"onStartup": True}, "configSchema": {"type": "object"}}
    (other / "openclaw.plugin.json").write_text(json.dumps(manifest))
    package = {"name": "other", "version": "0.1.0", "type": "module"}
    package |= {"openclaw": {"extensions": ["./index.js"], "compat": {"pluginApi": ">=2026.9.0"}}}
    (other / "package.json").write_text(json.dumps(package))
    (other / "index.js").write_text("export default { id: 'other', register() {} };\n")
    gateway.run("plugins", "install", str(other), "--force", "--accept-capabilities")
    noted(gateway, "night trains")
