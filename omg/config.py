"""
Reads and edits omg.toml; `OMG_*` variables take precedence over it.

An unknown key is refused with the nearest known name. OpenClaw's own configuration holds only OMG's `home` and `command`;
omg.toml holds all other settings.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import json5
import pydantic
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from .client import default_home as default_home
from .errors import ConfigError

# --- The sections and keys of `omg.toml`: every key has a default and a check. The docs show the comment above a key (`#:`).


UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hr": 3600, "d": 86_400}


class Table(BaseModel):
    """A section of omg.toml: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def is_number(value: Any) -> bool:
    """Whether *value* is a finite number. true and false are not numbers here, although they are in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any, least: int = 0) -> bool:
    """Whether *value* is a whole number, *least* or greater."""
    return is_number(value) and value >= least and value == int(value)


def accepting(holds: Callable[[Any], bool], remedy: str) -> BeforeValidator:
    """Make a check of a key's value, as it stands in omg.toml before any conversion. If *holds* is false of the value,
    the error is *remedy*: what to write instead."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(remedy)
        return value

    return BeforeValidator(check)


def pause_of(value: Any) -> float | Literal[False]:
    """Convert a number or a text like "300s", "5m", "1hr" to seconds. false stays false. Raises ValueError."""
    if value is False:
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text)
    if found and found[2] in UNITS:
        return float(found[1]) * UNITS[found[2]]
    if not is_number(value) or value < 0:
        raise ValueError("write seconds, a text like `5m` or `300s`, or false")
    return float(value)


def model_names(value: Any) -> Any:
    """
    Check the setting *value*: one model, or a list of models with the preferred model first. Return *value*.

    Raises ValueError for a wrong setting, for example a model named twice. `offline` (rules instead of a model) is
    wrong in a list with other models: if all models of a list are down, turns wait for a model, and no rules replace
    the models.
    """
    if value is None:
        return value
    models = value if isinstance(value, list) else [value]
    if not models or not all(isinstance(m, str) for m in models):
        raise ValueError("name a model, or a list of models, the preferred one first")
    if isinstance(value, list) and not all(m.strip() for m in models):
        raise ValueError("one of the models is empty; remove it")
    if len(set(models)) < len(models):
        raise ValueError(
            "the list has a model twice; remove one of the two (`[llm] attempts` sets how often each model is asked)"
        )
    if any(m.strip().lower() == "none" for m in models):
        raise ValueError(
            "`none` is no model; write `offline` (rules, no model), `gateway` (the agent's own model) or a LiteLLM model"
            " such as openai/gpt-5-mini; observation.enabled = false switches OMG off"
        )
    if len(models) > 1 and "offline" in models:
        raise ValueError(
            "`offline` cannot be in a list; while models are down, turns wait and nothing is lost"
        )
    return value


# --- The types of the keys that several sections have.

Models = Annotated[str | list[str], BeforeValidator(model_names)]
Count = Annotated[int, accepting(lambda v: is_whole(v, 1), "write a whole number above 0")]
Pause = Annotated[float | Literal[False], BeforeValidator(pause_of)]


class Time(Table):
    #: IANA time zone of the user, such as Europe/Berlin; empty: the system's
    zone: str = ""

    @field_validator("zone")
    @classmethod
    def known(cls, zone: str) -> str:
        if zone:
            try:
                ZoneInfo(zone)
            except (KeyError, ValueError, OSError) as e:
                raise ValueError(f"{zone!r} is not an IANA time zone; write one like Europe/Berlin") from e
        return zone


class AgentObservation(Table):
    #: switches OMG on or off for this agent, whatever `[observation] enabled` says
    enabled: bool | None = None
    #: the Observer's model for this agent only
    model: Annotated[str | list[str] | None, BeforeValidator(model_names)] = None
    #: the Observer's extra instruction for this agent only
    instruction: str | None = None


class Observation(Table):
    #: false: OMG is off. It takes in no conversation, makes no notes, and gives nothing to prompts and tools. Your
    #: notes stay. `omg import --openclaw` can later take in what was said meanwhile
    enabled: bool = True
    #: a LiteLLM model, or a list: the preferred model, then its fallbacks. `gateway` is the agent's own model. `offline`
    #: uses rules without a model. Empty: `gateway` if OpenClaw's plugin uses this home, else `offline`. `omg install`
    #: writes `gateway` if nothing is set
    model: Models = ""
    #: `full`: the model observes conversations in the background. `low`: rules make notes of each turn at once, and the
    #: model reads the turn once, at night: all that people said, and an outline of what the assistant said. With `low`,
    #: rules also handle weeks, months and repetitions, unless reflection.model is set
    effort: Literal["full", "low"] = "full"
    #: appended to the Observer's prompt
    instruction: str = ""
    #: `full` shows the Observer whole pieces of a conversation, `turnwise` one message at a time, which suits
    #: small models; `auto`: `turnwise` for windows below 16k tokens
    style: Literal["auto", "full", "turnwise"] = "auto"
    #: after this many tokens of a session, its `system` slice is made anew
    message_tokens: Count = 30_000
    #: how many pending tokens start an observation in the background. A value below 1 is a share of message_tokens; any
    #: other is a number of tokens, less than message_tokens. `turn`: every turn starts one. false: OMG observes only at
    #: message_tokens and before a context is cut; no rest and no early reflection starts. With `omg-context`, OMG
    #: observes twice as often near the threshold, and a share is of `[context] message_tokens` if that is less
    buffer_tokens: Annotated[
        float | Literal["turn", False],
        accepting(
            lambda v: v is False or v == "turn" or (is_number(v) and v > 0),
            "write a share such as 0.2, a number of tokens such as 6000, `turn`, or false",
        ),
    ] = 0.25
    #: seconds of silence, or a text like `5m`, after which the `system` slice is refreshed, because the prompt cache has
    #: expired by then. false: silence refreshes nothing
    activate_after_idle: Pause = 300
    # An hour, because each observation costs the tokens of its instructions again: measured in bench/LOG.md.
    #: seconds without a message, or a text like `1h`, after which all pending turns are observed. A turn that names a day
    #: of the coming week waits no longer than this, even if the conversation goes on. Rules cost nothing, and wait four
    #: minutes. Until then prompts and search find the messages. false, or buffer_tokens = false: no such observation
    quiet_after: Pause = 3_600
    #: if at least this many tokens are pending, the end of a coding agent's session starts an observation
    quiet_tokens: Annotated[
        int, accepting(is_whole, "write a number of tokens, or 0 to observe at the end of every session")
    ] = 3_000
    #: most tokens of one conversation in one batch. A batch is one receipt, and one call of the Observer if the batch fits
    #: the model's window
    max_tokens_per_batch: Count = 10_000
    #: most graphs observed at once, and most calls of one model at once, nights and rebuilds included. `gateway` gets at
    #: most two calls, because it also answers you. A model that refuses a call for its rate limit gets half as many for a
    #: minute
    parallel: int = Field(8, ge=1, le=64)
    #: how many tokens of existing notes the Observer sees. `auto`: 700, plus 3 for every 5 new tokens, up to 4,500 or a
    #: tenth of the model's window. 0: none. false: no limit
    previous_observer_tokens: Annotated[
        int | Literal[False, "auto"],
        accepting(
            lambda v: v is False or v == "auto" or is_whole(v),
            "write `auto`, a number of tokens, 0 to show none, or false for no limit",
        ),
    ] = "auto"
    #: cap on a day's model cost, Observer and Reflector together; turns wait once the cap is reached
    daily_budget_usd: float | None = Field(None, ge=0)
    #: cap on a day's model tokens; unset: 500,000 for `gateway`, no cap otherwise
    daily_budget_tokens: int | None = Field(None, ge=0)
    #: settings of one agent, as `[observation.agents.NAME]` with enabled, model, instruction
    agents: dict[str, AgentObservation] = Field(default_factory=dict)

    @model_validator(mode="after")
    def step_below_threshold(self) -> Observation:
        if self.step is not None and self.step >= self.message_tokens:
            raise ValueError(
                f"`observation.buffer_tokens` = {self.buffer_tokens:g}: a step must be smaller than message_tokens "
                f"({self.message_tokens}); write a share such as 0.2, or false to observe at the threshold only"
            )
        return self

    @property
    def step(self) -> float | None:
        """How many pending tokens start an observation in the background. None if every turn starts an observation, or
        if no observation runs in the background."""
        if isinstance(self.buffer_tokens, str) or self.buffer_tokens is False:
            return None
        return self.step_of(self.message_tokens)

    def step_of(self, threshold: int) -> float:
        """Return how many pending tokens start an observation if `message_tokens` is *threshold*."""
        if self.buffer_tokens is False or self.buffer_tokens == "turn":
            return threshold if self.buffer_tokens is False else 1
        share = self.buffer_tokens < 1  # 1 means one token, not all
        return round(self.buffer_tokens * threshold) or 1 if share else self.buffer_tokens


class Reflection(Table):
    #: the Reflector's model or models, written as observation.model. Empty: the Observer's
    model: Models = ""
    #: appended to the Reflector's prompt
    instruction: str = ""
    #: the Reflector runs once this many tokens of notes were written since its last run
    observation_tokens: Count = 40_000
    #: share of observation_tokens, above 0 and at most 1, at which a reflection starts in the background; without effect
    #: if buffer_tokens = false
    buffer_activation: Annotated[
        float,
        accepting(lambda v: is_number(v) and 0 < v <= 1, "write a share above 0 and at most 1, such as 0.5"),
    ] = 0.5
    #: a low-priority note leaves the maps after this many days in which nobody linked, opened or recalled it
    dormant_after_days: Count = 90
    #: a map of content with more entries than this is split by topic
    moc_entries: Count = 40


class Llm(Table):
    #: base URL of an OpenAI-compatible server, for models that need one
    api_base: str = ""
    #: key for api_base; usually the provider's own environment variable is better
    api_key: str = ""
    #: seconds after which a model call is given up
    timeout_s: float = Field(120, gt=0)
    #: tries per model, with growing pauses
    attempts: int = Field(4, ge=1, le=20)
    #: seconds of the first pause; each further pause is twice as long, up to 60 s
    backoff_s: float = Field(1.0, ge=0)
    #: name of a model → its temperature, from 0 to 2, or false to send none. Unset: 0.3 to observe and 0 to reflect;
    #: `gateway` uses the agent's own temperature
    temperature: Annotated[
        dict[str, float | Literal[False]],
        accepting(
            lambda v: (
                isinstance(v, dict) and all(t is False or (is_number(t) and 0 <= t <= 2) for t in v.values())
            ),
            'write a number from 0 to 2, or false, for each model: "openai/gpt-5-mini" = 1',
        ),
    ] = Field(default_factory=dict)
    #: whether to send a JSON schema; `auto` asks LiteLLM whether the model takes a schema
    json_schema: Literal["auto", True, False] = "auto"
    #: the model's window in tokens, if LiteLLM does not know the model
    context_window: int | None = Field(None, gt=0)
    #: most tokens of a reply, if the model allows so many. If a reply reaches the limit, its question is asked again in
    #: two halves
    max_output_tokens: int = Field(8_000, gt=0)


class Embedding(Table):
    #: `auto` (the best model installed), `multilingual`, `minilm-int8`, `static`, `none`, or the name or path of a
    #: sentence-transformers model
    model: str = Field("auto", min_length=1)


class Inject(Table):
    #: most tokens of memory for one prompt, `system` and `prompt` together
    budget_tokens: int = Field(3_000, ge=0)
    #: most notes named for one prompt; four times as many if the prompt asks how something developed
    entry_points: int = Field(10, ge=0)


class Context(Table):
    #: tokens of messages at which the oldest observed turns leave the context; at most half of the room in the model's
    #: window
    message_tokens: Count = 30_000
    #: how much leaves then: from 0 to 1, a share of message_tokens (0.8 keeps a fifth of the messages); from 1000 on, the
    #: tokens of messages that stay
    buffer_activation: Annotated[
        float,
        accepting(
            lambda v: is_number(v) and (0 < v <= 1 or v >= 1000),
            "write the share of message_tokens to cut (above 0, at most 1), or the number of tokens to keep (at least 1000)",
        ),
    ] = 0.8

    #: most tokens of the notes that replace these turns. A value up to 1 is a share of message_tokens, any other a number
    #: of tokens; at most a quarter of the room in the model's window
    observation_tokens: Annotated[
        float,
        accepting(
            lambda v: is_number(v) and v > 0,
            "write a share above 0 and at most 1, such as 0.5, or a number of tokens",
        ),
    ] = 0.5
    #: true: messages may also use the part of observation_tokens that the notes do not need, so messages leave later
    share_token_budget: bool = False
    #: tokens of messages above which a turn waits, at most 20 s, until turns that could leave are observed. A value below
    #: 100 is a multiple of message_tokens. No turn waits while the model fails or a cap is reached. false: no turn ever
    #: waits
    block_after: Annotated[
        float | Literal[False],
        accepting(
            lambda v: v is False or (is_number(v) and v >= 1),
            "write a multiple of message_tokens (1 to 99, such as 1.2), a number of tokens (from 100), or false",
        ),
    ] = 1.2

    def kept_raw(self, threshold: int) -> int:
        """Return how many tokens of messages stay when the context is cut at *threshold*."""
        if self.buffer_activation >= 1000:
            return min(int(self.buffer_activation), threshold)
        return round(threshold * (1 - self.buffer_activation))

    def notes_tokens(self, threshold: int) -> int:
        """
        Return the limit, in tokens, for the notes that replace old turns in the context.

        *threshold*: tokens of messages in the context at which notes begin to replace turns.
        """
        value = self.observation_tokens
        return round(threshold * value if value <= 1 else value)

    def blocked_from(self, threshold: int) -> float:
        """
        Return how large a context must be for a new prompt to wait, in tokens.

        The prompt waits until OMG has observed older turns, and can remove these turns from the context. *threshold*:
        the size from which OMG removes turns. Returns infinity if no prompt ever waits.
        """
        if self.block_after is False:
            return math.inf
        return self.block_after * threshold if self.block_after < 100 else max(self.block_after, threshold)


class Notices(Table):
    #: true: in a direct chat, a line below a reply names the notes that are new or changed since the last reply; never in
    #: a group
    replies: bool = True


class Identities(Table):
    #: name → accounts of that person, as channel:sender; the name `owner` means the main session
    links: dict[str, list[str]] = Field(default_factory=dict)
    #: triggers besides `user` whose turns are remembered, such as cron
    members: list[str] = Field(default_factory=list)


class Config(Table):
    #: the state folder; set by OMG_HOME, never in omg.toml
    home: Path
    #: identityKey → folder of its vault, if the vault is not below the home
    vaults: dict[str, Path] = Field(default_factory=dict)

    def switched_off(self, agent: str) -> str:
        """Return the setting of omg.toml that switches OMG off for *agent*; "" if OMG is on."""
        own = self.observation.agents.get(agent)
        if own is not None and own.enabled is not None:
            return "" if own.enabled else f"[observation.agents.{agent}] enabled = false"
        return "" if self.observation.enabled else "[observation] enabled = false"

    def all_switched_off(self) -> list[str]:
        """Return all settings of omg.toml that switch OMG off, for all agents or for one."""
        return sorted({off for agent in ("", *self.observation.agents) if (off := self.switched_off(agent))})

    @field_validator("vaults")
    @classmethod
    def whole_paths(cls, vaults: dict[str, Path]) -> dict[str, Path]:
        found = {key: path.expanduser() for key, path in vaults.items()}
        for key, path in found.items():
            if not path.is_absolute():
                raise ValueError(f"the vault of {key} is {path}; write the whole path, beginning with / or ~")
        return found

    time: Time = Time()
    observation: Observation = Observation()
    reflection: Reflection = Reflection()
    llm: Llm = Llm()
    embedding: Embedding = Embedding()
    inject: Inject = Inject()
    context: Context = Context()
    identity: Identities = Identities()
    notices: Notices = Notices()


# --- Reads from OpenClaw's own configuration where its agents work, and who besides the owner can reach them.
#
# This module only reads OpenClaw's configuration; openclaw/install.py calls OpenClaw's command line.


# Local hour and minute of the nightly job; OpenClaw's own dreaming runs at 03:00.
NIGHT = (4, 20)
# A file in the home while OMG holds OpenClaw's slot for a context engine: the former values in `plugins`.
ENGINE_BEFORE = "openclaw-slots-before-omg.json"


def engine_since_ms(home: Path) -> int:
    """Return when OMG became OpenClaw's context engine (ms since the epoch); 0 if OMG is not the context engine."""
    try:
        return round((home / ENGINE_BEFORE).stat().st_mtime * 1000)
    except OSError:
        return 0


def configured(home: Path) -> tuple[dict[str, Any], Path] | None:
    """Read the configuration of the OpenClaw that *home* belongs to. Return it with OpenClaw's state folder, or None."""
    state = Path(os.environ.get("OPENCLAW_STATE_DIR") or home.parent).expanduser().absolute()
    file = Path(os.environ.get("OPENCLAW_CONFIG_PATH") or state / "openclaw.json").expanduser()
    try:
        found = file.stat()
        return read_json5(file, found.st_mtime_ns, found.st_size), state
    except (OSError, ValueError):
        return None


@functools.lru_cache(maxsize=8)
def read_json5(file: Path, mtime_ns: int, size: int) -> dict[str, Any]:
    """Parse *file*. The result is cached until the file changes: json5 is slow, and the daemon asks every few seconds."""
    value = json5.loads(file.read_text(encoding="utf-8"))
    return value if isinstance(value, dict) else {}


def own_memory(home: Path, agent: str) -> Path | None:
    """
    Return the folder `memory/` in the workspace of *agent*, if OMG may import the folder.

    Returns None in two cases:

    - Somebody besides the owner can write to an agent. OpenClaw's notes in the folder may then be about other people,
      but an import would add them to the owner's memory.
    - OpenClaw's configuration is missing or does not name *agent*.
    """
    if (found := configured(home)) is None:
        return None
    config, state = found
    if others_can_reach(config) or agent not in configured_agents(config):
        return None
    return workspace_of(config, agent, state) / "memory"


def value_at(config: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """Return the value at a dotted *path* in *config*; *default* if there is none."""
    value: Any = config
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return default
        value = value[part]
    return value


def configured_agents(config: Mapping[str, Any]) -> list[str]:
    """Return the ids of the configured agents; ["main"] if none is named."""
    entries = value_at(config, "agents.entries", {})
    return (list(entries) if isinstance(entries, Mapping) else []) or ["main"]


def workspace_of(config: Mapping[str, Any], agent: str, state: Path) -> Path:
    """
    Return the workspace of *agent*, the folder that holds its `memory/`. The first that applies:

    - the `workspace` that *config* names for *agent*
    - for the default agent: `agents.defaults.workspace`, or "workspace" in the folder *state*
    - for any other agent: the folder NAME in `agents.defaults.workspace`, or "workspace-NAME" in *state*; NAME is the
      agent's name
    """
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
    """Return the channels over which someone besides the owner may reach an agent; [] if there are none."""
    found = []
    for name, channel in sorted(value_at(config, "channels", {}).items()):
        if not isinstance(channel, Mapping) or channel.get("enabled") is False or name == "defaults":
            continue
        accounts = [a for a in value_at(channel, "accounts", {}).values() if isinstance(a, Mapping)]
        if not all(is_private({**channel, **account}) for account in accounts or [{}]):
            found.append(name)
    return found


def is_private(channel: Mapping[str, Any]) -> bool:
    """
    Whether only one person can reach the agent over *channel*. All of these must hold:

    - `dmPolicy` is "allowlist" or "disabled"
    - no group is admitted
    - the lists of admitted people name at most one person, and not "*" (everybody)
    """
    lists = [channel.get(key) for key in ("allowFrom", "groupAllowFrom")]
    people = {str(person) for given in lists if isinstance(given, list) for person in given}
    # Without `dmPolicy`, OpenClaw lets the owner admit further people.
    direct = channel.get("dmPolicy") in ("allowlist", "disabled")
    # Without `groupPolicy`, OpenClaw admits only the groups in `groups`.
    grouped = channel.get("groupPolicy", "allowlist")
    groups = grouped == "disabled" or (grouped == "allowlist" and not channel.get("groups"))
    return direct and groups and len(people) <= 1 and "*" not in people


def load_config(home: Path | None = None, env: Mapping[str, str] = os.environ) -> Config:
    """
    Read `<home>/omg.toml`. If the file is missing, all settings have their defaults.

    A variable `OMG_SECTION_KEY`, such as OMG_OBSERVATION_MODEL, overrides a key. Its value is parsed as TOML if possible,
    else taken as a string. Raises ConfigError, which names the key, the value and the remedy.
    """
    home = home or default_home(env)
    file = home / "omg.toml"
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise ConfigError(
            f"{file}: not TOML: {e}; mend that line, or move the file away to start from defaults"
        ) from e
    if "home" in raw:
        raise ConfigError(f"{file}: `home` cannot be set here; set OMG_HOME")
    for section, key, value in environment_values(env):
        raw.setdefault(section, {})[key] = value
    try:
        return Config(home=home, **raw)
    except pydantic.ValidationError as e:
        raise ConfigError(
            f"{file}: " + "; ".join(explain_invalid(dict(error)) for error in e.errors())
        ) from e


def environment_values(env: Mapping[str, str]) -> list[tuple[str, str, Any]]:
    """Return (section, key, value) for every variable OMG_<SECTION>_<KEY> that names a section. Raises ConfigError."""
    found = []
    sections = [*Config.model_fields]
    for name, text in env.items():
        section, _, key = name.removeprefix("OMG_").lower().partition("_")
        if name.startswith("OMG_") and key and section in Config.model_fields and section != "home":
            try:
                value = tomllib.loads(f"v = {text}")["v"]
            except tomllib.TOMLDecodeError:
                value = text
            found.append((section, key, value))
        elif (
            name.startswith("OMG_") and key and (near := difflib.get_close_matches(section, sections, 1, 0.8))
        ):
            raise ConfigError(
                f"{name}: there is no section `{section}`; did you mean OMG_{near[0].upper()}_{key.upper()}?"
            )
    return found


def explain_invalid(error: dict[str, Any]) -> str:
    """Explain one of pydantic's errors to a person in one line: the key, what is wrong, the remedy."""
    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        section: Any = Config if len(path) == 1 else Config.model_fields[path[0]].annotation
        siblings = {*section.model_fields} - {path[-1]} if len(path) < 3 else ()
        near = difflib.get_close_matches(path[-1], siblings, n=1, cutoff=0.3)
        return f"unknown key `{key}`" + "".join(
            f"; did you mean `{'.'.join([*path[:-1], n])}`?" for n in near
        )
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "model_type":
        return f"`{key}` = {error.get('input')!r}: this is a section; write [{key}], and its keys below"
    if isinstance(error.get("input"), dict) and message.startswith("`"):
        return message  # it concerns several keys and names them itself
    return f"`{key}` = {error.get('input')!r}: {message}"


def shipped_folder(name: Literal["hooks", "skills", "vault_template"]) -> Path:
    """Return the folder *name* that OMG ships: in the package if installed from a wheel, else at the top of the source."""
    package = Path(__file__).parent
    inside = package / "_share" / name
    return inside if inside.is_dir() else package.parent / name


def code_digest() -> str:
    """Return a hash of this package's code, which shows whether a running daemon has an older version."""
    found = hashlib.blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def set_value(home: Path, table: str, key: str, value: str | list[str] | None) -> None:
    """
    Set `<key> = <value>` under `[<table>]` of omg.toml; None removes the key. The rest of the file stays unchanged.

    Raises ConfigError, which says what to write by hand, if the file is not TOML, or has another value in place of the table.
    """
    import tomlkit  # not at the top: most commands write no configuration
    from tomlkit.exceptions import TOMLKitError

    file = home / "omg.toml"
    before = file.read_bytes() if file.exists() else b""
    try:
        document = tomlkit.parse(before.decode())
        place: Any = document
        for name in table.split("."):
            place = place.setdefault(name, tomlkit.table())
        if value is not None:
            place[key] = value
        elif place.pop(key, None) is None:
            return
        text = tomlkit.dumps(document)
        Config(home=home, **tomllib.loads(text))
    except (TOMLKitError, ValueError, AttributeError, TypeError):
        line = "" if value is None else f" = {json.dumps(value, ensure_ascii=False)}"
        raise ConfigError(
            f"{file}: OMG cannot change this file. Make the file valid TOML. Then"
            f" {'add to' if line else 'remove from'} [{table}] by hand: {json.dumps(key)}{line}"
        ) from None
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    whole = file.with_name(f".omg.toml.{os.getpid()}")
    mode = file.stat().st_mode & 0o777 if before else 0o600
    with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
        os.fchmod(f.fileno(), mode)
        f.write(text.encode())
    whole.replace(file)


def set_vault(home: Path, key: str, vault: Path) -> None:
    """Write into omg.toml that *vault* is the vault of the identity *key*."""
    set_value(home, "vaults", key, str(vault))
