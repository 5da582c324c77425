"""
`omg doctor`: what is wrong, where, and how to mend it.

Each check is a function that yields findings; a finding that is safe to mend carries the function that does
it. Nothing is changed without `--fix`, and `--fix` never touches a word a person wrote.
"""

from __future__ import annotations

import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from .client import ask_daemon
from .edit import Plan
from .errors import BadInput, GatewayError, OmgError
from .graph import Graph
from .home import Home
from .install import JOB_KEY, same_plugin
from .node import GENERATED, TYPES, block
from .node.markdown import UNLINKABLE, slugify
from .openclaw import OpenClaw, agents, at, reachable_by_others, workspace
from .receipt import Receipt, commit, read, replay

SPOOL_AGE_S = 300  # a drop lives for moments
PENDING_AGE_S = 86_400
NIGHT_S = 2 * 86_400
AGAIN = "run `omg install`"
POLLED_S = 60  # the plugin asks for questions without pause, each time for up to 25 s
HUB = 200  # links into one note, beyond which the graph view is a hairball
DRIVE_BYTES = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["ok", "note", "warn", "fail"]
    what: str
    where: str = ""
    mend: str = ""
    fix: Callable[[], None] | None = field(default=None, repr=False)

    def line(self) -> str:
        mark = {"ok": "✓", "note": "·", "warn": "!", "fail": "✗"}[self.level]
        place = f" [{self.where}]" if self.where else ""
        return f"{mark} {self.what}{place}" + (f"\n    → {self.mend}" if self.mend else "")

    def value(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "what": self.what,
            "where": self.where,
            "mend": self.mend,
            "fixable": self.fix is not None,
        }


def examine(home: Home, claw: OpenClaw | None) -> Iterator[Finding]:
    """Every finding, the gateway's first. *claw* None: OpenClaw is not on this machine."""
    yield from check_gateway(home, claw)
    yield from check_home(home)
    for who in home.identities():
        cut = list((home.folder / "graphs" / who.folder / "receipts").glob("*.open.json"))
        try:
            graph = home.graph(who)
            if cut and not any(file.exists() for file in cut):
                yield Finding("note", "a cycle that a crash cut short was finished just now", who.key)
            yield from check_graph(home, graph)
        except OmgError as e:  # one graph's trouble is not the others'
            yield Finding("fail", str(e), who.key)


# --- the gateway


def check_gateway(home: Home, claw: OpenClaw | None) -> Iterator[Finding]:
    if claw is None:
        yield Finding(
            "note",
            "OpenClaw is not found; only what is imported is remembered",
            mend="install OpenClaw, then `omg install`",
        )
        return
    try:
        config = claw.config()
    except GatewayError as e:
        yield Finding("fail", str(e))
        return
    yield from check_plugin(home, claw, config)
    yield from check_sharing(config)
    yield from check_places(home, claw, config)


def check_plugin(home: Home, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    wrong = [*check_admission(config), *check_entry(home, claw, config)]
    yield from wrong or [Finding("ok", "the plugin is installed and has its permissions")]
    if claw.up(config):
        yield from check_running(home, claw)
    else:
        yield Finding("note", "the gateway is not up", mend="openclaw gateway run")


def check_admission(config: dict[str, Any]) -> Iterator[Finding]:
    """Whether OpenClaw loads a plugin of our name at all."""
    if at(config, "plugins.enabled") is False:
        what = "plugins are switched off, so nothing is remembered or injected"
        yield Finding("fail", what, "plugins.enabled", AGAIN)
    if "omg" in at(config, "plugins.deny", []):
        yield Finding("fail", "the plugin is denied", "plugins.deny", AGAIN)
    allow = at(config, "plugins.allow", [])
    if allow and "omg" not in allow:
        yield Finding("fail", "the plugin is not among those allowed", "plugins.allow", AGAIN)


def check_entry(home: Home, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    """Whether the plugin is there, and what it was given."""
    entry, place = at(config, "plugins.entries.omg"), "plugins.entries.omg"
    linked = [
        str(p) for p in at(config, "plugins.load.paths", []) if (Path(p) / "openclaw.plugin.json").exists()
    ]
    if entry is None or not (claw.plugin.is_dir() or linked):
        yield Finding("fail", "the plugin is not installed", place, AGAIN)
        return
    if claw.plugin.is_dir() and claw.plugin.stat().st_mode & 0o002:
        what = "anyone may write to the plugin's folder, so OpenClaw does not load it"
        yield Finding("fail", what, str(claw.plugin), f"chmod o-w {claw.plugin}")
    elif claw.plugin.is_dir() and not same_plugin(claw.plugin):
        yield Finding("warn", "the plugin is of another version than this command", str(claw.plugin), AGAIN)
    if entry.get("enabled") is False:
        yield Finding("fail", "the plugin is disabled", f"{place}.enabled", AGAIN)
    hooks = entry.get("hooks") or {}
    if hooks.get("allowConversationAccess") is not True:
        what = "the plugin may not see conversations: OMG is silently without effect"
        yield Finding("fail", what, f"{place}.hooks.allowConversationAccess", AGAIN)
    if hooks.get("allowPromptInjection") is False:
        what = "the plugin may not add to prompts: nothing is injected"
        yield Finding("fail", what, f"{place}.hooks.allowPromptInjection", AGAIN)
    given = entry.get("config") or {}
    theirs = Path(given["home"]).expanduser() if given.get("home") else claw.state / "omg"
    if theirs != home.folder:
        what = f"the plugin writes to {theirs}, this command reads {home.folder}"
        yield Finding("fail", what, f"{place}.config.home", f"set OMG_HOME={theirs}, or {AGAIN}")
    program = (given.get("command") or ["omg"])[0]
    if shutil.which(program) is None:
        what = f"the plugin starts {program!r}, which does not exist any more"
        yield Finding("fail", what, f"{place}.config.command", AGAIN)
    if len(agents(config)) > 1 and at(entry, "llm.allowAgentIdOverride") is not True:
        what = "with several agents, the plugin may not ask each one's own model"
        yield Finding("warn", what, f"{place}.llm.allowAgentIdOverride", AGAIN)


def check_running(home: Home, claw: OpenClaw) -> Iterator[Finding]:
    """With the gateway up: whether plugin and daemon talk, and whether the night is provided for."""
    up = ask_daemon(home.folder, "/health", {}, timeout_s=5)
    polled = up.get("polled_s") if up else None
    if up and (polled is None or polled > POLLED_S):
        what = "the gateway is up, but its plugin does not talk to the daemon: it is not loaded"
        yield Finding(
            "fail", what, "openclaw plugins inspect omg --runtime", f"{AGAIN}, or start the gateway again"
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
            "note", "no nightly job in OpenClaw's scheduler", mend=f"{AGAIN}, unless your crontab has it"
        )
    elif jobs[0].get("enabled") is False:
        yield Finding("warn", "the nightly job is disabled", mend=f"openclaw cron enable {jobs[0]['id']}")
    elif at(jobs[0], "state.lastStatus") == "error":
        run = f"openclaw cron runs --id {jobs[0]['id']}"
        yield Finding("warn", "the nightly job failed the last time", mend=run)
    else:
        yield Finding("ok", "the nightly job is in OpenClaw's scheduler")


def check_sharing(config: dict[str, Any]) -> Iterator[Finding]:
    scope = at(config, "session.dmScope", "main")
    others = reachable_by_others(config)
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


def check_places(home: Home, claw: OpenClaw, config: dict[str, Any]) -> Iterator[Finding]:
    others = reachable_by_others(config)
    spaces = {agent: workspace(config, agent, claw.state) / "memory" for agent in agents(config)}
    for key, vault in home.config.vaults.items():
        for agent, memory in spaces.items():
            if not vault.is_relative_to(memory):
                continue
            if others:
                yield Finding(
                    "fail",
                    f"OpenClaw's memory_search shows this vault to all sessions of agent {agent}, and others reach it over {', '.join(others)}",
                    str(vault),
                    f"move the folder to {home.folder / 'graphs'} and set [vaults] {key!r} in omg.toml",
                )
            else:
                yield Finding("ok", f"memory_search of agent {agent} sees the vault too", str(vault))


# --- the home


def check_home(home: Home) -> Iterator[Finding]:
    up = ask_daemon(home.folder, "/health", {}, timeout_s=5)
    yield (
        Finding("ok", f"the daemon is up (pid {up['pid']})")
        if up
        else Finding("note", "no daemon is running", mend="it starts with the gateway; or `omg up`")
    )
    if not up and (home.folder / "omg.sock").exists():
        sock = home.folder / "omg.sock"
        yield Finding(
            "warn",
            "a socket was left by a crash",
            str(sock),
            "the next start removes it",
            lambda: sock.unlink(missing_ok=True),
        )
    now = home.clock().timestamp()
    drops = list((home.folder / "spool").glob("[0-9]*.json"))
    old = [d for d in drops if now - d.stat().st_mtime > SPOOL_AGE_S]
    if old:
        yield Finding(
            "warn",
            f"{len(old)} drop{'s' * (len(old) != 1)} in the spool for too long; nobody has taken them in",
            str(home.folder / "spool"),
            "omg observe",
            lambda: taken_in(home),
        )
    if torn := [f for f in (home.folder / "spool").glob(".*") if now - f.stat().st_mtime > SPOOL_AGE_S]:
        yield Finding(
            "note",
            f"{len(torn)} drop{'s' * (len(torn) != 1)} whose writer died; the transcript has what was said",
            str(home.folder / "spool"),
            "omg doctor --fix removes them; `omg import --openclaw` reads what is missing",
            lambda: removed(torn),
        )
    if bad := list((home.folder / "spool" / "bad").glob("*.json")):
        yield Finding(
            "warn",
            f"{len(bad)} drop{'s' * (len(bad) != 1)} could not be read; the reason lies beside each",
            str(home.folder / "spool" / "bad"),
            "report them, then delete the folder",
        )
    if home.folder.stat().st_mode & 0o077:
        yield Finding(
            "fail",
            "others on this machine can read the home",
            str(home.folder),
            f"chmod 700 {home.folder}",
            lambda: home.folder.chmod(0o700),
        )
    yield from check_model(home)
    size = sum(f.stat().st_size for f in home.folder.rglob("*") if f.is_file())
    level: Literal["ok", "warn"] = "warn" if size > DRIVE_BYTES else "ok"
    spent = home.ledger.today(home.clock())
    yield Finding(
        level,
        f"the home takes {size / 1e6:,.1f} MB; today {spent.calls} model call{'s' * (spent.calls != 1)}, {spent.tokens:,} tokens, ${spent.usd:.2f}",
        str(home.folder),
    )


def taken_in(home: Home) -> None:
    home.take_in()


def removed(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def check_model(home: Home) -> Iterator[Finding]:
    if not home.config.observation.model and not home.gateway:
        yield Finding(
            "note", "the Observer is the gateway's model when the plugin runs, and the offline rules here"
        )
    elif home.config.observation.model == "offline":
        yield Finding(
            "note",
            "the Observer is the offline rules: near-verbatim notes, no model",
            mend="set [observation] model in omg.toml for a better one",
        )
    from .errors import OverBudget

    try:
        home.ledger.check(home.clock())
    except OverBudget as e:
        yield Finding("warn", str(e))


# --- one graph


def check_graph(home: Home, graph: Graph) -> Iterator[Finding]:
    key = graph.identity.key
    yield from check_lifecycle(home, graph)
    synced = home.refresh(graph)
    if behind := len(synced.changed) + len(synced.removed):
        yield Finding(
            "note",
            f"the index was behind by {behind} note{'s' * (behind != 1)}, and is not any more",
            key,
        )
    for path, why in sorted(graph.index.bad().items()):
        yield Finding(
            "warn",
            f"cannot be read: {why}",
            path,
            "mend it in an editor, or its permissions; until then the note is left alone",
        )
    for path in graph.vault.conflicts():
        yield Finding(
            "warn",
            "a copy made by a sync service; it is not indexed",
            path,
            "keep what you want of it in the note itself, then delete the copy",
        )
    yield from check_names(graph)
    ids = Counter(e.id for e in graph.index.entries(status=None))
    for id, n in ids.items():
        if n > 1:
            paths = [e.path for e in graph.index.entries(status=None) if e.id == id]
            yield Finding(
                "warn",
                f"{n} notes have the id {id}",
                ", ".join(paths),
                "give all but one another `id`, or delete the copy",
            )
    yield from check_shape(graph)
    yield from check_maps(home, graph)


def check_names(graph: Graph) -> Iterator[Finding]:
    """Files that are not what they seem, names that cannot be linked to, links that lead nowhere."""
    files: set[str] = set()
    for path, why in graph.vault.others():
        files |= {
            path.casefold(),
            path.rpartition("/")[2].casefold(),
        }  # Obsidian finds a file by its name, too
        if why:
            yield Finding("warn", f"{why}; it is left alone", path, "put the file itself there, or rename it")
    for path in (p for p in graph.vault.paths() if UNLINKABLE.search(p)):
        what = "no [[link]] can lead there: its name has one of [ ] | # ^"
        yield Finding(
            "warn", what, path, f"omg rename {shlex.quote(path)} {slugify(path.rpartition('/')[2])}"
        )
    for path in (p for p in graph.vault.paths() if graph.vault.read_only(p)):
        yield Finding("note", "is read-only, so nothing is written to it", path, "chmod u+w, if it may be")
    dangling = [(path, target) for path, target in graph.index.dangling() if target.casefold() not in files]
    for path, target in dangling[:50]:
        if several := graph.index.ambiguous(target):
            what = f"[[{target}]] may be any of {', '.join(several)}"
            yield Finding("warn", what, path, "write the path in the link")
        else:
            mend = "write the note (`omg new`), or correct the link"
            yield Finding("note", f"[[{target}]] leads nowhere yet", path, mend)


def check_lifecycle(home: Home, graph: Graph) -> Iterator[Finding]:
    key, state, now = graph.identity.key, graph.state(), home.clock().timestamp()
    pending = graph.pending()
    if state.failures:
        yield Finding(
            "fail",
            f"the last observation{f's, {state.failures},' * (state.failures != 1)} failed: {state.error}",
            key,
            "mend the model's settings, then `omg observe`",
        )
    for waiting in pending:
        try:
            waiting.turn()
        except FileNotFoundError:
            continue  # observed meanwhile
        except BadInput as e:
            yield Finding("fail", f"a turn that waits cannot be read: {e}", key)
    old = sum(now - p.at_ms / 1000 > PENDING_AGE_S for p in pending)
    if old:
        yield Finding("warn", f"{old} turn{'s' * (old != 1)} waited for more than a day", key, "omg observe")
    for file in sorted((graph.folder / "receipts").glob("*.json")):
        try:
            read(file)
        except BadInput as e:
            yield Finding("fail", str(e), key)
    if list((graph.folder / "receipts").glob("*.open.json")):
        yield Finding(
            "warn", "a cycle was cut short", key, "the next start finishes it", lambda: finish_open(graph)
        )
    if state.observed_ms and now - max(state.reflected_ms, 0) / 1000 > NIGHT_S:
        last = (
            datetime.fromtimestamp(state.reflected_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
            if state.reflected_ms
            else "never"
        )
        yield Finding(
            "note",
            f"the nightly reflection last ran: {last}",
            key,
            "omg reflect, and see `omg install` for the job",
        )


def finish_open(graph: Graph) -> None:
    with graph.lock():
        replay(graph)


def check_shape(graph: Graph) -> Iterator[Finding]:
    entries = [e for e in graph.index.entries() if e.type in TYPES]
    orphans = [e.path for e in entries if not graph.index.links(e.path) and not graph.index.backlinks(e.path)]
    for path in [path for path in orphans if not UNLINKABLE.search(path)][:20]:
        yield Finding(
            "note", "linked from nowhere, and leads nowhere", path, "omg reflect attaches it to its map"
        )
    for entry in entries:
        back = len(graph.index.backlinks(entry.path)) if len(entries) < 20_000 else 0
        if back > HUB:
            yield Finding(
                "note", f"a hub: {back} notes link here", entry.path, "split it, or let fewer notes name it"
            )


def check_maps(home: Home, graph: Graph) -> Iterator[Finding]:
    plan = Plan(graph, home.clock().astimezone(graph.zone).date())
    plan.maps |= {e.path for e in graph.index.entries(type="moc")}
    changes = plan.map_changes()
    for path in (p for p in graph.vault.paths() if p.startswith("mocs/")):
        if block(graph.vault.text(path)) is None:
            yield Finding("note", "has no generated block; it is yours alone now", path)
    if changes:
        now = home.clock().astimezone(UTC)

        def regenerate() -> None:
            with graph.lock():
                commit(
                    graph,
                    Receipt(
                        f"{now:%Y%m%dT%H%M%S}-maps", "edit", now.isoformat(timespec="seconds"), tuple(changes)
                    ),
                )

        yield Finding(
            "warn",
            f"{len(changes)} map{' is' if len(changes) == 1 else 's are'} out of date",
            ", ".join(c.path for c in changes),
            "omg doctor --fix, or omg reflect",
            regenerate,
        )
    else:
        notes = sum(e.type not in GENERATED for e in graph.index.entries())
        yield Finding(
            "ok",
            f"{notes} note{'s' * (notes != 1)}, maps up to date",
            graph.identity.key,
        )


def mend(findings: list[Finding]) -> list[str]:
    """Mend what is safe to; returns what was mended, or why not."""
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
