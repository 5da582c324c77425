"""
Each command as most people meet it: `omg install` was run, nothing is configured, and a daemon is up whose model is
the gateway's. Here the plugin is a thread that polls for questions and answers them by a script.

What the rules would write, nobody may find here; and every command says the same as the daemon.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from openai_server import borne_out, created
from shell import omg_here

from omg.cli.gateway import without_daemon
from omg.client import ask_daemon
from omg.config import load_config
from omg.daemon import Daemon
from omg.errors import OmgError
from omg.llm.asker import GONE_S
from tests.cli.test_app import ALL
from tests.test_daemon import Running, eventually

BARE = '[embedding]\nmodel = "none"\n'
SAID = re.compile(r"(?m)^(m\d+) \d\d:\d\d user[^:\n]*: ([^\n]+)")


class Plugin:
    """The gateway's side of model lending: it polls, and answers as its agent's model would. `error`: it fails so."""

    def __init__(self, home: Path) -> None:
        self.home, self.error, self.stopping = home, "", threading.Event()
        self.asked: list[str] = []
        self.thread = threading.Thread(target=self._poll, daemon=True)
        self.thread.start()

    def _poll(self) -> None:
        while not self.stopping.is_set():
            try:
                question = ask_daemon(self.home, "/llm/next", {}, timeout_s=20)
                if question and "id" in question:
                    ask_daemon(
                        self.home, "/llm/done", {"id": question["id"], **self._answer(question["question"])}
                    )
            except OmgError:
                return  # the daemon has gone

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(question["purpose"])
        if self.error:
            return {"error": self.error}
        told = {"provider": "acme", "model": "acme/large"}
        text = question["messages"][0]["content"]
        if question["purpose"] == "omg.check":
            return {"text": json.dumps(borne_out(text)), **told}
        edits = [
            created(f"By the gateway's model: {said}", handle, title=said.strip(". ")[:60], priority="high")
            for handle, said in SAID.findall(text)
        ]
        return {"text": json.dumps({"edits": edits}), **told}


class Installed:
    """A home as `omg install` leaves it, its daemon, and the plugin that lends it a model."""

    def __init__(self, folder: Path, omg: str = BARE, *, daemon: bool = True) -> None:
        self.folder, self.home = folder, folder / "omg"
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.home / "installed.json").write_text('{"at": 1}')
        (self.home / "omg.toml").write_text(omg)
        self.daemon = Running(self.home, omg, parent=True).ready() if daemon else None
        self.plugin = Plugin(self.home) if daemon else None
        if self.plugin:
            eventually(lambda: self.health()["polled_s"] is not None, 10)

    def health(self) -> dict[str, Any]:
        assert self.daemon
        return self.daemon.health() or {}

    def omg(self, *args: str, code: int = 0, **env: str) -> str:
        """What a command prints, errors too."""
        state = str(self.folder / "none")
        with patch.dict(os.environ, {"OMG_HOME": str(self.home), "OPENCLAW_STATE_DIR": state, **env}):
            done = omg_here(*args, cwd=self.folder)
        assert done.returncode == code, f"omg {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def said(self, *texts: str, at: datetime = datetime(2026, 3, 2, 8, tzinfo=UTC)) -> Path:
        """A file to import; what was said months ago the daemon observes as soon as it sees it."""
        file = self.folder / f"chat{len(list(self.folder.glob('chat*')))}.jsonl"
        lines = [
            {"role": "user", "content": t, "timestamp": (at + timedelta(minutes=n)).isoformat()}
            for n, t in enumerate(texts)
        ]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file

    def noted(self) -> list[str]:
        """The descriptions of all notes."""
        files = sorted(self.home.glob("graphs/*/vault/nodes/*/*.md"))
        return [re.search(r"(?m)^description: (.*)$", f.read_text())[1] for f in files]  # type: ignore[index]

    def observers(self) -> set[str]:
        file = self.home / "events.jsonl"
        events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return {e["model"] for e in events if e["event"] == "observation_end"}

    def end(self) -> None:
        if self.plugin and self.daemon:
            self.plugin.stopping.set()
            self.daemon.end()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """With three notes, all by the gateway's model."""
    made = Installed(tmp_path_factory.mktemp("i"))
    told = made.omg("import", "--yes", str(made.said("I prefer short checklists.", "My sister Maya lives in Lisbon.", "The house number is 4711.")))  # fmt: skip
    assert "3 messages: 3 new ones came in, 3 observed" in told
    yield made
    made.end()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Installed]:
    """The same home with nothing up."""
    yield Installed(tmp_path / "i", daemon=False)


# A command → its arguments and what it then says. They run in this order, in one home.
COMMANDS: dict[str, tuple[list[str], str]] = {
    "status": ([], r"the agent's own model, asked through the gateway \(acme/large answered last\)"),
    "doctor": ([], r"✓ the Observer is the agent's own model, asked through the gateway \(acme/large"),
    "observe": ([], "0 messages observed"),
    "search": (["checklists"], "By the gateway's model: I prefer short checklists"),
    "show": (["my-sister-maya-lives-in-lisbon"], "By the gateway's model: My sister Maya"),
    "inject": (["-p", "where does my sister live?"], "By the gateway's model: My sister Maya"),
    "history": ([], "observation"),
    "export": (["out"], "wrote out"),
    "events": ([], "observation end: .*model gateway"),
    "identity list": ([], "agent:main:main"),
    "init": ([], "vault"),
    "new": (["fact", "Studio", "--text", "The studio is on the third floor."], "wrote nodes/fact/studio"),
    "link": (["studio", "my-sister-maya-lives-in-lisbon"], "links to"),
    "pin": (["studio"], "is pinned"),
    "rename": (["studio", "atelier"], "is now nodes/fact/atelier"),
    "undo": ([], "undone: renamed"),
    "supersede": (["i-prefer-short-checklists", "studio"], "is replaced by"),
    "merge": (["studio", "my-sister-maya-lives-in-lisbon"], "has taken over"),
    "forget": (["--matching", "4711", "--yes"], "forgotten:"),
    "reflect": ([], "agent:main:main: "),
    "rebuild": (["--yes"], " brings the old notes back"),
}
COMMANDS["demo"] = (["--folder", "demo"], "needs no key and no network")
ELSEWHERE = {
    "import": "the fixture's, and below",
    "serve": "test_daemon.py", "up": "test_daemon.py", "down": "test_daemon.py",
    "install": "openclaw/test_install.py", "uninstall": "openclaw/test_install.py",
    "identity join": "below", "identity move": "the same",
    "mcp": "hosts/test_mcp.py", "confirm": "hosts/test_mcp.py",
    "project join": "hosts/test_hosts.py", "project show": "hosts/test_hosts.py",
    "list": "cli/test_app.py", "open": "cli/test_app.py", "ui": "ui/test_page.py",
    **{f"schedule {name}": "hosts/test_timers.py" for name in ("install", "show", "remove")},
    **{name: "fleet/" for name in ALL if name.startswith("fleet ")},
}  # fmt: skip


def test_while_a_daemon_runs_each_command_leaves_observing_to_the_model_of_the_gateway(
    installed: Installed,
) -> None:
    def others() -> set[str]:
        """Notes that are neither the gateway's model's nor written by a command."""
        return {
            d
            for d in installed.noted()
            if not d.strip("'\"").startswith("By the gateway") and "studio" not in d
        }

    observers, elsewhere = installed.observers(), others()
    for command, (args, says) in COMMANDS.items():
        assert re.search(says, installed.omg(*command.split(), *args)), command
        assert installed.observers() == observers | {"gateway"}, command
        assert others() <= elsewhere and len(installed.noted()) > len(elsewhere), command


def test_this_file_tests_every_command_beside_a_daemon_or_lists_it_as_an_exception() -> None:
    assert ALL.keys() - ELSEWHERE.keys() == COMMANDS.keys()


def test_the_daemon_serves_the_new_notes_after_a_rebuild(installed: Installed) -> None:
    """An edit is found at once, not at the next look at everything."""
    installed.omg("rebuild", "--yes")
    (note,) = installed.home.glob("graphs/*/vault/nodes/*/my-sister*.md")
    note.write_text(note.read_text().replace("Lisbon", "Porto"))

    def found() -> bool:
        answer = ask_daemon(installed.home, "/search", {"query": "sister", "k": 3}, timeout_s=10)
        return "Porto" in json.dumps(answer)

    assert eventually(found, 20) < 15


def test_if_the_gateway_cannot_lend_its_model_each_command_says_so_and_no_rule_observes(
    installed: Installed,
) -> None:
    assert installed.plugin
    before = installed.noted()
    installed.plugin.error = "Plugin inventory has retired; begin a new plugin operation."
    told = installed.omg("import", "--yes", str(installed.said("I prefer window seats.")), code=1)
    assert "0 observed" in told
    for text in (
        told,
        installed.omg("status"),
        installed.omg("doctor", code=1),
        installed.omg("observe", code=1),
    ):
        assert "OpenClaw has reloaded its plugins" in text
        assert "start the gateway again" in text
    assert installed.noted() == before
    installed.plugin.error = ""
    assert "1 message observed" in installed.omg("observe")
    assert "not now" not in installed.omg("status")


def test_a_command_with_its_own_model_does_the_work_itself_and_says_so(installed: Installed) -> None:
    file = installed.said("I prefer aisle seats.", at=datetime.now(UTC))  # the daemon lets it rest
    installed.omg("import", "--yes", str(file), "--no-observe")
    told = installed.omg("observe", OMG_OBSERVATION_MODEL="offline")
    assert "the daemon observes with gateway" in told and "1 message observed" in told
    assert installed.observers() == {"gateway", "offline"}


def test_an_import_is_refused_if_it_sets_another_model_than_the_running_daemon(
    installed: Installed,
) -> None:
    before = installed.noted()
    told = installed.omg(
        "import",
        "--yes",
        str(installed.said("I prefer aisle seats.")),
        code=1,
        OMG_OBSERVATION_MODEL="offline",
    )
    assert "would observe the import with gateway" in told and "daemon first, with `omg down`" in told
    assert "0 messages observed" in installed.omg("observe") and installed.noted() == before


# --- with nothing up


def test_while_the_gateway_is_down_turns_wait_and_the_commands_say_so(
    alone: Installed,
) -> None:
    told = alone.omg("import", "--yes", str(alone.said("I prefer short checklists.")), code=1)
    assert "1 new one came in, 0 observed" in told
    for text in (told, alone.omg("observe", code=1)):
        assert "1 turn of agent:main:main not observed: the Observer is the agent's own model" in text
        assert "OMG_OBSERVATION_MODEL=offline omg observe" in text
    assert alone.noted() == []
    assert "not now: no gateway lends this model" in alone.omg("status")
    assert "no gateway lends this model" in alone.omg("doctor")
    assert "1 message observed" in alone.omg("observe", OMG_OBSERVATION_MODEL="offline")
    (noted,) = alone.noted()
    told = alone.omg("rebuild", "--yes", code=1)
    assert "nothing was rebuilt: the Observer is the agent's own model" in told
    assert alone.noted() == [noted]


WEEK = (
    "My sister Jo lives in Leeds and works as a nurse at the general hospital.",
    "My niece Ada lives in Headingley and likes her school there.",
    "My sister Jo works as a nurse at the general hospital in Leeds and has a dog.",
    "I decided to leave the deposit of 900 pounds with the agency until the flat is empty.",
    "We decided to insure the car with Admiral for 412 pounds a year.",
    "I prefer tea with oat milk in the morning and no coffee after noon.",
    "I like to give our cat Mimi wet food of the brand Felix.",
    "I don't like the gym on Dale Street on Sundays.",
)


def test_without_a_gateway_the_nightly_cron_job_writes_the_weekly_page_without_a_model(
    alone: Installed,
) -> None:
    alone.omg("import", "--yes", str(alone.said(*WEEK)), OMG_OBSERVATION_MODEL="offline")
    told = alone.omg("reflect")
    assert "1 reflection" in told
    assert "no gateway lends the agent's own model now. Weeks and months are written by rule" in told
    (page,) = alone.home.glob("graphs/*/vault/reflections/2026-W10.md")
    assert "- by-rule\n" in page.read_text()
    assert "nothing to do" in alone.omg("reflect")


def test_a_daemon_without_its_gateway_writes_the_weekly_page_without_a_model_and_says_so(
    alone: Installed,
) -> None:
    """Before, each question of the night waited for a gateway that was gone."""
    alone.omg("import", "--yes", str(alone.said(*WEEK)), OMG_OBSERVATION_MODEL="offline")
    daemon = Daemon(load_config(alone.home))  # as `omg up` starts it
    daemon.model.poll_s = 0.0
    daemon.lend({})
    daemon.miss_gateway()
    assert daemon.memory.worker.gateway is daemon.model
    assert daemon.model.polled is not None
    daemon.model.polled -= GONE_S + 1
    daemon.miss_gateway()
    (night,) = daemon.answers()["/reflect"]({})["graphs"]
    assert (
        "no gateway lends the agent's own model now. Weeks and months are written by rule"
        in night["skipped"][0]
    )
    assert list(alone.home.glob("graphs/*/vault/reflections/2026-W10.md"))
    daemon.lend({})
    assert daemon.memory.worker.gateway is daemon.model
    daemon.memory.close()


def test_a_gateway_that_starts_later_observes_the_waiting_turns(alone: Installed) -> None:
    alone.omg("import", "--yes", str(alone.said("I prefer short checklists.")), code=1)
    alone.daemon = Running(alone.home, BARE).ready()  # as `omg up` starts it
    alone.omg("observe", code=1)
    alone.plugin = Plugin(alone.home)
    try:
        eventually(lambda: alone.health()["polled_s"] is not None, 10)
        assert "observed" in alone.omg("observe")
        eventually(alone.noted, 10)
        assert alone.observers() == {"gateway"}
    finally:
        alone.end()


def test_a_command_that_needs_the_daemon_stopped_waits_until_its_process_ends(tmp_path: Path) -> None:
    """It answers no more, and holds its lock a moment longer."""
    holds = "import sys, time; from pathlib import Path; from omg.daemon import daemon_lock\n"
    holds += "with daemon_lock(Path(sys.argv[1])): print(flush=True); time.sleep(0.7)"
    with subprocess.Popen([sys.executable, "-c", holds, str(tmp_path)], stdout=subprocess.PIPE) as ending:
        assert ending.stdout and ending.stdout.readline()
        with without_daemon(tmp_path):
            assert ending.wait(10) == 0


def test_joining_accounts_and_moving_a_vault_restart_the_running_daemon(
    alone: Installed,
) -> None:
    def omg(*args: str) -> str:
        env = {**os.environ, "OMG_HOME": str(alone.home), "OMG_OBSERVATION_MODEL": "offline"}
        run = [sys.executable, "-m", "omg.cli", *args]
        done = subprocess.run(run, env=env, cwd=alone.folder, capture_output=True, text=True)
        return done.stdout + done.stderr

    def pid() -> int:
        return int((ask_daemon(alone.home, "/health", {}, timeout_s=10) or {})["pid"])

    assert omg("up").startswith("up, pid ")
    pids = [pid()]
    try:
        assert "owner: telegram:111" in omg("identity", "join", "owner", "telegram:111")
        pids.append(pid())
        assert "give a name and accounts" in omg("identity", "join", "ada", "telegram")
        pids.append(pid())
        assert "1 observed" in omg("import", "--yes", str(alone.said("I prefer window seats.")))
        moved = alone.folder / "notes"
        assert f"vault   {moved}\n" in omg("init", "x/../notes")
        pids.append(pid())
        assert len({*pids}) == 4
        assert "1 observed" in omg("import", "--yes", str(alone.said("My sister Maya lives in Lisbon.")))
        assert len(list(moved.glob("nodes/*/*.md"))) == 2
    finally:
        assert omg("down") == "stopped\n"
