"""
The doctor at the context engine, where it was asked for: who has the slot, whether it works, what goes by without it.

Silent where `omg install --context-engine` was never run. One rule: what the gateway says goes before what its files say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...config.agents import value_at
from ...errors import GatewayError
from ...graph.graph import Graph
from ...graph.state import SessionState
from ..engine import ENGINE, engine_files, engine_folder
from ..gateway import OpenClaw
from ..install import same_plugin
from .finding import Finding

AGAIN = "run `omg install --context-engine`"
GIVE_BACK = "`omg install --no-context-engine` gives the slot back"
ENGINE_SLOT = "plugins.slots.contextEngine"
# Turns after which a session is said to go by without the engine: it is not asked for the first of a conversation, and
# not for what is said while a turn runs.
MISSED_TURNS = 3


def check_engine(claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """Where `omg-context` was asked for: whether it is what puts contexts together."""
    slot, folder = value_at(config, ENGINE_SLOT, "legacy"), engine_folder(claw)
    if not folder.is_dir():
        if slot == ENGINE:
            what = (
                f"{ENGINE} is to put contexts together, and is not installed: the gateway's own engine does"
            )
            yield Finding(
                "fail", what, ENGINE_SLOT, f"{AGAIN}, or `openclaw config set {ENGINE_SLOT} legacy`"
            )
        return
    if why := shut_out(config, slot):
        yield Finding(
            "warn",
            f"{ENGINE} is installed without effect: {why}",
            ENGINE_SLOT,
            f"{AGAIN}, or take it out: {GIVE_BACK}",
        )
    elif not same_plugin(folder, engine_files()):
        yield Finding("warn", f"{ENGINE} is of another version than this command", str(folder), AGAIN)
    else:
        yield Finding("ok", f"{ENGINE} puts contexts together")


def shut_out(config: dict[str, Any], slot: str) -> str:
    """What keeps the engine from being asked; "" for nothing."""
    allow = value_at(config, "plugins.allow", [])
    if slot != ENGINE:
        return f"{slot} puts contexts together"
    if value_at(config, f"plugins.entries.{ENGINE}.enabled") is False:
        return f"{ENGINE} is disabled"
    if ENGINE in value_at(config, "plugins.deny", []):
        return f"{ENGINE} is denied"
    return f"{ENGINE} is not among the plugins allowed" if allow and ENGINE not in allow else ""


def check_loaded(claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """With the gateway up: whether it has the engine, and has not put it out of use."""
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
            mend = f"start the gateway again; if it comes back, {GIVE_BACK}, and omg.log says more"
            yield Finding("fail", what, "openclaw health --json: contextEngines", mend)
            return
    for bad in value_at(health, "plugins.errors", []):
        if bad.get("id") == ENGINE:
            what = f"the gateway could not load {ENGINE}: {str(bad.get('error'))[:200]}"
            yield Finding("fail", what, "openclaw plugins doctor", f"{AGAIN}; or {GIVE_BACK}")
            return
    loaded = value_at(health, "plugins.loaded")
    if loaded is not None and ENGINE not in loaded:
        yield Finding(
            "warn", f"the gateway runs without {ENGINE}", "openclaw health --json: plugins", "start it again"
        )


def has_slot(claw: OpenClaw | None) -> bool:
    try:
        return claw is not None and value_at(claw.config(), ENGINE_SLOT) == ENGINE
    except GatewayError:
        return False


def check_turns(graph: Graph, since_ms: int) -> Iterator[Finding]:
    """Sessions of which turns come in, and whose context nobody asks us for. *since_ms*: when the engine came."""
    for session, own in graph.state().sessions.items():
        if (turns := unasked_turns(graph, session, own, since_ms)) >= MISSED_TURNS:
            what = f"{turns} turns went by without {ENGINE}: it was not asked what leaves their context"
            mend = (
                "command-line backends (`claude-cli` and the like) put their context together themselves; with any "
                "other model start the gateway again"
            )
            yield Finding("warn", what, session, mend)


def unasked_turns(graph: Graph, session: str, own: SessionState, since_ms: int) -> int:
    """Turns of a person since the engine came, was last asked, and the conversation last began anew."""
    since_ms = max(since_ms, own.asked_ms, own.cut_ms)
    if own.last_ms <= since_ms or not session.startswith("agent:") or ":cron:" in session:
        return 0  # each run of a job begins anew, with nothing to cut
    said = [(at, role) for role, at, _ in graph.index.said_since(session, since_ms)]
    for turn in filter(None, map(graph.readable, graph.pending())):
        if turn.session == session:
            said += [(m.timestamp, m.role) for m in turn.messages if m.timestamp >= since_ms]
    roles = [role for _, role in sorted(said)]
    return sum(role == "user" and before != "user" for before, role in zip(["", *roles], roles, strict=False))
