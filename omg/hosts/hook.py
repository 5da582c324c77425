"""
The declaration of each client, and `omg hook HOST EVENT`, which a client runs at its events.

This module uses only the standard library, starts no process and writes no log (a hook's environment holds the
client's keys). A hook always exits with code 0. `start` and `prompt` ask the daemon for memory and print it as one JSON
object. All other events leave a mark in the spool: which transcript grew, and its size. DEADLINE_S after the interpreter
started, a hook ends without an answer.

`Host.events` maps a client's events to ours:

    start     a session begins or continues: give memory, and read what earlier hooks missed
    prompt    the person said something: give memory
    turn      the assistant has answered: read the transcript
    compact   the context is about to be compacted: read the transcript and observe at once
    end       the session is over: read the transcript, and observe at once if `quiet_tokens` are pending
"""

from __future__ import annotations

import time

BEGAN = time.monotonic()  # before the other imports, because they take time
DEADLINE_S = 0.15
LONGEST_INPUT = 32_000_000

import json  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import NamedTuple  # noqa: E402

PLUGIN, VERSION = "omg", "0.1.0"  # of our plugin in every client
ASKING = ("start", "prompt")
MARKS = "hosts"  # folder in the spool
FIELDS = ("session", "transcript", "cwd", "prompt", "source")  # the fields of a payload that a hook reads
THEIRS = {"session": "session_id", "transcript": "transcript_path"}  # our name of a field → the clients' name


class Host(NamedTuple):
    name: str  # on the command line, and in session keys
    title: str
    program: str  # the client's command
    config: str  # the client's folder, relative to the person's home
    config_variable: str  # the environment variable with another path of `config`
    transcripts: str  # pattern of the transcripts' paths in `config`
    layout: str  # form of the plugin folder (install.py)
    settings: str  # file in `config` that the client's command writes to
    added_mark: str  # text that `settings` holds once our plugin is added
    ask_list: str  # arguments of `program` that list the client's plugins
    events: dict[str, str] = {}  # noqa: RUF012  # client's event → ours; empty if our plugin runs inside the client
    fresh: tuple[str, ...] = ()  # sources of a `start` after which the context holds none of our memory
    limit_chars: int = (
        9_500  # most characters of one hook's text; Claude Code moves a text above 10,000 to a file
    )
    markup: bool = True  # whether a tag in the text reaches the model unchanged
    timeout: int = 5  # of one hook; each client has its own unit
    install: tuple[tuple[str, ...], ...] = ()  # calls of the client's command, as lists of arguments
    uninstall: tuple[tuple[str, ...], ...] = ()
    leftovers: tuple[str, ...] = ()  # empty sections that the client's command leaves in the settings
    caches: tuple[str, ...] = ()  # the client's copies of our plugin, in `config`
    notes: tuple[str, ...] = ()  # shown to the person by `omg install`
    copies: tuple[tuple[str, str], ...] = ()  # file of our folder → its place in `config`
    reviews: bool = False  # whether the person has to review each hook before it runs
    install_environment: tuple[tuple[str, str], ...] = ()


CLAUDE_CODE = Host(
    name="claude-code",
    title="Claude Code",
    program="claude",
    events={
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "Stop": "turn",
        "PreCompact": "compact",
        "SessionEnd": "end",
    },
    fresh=("startup", "clear", "compact"),
    config=".claude",
    config_variable="CLAUDE_CONFIG_DIR",
    transcripts="projects/*/*.jsonl",
    layout="claude",
    settings="settings.json",
    added_mark='"omg@omg"',
    install=(("plugin", "marketplace", "add", "{folder}"), ("plugin", "install", "omg@omg")),
    uninstall=(("plugin", "uninstall", "omg@omg"), ("plugin", "marketplace", "remove", "omg")),
    leftovers=("enabledPlugins", "extraKnownMarketplaces"),
    caches=("plugins/cache/omg",),
    ask_list="plugin list",
    notes=(
        "`claude -p` does not ask whether you trust a folder: it runs the hooks and MCP servers of any folder",
    ),
)

CODEX = CLAUDE_CODE._replace(
    name="codex",
    title="Codex",
    program="codex",
    timeout=3,  # the longest that Codex allows for SessionEnd; after a change, the person has to trust the hook again
    config=".codex",
    config_variable="CODEX_HOME",
    transcripts="sessions/*/*/*/rollout-*.jsonl",
    settings="config.toml",
    install=(("plugin", "marketplace", "add", "{folder}"), ("plugin", "add", "omg@omg")),
    uninstall=(("plugin", "remove", "omg@omg"), ("plugin", "marketplace", "remove", "omg")),
    leftovers=(),
    reviews=True,
    notes=(
        "Codex silently skips hooks that you have not reviewed: start `codex`, and trust the hooks when asked;"
        " `omg doctor` lists the hooks that you have not reviewed yet",
    ),
)

OPENCODE = Host(
    name="opencode",
    title="OpenCode",
    program="opencode",
    config=".config/opencode",
    config_variable="OPENCODE_CONFIG_DIR",
    transcripts="../../.local/share/opencode/opencode.db*",
    layout="opencode",
    settings=f"plugins/{PLUGIN}.js",
    added_mark="OMG",
    copies=((f"{PLUGIN}.js", f"plugins/{PLUGIN}.js"),),
    ask_list="debug config",
    notes=("OpenCode does not ask whether you trust a plugin: it runs wherever you start `opencode`",),
)

GEMINI = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    # Without SessionStart: its text makes the person's own prompt disappear when a headless session is resumed.
    events={"BeforeAgent": "prompt", "AfterAgent": "turn", "SessionEnd": "end"},
    markup=False,
    timeout=5_000,  # milliseconds
    config=".gemini",
    config_variable="GEMINI_CLI_HOME",
    transcripts="tmp/*/chats/session-*.jsonl",
    layout="gemini",
    settings="extensions/omg/gemini-extension.json",
    added_mark='"omg"',
    install=(("extensions", "install", "{folder}", "--consent"),),
    uninstall=(("extensions", "uninstall", "omg"),),
    ask_list="extensions list",
    notes=(
        "`gemini -p` stops in a folder that you have not trusted; it offers an extension's MCP tools only with"
        " `--allowed-mcp-server-names omg`, and runs hooks without it",
    ),
    install_environment=(("GEMINI_CLI_TRUST_WORKSPACE", "true"),),
)

HOSTS = {host.name: host for host in (CLAUDE_CODE, CODEX, OPENCODE, GEMINI)}


# --- omg hook HOST EVENT [HOME]


def main() -> None:
    try:
        sys.stdout.write(run_hook(sys.argv[2:]))
        sys.stdout.flush()
    except BaseException:  # the client must not notice an error
        os._exit(0)


def run_hook(args: list[str]) -> str:
    """Run one hook. Returns the text to print: one JSON object, or ""."""
    host, event = HOSTS[args[0]], args[1]
    ours = host.events[event]
    payload = read_payload()
    given = {name: v for name in FIELDS if isinstance(v := payload.get(THEIRS.get(name, name)), str)}
    home = home_of(args)
    if not given.get("session") or not home.is_dir():
        return ""
    body: dict[str, object] = {"host": host.name, "event": ours, "size": transcript_size(given), **given}
    if ours not in ASKING:
        leave_mark(home, body)
        return ""
    text = ask(home, body)
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def home_of(args: list[str]) -> Path:
    if len(args) > 2:
        return Path(args[2])
    from ..client import default_home  # imported only here: most hooks name their home

    return default_home()


def left_s() -> float:
    """Seconds until the deadline. Always above 0, because 0 would mean no timeout."""
    return max(0.001, DEADLINE_S - (time.monotonic() - BEGAN))


def read_payload() -> dict[str, object]:
    """
    The JSON object on stdin. Reading stops once the text is a whole JSON value, because some clients never close
    stdin.
    """
    data, fd = b"", sys.stdin.fileno()
    while len(data) < LONGEST_INPUT and select.select([fd], [], [], left_s())[0]:
        more = os.read(fd, 1 << 20)
        data += more
        if not more or data.rstrip().endswith(b"}"):
            try:
                value = json.loads(data)
                return value if isinstance(value, dict) else {}
            except ValueError:
                if not more:
                    break
    return {}


def transcript_size(given: dict[str, str]) -> int | None:
    """
    Return the present size of the transcript in bytes; None if there is no transcript.

    The daemon reads the transcript later, when the client may have added turns. The size tells the daemon where to
    stop.
    """
    try:
        return Path(given["transcript"]).stat().st_size
    except (OSError, KeyError):
        return None


def ask(home: Path, body: dict[str, object]) -> str:
    """
    The daemon's text for this session; "" if the daemon refuses. Raises OSError if the daemon does not answer in
    time.
    """
    data = json.dumps(body).encode()
    head = f"POST /host HTTP/1.1\r\nconnection: close\r\ncontent-length: {len(data)}\r\n\r\n"
    said = b""
    # Without http.client: importing it takes longer than the daemon's answer.
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(left_s())
        connection.connect(str(home / "omg.sock"))
        connection.sendall(head.encode() + data)
        while more := connection.recv(1 << 16):
            said += more
            connection.settimeout(left_s())
    head, _, answer = said.decode().partition("\r\n\r\n")
    return str(json.loads(answer).get("text") or "") if head.split(" ")[1] == "200" else ""


def leave_mark(home: Path, body: dict[str, object]) -> None:
    """
    Tell the daemon which hook ran, with a small file (a mark) in the spool.

    The mark names the session and the size of the transcript, and holds none of the person's words. File names sort by
    time.
    """
    folder = home / "spool" / MARKS
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    at_ms = time.time_ns() // 1_000_000
    names = ("host", "event", "size", "session", "transcript", "cwd")  # not the person's words
    mark = {"at_ms": at_ms, **{name: body[name] for name in names if name in body}}
    name = f"{at_ms:015d}-{os.getpid()}.json"
    fd = os.open(folder / f".{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(mark, file)
    (folder / f".{name}").rename(folder / name)
