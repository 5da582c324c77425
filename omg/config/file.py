"""
Read and edit `omg.toml`, with `OMG_*` variables above it.

An unknown key is refused with the nearest known name. The gateway's own configuration holds two things only, `home`
and `command`; all the rest is here.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ConfigError

if TYPE_CHECKING:
    from .sections import Config

# pydantic is imported where it is needed: a third of what `omg --help` would cost.


def default_home(env: Mapping[str, str] = os.environ) -> Path:
    """The state folder: $OMG_HOME, else `omg` below OpenClaw's state dir."""
    if home := env.get("OMG_HOME"):
        return Path(home).expanduser().absolute()
    state = env.get("OPENCLAW_STATE_DIR") or str(
        Path(env.get("OPENCLAW_HOME") or "~").expanduser() / ".openclaw"
    )
    return Path(state).expanduser().absolute() / "omg"


def load_config(home: Path | None = None, env: Mapping[str, str] = os.environ) -> Config:
    """
    Read `<home>/omg.toml`; a missing file means all defaults.

    `OMG_SECTION_KEY` (as OMG_OBSERVATION_MODEL) overrides a key; its value is read as TOML where it can
    be, else as a string. Raises ConfigError, naming the key, the value and the remedy.
    """
    from pydantic import ValidationError

    from .sections import Config

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
    except ValidationError as e:
        raise ConfigError(
            f"{file}: " + "; ".join(explain_invalid(dict(error)) for error in e.errors())
        ) from e


def environment_values(env: Mapping[str, str]) -> list[tuple[str, str, Any]]:
    """`(section, key, value)` of every OMG_<SECTION>_<KEY> that names a section."""
    from .sections import Config

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
    """One of pydantic's errors as a line for a person: key, what is wrong, remedy."""
    from pydantic import BaseModel

    from .sections import Config

    path = [str(part) for part in error["loc"]]
    key = ".".join(path)
    if error["type"] == "extra_forbidden":
        fields: list[str] = list(Config.model_fields)
        model: Any = Config
        for part in path[:-1]:
            annotation = (
                model.model_fields[part].annotation if part in getattr(model, "model_fields", {}) else None
            )
            if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
                break
            model, fields = annotation, list(annotation.model_fields)
        near = difflib.get_close_matches(path[-1], {*fields} - {path[-1]}, n=1, cutoff=0.3)
        return f"unknown key `{key}`" + (
            f"; did you mean `{'.'.join([*path[:-1], near[0]])}`?" if near else ""
        )
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "model_type":
        return f"`{key}` = {error.get('input')!r}: is a section; write [{key}], and its keys below it"
    if isinstance(error.get("input"), dict) and message.startswith("`"):
        return message  # of several keys together, which it names
    return f"`{key}` = {error.get('input')!r}: {message}"


def shipped_folder(name: Literal["hooks", "skills", "vault_template"]) -> Path:
    """The folder *name* as shipped: inside the package when installed from a wheel, else at the top of the source tree."""
    package = Path(__file__).parents[1]
    inside = package / "_share" / name
    return inside if inside.is_dir() else package.parent / name


def code_digest() -> str:
    """What tells the code in this package's files from another version's: a daemon goes on with what it was started with."""
    found = hashlib.blake2b(digest_size=8)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(file.read_bytes())
    return found.hexdigest()


def set_value(home: Path, table: str, key: str, value: str | list[str] | None) -> None:
    """
    Enter `<key> = <value>` under `[<table>]` of omg.toml, or with None take it out; all else stays as it is.

    Raises ConfigError, naming what to enter by hand, for a file that is no TOML or has something else in that place.
    """
    import tomlkit  # not at the top: most commands write no configuration
    from tomlkit.exceptions import TOMLKitError

    from .sections import Config

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
            f"{file}: mend it, or by hand {'enter' if line else 'take out'}, under [{table}]: {json.dumps(key)}{line}"
        ) from None
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    whole = file.with_name(f".omg.toml.{os.getpid()}")
    mode = file.stat().st_mode & 0o777 if before else 0o600
    with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
        os.fchmod(f.fileno(), mode)
        f.write(text.encode())
    whole.replace(file)


def set_vault(home: Path, key: str, vault: Path) -> None:
    """Say in omg.toml where the vault of the identity *key* lies."""
    set_value(home, "vaults", key, str(vault))
