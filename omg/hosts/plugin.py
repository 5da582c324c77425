"""
The plugin folder of each client, as text: its hooks, its MCP server, and where it is offered.

`hooks/<host>/` in the source tree is the same with the plain command `omg`; `omg install HOST` writes it with the
whole path of the interpreter and the home, because a client may run with another PATH.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from ..config import shipped_folder
from .declared import PLUGIN, Host

NAME = PLUGIN
DESCRIPTION = "One memory in every tool: what was said becomes notes that you own."
VERSION = "0.1.0"

Files = dict[str, str]  # place in the folder → text


def hook_command(host: Host, event: str, command: list[str], home: Path | None) -> str:
    return shlex.join([*command, "hook", host.name, event, *([str(home)] if home else [])])


def mcp_server(host: Host, command: list[str], home: Path | None) -> dict[str, Any]:
    """How the client starts `omg mcp`."""
    env = {"env": {"OMG_HOME": str(home)}} if home else {}
    return {"command": command[0], "args": [*command[1:], "mcp", "--host", host.name], **env}


def plugin_folder(host: Host, command: list[str], home: Path | None = None) -> Files:
    return LAYOUTS[host.layout](host, command, home)


def as_text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def hooks_file(host: Host, command: list[str], home: Path | None) -> dict[str, Any]:
    hooks = {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": hook_command(host, event, command, home),
                        "timeout": host.timeout,
                    }
                ]
            }
        ]
        for event in host.events
    }
    return {"hooks": hooks}


def claude_folder(host: Host, command: list[str], home: Path | None) -> Files:
    """A marketplace with one plugin; Codex reads the same form."""
    about = {"name": NAME, "description": DESCRIPTION}
    market = {
        "name": NAME,
        "description": DESCRIPTION,
        "owner": {"name": "OMG"},
        "plugins": [{**about, "source": f"./{NAME}"}],
    }
    return {
        ".claude-plugin/marketplace.json": as_text(market),
        f"{NAME}/.claude-plugin/plugin.json": as_text(
            {**about, "version": VERSION, "author": {"name": "OMG"}}
        ),
        f"{NAME}/hooks/hooks.json": as_text(hooks_file(host, command, home)),
        f"{NAME}/.mcp.json": as_text({"mcpServers": {NAME: mcp_server(host, command, home)}}),
    }


def gemini_folder(host: Host, command: list[str], home: Path | None) -> Files:
    extension = {
        "name": NAME,
        "version": VERSION,
        "description": DESCRIPTION,
        "mcpServers": {NAME: mcp_server(host, command, home)},
    }
    return {
        "gemini-extension.json": as_text(extension),
        "hooks/hooks.json": as_text(hooks_file(host, command, home)),
    }


def opencode_folder(host: Host, command: list[str], home: Path | None) -> Files:
    """The plugin as it is shipped; installed, it knows the home and the command."""
    text = (shipped_folder("hooks") / host.name / f"{NAME}.js").read_text(encoding="utf-8")
    if home:
        known = json.dumps({"home": str(home), "command": command})
        text = text.replace("const INSTALLED = {};", f"const INSTALLED = {known};", 1)
    return {f"{NAME}.js": text}


LAYOUTS = {"claude": claude_folder, "gemini": gemini_folder, "opencode": opencode_folder}
