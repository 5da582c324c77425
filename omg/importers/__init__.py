"""
Imports old conversations: reads their files, cuts them into drops, and takes these in through the spool.

The content of a file decides which reader it has (recognise.py). A line, a message or a chat that cannot be read is
reported in `ReadingProgress.skipped`, what nobody said is counted in `left_out`, and the others are read. Importing again
adds nothing: messages keep their ids, so a message that a hook captured, and that an export and a live database hold too,
is taken in once.

    chatgpt        ChatGPT's export: `conversations.json`, or since 2026 `conversations-000.json`, `-001`, …
    claude         Claude.ai's export: chats, projects and memories, in one zip or in several.
    drops          What a reader yields, and how that becomes drops: the files of the spool that the intake takes in.
    exports        Opens exports (a zip, a zip in a zip, a folder, a JSON file), and reads their items, branches and
                   quotations.
    gemini         Gemini's prompts and answers in Google Takeout: My Activity → Gemini Apps, as JSON.
    histories      Whole histories of coding agents, for `omg import`: files, also of older versions, and databases.
    look           Counts what an import would bring, before anything is written or a model is asked.
    memories       The memory that another assistant keeps as markdown: MEMORY.md, USER.md, memory/*.md, notes of
                   basic-memory.
    openclaw       OpenClaw: its session transcripts, its live databases, and the notes that its agents wrote
                   themselves.
    plain          JSONL of role, content and timestamp, one message a line; and a program's messages, which have the
                   same form.
    recognise      Recognises what a path holds, by its content, and gives it its reader.
    taking         Takes drops in through the spool, and a program's messages.
    transcripts    The transcripts of coding agents: Claude Code, Codex, OpenCode, Gemini CLI, Cursor CLI.
"""

from .openclaw import openclaw_drops
from .plain import message_entries
from .recognise import read_drops
from .taking import capture_entries, import_drops

__all__ = ["capture_entries", "import_drops", "message_entries", "openclaw_drops", "read_drops"]
