"""
`omg install --context-engine` and back: the plugin `omg-context`, which takes OpenClaw's slot for a context engine.

Whoever had the slot before gets it back. Not here: what the engine does (hooks/context/index.js, window/). One rule:
it comes only when it is asked for, and `omg uninstall` takes it out as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..config.agents import ENGINE_BEFORE, value_at
from ..config.file import shipped_folder
from ..graph.files import write_private
from ..hosts.install import Step
from .gateway import OpenClaw
from .install import admission_patch, doer, kept_object, put_plugin, same_plugin

ENGINE = "omg-context"


def engine_folder(claw: OpenClaw) -> Path:
    """Where `openclaw plugins install` puts a copy of it."""
    return claw.plugin.with_name(ENGINE)


def engine_files() -> dict[str, Path]:
    """Its files by their place in it: its own, and how the plugin `omg` asks the daemon."""
    hooks = shipped_folder("hooks")
    return {p.name: p for p in (hooks / "context").glob("*") if p.is_file()} | {
        "daemon.js": hooks / "daemon.js"
    }


def install_engine(claw: OpenClaw, home: Path, *, dry_run: bool = False) -> Iterator[Step]:
    """Take the slot. Raises GatewayError where OpenClaw refuses; running it again goes on from there."""
    do = doer(dry_run)
    plugins, folder = value_at(claw.config(), "plugins", {}), engine_folder(claw)
    if not (home / ENGINE_BEFORE).exists():
        before = {key: plugins.get(key) for key in ("slots", "allow", "deny")}
        do(lambda: write_private(home / ENGINE_BEFORE, json.dumps(before)))
    if changes := admission_patch(claw.config(), ENGINE):
        do(lambda: claw.patch(changes))
        yield Step("let the context engine in", ", ".join(f"plugins.{name}" for name in changes["plugins"]))
    fresh = not same_plugin(folder, engine_files())
    if fresh:
        do(lambda: put_plugin(claw, folder, engine_files()))
    yield Step(f"install the plugin `{ENGINE}`", str(folder), changed=fresh)
    config, wanted = claw.config(), {}  # type: dict[str, Any], dict[str, Any]
    entry = value_at(config, f"plugins.entries.{ENGINE}", {})
    if entry.get("enabled") is not True or value_at(entry, "config.home") != str(home):
        wanted["entries"] = {ENGINE: {"enabled": True, "config": {"home": str(home)}}}
    had = value_at(config, "plugins.slots.contextEngine")
    if had != ENGINE:
        wanted["slots"] = {"contextEngine": ENGINE}
    if wanted:
        do(lambda: claw.patch({"plugins": wanted}))
    note = "what is observed leaves a long context, and its notes take its place: [context] in omg.toml"
    yield Step("have OMG put contexts together", note, changed=fresh or bool(wanted))


def remove_engine(claw: OpenClaw, home: Path, *, dry_run: bool = False) -> Iterator[Step]:
    """Give the slot back to whoever had it; nothing to do where the engine is not installed."""
    do, folder = doer(dry_run), engine_folder(claw)
    if not folder.exists() and value_at(claw.config(), f"plugins.entries.{ENGINE}") is None:
        return
    if folder.exists():
        do(lambda: claw.run("plugins", "uninstall", ENGINE, "--force"))
        yield Step(f"uninstall the plugin `{ENGINE}`")
    if dry_run:
        yield Step("give its slot back")
        return
    if changes := given_back(value_at(claw.config(), "plugins", {}), kept_object(home / ENGINE_BEFORE)):
        claw.patch({"plugins": changes})
    (home / ENGINE_BEFORE).unlink(missing_ok=True)
    slot = value_at(claw.config(), "plugins.slots.contextEngine", "legacy")
    yield Step("give its slot back", f"contexts are put together by {slot}")


def given_back(plugins: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What must change in `plugins` for it to be as it was *before* the engine came, all else left as it is now."""
    changes: dict[str, Any] = {}
    if ENGINE in (plugins.get("entries") or {}):
        changes["entries"] = {ENGINE: None}
    slots, had = plugins.get("slots") or {}, before.get("slots")
    if slots.get("contextEngine") in (ENGINE, "legacy", None):
        ours = {"contextEngine": (had or {}).get("contextEngine")}
        if ours["contextEngine"] is None and had is None and set(slots) == {"contextEngine"}:
            changes["slots"] = None
        elif ours["contextEngine"] != slots.get("contextEngine"):
            changes["slots"] = ours
    if ENGINE in (plugins.get("allow") or []) and ENGINE not in (before.get("allow") or []):
        changes["allow"] = [p for p in plugins["allow"] if p != ENGINE] or None
    if ENGINE in (before.get("deny") or []) and ENGINE not in (plugins.get("deny") or []):
        changes["deny"] = [*(plugins.get("deny") or []), ENGINE]
    return changes
