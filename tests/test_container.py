"""The container's steps, as its files say them, run here as commands: no engine is needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

CONTAINER = Path(__file__).parent.parent / "hooks" / "container"
OMG = [sys.executable, "-m", "omg.cli"]


def instruction(name: str) -> str:
    """The last instruction *name* of the Dockerfile."""
    return re.findall(rf"^{name} (.+)$", (CONTAINER / "Dockerfile").read_text(), re.M)[-1]


def compose(name: str) -> dict:
    return yaml.safe_load((CONTAINER / name).read_text())["services"]


def steps() -> list[list[str]]:
    """The commands that home.yaml names for its service, without the engine's part."""
    text = (CONTAINER / "home.yaml").read_text()
    return [shlex.split(line) for line in re.findall(r"(?:run --rm|exec) memory (.+)$", text, re.M)]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "OMG_HOME": str(tmp_path / "home"), "OMG_OBSERVATION_MODEL": "offline"}


def healthy(env: dict[str, str]) -> bool:
    command = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    assert command == ["python", "/app/hooks/container/health.py"]
    done = subprocess.run([sys.executable, CONTAINER / "health.py"], env=env, capture_output=True, timeout=30)
    return done.returncode == 0


def until(what, seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.3)
    return bool(found)


def test_the_container_is_not_root_and_publishes_nothing_beyond_this_machine():
    assert instruction("USER") == "omg"
    (home,) = compose("home.yaml").values()
    assert home["volumes"] == [f"memory:{instruction('VOLUME')}"]
    assert instruction("ENV").removeprefix("OMG_HOME=").startswith(instruction("VOLUME"))
    assert "ports" not in home and home["network_mode"] == "host"  # the page listens on 127.0.0.1 itself
    fleet = compose("fleet.yaml")
    ports = [port for service in fleet.values() for port in service.get("ports", ())]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    assert {name for name, s in fleet.items() if "healthcheck" not in s} == {"serve"}  # it has the image's


def test_the_containers_steps_make_a_vault_a_daemon_and_a_page_with_a_token(tmp_path, env):
    init, page = steps()
    assert init[0] == "init" and page[:3] == ["omg", "ui", "--port"]
    done = subprocess.run(
        [*OMG, "init", tmp_path / "vault"], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert not healthy(env)
    assert json.loads(instruction("ENTRYPOINT")) == ["omg"]
    daemon = subprocess.Popen([*OMG, *json.loads(instruction("CMD"))], env=env)
    try:
        assert until(lambda: healthy(env))
        ui = subprocess.Popen(
            [*OMG, "ui", "--port", "0"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            link = ""
            while not link:
                found = re.search(r"http://127\.0\.0\.1:\d+\S*", ui.stdout.readline())
                link = found[0] if found else ""
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(re.match(r"http://[^/]+/", link)[0], timeout=10)
            refused.value.close()
            assert refused.value.code in (401, 403, 404)
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(link, timeout=10) as answer:
                assert answer.status == 200
        finally:
            ui.send_signal(signal.SIGINT)
            ui.communicate(timeout=20)
    finally:
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(30) == 0
    assert not healthy(env)
