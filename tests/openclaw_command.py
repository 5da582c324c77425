"""
A stand-in for the `openclaw` command, as far as OMG calls it: it keeps the configuration and the plugin's copy.

`made(folder)` writes it as a program, so that what is tested is the real call. Every call is a line in
`calls`; with `sulking` there, `plugins install` says no with exit code 0, as the real one does. `health` is what `openclaw health --json` prints.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "openclaw"
    program.write_text(
        f"#!{sys.executable}\nimport runpy\nrunpy.run_path({str(Path(__file__))!r}, run_name='__main__')\n"
    )
    program.chmod(0o755)
    return program


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, which `openclaw config patch` follows: null takes a key out."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result[key] if isinstance(result.get(key), dict) else {}, value)
        else:
            result[key] = value
    return result


def main(args: list[str]) -> int:
    state, file = Path(os.environ["OPENCLAW_STATE_DIR"]), Path(os.environ["OPENCLAW_CONFIG_PATH"])
    with (state / "calls").open("a") as calls:
        calls.write(" ".join(args[:2]) + "\n")

    def patch(over: dict[str, Any]) -> None:
        file.write_text(json.dumps(merged(json.loads(file.read_text()), over)))

    match args:
        case ["config", "patch", "--file", path]:
            patch(json.loads(Path(path).read_text()))
        case ["plugins", "install", source, *_] if not (state / "sulking").exists():
            manifest = json.loads((Path(source) / "openclaw.plugin.json").read_text())
            plugin = manifest["id"]
            shutil.copytree(source, state / "extensions" / plugin, dirs_exist_ok=True)
            slots = {"slots": {"contextEngine": plugin}} if manifest.get("kind") == "context-engine" else {}
            patch({"plugins": {"entries": {plugin: {"enabled": True}}, **slots}})
        case ["plugins", "uninstall", plugin, *_]:
            shutil.rmtree(state / "extensions" / plugin)
            patch({"plugins": {"entries": {plugin: {"enabled": False, "hooks": None, "config": None}}}})
            if json.loads(file.read_text())["plugins"].get("slots", {}).get("contextEngine") == plugin:
                patch({"plugins": {"slots": {"contextEngine": "legacy"}}})
        case ["health", "--json"] if (state / "health").exists():
            print((state / "health").read_text())
        case ["plugins", *_]:
            print("Install cancelled; rerun with --force")
        case _:
            print(f"unknown: {args}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
