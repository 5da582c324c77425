"""
Removes what the gateway and OMG added to a person's words.

    wrap_memory         puts OMG's notes between two marks before the agent gets them
    strip_memory        removes such notes from a message, so that OMG makes no notes from its own notes
    without_envelope    removes the gateway's stamps, context blocks and notes from a person's message
    is_from_gateway     whether the gateway, and no person, wrote a prompt
    legible_text        removes characters that a file cannot hold

These functions take a text and return a text or a bool. Text that only mentions a mark is kept.
"""

from __future__ import annotations

import hashlib
import re

# --- Calls of OMG's own skill and tools in a transcript, left out: memory does not observe itself.
#
# One line replaces each such call, and says whether memory was read, written, forgotten or not changed. What the user
# asked to forget is in neither the call nor the result. Other calls stay whole.


MEMORY_READ = "[memory was read here]"
MEMORY_WRITTEN = "[memory was written here]"
MEMORY_FORGOTTEN = "[something was forgotten here]"
MEMORY_UNCHANGED = "[memory was not changed here]"
MANUAL = "[how memory works was looked up here]"
# Lines that replace the results of calls to OMG
MEMORY_NOTES = frozenset((MEMORY_READ, MEMORY_WRITTEN, MEMORY_FORGOTTEN, MEMORY_UNCHANGED, MANUAL))
FORGET_ANSWER = "[a request to forget was answered here]"  # replaces the agent's words about it
SKILL_NAME = "observational-memory-graph"

# in the heads of the skill's pages
SKILL_PAGE = re.compile(rf"^(?:name: {SKILL_NAME}|id: omg-skill/[\w/-]+)[ \t]*$", re.MULTILINE)

# How our tools begin an answer after a change; any other answer is a refusal, or asks the user to choose.
REMEMBERED, CORRECTED, FORGOTTEN, BLANKED = "Remembered as", "Corrected", "Forgotten:", "Replaced by"
PROPOSED = "Proposed as a correction of"
DONE = (REMEMBERED, CORRECTED, PROPOSED, FORGOTTEN, BLANKED)
CHANGING_TOOLS = ("omg_remember", "omg_correct", "omg_forget")
MEMORY_TOOLS = re.compile(r"\bomg_(?:search|open|remember|correct|forget)\b")
RECALL = re.compile(r"(?:omg_\w+|memory_search|memory_get)$")
FINDERS = ("tool_describe", "tool_search")  # they search the gateway's catalogue of tools
VAULT = re.compile(r"memory/omg/|/omg/graphs/")  # in the arguments of a tool that reads or writes notes
FILE_WRITERS = frozenset(("write", "edit", "apply_patch", "write_file", "edit_file", "multi_edit"))
SHELLS = ("exec", "bash", "shell", "process")
READS = "search|show|inject|export|history"
WRITES = "new|pin|link|merge|rename|supersede|undo"
SHELL_COMMAND = re.compile(  # an omg command, at a place where a shell's line may begin a command
    r"""(?:["'`;&|(\n]|\$\(|\b(?:run|sudo|-m)\s)\s*(?:[\w.~/-]*/)?omg\s+"""
    rf"(?:(?P<read>{READS})|(?P<written>{WRITES})|(?P<forgotten>forget))\b"
)

FORGETTING = '{"command":"omg forget"}'
LONGEST_COMMAND = 360  # characters kept of a call that writes notes: the vault has the notes


def memory_mark(name: str, arguments: str) -> str | None:
    """One line that says whether the call to *name* read, changed or forgot memory; None for any other call."""
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
    """
    The arguments of a call as OMG keeps them. Arguments of OMG's tools, and arguments that say what to forget, are
    left out.
    """
    what = memory_mark(name, arguments)
    if MEMORY_TOOLS.fullmatch(name):
        return "{}"
    if what == MEMORY_FORGOTTEN:
        return FORGETTING  # marks the result, too
    return cut_middle(arguments, LONGEST_COMMAND) if what and VAULT.search(arguments) else arguments


def result_without_memory(name: str, arguments: str, text: str) -> str:
    """The result of a call as OMG keeps it. The result of OMG's tools or skill becomes one line."""
    if what := memory_mark(name, arguments):
        return MEMORY_UNCHANGED if name in CHANGING_TOOLS and not text.startswith(DONE) else what
    ours = SKILL_PAGE.search(text) or (name in FINDERS and MEMORY_TOOLS.search(text))
    return MANUAL if ours else text


# The tag has a checksum of its content, so only text that OMG wrapped is stripped; a page, user or note that
# contains the tag loses nothing. White space does not count, because gateways trim and re-wrap it.
OPEN = re.compile(r'<omg-memory v="([0-9a-f]{8})">\n?')
CLOSE = "</omg-memory>"
TAG = re.compile(r"<(\\*)(/?omg-memory)", re.IGNORECASE)


def wrap_memory(text: str) -> str:
    """*text* between two sentinel lines. Sentinels inside *text* are escaped: `<omg…` becomes `<\\omg…`."""
    inner = TAG.sub(r"<\\\1\2", text)
    return f'<omg-memory v="{_checksum(inner)}">\n{inner}\n{CLOSE}\n'


def strip_memory(text: str) -> str:
    """*text* without the blocks that `wrap_memory` made and the newline after each."""
    if "<omg-memory" not in text:
        return text
    kept, at = [], 0
    for m in OPEN.finditer(text):
        end = text.find(CLOSE, m.end())
        if m.start() >= at and end >= 0 and _checksum(text[m.end() : end]) == m[1]:
            kept.append(text[at : m.start()])
            at = end + len(CLOSE)
            at += text.startswith("\n", at)
    return "".join(kept) + text[at:]


def strip_wrapper(text: str) -> str:
    """The text between the sentinels of *text*, which `wrap_memory` made."""
    return OPEN.sub("", text).removesuffix("\n").removesuffix(CLOSE).strip()


def _checksum(text: str) -> str:
    return hashlib.blake2b("".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


# The gateway's wrappers, as a running gateway was seen to write them.
CTX = "⟦openclaw:ctx⟧"
BLOCKS = re.DOTALL | re.MULTILINE
BEGUN = re.compile(r"^[ \t]*<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>[ \t]*$", BLOCKS)
ENDED_BLOCK = re.compile(r"^[ \t]*<<<END_OPENCLAW_INTERNAL_CONTEXT>>>[ \t]*(?:\n|\Z)", BLOCKS)
LONE = re.compile(r"^[ \t]*<<<(?:BEGIN|END)_OPENCLAW_INTERNAL_CONTEXT>>>[ \t]*(?:\n|\Z)", BLOCKS)

# "Conversation info: ⟦openclaw:ctx⟧", and the JSON block or the paragraph under it
JSON_BEGUN = re.compile(rf"^[^\n]+ {CTX}[ \t]*\n[ \t]*```json\n", BLOCKS)
JSON_ENDED = re.compile(r"^[ \t]*```[ \t]*(?:\n+|\Z)", BLOCKS)
CONTEXT = re.compile(rf"^[^\n]+ {CTX}[ \t]*\n(?:[^\n]*\S[^\n]*(?:\n|\Z))*+\n*", BLOCKS)
REST = re.compile(rf"^[ \t]*Context: {CTX}[ \t]*$.*\Z", BLOCKS)
ACTIVE_BEGUN = re.compile(r"^[ \t]*Context:[ \t]*\n[ \t]*<active_memory_plugin>", BLOCKS)
ACTIVE_ENDED = re.compile(r"</active_memory_plugin>[ \t]*\n*")
STAMP = re.compile(r"\A\s*\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]*\] ?")

HISTORY_BLOCK = re.compile(
    r"\A\[(?:Chat messages since your last reply|Recent chat messages) - for context\].*?"
    r"\[Current message - respond to this\][ \t]*\n?",
    re.DOTALL,
)

GATEWAY_NOTE = re.compile(
    r"^[ \t]*(?:\[message_id: [^\]\n]*\]|Delivery: [^\n]*`message` tool[^\n]*"
    r"|\[?Runtime: agent=[^\n]* \| [^\n]*)[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)


def without(text: str, begun: re.Pattern[str], ended: re.Pattern[str]) -> str:
    """
    Remove each part of *text* from a match of *begun* to the next match of *ended*.

    A part without an end stays.
    """
    # One regular expression would read to the end of the text at each *begun* if no *ended* follows.
    kept, at = [], 0
    while (start := begun.search(text, at)) and (end := ended.search(text, start.end())):
        kept.append(text[at : start.start()])
        at = end.end()
    return "".join(kept) + text[at:]


def without_internal(text: str) -> str:
    if "_OPENCLAW_INTERNAL_CONTEXT>>>" not in text:
        return text
    return LONE.sub("", without(text, BEGUN, ENDED_BLOCK))


# A forwarded message: a line that says so, its sender, then the sender's words up to the end
FORWARDED = re.compile(
    rf"^[ \t]*Forwarded (?:message )?context\b[^\n]{{0,80}}(?:{CTX}|\(untrusted[^)\n]{{0,60}}\)):?[ \t]*\n",
    re.M | re.I,
)
FORWARDED_HEAD = re.compile(
    r"[ \t]*```json\n.*?^[ \t]*```[ \t]*(?:\n|\Z)|(?:[^\n]*\S[^\n]*(?:\n|\Z))*+", BLOCKS
)
FORWARDER = re.compile(r'"?(?:from|sender|name)"?\s{0,3}[:=]?\s{0,3}"?([^"\n{}<>]{1,60})')


def without_envelope(text: str) -> str:
    """A person's *text* without what the gateway put around it. Forwarded text becomes quoted lines."""
    if (found := FORWARDED.search(text)) is None:
        return freed_text(text)
    head = FORWARDED_HEAD.match(text, found.end())
    assert head is not None  # it may be empty
    who = FORWARDER.search(head[0])
    lines = [f"Forwarded from {who[1].strip() if who else 'somebody'}:"]
    lines += without_envelope(text[head.end() :]).strip().split("\n")
    own = freed_text(text[: found.start()]).strip()
    return "\n".join([*([own, ""] if own else []), *(f"> {line}" for line in lines)])


def freed_text(text: str) -> str:
    text = STAMP.sub("", without_internal(text))
    if CTX in text or "<active_memory" in text:
        text = REST.sub("", without(text, ACTIVE_BEGUN, ACTIVE_ENDED))
        text = CONTEXT.sub("", without(text, JSON_BEGUN, JSON_ENDED))
        text = STAMP.sub("", text.lstrip("\n"))
    return GATEWAY_NOTE.sub("", HISTORY_BLOCK.sub("", text))


# How the gateway's own prompts begin, for transcripts that do not mark such prompts.
PROMPT = re.compile(
    r"\[OpenClaw (?:heartbeat poll|exec completion|cron wake|session event)\]|\[cron:[^\]\n]+\]"
    r"|\[Inter-session message\]|\[Subagent (?:Context|Task)\]|Pre-compaction memory flush\."
    r"|A new session was started via /(?:new|reset)\b|Read HEARTBEAT\.md\b|Follow the heartbeat monitor\b"
    r"|Continue the OpenClaw runtime event\."
)


def is_from_gateway(text: str) -> bool:
    """Whether the gateway, and no person, wrote the prompt *text*."""
    return bool(PROMPT.match(STAMP.sub("", text).lstrip()))


THOUGHT = re.compile(r"\A\s*<(think(?:ing)?|thought)\b[^<>]*>.*?</\1\s*>\s*", re.DOTALL | re.IGNORECASE)

SILENT = re.compile(
    r'\W*(?:(?:NO_REPLY|HEARTBEAT_OK)\W*)+|\{\s*"action"\s*:\s*"NO_REPLY"\s*\}', re.IGNORECASE
)


def spoken_answer(text: str) -> str:
    """
    The part of an agent's *text* that a person reads, without a leading <think> block. "" for a token that means
    silence.
    """
    text = THOUGHT.sub("", without_internal(text))
    return "" if SILENT.fullmatch(text.strip()) else text


UNREADABLE_CHARS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]|\r")
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=]{64,}")


def legible_text(text: str) -> str:
    """
    Return *text* without control characters and lone surrogates.

    CR LF and CR become LF. A data URL is replaced by the type of its data.
    """
    if UNREADABLE_CHARS.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\r\n", "\n")
        text = UNREADABLE_CHARS.sub(lambda m: "\n" if m[0] == "\r" else "", text)
    return DATA_URL.sub(r"[data: \1]", text) if ";base64," in text else text


def cut_middle(text: str, chars: int) -> str:
    """
    *text* cut to *chars* characters: four fifths are its beginning, one fifth is its end. A shorter *text* stays
    whole.
    """
    if len(text) <= chars:
        return text
    tail = chars // 5  # a tool reports an error at the end
    return f"{text[: chars - tail]}\n[… {len(text) - chars:,} characters cut]\n{text[-tail:]}"
