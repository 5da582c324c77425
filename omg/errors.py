"""
The exceptions of OMG, as a tree. A message names the thing, says what is wrong, and what to do.

    OmgError                    printed as one line by the command line, exit code 1
    ├── ConfigError             omg.toml, an OMG_* variable, or a value in them
    ├── NotFound                no such node, session, cycle or file
    ├── BadNode                 a file that is not a node: left alone, reported
    ├── OutsideVault            a name that would lead out of the vault
    ├── Stale                   the file was changed since we read it
    ├── Locked                  another process holds the lock
    ├── BadInput                a file or an argument that cannot be understood
    ├── GatewayError            OpenClaw is missing, or refused what we asked of it
    └── ModelError              no usable answer from a model; nothing was marked observed
        ├── ModelUnavailable    down, timed out, refused, or out of retries
        ├── BadReply            empty, looping, or not what was asked for
        │   └── CutShort        ended at its limit before a word was said
        └── OverBudget          today's cap is reached; turns wait
"""

from __future__ import annotations

import json
import sqlite3
from urllib.parse import unquote, urlsplit


class OmgError(Exception):
    """The base class of all exceptions of OMG."""


class ConfigError(OmgError):
    """A wrong setting. The message names the key, its value, and what is accepted."""


class NotFound(OmgError):
    """No such note, session, cycle or file. The message names what was asked for, and the most similar name."""


class BadNode(OmgError):
    """A file that is not a note. The message names the file, and what to mend in it."""


class OutsideVault(OmgError):
    """A path that would leave the vault. The message names the path."""


class Stale(OmgError):
    """The file changed on disk since the caller read it. Nothing was written; the caller may read and try again."""


class Locked(OmgError):
    """Another process holds a lock. The message names the lock and, if known, its holder."""


class BadInput(OmgError):
    """A file or an argument that cannot be understood. The message names the file or argument, and what was expected."""


class GatewayError(OmgError):
    """OpenClaw is missing or failed. The message names the command or setting of OpenClaw, and what to try."""


class ModelError(OmgError):
    """A model gave no usable answer. The turns in question are still pending."""


class ModelUnavailable(ModelError):
    """No model answered, after all retries and fallbacks."""


class BadReply(ModelError):
    """The model's answer cannot be used."""


class CutShort(BadReply):
    """The reply reached its limit before its first word. A shorter question may get an answer."""


class OverBudget(ModelError):
    """Today's cap on tokens or money is reached."""


def error_text(error: Exception) -> str:
    """
    Return *error* as one line for status and logs. An unknown exception gives only its type, because its text may quote a
    note.
    """
    if isinstance(error, OmgError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}"
    if isinstance(error, sqlite3.Error):
        return f"the index could not be used ({str(error).partition(' with text ')[0]})"
    return f"{type(error).__name__}, see omg.log"


def how_many(n: int, name: str) -> str:
    """Return a count with its noun: "1 note", "2 notes"."""
    return f"{n} {name}{'s' * (n != 1)}"


def pip_install(extra: str) -> str:
    """Return the command that installs *extra*, from the folder that OMG was installed from, if any."""
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution("omg-memory").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:  # it runs from a folder that was never installed
        origin = {}
    url = urlsplit(origin.get("url", ""))
    from_folder = url.scheme == "file" and "dir_info" in origin
    editable = "-e " * bool(from_folder and origin["dir_info"].get("editable"))
    return f"pip install {editable}'{unquote(url.path) if from_folder else 'omg-memory'}[{extra}]'"
