"""The Reflector as cron and the daemon run it: over all graphs, through the command line and a real model client."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, time, timedelta
from pathlib import Path

import pytest
from openai_server import OpenAIServer, Request
from planted import MONDAY, Scripted, graph_of, home_at, note, plant, put
from typer.testing import CliRunner

from omg.cli.app import app
from omg.graph.graph import Graph
from omg.graph.state import flock
from omg.memory import Memory
from omg.worker.nights import background_reflection
from omg.worker.status import home_status, status_text

PEER = "agent:main:telegram:direct:7"


def scripted(request: Request) -> object:
    return Scripted().answer(request.user)


def peer_of(home: Memory) -> Graph:
    who = home.registry.identity_of(PEER, channel="telegram", sender="7")
    assert who is not None
    return home.graph(who)


@pytest.fixture
def two_graphs(home: Path) -> Path:
    """$OMG_HOME with an owner's graph and another's, each with something to do."""
    opened = home_at(home)
    for graph in (graph_of(opened), peer_of(opened)):
        plant(graph, pairs=2, targets=0, episodes=9, weeks=1)
    opened.close()
    return home


def reflected(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["reflect", *args])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_reflects_on_all_graphs_through_a_real_model_client(
    two_graphs: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.always(scripted)
    monkeypatch.setenv("OMG_REFLECTION_MODEL", "openai/scripted")
    monkeypatch.setenv("OMG_LLM_API_BASE", openai_server.base)
    monkeypatch.setenv("OMG_LLM_API_KEY", "sk-test")
    monkeypatch.setenv("OMG_REFLECTION_INSTRUCTION", "Write in Portuguese.")
    code, out, _ = reflected("--json", "--all-vaults")
    graphs = json.loads(out)
    assert code == 0 and len(graphs) == 2
    for g in graphs:
        assert (
            g["counts"]["superseded"] == 2 and g["counts"]["merged"] == 2 and g["counts"]["reflections"] == 1
        )
        assert g["cycle"] and g["calls"] and g["skipped"] == []
    assert all("# Also\n\nWrite in Portuguese.\n" in r.system for r in openai_server.history)
    asked = len(openai_server.history)
    code, out, err = reflected()
    assert code == 0 and out.count("nothing to do") == 2 and err == ""
    assert len(openai_server.history) == asked
    events = [json.loads(line) for line in (two_graphs / "events.jsonl").read_text().splitlines()]
    starts, ends = ([e for e in events if e["event"] == f"reflection_{part}"] for part in ("start", "end"))
    assert {e["cycle"] for e in starts} == {e["cycle"] for e in ends}
    assert {g["cycle"] for g in graphs} <= {e["cycle"] for e in ends}
    assert len(ends) == 4 and {e["graph"] for e in ends} == {g["identity"] for g in graphs}
    of = {e["cycle"]: e for e in ends}
    assert all(of[g["cycle"]]["calls"] == g["calls"] and of[g["cycle"]]["superseded"] == 2 for g in graphs)
    assert "Ines" not in (two_graphs / "events.jsonl").read_text()


def test_if_the_vault_cannot_be_written_the_command_reflect_prints_the_path(
    two_graphs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/vault/mocs/.omg-1.tmp")

    monkeypatch.setattr("omg.reflect.run.commit_receipt", refuse)
    code, out, _ = reflected()
    assert code == 1
    assert "/vault/mocs/.omg-1.tmp: Permission denied" in out


def test_one_graph_in_trouble_does_not_stop_the_others(two_graphs: Path) -> None:
    opened = home_at(two_graphs)
    root = graph_of(opened).vault.root
    opened.close()
    shutil.move(root, root.with_name("elsewhere"))
    code, out, err = reflected()
    assert code == 1
    lines = dict(line.split(": ", 1) for line in out.splitlines())
    assert "vault" in lines["agent:main:main"] and "nothing" not in lines[PEER]
    assert f"{PEER}: skipped" in err and "no model" in err


def test_the_status_says_what_the_previous_night_did_and_when_the_next_night_is(two_graphs: Path) -> None:
    (two_graphs / "installed.json").write_text('{"at": 1}')
    assert reflected("--all-vaults")[0] == 0
    opened = home_at(two_graphs)
    status = home_status(opened.worker)
    text = status_text(status, opened.registry.zone)
    opened.close()
    did = status["graphs"][0]["reflected_what"]
    assert "2 reflections" in did and f": {did}" in text
    due = datetime.fromisoformat(status["next_night"])
    assert due.astimezone().time() == time(4, 20) and "next at " in text
    assert timedelta(0) < due - opened.clock() <= timedelta(days=1, hours=1)


def test_a_dry_run_prints_what_a_run_would_do_and_changes_nothing(two_graphs: Path) -> None:
    opened = home_at(two_graphs)
    graph = graph_of(opened)
    put(graph, *[note(f"nodes/fact/twice-{n}", "The tea is in the tin.", MONDAY) for n in range(2)])
    opened.close()
    code, out, _ = reflected("--dry-run", "--identity", "agent:main:main")
    assert code == 0 and "Merged [[nodes/fact/twice-1|" in out and "look alike" in out
    opened = home_at(two_graphs)
    assert graph_of(opened).vault.read("nodes/fact/twice-1").status == "active"
    opened.close()


def test_the_errors_for_an_invalid_day_and_an_unknown_identity_quote_the_value(two_graphs: Path) -> None:
    result = CliRunner().invoke(app, ["reflect", "--since", "yesterday-ish"])
    assert result.exception is not None and "--since" in str(result.exception)
    result = CliRunner().invoke(app, ["reflect", "--identity", "agent:nobody"])
    assert "agent:nobody" in str(result.exception)


def test_a_failed_background_reflection_is_left_to_the_night(two_graphs: Path) -> None:
    opened = home_at(two_graphs, observation_tokens=1000)
    graph = graph_of(opened)
    graph.update(lambda state: setattr(state, "changed_tokens", 1000))
    shutil.move(graph.vault.root, graph.vault.root.with_name("elsewhere"))
    (failed,) = background_reflection(opened.worker, idle=True)
    assert failed["error"] and "cycle" not in failed
    assert background_reflection(opened.worker, idle=True) == []
    opened.close()


def test_a_background_reflection_skips_a_graph_that_another_process_reflects_on(two_graphs: Path) -> None:
    opened = home_at(two_graphs, observation_tokens=1000)
    graph = graph_of(opened)
    graph.update(lambda state: setattr(state, "changed_tokens", 1000))
    with flock(graph.folder / "reflect.lock", "the Reflector"):
        (night,) = background_reflection(opened.worker, idle=True)
        assert "locked" in night["error"]
    assert graph.state().changed_tokens == 1000
    assert not list(two_graphs.glob("events*"))  # nothing failed
    (night,) = background_reflection(opened.worker, idle=True)
    assert "error" not in night
    opened.close()
