"""
Calls of OMG's own skill and tools in a transcript, left out: memory does not observe itself.

Of such a call its place is kept and one line that says what came of it: memory was read, written, something was
forgotten, or nothing was changed. What was asked to be forgotten is in neither call nor result. One rule: of other
calls nothing is lost.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .envelope import cut_middle

MEMORY_READ = "[memory was read here]"
MEMORY_WRITTEN = "[memory was written here]"
MEMORY_FORGOTTEN = "[something was forgotten here]"
MEMORY_UNCHANGED = "[memory was not changed here]"
MANUAL = "[how memory works was looked up here]"
# What stands in the place of a result of ours: nobody's words
MEMORY_NOTES = frozenset((MEMORY_READ, MEMORY_WRITTEN, MEMORY_FORGOTTEN, MEMORY_UNCHANGED, MANUAL))
SKILL_NAME = "observational-memory-graph"

# in the heads of the skill's pages
SKILL_PAGE = re.compile(rf"^(?:name: {SKILL_NAME}|id: omg-skill/[\w/-]+)[ \t]*$", re.MULTILINE)

# How our tools begin an answer that something was changed; any other is a refusal, or asks the user to choose.
REMEMBERED, CORRECTED, FORGOTTEN, BLANKED = "Remembered as", "Corrected", "Forgotten:", "Replaced by"
DONE = (REMEMBERED, CORRECTED, FORGOTTEN, BLANKED)
CHANGING_TOOLS = ("omg_remember", "omg_correct", "omg_forget")
MEMORY_TOOLS = re.compile(r"\bomg_(?:search|open|remember|correct|forget)\b")
RECALL = re.compile(r"(?:omg_\w+|memory_search|memory_get)$")
FINDERS = ("tool_describe", "tool_search")  # of the gateway's catalogue of tools
VAULT = re.compile(r"memory/omg/|/omg/graphs/")  # in the arguments of a tool that reads or writes notes
FILE_WRITERS = ("write", "edit", "apply_patch", "write_file", "edit_file", "multi_edit")
SHELLS = ("exec", "bash", "shell", "process")
READS = "search|show|inject|export|history"
WRITES = "new|pin|link|merge|rename|supersede|undo"
SHELL_COMMAND = re.compile(  # ours, where a shell's line may begin a command
    r"""(?:["'`;&|(\n]|\$\(|\b(?:run|sudo|-m)\s)\s*(?:[\w.~/-]*/)?omg\s+"""
    rf"(?:(?P<read>{READS})|(?P<written>{WRITES})|(?P<forgotten>forget))\b"
)

FORGETTING = '{"command":"omg forget"}'
LONGEST_COMMAND = 200  # characters of each text in a call that writes notes: the vault has them


def memory_mark(name: str, arguments: str) -> str | None:
    """What a call to *name* had to do with memory, in a line; None for a call of another kind."""
    if name == "omg_forget":
        return MEMORY_FORGOTTEN
    if name in ("omg_remember", "omg_correct"):
        return MEMORY_WRITTEN
    if RECALL.match(name):
        return MEMORY_READ
    if name in SHELLS and (
        ran := {m.lastgroup for m in SHELL_COMMAND.finditer(arguments.replace("\\n", "\n"))}
    ):
        return MEMORY_FORGOTTEN if "forgotten" in ran else MEMORY_WRITTEN if "written" in ran else MEMORY_READ
    if SKILL_NAME in arguments or (name in FINDERS and MEMORY_TOOLS.search(arguments)):
        return MANUAL
    if VAULT.search(arguments):
        return MEMORY_WRITTEN if name in FILE_WRITERS else MEMORY_READ
    return None


def arguments_without_memory(name: str, arguments: str) -> str:
    """What is kept of a call's arguments: of a call to our own tools, and of what was to be forgotten, nothing."""
    what = memory_mark(name, arguments)
    if MEMORY_TOOLS.fullmatch(name):
        return "{}"
    if what == MEMORY_FORGOTTEN:
        return FORGETTING  # the result is known by it
    return shortened_call(arguments) if what and VAULT.search(arguments) else arguments


def shortened_call(arguments: str) -> str:
    try:
        made: Any = json.loads(arguments)
    except ValueError:
        made = None
    if not isinstance(made, dict):
        return cut_middle(arguments, LONGEST_COMMAND)
    short = {
        key: cut_middle(text, LONGEST_COMMAND) if isinstance(text, str) else text
        for key, text in made.items()
    }
    return json.dumps(short, ensure_ascii=False, separators=(",", ":"))


def result_without_memory(name: str, arguments: str, text: str) -> str:
    """What is kept of the result of a call: of memory, and of how it works, a line that says so."""
    if what := memory_mark(name, arguments):
        return MEMORY_UNCHANGED if name in CHANGING_TOOLS and not text.startswith(DONE) else what
    ours = SKILL_PAGE.search(text) or (name in FINDERS and MEMORY_TOOLS.search(text))
    return MANUAL if ours else text
