"""
Installs OMG in OpenClaw (`omg install`), uninstalls it, and runs OpenClaw's commands.

Each step is named and can be repeated. Installing sets up:

    the plugin (a copy, with the skill), and the permissions that the plugin needs
    the folders of the vaults
    the time from which sessions are remembered
    the model that observes
    a nightly job

Then a test turn proves that turns become notes. Uninstalling takes back exactly what installing put into the
configuration. The vaults and OMG's folder stay, because they are the user's.

We read OpenClaw's configuration and never write it: changes go through `openclaw config patch`, which checks them. A
step that finds everything in place changes nothing, and does not call OpenClaw's command line, which takes seconds. The
doctor says what is wrong with an installation.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import json5

from ..client import ask_daemon, socket_of
from ..config import (
    ENGINE_BEFORE,
    NIGHT,
    code_digest,
    configured_agents,
    load_config,
    others_can_reach,
    set_value,
    set_vault,
    shipped_folder,
    value_at,
    workspace_of,
)
from ..errors import GatewayError, OmgError
from ..graph.state import write_private
from ..hosts.install import Files, Step, program_of, put_files, run_program, same_files
from ..identity import Identity, identity_of_session

PORT = 18789  # the gateway's default


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """
    An OpenClaw on this machine: its state folder, its configuration file and its command.

    *command*: the program to run, as a list of arguments.
    """

    state: Path
    file: Path
    command: tuple[str, ...]

    def run(self, *args: str) -> str:
        """Standard output of `openclaw ARGS`. Raises GatewayError with its error output."""
        env = {"OPENCLAW_STATE_DIR": str(self.state), "OPENCLAW_CONFIG_PATH": str(self.file)}
        return run_program([*self.command, *args], f"openclaw {' '.join(args[:3])}", env, GatewayError)

    def config(self) -> dict[str, Any]:
        """The configuration as its owner wrote it, before defaults. Raises GatewayError if it cannot be read."""
        try:
            value = json5.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise GatewayError(
                f"{self.file} does not exist; set OpenClaw up first (`openclaw onboard`)"
            ) from None
        except (ValueError, UnicodeDecodeError) as e:
            raise GatewayError(
                f"{self.file} cannot be read: {e}; `openclaw config validate` says more"
            ) from e
        if not isinstance(value, dict):
            raise GatewayError(f"{self.file} holds no configuration; `openclaw config validate` says more")
        return value

    def up(self, config: Mapping[str, Any]) -> bool:
        """Whether something listens at the gateway's port. OpenClaw's own command would take seconds to say so."""
        port = os.environ.get("OPENCLAW_GATEWAY_PORT") or value_at(config, "gateway.port", PORT)
        try:
            socket.create_connection(("127.0.0.1", int(port)), timeout=1).close()
        except (OSError, ValueError):
            return False
        return True

    def jobs(self) -> list[dict[str, Any]]:
        """OMG's jobs in OpenClaw's scheduler. The gateway must be up."""
        answer = json.loads(self.run("cron", "list", "--json"))
        jobs = answer["jobs"] if isinstance(answer, dict) else answer
        return [job for job in jobs if job.get("declarationKey") == JOB_KEY]

    def health(self) -> dict[str, Any]:
        """Return which plugins the running gateway has loaded, and which it has disabled."""
        said = json.loads(self.run("health", "--json"))
        return said if isinstance(said, dict) else {}

    @property
    def plugin(self) -> Path:
        """Where `openclaw plugins install` puts a copy of our plugin."""
        return self.state / "extensions" / "omg"

    def patch(self, changes: Mapping[str, Any]) -> None:
        """Merge *changes* into the configuration, checked by OpenClaw; null takes a key out."""
        with tempfile.NamedTemporaryFile("w", suffix=".json5", encoding="utf-8") as f:
            json.dump(changes, f)
            f.flush()
            self.run("config", "patch", "--file", f.name)


def find_openclaw() -> OpenClaw:
    """
    Find the OpenClaw of this machine by the environment variables that OpenClaw reads.

    These are OPENCLAW_HOME, OPENCLAW_STATE_DIR and OPENCLAW_CONFIG_PATH. Raises GatewayError if the command `openclaw`
    is not found.
    """
    env = os.environ
    home = Path(env.get("OPENCLAW_HOME") or env.get("HOME") or "~").expanduser()
    state = Path(env.get("OPENCLAW_STATE_DIR") or home / ".openclaw").expanduser().absolute()
    file = Path(env.get("OPENCLAW_CONFIG_PATH") or state / "openclaw.json").expanduser().absolute()
    return OpenClaw(state, file, (program_of("openclaw", "OpenClaw", GatewayError),))


# --- `omg install --context-engine` and its undoing: the plugin `omg-context`, in OpenClaw's slot for a context engine.
#
# It is installed only on request. When the plugin is removed, also by `omg uninstall`, its slot goes back to the former
# engine.
# hooks/context/index.js and context.py have the engine itself.


ENGINE = "omg-context"


def engine_folder(claw: OpenClaw) -> Path:
    """Where `openclaw plugins install` puts the plugin `omg-context`."""
    return claw.plugin.with_name(ENGINE)


def engine_files() -> Files:
    """
    Return the files of the plugin `omg-context`, as relative path → text.

    The file daemon.js is included; it sends the plugin's requests to the daemon.
    """
    hooks = shipped_folder("hooks")
    return {**files_in(hooks / "context"), **files_in(hooks, "daemon.js")}


def files_in(folder: Path, pattern: str = "*") -> Files:
    """Return relative path → text of the files in *folder* that match the glob *pattern*."""
    found = (path for path in folder.glob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


def install_engine(claw: OpenClaw, home: Path) -> Iterator[Step]:
    """
    The steps that make OMG the context engine. If OpenClaw refuses a step, running the steps again continues
    from that step.
    """
    kept, config = home / ENGINE_BEFORE, claw.config()
    if not kept.exists():
        plugins = value_at(config, "plugins", {})
        before = json.dumps({key: plugins.get(key) for key in ("slots", "allow", "deny")})
        yield Step("remember which engine had the slot", str(kept), do=partial(write_private, kept, before))
    fresh = yield from copied_in(claw, config, engine_folder(claw), engine_files())
    config, wanted = claw.config(), dict[str, Any]()
    entry = value_at(config, f"plugins.entries.{ENGINE}", {})
    if entry.get("enabled") is not True or value_at(entry, "config.home") != str(home):
        wanted["entries"] = {ENGINE: {"enabled": True, "config": {"home": str(home)}}}
    if value_at(config, "plugins.slots.contextEngine") != ENGINE:
        wanted["slots"] = {"contextEngine": ENGINE}
    note = "in long conversations notes replace observed messages; [context] in omg.toml sets when"
    take = partial(claw.patch, {"plugins": wanted}) if wanted else None
    yield Step("make OMG the context engine", note, fresh or bool(wanted), take)


def remove_engine(claw: OpenClaw, home: Path) -> Iterator[Step]:
    """
    Yield the steps that uninstall OMG's context engine and bring back the previous engine.

    Yields nothing if OMG's engine is not installed.
    """
    folder, kept = engine_folder(claw), home / ENGINE_BEFORE
    if not folder.exists() and value_at(claw.config(), f"plugins.entries.{ENGINE}") is None:
        return
    if folder.exists():
        remove = partial(claw.run, "plugins", "uninstall", ENGINE, "--force")
        yield Step(f"uninstall the plugin `{ENGINE}`", do=remove)
    plugins, before = value_at(claw.config(), "plugins", {}), kept_object(kept)

    def give_back() -> None:
        if changes := given_back(plugins, before):
            claw.patch({"plugins": changes})
        kept.unlink(missing_ok=True)

    slot = value_at(plugins, "slots.contextEngine")
    if slot in (ENGINE, "legacy", None):
        slot = value_at(before, "slots.contextEngine") or "legacy"
    yield Step("give its slot back", f"the context engine is {slot} again", do=give_back)


def given_back(plugins: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What must change in `plugins` to undo what installing the engine changed; all else stays as it is now."""
    changes = reverted(ENGINE, plugins, before)
    slots, had = plugins.get("slots") or {}, before.get("slots")
    if slots.get("contextEngine") in (ENGINE, "legacy", None):
        ours = {"contextEngine": (had or {}).get("contextEngine")}
        if ours["contextEngine"] is None and had is None and set(slots) == {"contextEngine"}:
            changes["slots"] = None
        elif ours["contextEngine"] != slots.get("contextEngine"):
            changes["slots"] = ours
    return changes


def reverted(plugin: str, now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What must change in `plugins` for *plugin* to be configured, allowed and denied as it was *before*."""
    changes: dict[str, Any] = {}
    entries, had = now.get("entries") or {}, before.get("entries") or {}
    if plugin in had:
        if back := reverting(entries.get(plugin, {}), had[plugin]):
            changes["entries"] = {plugin: back}
    elif plugin in entries:
        alone = set(entries) == {plugin} and "entries" not in before
        changes["entries"] = None if alone else {plugin: None}
    allow, deny = now.get("allow") or [], now.get("deny") or []
    if plugin in allow and plugin not in (before.get("allow") or []):
        changes["allow"] = [p for p in allow if p != plugin] or None
    if plugin in (before.get("deny") or []) and plugin not in deny:
        changes["deny"] = [*deny, plugin]
    return changes


NIGHTLY = f"{NIGHT[1]} {NIGHT[0]} * * *"
JOB, JOB_KEY = "omg-nightly", "omg:nightly"
BACKUP = "openclaw.json.before-omg"
STARTS_WITHIN_S = 60  # the gateway reloads a plugin in about 2 s, then Python starts


def gateway_command() -> list[str]:
    """
    Return the command with which the gateway starts OMG.

    The command names the Python interpreter by its full path, because the gateway may have another PATH.
    """
    return [sys.executable, "-P", "-m", "omg.cli"]


def install_plugin(claw: OpenClaw, home: Path, *, nightly: bool = True) -> Iterator[Step]:
    """
    The steps of installing. If OpenClaw refuses a step, the earlier steps stay done, and running the steps
    again continues from the refused one.
    """
    socket_of(home)  # refuses a home whose path is too long, before anything is changed
    config, since = claw.config(), home / "installed.json"
    yield Step(f"OpenClaw's state is {claw.state}, its configuration {claw.file}", changed=False)
    if value_at(config, "plugins.entries.omg") is None or not (home / BACKUP).exists():
        copy = partial(put_files, home, {BACKUP: claw.file.read_text(encoding="utf-8")})
        yield Step("keep a copy of the configuration", str(home / BACKUP), do=copy)
    yield from place_vaults(claw, config, home)
    if not since.exists():
        begin = partial(put_files, home, {since.name: json.dumps({"at": int(time.time() * 1000)})})
        note = "what was said earlier comes in with `omg import --openclaw`"
        yield Step("remember sessions from now on", note, do=begin)
    yield from copied_in(claw, config, claw.plugin, plugin_files())
    wanted = entry_patch(claw.config(), home)
    given = "the plugin sees conversations (hooks.allowConversationAccess), and knows OMG's home and command"
    give = partial(claw.patch, {"plugins": {"entries": {"omg": wanted}}})
    yield Step("give the plugin what it needs", given, bool(wanted), give)
    yield model_step(config, home)
    if nightly:
        yield nightly_step(claw, home, claw.up(config))


def prove_installation(claw: OpenClaw, home: Path) -> Iterator[Step]:
    """
    Yield the two steps that test an installation.

    - Make a note from a test turn, in a temporary folder.
    - Wait until the daemon in *home* answers.

    Raises OmgError if a step fails.
    """
    yield self_test()
    yield daemon_step(home, claw.up(claw.config()))


def copied_in(
    claw: OpenClaw, config: dict[str, Any], place: Path, files: Files
) -> Generator[Step, None, bool]:
    """
    Let OpenClaw load the plugin, and copy *files* to *place*.

    Yields the steps. Returns whether one of *files* was missing in *place*, or had other content.
    """
    if changes := admission_patch(config, place.name):
        what, names = f"allow the plugin `{place.name}`", ", ".join(f"plugins.{name}" for name in changes)
        yield Step(what, names, do=partial(claw.patch, {"plugins": changes}))
    fresh = not same_files(place, files)
    put = partial(put_plugin, claw, place, files)
    yield Step(f"install the plugin `{place.name}`", str(place), fresh, put)
    return fresh


def place_vaults(claw: OpenClaw, config: dict[str, Any], home: Path) -> Iterator[Step]:
    """
    Yield the steps that choose a folder for each owner's vault.

    If only the owner can write to the agent, the vault is put into the agent's workspace. If other people can, the
    vault stays in OMG's folder: OpenClaw's memory_search shows each .md file below a workspace's memory/ to everyone.
    """
    others = others_can_reach(config)
    known = load_config(home).vaults
    for agent in configured_agents(config):
        key = f"agent:{agent}:main"
        owner = identity_of_session(key)
        assert owner is not None  # a key of this form always has an owner
        begun = home / "graphs" / owner.folder / "vault"
        if key in known or begun.is_dir():
            yield Step(f"the owner's vault of agent {agent} is {known.get(key, begun)}", changed=False)
        elif others:
            why = f"others can reach the agent over {', '.join(others)}"
            yield Step(f"the vaults of agent {agent} are in {home / 'graphs'}", why, changed=False)
        else:
            vault = workspace_of(config, agent, claw.state) / "memory" / "omg"
            what, make = (
                f"put the owner's vault of agent {agent} into {vault}",
                partial(make_vault, home, owner, vault),
            )
            yield Step(what, "open it in Obsidian", do=make)


def make_vault(home: Path, owner: Identity, vault: Path) -> None:
    """Make *vault* the vault of *owner*, with the template, so that it can be opened at once."""
    from ..memory import Memory

    set_vault(home, owner.key, vault)
    with Memory(load_config(home), embed=None) as memory:
        memory.graph(owner)


def admission_patch(config: dict[str, Any], plugin: str) -> dict[str, Any]:
    """What must change in `plugins` for OpenClaw to load *plugin*; empty if nothing."""
    changes: dict[str, Any] = {}
    if value_at(config, "plugins.enabled") is False:
        changes["enabled"] = True
    allow, deny = value_at(config, "plugins.allow", []), value_at(config, "plugins.deny", [])
    if allow and plugin not in allow:
        changes["allow"] = [*allow, plugin]
    if plugin in deny:
        changes["deny"] = [p for p in deny if p != plugin]
    return changes


def plugin_files() -> Files:
    """
    Path in the plugin's folder → content, for each file of this version's plugin. The skill is one of the files,
    because OpenClaw requires a plugin to contain its skill.
    """
    hooks, skills = files_in(shipped_folder("hooks")), files_in(shipped_folder("skills"), "**/*")
    own = {name: text for name, text in hooks.items() if not name.endswith(".test.js")}
    return own | {f"skills/{name}": text for name, text in skills.items()}


def put_plugin(claw: OpenClaw, place: Path, files: Files) -> None:
    """Install *files* to *place* with OpenClaw's command, which copies them."""
    with tempfile.TemporaryDirectory() as tmp:
        put_files(Path(tmp) / place.name, files)
        claw.run("plugins", "install", str(Path(tmp) / place.name), "--force", "--accept-capabilities")
    if not place.is_dir():  # a refusal may have exit code 0
        raise GatewayError(
            f"OpenClaw did not install the plugin into {place}; `openclaw plugins doctor` says more"
        )


def entry_patch(config: dict[str, Any], home: Path) -> dict[str, Any]:
    """What must change in `plugins.entries.omg`; empty if nothing."""
    entry = value_at(config, "plugins.entries.omg", {})
    wanted: dict[str, Any] = {}
    if entry.get("enabled") is not True:
        wanted["enabled"] = True
    hooks = entry.get("hooks") or {}
    if hooks.get("allowConversationAccess") is not True:
        wanted["hooks"] = {"allowConversationAccess": True}
    if hooks.get("allowPromptInjection") is False:
        wanted.setdefault("hooks", {})["allowPromptInjection"] = True
    ours = {"home": str(home), "command": gateway_command()}
    if any((entry.get("config") or {}).get(k) != v for k, v in ours.items()):
        wanted["config"] = ours
    if len(configured_agents(config)) > 1 and value_at(entry, "llm.allowAgentIdOverride") is not True:
        wanted["llm"] = {"allowAgentIdOverride": True}  # each agent's memory is made by its own model
    return wanted


def model_step(config: dict[str, Any], home: Path) -> Step:
    """Set the model that observes, unless one is set, and say what the model may cost a day."""
    from ..llm.replies import GATEWAY_TOKENS_PER_DAY

    # without our OMG_* variables, which the gateway's daemon does not see
    options = load_config(home, {}).observation
    model = options.model or "gateway"
    models = [model] if isinstance(model, str) else model
    cap = options.daily_budget_tokens or (GATEWAY_TOKENS_PER_DAY if "gateway" in models else None)
    theirs = value_at(config, "agents.defaults.model", "")
    theirs = theirs if isinstance(theirs, str) else value_at(theirs, "primary", "")
    own = f"the agent's own model{f' ({theirs})' if theirs else ''}, asked through the gateway"
    named = ", else ".join(own if name == "gateway" else name for name in models)
    if cap:
        limit = f"at most {cap:,} tokens a day"
    elif options.daily_budget_usd is not None:
        limit = f"at most ${options.daily_budget_usd:g} a day"
    elif models[0] == "offline":
        limit = "no model, no cost"
    else:
        limit = "no daily cap; set [observation] daily_budget_tokens or daily_budget_usd"
    choose = partial(set_value, home, "observation", "model", "gateway")
    note = f"change it in {home / 'omg.toml'}"
    return Step(f"the Observer is {named}; {limit}", note, not options.model, choose)


def nightly_command(home: Path) -> list[str]:
    """Return the command for the scheduler. It names the home, because the gateway's environment may name another."""
    return ["/usr/bin/env", f"OMG_HOME={home}", *gateway_command(), "reflect", "--all-vaults"]


def nightly_step(claw: OpenClaw, home: Path, up: bool) -> Step:
    if not up:
        line = f"{NIGHTLY} {' '.join(nightly_command(home))}"
        return Step(
            "no nightly job yet: OpenClaw's scheduler answers only while the gateway is up",
            f"start the gateway and run `omg install` again; or put this line into your crontab:\n      {line}",
            changed=False,
        )
    what, argv = "have `omg reflect` run at 04:20 each night by OpenClaw's scheduler", nightly_command(home)
    ours = claw.jobs()
    there = ours and value_at(ours[0], "payload.argv") == argv and ours[0].get("enabled") is not False
    add = partial(
        claw.run, "cron", "add", "--name", JOB, "--cron", NIGHTLY, "--session", "isolated",
        "--command-argv", json.dumps(argv), "--no-deliver", "--declaration-key", JOB_KEY, "--json",
    )  # fmt: skip
    return Step(what, changed=not there, do=add)


def self_test() -> Step:
    """Take a made-up turn through spool, Observer and vault in a temporary home, without a model."""
    from ..config import Config, Observation
    from ..memory import Memory

    with tempfile.TemporaryDirectory() as tmp:
        config = Config(home=Path(tmp) / "omg", observation=Observation(model="offline"))
        with Memory(config, embed=None) as trial:
            trial.capture([{"role": "user", "content": "I prefer short answers."}])
            trial.work(force=True)
            notes = trial.find().index.entries()
    if not any(e.type == "preference" for e in notes):
        raise OmgError("the self-test turn left no note; run `omg doctor`")
    return Step(
        "a test turn became a note, by the rules and without a model, and is gone again", changed=False
    )


def daemon_step(home: Path, up: bool) -> Step:
    """Wait for the daemon that a running gateway starts. A gateway that is down will start the daemon later."""
    if not up:
        return Step("the daemon starts with the gateway", changed=False)
    found = daemon_of(home)
    stopped = found["pid"] if found and found.get("code") != code_digest() else None
    if stopped:
        ask_daemon(home, "/stop", {}, timeout_s=10)
    until = time.monotonic() + STARTS_WITHIN_S
    while (found := daemon_of(home)) is None or found["pid"] == stopped:
        if time.monotonic() > until:
            raise OmgError(
                f"the gateway is up, but has started no daemon within {STARTS_WITHIN_S} s; run `omg doctor`, "
                "or start the gateway again"
            )
        time.sleep(0.2)
    note = "restarted, because it ran another version of OMG" if stopped else ""
    return Step(f"the daemon is up (pid {found['pid']})", note, changed=bool(stopped))


def daemon_of(home: Path) -> dict[str, Any] | None:
    with suppress(OmgError):  # the daemon broke off its answer: it is stopping
        return ask_daemon(home, "/health", {}, timeout_s=5)
    return None


# --- Uninstalling


def uninstall_plugin(claw: OpenClaw, home: Path) -> Iterator[Step]:
    """The steps of taking OMG out of OpenClaw. Vaults and home stay."""
    since = home / "installed.json"
    if claw.up(claw.config()):
        for job in claw.jobs():
            remove = partial(claw.run, "cron", "rm", str(job["id"]))
            yield Step("take the nightly job out of OpenClaw's scheduler", do=remove)
    else:
        note = "start the gateway and run `omg uninstall` again; or, if the job is in your crontab, delete that line"
        yield Step("a nightly job can only be taken out while the gateway is up", note, changed=False)
    if claw.plugin.exists():
        yield Step("uninstall the plugin", do=partial(claw.run, "plugins", "uninstall", "omg", "--force"))
    if changes := leftovers(claw.config(), kept_object(home / BACKUP)):
        note = f"{home / BACKUP} is a copy of the configuration from before OMG was installed"
        yield Step("take our settings out of the configuration", note, do=partial(claw.patch, changes))
    if load_config(home, {}).observation.model == "gateway":
        note = "what you import from now on is observed by rules; name a model in omg.toml for better notes"
        unset = partial(set_value, home, "observation", "model", None)
        yield Step("no gateway lends the agent's model any more", note, do=unset)
    # Last: until the plugin is gone, the gateway would start another daemon.
    if ask_daemon(home, "/health", {}, timeout_s=5) is not None:
        yield Step("stop the daemon", do=partial(ask_daemon, home, "/stop", {}, timeout_s=10))
    if since.exists():
        yield Step("remember no more sessions", do=since.unlink)
    yield Step(f"your vaults and {home} stay", "delete them by hand if you want them gone", changed=False)


def kept_object(file: Path) -> dict[str, Any]:
    """Return the kept configuration from before OMG was installed; empty if *file* is missing."""
    try:
        return dict(json5.loads(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return {}


def leftovers(config: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the patch that removes OMG's settings from *config* and restores what the user had *before*."""
    plugins, were = value_at(config, "plugins", {}), value_at(before, "plugins", {})
    changes = reverted("omg", plugins, were)
    if not changes:
        return {}
    if "plugins" not in before and set(plugins) == set(changes) and not any(changes.values()):
        return {"plugins": None}  # the section did not exist before OMG
    return {"plugins": changes}


def reverting(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch that turns *now* back into *before*."""
    patch: dict[str, Any] = {key: None for key in now if key not in before}
    for key, value in before.items():
        if isinstance(value, dict) and isinstance(now.get(key), dict):
            if deeper := reverting(now[key], value):
                patch[key] = deeper
        elif key not in now or now[key] != value:
            patch[key] = value
    return patch
