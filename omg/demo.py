"""
`omg demo`: takes the sample conversation through the whole path, offline, in a folder of its own.

It reads and changes nothing of the user's. It prints the vault as a tree, the Now note, and what three prompts would be
given.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import frontmatter

from .config import Config, load_config, set_value, set_vault
from .importers import import_drops, read_drops
from .memory import Memory

PROMPTS = (
    "Can you draft the next steps for the project?",
    "How do I like my answers?",
    "What have I planned for the coming weeks?",
)

SAMPLE_FOLDER = Path(__file__).parent / "sample"
DEMO_SESSION = "agent:main:main"


def run_demo(folder: Path | None) -> None:
    """Make the demo in *folder*; None: in a new temporary folder, which is kept."""
    folder = (folder or Path(tempfile.mkdtemp(prefix="omg-demo-"))).expanduser().absolute()
    config = demo_config(folder)
    sample = sorted(SAMPLE_FOLDER.glob("*.jsonl"))
    now = datetime.now(UTC)
    with Memory(config, clock=lambda: now) as memory:
        taken = import_drops(memory.intake, read_drops(sample, None))
        memory.work(force=True)
        graph = memory.find(DEMO_SESSION)
        while graph.index.embed():
            pass
        last = max((s.last_ms for s in graph.state().sessions.values()), default=0)
        now = datetime.fromtimestamp(last / 1000, UTC) + timedelta(days=2)  # as if it were two days later
        print(f"{len(sample)} sessions, {taken['messages']} messages, no model, no network\n")
        print(heading_line("The vault"), tree_lines(graph.vault.root), "", sep="\n")
        print(heading_line("now.md"), frontmatter.loads(graph.vault.text("now")).content, "", sep="\n")
        given = {p: memory.inject(p, session="agent:main:main:thread:demo", dry_run=True) for p in PROMPTS}
        system = given[PROMPTS[0]].system  # the same for each of a conversation's prompts
        print(heading_line("What every prompt is given"), system, "", sep="\n")
        for prompt, piece in given.items():
            print(heading_line(f"What “{prompt}” is given besides"))
            said = piece.prompt or "Nothing more: no other note bears on it."
            print(f"{said}\n({piece.tokens} tokens in all)\n")
        command = shell_line(config.home, "search", "checklists")
        print(f"Open {graph.vault.root} in Obsidian, or try:\n  {command}")


def demo_config(folder: Path) -> Config:
    """Write the configuration of a home in *folder*, so that every `omg` command finds this memory, and return it."""
    home = folder / "home"
    set_vault(home, DEMO_SESSION, folder / "vault")
    settings = {
        "time": ("zone", "Europe/Berlin"),
        "observation": ("model", "offline"),
        "embedding": ("model", "static"),
    }
    for table, (key, value) in settings.items():
        set_value(home, table, key, value)
    return load_config(home, {})


def shell_line(home: Path, *words: str) -> str:
    """A line for a shell that works in any folder."""
    omg = ["omg"] if shutil.which("omg") else [sys.executable, "-m", "omg.cli"]
    return f"OMG_HOME={shlex.quote(str(home))} {shlex.join([*omg, *words])}"


def heading_line(text: str) -> str:
    return f"── {text} " + "─" * max(0, shutil.get_terminal_size().columns - len(text) - 4)


def tree_lines(root: Path, indent: str = "  ") -> str:
    lines = []
    for path in sorted(root.iterdir(), key=lambda p: (p.is_file(), p.name)):
        if path.name.startswith("."):
            continue
        lines.append(f"{indent}{path.name}{'/' if path.is_dir() else ''}")
        if path.is_dir():
            lines.append(tree_lines(path, indent + "  "))
    return "\n".join(line for line in lines if line)
