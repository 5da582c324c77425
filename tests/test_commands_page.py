"""docs/commands.md is the command line's own help. `UPDATE_DOCS=1 pytest tests/test_commands_page.py` writes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from test_cli import ALL

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"


def page() -> str:
    parts = [
        "# Commands\n",
        "What each command does and takes; `omg COMMAND --help` says the same. What goes wrong is said on stderr, in lines that",
        "begin with `omg:`, and the exit code is 1. A wrong option prints the usage, and the exit code is 2. With `--json` a",
        "command prints one JSON value. This page is generated from the code.\n",
    ]
    for name, command in ALL.items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join(["omg", name, *(shown(p) for p in arguments)])
        parts += [
            f"## omg {name}\n",
            f"`{usage}`\n",
            " ".join(command.help.split()).replace("\\[", "[") + "\n",
        ]
        rows = [(name_of(p), told(p)) for p in command.params if p.name != "help"]
        if rows:
            parts += ["| | |", "|---|---|", *(f"| {what} | {why} |" for what, why in rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def shown(argument: Any) -> str:
    name = argument.name.strip("_").upper() + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def name_of(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.strip('_').upper()}`"
    return ", ".join(f"`{o}`" for o in (*parameter.opts, *parameter.secondary_opts))


def told(parameter: Any) -> str:
    default = parameter.default
    plain = isinstance(default, str | int) and not isinstance(default, bool) and default != ""
    return (parameter.help or "").replace("|", "\\|") + (f" Default: `{default}`." if plain else "")


def test_the_page_of_commands_is_the_command_lines_own_help() -> None:
    now = page()
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(now, encoding="utf-8")
    assert PAGE.exists() and PAGE.read_text("utf-8") == now, (
        "docs/commands.md is behind the code: run UPDATE_DOCS=1 pytest tests/test_commands_page.py"
    )
