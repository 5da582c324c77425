"""
The clients: their events, their fields, their limits. Standard library alone, since the hook reads it.

`events` maps a client's event to ours:

    start     a session begins or goes on: memory is asked for, and what earlier hooks missed is read
    prompt    the person said something: memory is asked for
    turn      the assistant has answered: a mark for the daemon to read the transcript
    compact   the context is about to be cut: a mark, and all is observed at once
    end       the session is over: a mark
"""

from __future__ import annotations

from typing import NamedTuple

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

HOSTS = {host.name: host for host in (CLAUDE_CODE,)}
