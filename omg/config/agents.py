"""
What OpenClaw's own configuration says of its agents: where they work, and who besides their owner reaches them.

Not here: OpenClaw's command line (openclaw/gateway.py). One rule: it is read, and never written.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import json5

# In the home while OMG has OpenClaw's slot for a context engine: what `plugins` had of slots and lists before us.
ENGINE_BEFORE = "openclaw-slots-before-omg.json"


def engine_since_ms(home: Path) -> int:
    """When OMG was asked to put long contexts together (openclaw/engine.py); 0 where it is not to."""
    try:
        return round((home / ENGINE_BEFORE).stat().st_mtime * 1000)
    except OSError:
        return 0


def configured(home: Path) -> tuple[dict[str, Any], Path] | None:
    """The configuration of the OpenClaw that *home* belongs to, and its state folder; None if there is none to read."""
    state = Path(os.environ.get("OPENCLAW_STATE_DIR") or home.parent).expanduser().absolute()
    file = Path(os.environ.get("OPENCLAW_CONFIG_PATH") or state / "openclaw.json").expanduser()
    try:
        found = file.stat()
        return read_json5(file, found.st_mtime_ns, found.st_size), state
    except (OSError, ValueError):
        return None


@functools.lru_cache(maxsize=8)
def read_json5(file: Path, mtime_ns: int, size: int) -> dict[str, Any]:
    """A configuration as it was then; json5 is slow, and this is asked at each tick."""
    value = json5.loads(file.read_text(encoding="utf-8"))
    return value if isinstance(value, dict) else {}


def own_memory(home: Path, agent: str) -> Path | None:
    """
    The `memory/` of *agent*'s workspace; None where others than its owner reach the agent.

    OpenClaw's flush writes there, whose session it may be: what others said would become the owner's.
    """
    if (found := configured(home)) is None:
        return None
    config, state = found
    if others_can_reach(config) or agent not in configured_agents(config):
        return None
    return workspace_of(config, agent, state) / "memory"


def value_at(config: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """The value at a dotted *path*."""
    value: Any = config
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return default
        value = value[part]
    return value


def configured_agents(config: Mapping[str, Any]) -> list[str]:
    """Ids of the configured agents; `main` where none is named."""
    entries = value_at(config, "agents.entries", {})
    return (list(entries) if isinstance(entries, Mapping) else []) or ["main"]


def workspace_of(config: Mapping[str, Any], agent: str, state: Path) -> Path:
    """The agent's workspace, where its `memory/` lies. Other agents than the first have one below the default."""
    entries = value_at(config, "agents.entries", {})
    if own := value_at(entries, f"{agent}.workspace"):
        return Path(str(own)).expanduser().absolute()
    marked = [name for name in entries if value_at(entries, f"{name}.default") is True]
    first = (marked or (["main"] if "main" in entries else list(entries)) or ["main"])[0]
    if shared := value_at(config, "agents.defaults.workspace"):
        folder = Path(str(shared)).expanduser().absolute()
        return folder if agent == first else folder / agent
    return state / ("workspace" if agent == first else f"workspace-{agent}")


def others_can_reach(config: Mapping[str, Any]) -> list[str]:
    """Channels over which someone besides the owner may reach an agent; empty: only the owner can."""
    found = []
    for name, channel in sorted(value_at(config, "channels", {}).items()):
        if not isinstance(channel, Mapping) or channel.get("enabled") is False or name == "defaults":
            continue
        accounts = [a for a in value_at(channel, "accounts", {}).values() if isinstance(a, Mapping)]
        if not all(is_private({**channel, **account}) for account in accounts or [{}]):
            found.append(name)
    return found


def is_private(channel: Mapping[str, Any]) -> bool:
    """Whether one person alone gets through. Left unset, direct messages pair whom the owner lets in, and groups are a list."""
    people = {
        str(p)
        for key in ("allowFrom", "groupAllowFrom")
        if isinstance(channel.get(key), list)
        for p in channel[key]
    }
    direct = channel.get("dmPolicy") in ("allowlist", "disabled")
    grouped = channel.get("groupPolicy", "allowlist")
    groups = grouped == "disabled" or (grouped == "allowlist" and not channel.get("groups"))
    return direct and groups and len(people) <= 1 and "*" not in people
