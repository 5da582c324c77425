"""
One declaration for each client: its events, fields and limits. Standard library alone, since the hook reads it.

`events` maps a client's event to ours:

    start     a session begins or goes on: memory is asked for, and what earlier hooks missed is read
    prompt    the person said something: memory is asked for
    turn      the assistant has answered: a mark for the daemon to read the transcript
    compact   the context is about to be cut: a mark, and all is observed at once
    end       the session is over: a mark
"""

from __future__ import annotations

from typing import NamedTuple

PLUGIN = "omg"  # the name of ours in every client
ASKING = ("start", "prompt")  # events that want an answer; the others leave a mark


class Host(NamedTuple):
    name: str  # on the command line, and in session keys
    title: str
    program: str  # the client's command
    events: dict[str, str]
    fields: dict[str, str]  # our name of a field of the payload → the client's
    fresh: tuple[str, ...]  # sources of a start after which the context has nothing of ours
    limit_chars: int  # of what one hook may give; what is longer the client cuts or puts into a file
    markup: bool  # whether a tag in the text reaches the model as it is
    timeout: int  # of a hook, in the client's unit
    config: str  # the client's own folder, below the home; a variable may move it
    config_variable: str
    transcripts: str  # glob of its transcripts in that folder
    layout: str  # of its plugin folder (plugin.py)
    settings: str  # the file in `config` that its command writes to
    added_mark: str  # stands in that file where our plugin is added
    install: tuple[tuple[str, ...], ...]  # arguments of its command, one after the other
    uninstall: tuple[tuple[str, ...], ...]
    leftovers: tuple[str, ...]  # sections that its command leaves empty in the settings
    caches: tuple[str, ...]  # its copies of our plugin, below `config`
    ask_list: str  # arguments that show its plugins
    notes: tuple[str, ...] = ()  # what its person should know
    copies: tuple[
        tuple[str, str], ...
    ] = ()  # of our folder, to where in `config` a client without a command looks
    reviews: bool = False  # whether its person has to review each hook before it runs
    install_environment: tuple[tuple[str, str], ...] = ()


SAME = {
    "session": "session_id",
    "transcript": "transcript_path",
    "cwd": "cwd",
    "prompt": "prompt",
    "source": "source",
}

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
    fields=SAME,
    fresh=("startup", "clear", "compact"),
    limit_chars=9_500,  # above 10,000 the text becomes a file and a preview of 2,000
    markup=True,
    timeout=5,
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
        "`claude -p` asks for no trust in a folder: in one that you do not trust, its hooks and MCP servers run too",
    ),
)

CODEX = CLAUDE_CODE._replace(
    name="codex",
    title="Codex",
    program="codex",
    timeout=3,  # of SessionEnd it allows no more, and hashes what it made of it
    config=".codex",
    config_variable="CODEX_HOME",
    transcripts="sessions/*/*/*/rollout-*.jsonl",
    settings="config.toml",
    added_mark='"omg@omg"',
    install=(("plugin", "marketplace", "add", "{folder}"), ("plugin", "add", "omg@omg")),
    uninstall=(("plugin", "remove", "omg@omg"), ("plugin", "marketplace", "remove", "omg")),
    leftovers=(),
    reviews=True,
    notes=(
        "Codex runs no hook that you have not reviewed, and says nothing of it: start `codex` and trust them when it asks;"
        " `omg doctor` says whether you have",
    ),
)

OPENCODE = CLAUDE_CODE._replace(
    name="opencode",
    title="OpenCode",
    program="opencode",
    events={},  # its plugin runs in the client (hooks/opencode/omg.js)
    fresh=(),
    config=".config/opencode",
    config_variable="OPENCODE_CONFIG_DIR",
    transcripts="../../.local/share/opencode/opencode.db*",
    layout="opencode",
    settings=f"plugins/{PLUGIN}.js",
    added_mark="OMG",
    install=(),
    uninstall=(),
    copies=((f"{PLUGIN}.js", f"plugins/{PLUGIN}.js"),),
    leftovers=(),
    caches=(),
    ask_list="debug config",
    notes=("a plugin of OpenCode needs no trust: it runs wherever you start `opencode`",),
)

GEMINI = CLAUDE_CODE._replace(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    # No SessionStart: what it gives makes the person's own prompt vanish when a headless session is resumed.
    events={"BeforeAgent": "prompt", "AfterAgent": "turn", "SessionEnd": "end"},
    fresh=(),
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
    leftovers=(),
    caches=(),
    ask_list="extensions list",
    notes=(
        "`gemini -p` exits in a folder that you have not trusted, and offers the MCP tools of an extension only with"
        " `--allowed-mcp-server-names omg`; hooks work in both",
    ),
    install_environment=(("GEMINI_CLI_TRUST_WORKSPACE", "true"),),
)

HOSTS = {host.name: host for host in (CLAUDE_CODE, CODEX, OPENCODE, GEMINI)}
