"""
The doctor at the gateway: the plugin, what it may do, who shares a memory, and where vaults lie.

Its one rule: what OpenClaw itself says goes before what its files say.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...client import ask_daemon
from ...config.agents import configured_agents, others_can_reach, value_at, workspace_of
from ...errors import GatewayError
from ...identity import Identity
from ...memory import Memory
from ..gateway import OpenClaw
from ..install import JOB_KEY, plugin_files, same_plugin
from .engine import check_engine, check_loaded
from .finding import Finding

INSTALL_AGAIN = "run `omg install`"
POLLED_S = 60  # the plugin asks for questions without pause, each time for up to 8 s


def check_gateway(memory: Memory, claw: OpenClaw | None) -> Iterator[Finding]:
    if claw is None:
        yield Finding(
            "note",
            "OpenClaw is not found; only what is imported is remembered",
            mend="install OpenClaw, then `omg install`",
        )
        return
    if not claw.file.exists() and not (memory.folder / "installed.json").exists():
        yield Finding(
            "note",
            f"OpenClaw is not set up ({claw.file} does not exist); only what is imported is remembered",
            mend="nothing, unless you want to use it: `openclaw onboard`, then `omg install`",
        )
        return
    try:
        config = claw.config()
    except GatewayError as e:
        yield Finding("fail", str(e))
        return
    yield from check_plugin(memory, claw, config)
    yield from check_sharing(config)
    yield from check_apart(memory)
    yield from check_places(memory, claw, config)


def check_plugin(memory: Memory, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    wrong = [*check_admission(config), *check_entry(memory, claw, config)]
    yield from wrong or [Finding("ok", "the plugin is installed and has its permissions")]
    yield from check_engine(claw, config)
    if claw.up(config):
        yield from check_running(memory, claw)
        yield from check_loaded(claw, config)
    else:
        yield Finding("note", "the gateway is not up", mend="openclaw gateway run")


def check_admission(config: dict[str, Any]) -> Iterator[Finding]:
    """Whether OpenClaw loads a plugin of our name at all."""
    if value_at(config, "plugins.enabled") is False:
        what = "plugins are switched off, so nothing is remembered or injected"
        yield Finding("fail", what, "plugins.enabled", INSTALL_AGAIN)
    if "omg" in value_at(config, "plugins.deny", []):
        yield Finding("fail", "the plugin is denied", "plugins.deny", INSTALL_AGAIN)
    allow = value_at(config, "plugins.allow", [])
    if allow and "omg" not in allow:
        yield Finding("fail", "the plugin is not among those allowed", "plugins.allow", INSTALL_AGAIN)


def check_entry(memory: Memory, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """Whether the plugin is there, and what it was given."""
    entry, place = value_at(config, "plugins.entries.omg"), "plugins.entries.omg"
    linked = [
        str(p)
        for p in value_at(config, "plugins.load.paths", [])
        if (Path(p) / "openclaw.plugin.json").exists()
    ]
    if entry is None or not (claw.plugin.is_dir() or linked):
        yield Finding("fail", "the plugin is not installed", place, INSTALL_AGAIN)
        return
    if claw.plugin.is_dir() and claw.plugin.stat().st_mode & 0o002:
        what = "anyone may write to the plugin's folder, so OpenClaw does not load it"
        yield Finding("fail", what, str(claw.plugin), f"chmod o-w {claw.plugin}")
    elif claw.plugin.is_dir() and not same_plugin(claw.plugin, plugin_files()):
        yield Finding(
            "warn", "the plugin is of another version than this command", str(claw.plugin), INSTALL_AGAIN
        )
    if entry.get("enabled") is False:
        yield Finding("fail", "the plugin is disabled", f"{place}.enabled", INSTALL_AGAIN)
    hooks = entry.get("hooks") or {}
    if hooks.get("allowConversationAccess") is not True:
        what = "the plugin may not see conversations: OMG is silently without effect"
        yield Finding("fail", what, f"{place}.hooks.allowConversationAccess", INSTALL_AGAIN)
    if hooks.get("allowPromptInjection") is False:
        what = "the plugin may not add to prompts: nothing is injected"
        yield Finding("fail", what, f"{place}.hooks.allowPromptInjection", INSTALL_AGAIN)
    given = entry.get("config") or {}
    theirs = Path(given["home"]).expanduser() if given.get("home") else claw.state / "omg"
    if theirs != memory.folder:
        what = f"the plugin writes to {theirs}, this command reads {memory.folder}"
        yield Finding("fail", what, f"{place}.config.home", f"set OMG_HOME={theirs}, or {INSTALL_AGAIN}")
    program = (given.get("command") or ["omg"])[0]
    if shutil.which(program) is None:
        what = f"the plugin starts {program!r}, which does not exist any more"
        yield Finding("fail", what, f"{place}.config.command", INSTALL_AGAIN)
    if len(configured_agents(config)) > 1 and value_at(entry, "llm.allowAgentIdOverride") is not True:
        what = "with several agents, the plugin may not ask each one's own model"
        yield Finding("warn", what, f"{place}.llm.allowAgentIdOverride", INSTALL_AGAIN)


def check_running(memory: Memory, claw: OpenClaw) -> Iterator[Finding]:
    """With the gateway up: whether plugin and daemon talk, and whether the night is provided for."""
    up = ask_daemon(memory.folder, "/health", {}, timeout_s=5)
    polled = up.get("polled_s") if up else None
    if up and (polled is None or polled > POLLED_S):
        what = "the gateway is up, but its plugin does not talk to the daemon: it is not loaded"
        yield Finding(
            "fail",
            what,
            "openclaw plugins inspect omg --runtime",
            f"{INSTALL_AGAIN}, or start the gateway again",
        )
    elif up:
        yield Finding("ok", "the gateway's plugin and the daemon talk to each other")
    try:
        jobs = [job for job in claw.jobs() if job.get("declarationKey") == JOB_KEY]
    except (GatewayError, ValueError) as e:
        yield Finding("warn", f"its scheduler could not be asked for the nightly job: {e}")
        return
    if not jobs:
        yield Finding(
            "note",
            "no nightly job in OpenClaw's scheduler",
            mend=f"{INSTALL_AGAIN}, unless your crontab has it",
        )
    elif jobs[0].get("enabled") is False:
        yield Finding("warn", "the nightly job is disabled", mend=f"openclaw cron enable {jobs[0]['id']}")
    elif value_at(jobs[0], "state.lastStatus") == "error":
        run = f"openclaw cron runs --id {jobs[0]['id']}"
        yield Finding("warn", "the nightly job failed the last time", mend=run)
    else:
        yield Finding("ok", "the nightly job is in OpenClaw's scheduler")


def check_sharing(config: dict[str, Any]) -> Iterator[Finding]:
    scope = value_at(config, "session.dmScope", "main")
    others = others_can_reach(config)
    if scope == "main" and others:
        yield Finding(
            "warn",
            f"everyone who writes over {', '.join(others)} shares one session with the owner, and so one memory",
            "session.dmScope = main",
            'openclaw config set session.dmScope "per-channel-peer" gives each person their own (or keep it, if all of them are you)',
        )
    else:
        yield Finding(
            "ok",
            f"memories are kept apart by session.dmScope = {scope}"
            if others
            else "only the owner reaches the agent",
        )


def check_apart(memory: Memory) -> Iterator[Finding]:
    """Chats of the gateway's own that are not the owner's: `openclaw gateway call` signs in without a name."""
    for who in memory.registry.identities():
        if why := memory.registry.why_apart(who):
            yield Finding(
                "warn",
                f"has a memory of its own: {why}",
                who.key,
                f"if it was you, `omg identity move {shlex.quote(who.key)} agent:{who.agent}:main`; and for `openclaw"
                " gateway call chat.send`, `omg identity join owner webchat:cli` makes it yours from now on",
            )


def check_places(memory: Memory, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    others = others_can_reach(config)
    spaces = {
        agent: workspace_of(config, agent, claw.state) / "memory" for agent in configured_agents(config)
    }
    for key, vault in memory.config.vaults.items():
        for agent, folder in spaces.items():
            if not vault.resolve().is_relative_to(folder.resolve()):
                continue
            if others:
                apart = memory.folder / "graphs" / Identity(key, "dm", agent).folder / "vault"
                yield Finding(
                    "fail",
                    f"OpenClaw's memory_search shows this vault to all sessions of agent {agent}, and others reach it over {', '.join(others)}",
                    str(vault),
                    f"`omg init {shlex.quote(str(apart))} --identity {key}` moves it to where only OMG reads it",
                )
            else:
                yield Finding("ok", f"memory_search of agent {agent} sees the vault too", str(vault))
