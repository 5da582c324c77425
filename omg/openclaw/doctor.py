"""
`omg doctor`: checks the gateway and each graph, says what is wrong, where, and how to mend it.

Here are the checks of the gateway: the plugin, its permissions, who shares a memory, where vaults lie. A running gateway's
own answers count more than its files. graph_checks.py has the checks of the home and of each graph.

Each check is a function that yields findings. A finding that is safe to mend carries the function that mends it. Nothing
is changed without `--fix`, and `--fix` never changes a word that a person wrote.
"""

from __future__ import annotations

import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..client import ask_daemon
from ..config import configured_agents, engine_since_ms, others_can_reach, value_at, workspace_of
from ..errors import GatewayError, OmgError, error_text
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..hosts.hook import HOSTS
from ..hosts.install import is_added, our_command, plugin_folder, same_files, unreviewed_hooks
from ..hosts.sessions import heartbeats, installed_hosts
from ..identity import Identity
from ..memory import Memory
from .graph_checks import Finding, check_graph, check_home
from .install import ENGINE, OpenClaw, admission_patch, engine_files, engine_folder, plugin_files


def examine_home(memory: Memory, claw: OpenClaw | None) -> Iterator[Finding]:
    """Return all findings, the gateway's first. *claw* is None if OpenClaw is not on this machine."""
    yield from check_gateway(memory, claw)
    yield from check_home(memory)
    yield from check_hosts(memory)
    since_ms = engine_since_ms(memory.folder)
    for who in memory.registry.identities():
        try:
            graph = memory.graph(who)
            yield from check_graph(memory, graph)
            if since_ms:
                yield from check_turns(graph, since_ms)
        except (
            OmgError,
            OSError,
            sqlite3.Error,
        ) as e:  # trouble in one graph does not stop the checks of others
            yield Finding("fail", error_text(e), who.key, "correct this, then run `omg doctor` again")


def mend_findings(findings: list[Finding]) -> list[str]:
    """Mend each finding that is safe to mend. Return a line for each: what was mended, or why not."""
    said = []
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            finding.fix()
            said.append(f"mended: {finding.what}")
        except (OmgError, OSError) as e:
            said.append(f"could not mend: {finding.what}: {e}")
    return said


INSTALL_AGAIN = "run `omg install`"
POLLED_S = 60  # the plugin asks for questions without pause, each time for up to 8 s


def check_gateway(memory: Memory, claw: OpenClaw | None) -> Iterator[Finding]:
    if claw is None or not (claw.file.exists() or (memory.folder / "installed.json").exists()):
        what, mend = (
            "OpenClaw is not set up on this machine",
            "nothing to do, unless you want to use OpenClaw",
        )
        if not installed_hosts(memory.folder):
            what += ", and no other assistant is connected; only what is imported is remembered"
            mend = "`omg install` connects OpenClaw, `omg install claude-code` (or codex, opencode, gemini) another"
        yield Finding("note", what, mend=mend)
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
    wrong = [*check_entry(memory, claw, config)]
    yield from wrong or [Finding("ok", "the plugin is installed and has its permissions")]
    yield from check_engine(claw, config)
    if claw.up(config):
        yield from check_running(memory, claw)
        yield from check_loaded(claw, config)
    else:
        yield Finding("note", "the gateway is not up", mend="openclaw gateway run")


def kept_out(config: dict[str, Any], plugin: str) -> Iterator[tuple[str, str]]:
    """Yield each setting that keeps OpenClaw from loading *plugin*: the setting's key, and what it means."""
    says = {"enabled": "plugins are switched off", "deny": f"{plugin} is denied"}
    for name in admission_patch(config, plugin):
        yield f"plugins.{name}", says.get(name, f"{plugin} is not among the plugins allowed")
    if value_at(config, f"plugins.entries.{plugin}.enabled") is False:
        yield f"plugins.entries.{plugin}.enabled", f"{plugin} is disabled"


def check_entry(memory: Memory, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """Check that the plugin is installed, and has its permissions and settings."""
    for place, why in kept_out(config, "omg"):
        yield Finding("fail", f"nothing is remembered or injected: {why}", place, INSTALL_AGAIN)
    entry, place = value_at(config, "plugins.entries.omg"), "plugins.entries.omg"
    linked = value_at(config, "plugins.load.paths", [])
    is_there = claw.plugin.is_dir() or any((Path(p) / "openclaw.plugin.json").exists() for p in linked)
    if entry is None or not is_there:
        yield Finding("fail", "the plugin is not installed", place, INSTALL_AGAIN)
        return
    if claw.plugin.is_dir() and not same_files(claw.plugin, plugin_files()):
        what = "the plugin is of another version than this command"
        yield Finding("warn", what, str(claw.plugin), INSTALL_AGAIN)
    hooks = entry.get("hooks") or {}
    if hooks.get("allowConversationAccess") is not True:
        what = "the plugin is not allowed to see conversations, so OMG has no effect"
        yield Finding("fail", what, f"{place}.hooks.allowConversationAccess", INSTALL_AGAIN)
    if hooks.get("allowPromptInjection") is False:
        what = "the plugin is not allowed to add to prompts, so no prompt is given a memory"
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
        what = "there are several agents now, and the plugin has no permission yet to ask their models: turns wait"
        yield Finding("fail", what, f"{place}.llm.allowAgentIdOverride", INSTALL_AGAIN)


def check_running(memory: Memory, claw: OpenClaw) -> Iterator[Finding]:
    """Check with a running gateway: do plugin and daemon talk, and is there a nightly job?"""
    up = ask_daemon(memory.folder, "/health", {}, timeout_s=5)
    polled = up.get("polled_s") if up else None
    if up and (polled is None or polled > POLLED_S):
        what = "the gateway is up, but its plugin does not talk to the daemon: it is not loaded"
        mend = f"{INSTALL_AGAIN}, or start the gateway again"
        yield Finding("fail", what, "openclaw plugins inspect omg --runtime", mend)
    elif up:
        yield Finding("ok", "the gateway's plugin and the daemon talk to each other")
    try:
        jobs = claw.jobs()
    except (GatewayError, ValueError) as e:
        yield Finding("warn", f"OpenClaw's scheduler could not be asked for the nightly job: {e}")
        return
    if not jobs:
        mend = f"{INSTALL_AGAIN}, unless the job is in your crontab"
        yield Finding("note", "no nightly job in OpenClaw's scheduler", mend=mend)
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
    if not others:
        yield Finding("ok", "only the owner can write to the agent")
    elif scope == "main":
        what = f"everyone who writes over {', '.join(others)} shares one session with the owner, and so one memory"
        mend = (
            '`openclaw config set session.dmScope "per-channel-peer"` gives each person their own memory; then'
            " `omg identity join owner CHANNEL:YOU` joins your own account to your memory. If only you write there, change nothing"
        )
        yield Finding("warn", what, "session.dmScope = main", mend)
    else:
        yield Finding("ok", f"memories are kept apart by session.dmScope = {scope}")


def check_apart(memory: Memory) -> Iterator[Finding]:
    """
    Find chats in the gateway's own interface that do not use the owner's memory.

    In such a chat, the gateway did not say that the owner speaks. The command `openclaw gateway call` makes such chats.
    """
    for who in memory.registry.identities():
        if why := memory.registry.why_apart(who):
            mend = (
                "if you wrote in this chat, move its notes into your memory with"
                f" `omg identity move {shlex.quote(who.key)} agent:{who.agent}:main`; if later chats of this kind"
                " should use your memory too, run `omg identity join owner webchat:cli`"
            )
            yield Finding("warn", f"has a memory of its own: {why}", who.key, mend)


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
                seen = f"OpenClaw's memory_search shows this vault to all sessions of agent {agent}"
                what = f"{seen}, and others reach the agent over {', '.join(others)}"
                mend = f"`omg init {shlex.quote(str(apart))} --identity {key}` moves it to where only OMG reads it"
                yield Finding("fail", what, str(vault), mend)
            else:
                yield Finding("ok", f"memory_search of agent {agent} also sees this vault", str(vault))


# --- Checks of the context engine: who has the slot, whether the engine works, which turns ran without the engine.
#
# These checks find nothing if `omg install --context-engine` was never run.


AGAIN = "run `omg install --context-engine`"
GIVE_BACK = "`omg install --no-context-engine` gives the slot back"
ENGINE_SLOT = "plugins.slots.contextEngine"
# A session with this many turns without the engine is reported. Fewer are normal: the gateway does not ask the engine
# for the first turn of a conversation, nor for messages that arrive during a turn.
MISSED_TURNS = 3


def check_engine(claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """Check that the engine `omg-context`, if it was installed, is the one that OpenClaw uses."""
    slot, folder = value_at(config, ENGINE_SLOT, "legacy"), engine_folder(claw)
    if not folder.is_dir():
        if slot == ENGINE:
            what = f"{ENGINE} is set to put contexts together, but is not installed: the gateway's own engine does it"
            mend = f"{AGAIN}, or `openclaw config set {ENGINE_SLOT} legacy`"
            yield Finding("fail", what, ENGINE_SLOT, mend)
        return
    if why := shut_out(config, slot):
        what, mend = f"{ENGINE} is installed without effect: {why}", f"{AGAIN}, or take it out: {GIVE_BACK}"
        yield Finding("warn", what, ENGINE_SLOT, mend)
    elif not same_files(folder, engine_files()):
        yield Finding("warn", f"{ENGINE} is of another version than this command", str(folder), AGAIN)
    else:
        yield Finding("ok", f"{ENGINE} puts contexts together")


def shut_out(config: dict[str, Any], slot: str) -> str:
    """Return why OpenClaw does not ask the engine; "" if OpenClaw asks it."""
    if slot != ENGINE:
        return f"{slot} puts contexts together"
    return next((why for _, why in kept_out(config, ENGINE)), "")


def check_loaded(claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """Check that the gateway, if up, has loaded the engine and not disabled it."""
    if not engine_folder(claw).is_dir() or shut_out(config, value_at(config, ENGINE_SLOT, "legacy")):
        return
    try:
        health = claw.health()
    except (GatewayError, ValueError) as e:
        yield Finding("warn", f"the gateway could not be asked for its context engine: {e}")
        return
    for bad in value_at(health, "contextEngines.quarantined", []):
        if bad.get("engineId") == ENGINE:
            what = f"the gateway has put {ENGINE} out of use: {str(bad.get('reason'))[:200]} ({bad.get('operation')})"
            mend = f"restart the gateway; if this happens again, {GIVE_BACK}; omg.log says more"
            yield Finding("fail", what, "openclaw health --json: contextEngines", mend)
            return
    for bad in value_at(health, "plugins.errors", []):
        if bad.get("id") == ENGINE:
            what = f"the gateway could not load {ENGINE}: {str(bad.get('error'))[:200]}"
            yield Finding("fail", what, "openclaw plugins doctor", f"{AGAIN}; or {GIVE_BACK}")
            return
    loaded = value_at(health, "plugins.loaded")
    if loaded is not None and ENGINE not in loaded:
        what = f"the gateway runs without {ENGINE}"
        yield Finding("warn", what, "openclaw health --json: plugins", "restart the gateway")


def check_turns(graph: Graph, since_ms: int) -> Iterator[Finding]:
    """Find sessions for which the gateway does not ask the engine. *since_ms*: when the engine was installed."""
    for session, own in graph.state().sessions.items():
        if (turns := unasked_turns(graph, session, own, since_ms)) >= MISSED_TURNS:
            what = f"{turns} turns ran without {ENGINE}: the gateway did not ask the engine to shorten their context"
            mend = "restart the gateway; command-line backends (`claude-cli`) never ask an engine"
            yield Finding("warn", what, session, mend)


def unasked_turns(graph: Graph, session: str, own: SessionState, since_ms: int) -> int:
    """
    Count a person's turns since the latest of three times.

    The times are *since_ms*, the latest call of the engine, and the latest reset of the conversation.
    """
    since_ms = max(since_ms, own.asked_ms, own.cut_ms)
    if own.last_ms <= since_ms or not session.startswith("agent:") or ":cron:" in session:
        return 0  # each run of a cron job begins anew, with nothing to cut
    said = [(at, role) for role, at, _ in graph.index.said_since(session, since_ms)]
    for turn in filter(None, map(graph.readable, graph.pending())):
        if turn.session == session:
            said += [(m.timestamp, m.role) for m in turn.messages if m.timestamp >= since_ms]
    roles = [role for _, role in sorted(said)]
    return sum(role == "user" and before != "user" for before, role in zip(["", *roles], roles, strict=False))


# --- Checks of the other assistants: whether OMG's plugin is there, trusted, and working.


def check_hosts(memory: Memory) -> Iterator[Finding]:
    home = memory.folder
    for beat in heartbeats(home):
        host = HOSTS[beat.host]
        again = f"omg install {host.name}"
        if not is_added(host):
            yield Finding("fail", f"{host.title} does not have the plugin any more", mend=again)
        elif not same_files(home / "plugins" / host.name, plugin_folder(host, our_command(), home)):
            yield Finding("warn", f"{host.title} has the plugin of another version", mend=again)
        elif waiting := unreviewed_hooks(host, home):
            what = f"{host.title} skips hooks of OMG's that you have not reviewed: {', '.join(waiting)}"
            yield Finding("fail", what, mend=f"start `{host.program}` and trust them when it asks")
        elif beat.silent:
            what = f"{host.title} was used lately, but OMG has kept no message from there"
            mend = f"start the daemon with `omg up`; check with `{host.program} {host.ask_list}` that the plugin is on"
            yield Finding("warn", what, str(home / "hosts" / host.name), mend)
        else:
            alone = ", projects alone" if beat.only else ""
            yield Finding("ok", f"{host.title} serves {beat.identity}{alone}")
