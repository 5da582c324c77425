"""`omg mcp` as the official client sees it: both transports, both protocols, whose memory, and many calls at once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from shell import omg_here

pytest.importorskip("mcp")
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from omg.client import ask_daemon
from omg.hosts.sessions import project_of
from omg.memory import MAIN, Memory

COMMAND = [sys.executable, "-EP", "-m", "omg.cli"]
OTHER = "agent:main:telegram:direct:eve"
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}  # as a client of that year speaks


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "harbour"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def remembered(home: Path, project: Path) -> Path:
    """A home with the notes of the person, of a project, and of somebody else."""
    key = project_of(home, MAIN, project)
    assert key
    with Memory(embed=None) as memory:
        for who, text in (
            (MAIN, "Remember that my tea is Assam."),
            (MAIN, "The spare fuse for the kiln lies behind the glaze buckets."),
            (key, "We decided that the harbour crane is painted green."),
            (OTHER, "Remember that my CANARY tea is Sencha."),
        ):
            memory.capture([{"role": "user", "content": text}], session=who)
        memory.observe()
    (home / "hosts.json").write_text(
        json.dumps({"claude-code": {"identity": MAIN, "only": "", "config": "/nowhere", "at": 0}})
    )
    return home


@pytest.fixture
def up(remembered: Path) -> Iterator[Path]:
    subprocess.run([*COMMAND, "up"], check=True, capture_output=True)
    yield remembered
    assert omg_here("down").returncode == 0


Use = Callable[[Client], Awaitable[Any]]


def over_stdio(home: Path, folder: Path, use: Use, mode: str = "auto") -> Any:
    env = {"OMG_HOME": str(home), "HOME": os.environ["HOME"]}
    params = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", "--host", "claude-code"], env=env, cwd=folder
    )

    async def run() -> Any:
        async with Client(params, mode=mode) as client:
            return await use(client)

    return asyncio.run(run())


@contextmanager
def http_server(home: Path) -> Iterator[tuple[str, str]]:
    """URL and token of a server on a loopback port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*COMMAND, "mcp", "--http", str(port)],
        env={**os.environ, "OMG_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        token = process.stdout.readline().rpartition(" ")[2].strip()
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp", token
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


def over_http(url: str, token: str, use: Use, mode: str = "auto") -> Any:
    async def run() -> Any:
        async with httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
        ) as http:
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                return await use(client)

    return asyncio.run(run())


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        return {"error": result.content[0].text}
    return dict(result.structured_content or {})


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio_a_client_reads_the_memory_of_the_person_and_of_its_project(
    up: Path, project: Path, mode: str
) -> None:
    async def use(client: Client) -> None:
        assert client.protocol_version == MODES[mode]
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "fetch", "recent", "remember", "correct", "forget", "status"}
        assert all(
            len(t.description) < 2_048 and t.annotations.open_world_hint is False for t in tools.values()
        )
        assert {n for n, t in tools.items() if not t.annotations.read_only_hint} == {"remember", "correct"}
        assert all(t.output_schema for t in tools.values())
        assert client.instructions and len(client.instructions) < 2_048
        results = (await called(client, "search", query="tea crane painted"))["results"]
        assert {r["id"].partition(":")[0] for r in results} == {"person", "project"}
        said, *_ = (await called(client, "search", query="where is the spare fuse for the kiln"))["results"]
        assert "user: The spare fuse" in said["text"]  # became no note
        for result in (*results, said):
            note = await called(client, "fetch", id=result["id"])
            assert note["id"] == result["id"] and ("It was said:" in note["text"] or result is said)
            assert result is not said or "The spare fuse" in note["text"]
            read = await client.read_resource(result["url"])
            assert read.contents[0].text == note["text"]
        assert len((await called(client, "recent"))["results"]) >= 2
        assert "project: " in (await called(client, "status"))["text"]
        for page in ("omg://index", "omg://now"):
            assert "# person" in (await client.read_resource(page)).contents[0].text

    over_stdio(up, project, use, mode)


@pytest.mark.parametrize("mode", MODES)
def test_over_http_a_client_needs_the_token_and_reads_only_the_memory_of_the_person(
    up: Path, mode: str
) -> None:
    async def use(client: Client) -> None:
        results = (await called(client, "search", query="tea crane painted"))["results"]
        assert {r["id"].partition(":")[0] for r in results} == {"person"}

    with http_server(up) as (url, token):
        over_http(url, token, use, mode)
        for wrong in ("x", token[:-1], token + "x"):
            with httpx2.Client(headers={"Authorization": f"Bearer {wrong}"}, trust_env=False) as http:
                assert http.post(url, json={}).status_code == 401
        with httpx2.Client(
            headers={"Authorization": f"Bearer {token}", "Host": "evil.example"}, trust_env=False
        ) as http:
            assert http.post(url, json={}).status_code in (400, 403, 421)  # a page that names itself as us
        assert (up / "mcp-token").stat().st_mode & 0o077 == 0


def test_a_client_that_asks_for_another_identity_gets_nothing(up: Path, project: Path) -> None:
    async def use(client: Client) -> str:
        said = [
            await called(client, "search", query="Sencha", identity=OTHER, person=OTHER),
            await called(client, "fetch", id=f"{OTHER}:nodes/fact/my-canary-tea-is-sencha"),
            await called(client, "fetch", id="person:../../main/vault/index"),
            await called(client, "recent", person=OTHER),
            await called(client, "forget", query="CANARY Sencha"),
        ]
        for uri in (f"omg://note/{OTHER}/nodes/fact/my-canary-tea-is-sencha", "omg://note/person/../x"):
            with pytest.raises(Exception):  # noqa: B017  # whatever the SDK makes of it
                await client.read_resource(uri)
        return json.dumps(said)

    with http_server(up) as (url, token):
        for said in (over_stdio(up, project, use), over_http(url, token, use)):
            assert "CANARY" not in said.replace("CANARY Sencha'", "")


def test_a_proposal_has_the_origin_assistant_until_the_person_confirms_it(up: Path, tmp_path: Path) -> None:
    async def use(client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
        tea = (await called(client, "search", query="tea Assam"))["results"][0]["id"]
        noted = await called(client, "remember", text="My boat is the Albatross.", when="2026-03-05")
        assert await called(client, "remember", text="My boat is the Albatross.", when="2026-03-05") == noted
        return noted, await called(client, "correct", id=tea, new="My tea is Darjeeling.")

    noted, corrected = over_stdio(up, tmp_path, use)  # outside of a project
    listed = omg_here("confirm").stdout
    assert "My boat is the Albatross." in listed and "My tea is Darjeeling." in listed
    with Memory(embed=None) as memory:
        memory.refresh(graph := memory.find(MAIN))
        old = next(e for e in graph.index.entries() if "Assam" in e.description)
        assert (graph.vault.read(old.path).status, memory.inject("x").system.count("Albatross")) == (
            "active",
            0,
        )
    for proposal in (noted, corrected):
        command = proposal["command"].split()
        assert command[0] == "omg" and omg_here(*command[1:]).returncode == 0
        assert omg_here(*command[1:]).returncode == 1  # it is theirs already
    assert "nothing waits" in omg_here("confirm").stdout
    with Memory(embed=None) as memory:
        memory.refresh(graph := memory.find(MAIN))
        node = graph.vault.read(graph.index.resolve(old.path))
        assert (node.description, node.origin) == ("My tea is Darjeeling.", "human")
        assert "Assam" in node.body.partition("## History")[2]
        assert graph.vault.read(corrected["id"].partition(":")[2]).superseded_by == node.path


def test_the_tool_forget_changes_nothing_and_returns_the_command_that_forgets(
    up: Path, tmp_path: Path
) -> None:
    async def use(client: Client) -> dict[str, Any]:
        return await called(client, "forget", query="Assam tea")

    told = over_stdio(up, tmp_path, use)
    assert "Assam" in told["would_forget"]
    (command,) = told["commands"]
    assert "would be forgotten" in omg_here(*command.split()[1:]).stdout
    assert omg_here(*command.split()[1:], "--yes").returncode == 0
    assert "Assam" not in omg_here("search", "Assam tea").stdout


def test_a_hundred_simultaneous_calls_during_a_nights_reflection_are_all_answered(up: Path) -> None:
    async def use(client: Client) -> list[dict[str, Any]]:
        night = asyncio.to_thread(
            ask_daemon, up, "/reflect", {"identity": None, "since": None, "dry_run": False}
        )
        calls = [called(client, "search", query=f"tea {n}") for n in range(95)]
        calls += [called(client, "remember", text=f"The buoy number {n} is red.") for n in range(5)]
        _, *answers = await asyncio.gather(night, *calls)
        return answers

    with http_server(up) as (url, token):
        answers = over_http(url, token, use)
    assert [a for a in answers if "error" in a] == []
    assert all(a["results"] for a in answers[:95])
    with Memory(embed=None) as memory:
        memory.refresh(graph := memory.find(MAIN))
        said = " ".join(e.description for e in graph.index.entries())
    assert len(set(re.findall(r"buoy number (\d)", said))) == 5


def test_without_a_daemon_the_server_starts_one(remembered: Path, tmp_path: Path) -> None:
    async def use(client: Client) -> dict[str, Any]:
        return await called(client, "search", query="tea Assam")

    try:
        assert over_stdio(remembered, tmp_path, use)["results"]
        assert ask_daemon(remembered, "/health", {})
    finally:
        omg_here("down")
