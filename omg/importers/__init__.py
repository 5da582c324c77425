"""
Imports old conversations: reads their files, cuts them into drops, and takes these in through the spool.

The content of a file decides which reader reads it (recognise.py). Lines, messages and chats that cannot be read are
reported in `ReadingProgress.skipped`; texts that nobody said are counted in `left_out`. Importing again adds nothing,
because a message has the same id each time: in a hook's capture, in an export, and in a second export.

    chatgpt        Reads ChatGPT's export: `conversations.json`, or since 2026 `conversations-000.json`, `-001`, …
    claude         Reads Claude.ai's export: chats, projects and memories, in one zip or in several.
    drops          Cuts the sessions of a reader into drops, the files of the spool that the intake takes in.
    exports        Opens exports (a zip, a zip in a zip, a folder, a JSON file), and reads their items, branches and
                   quotations.
    gemini         Reads Gemini's prompts and answers in Google Takeout: My Activity → Gemini Apps, as JSON.
    histories      Reads the whole histories of coding agents for `omg import`, from files and databases.
    look           Counts what an import would bring, before anything is written or a model is asked.
    memories       Reads the memory that another assistant keeps as markdown: MEMORY.md, USER.md, memory/*.md, notes
                   of basic-memory.
    openclaw       Reads OpenClaw's session transcripts, its live databases, and the notes that its agents wrote
                   themselves.
    plain          Reads JSONL of role, content and timestamp, one message a line; also a program's messages, which
                   have the same form.
    recognise      Recognises by its content what a path holds, and chooses the reader.
    taking         Takes in drops and a program's messages through the spool, and keeps a record of each import, to
                   undo it in one step.
    transcripts    Reads the transcripts of coding agents: Claude Code, Codex, OpenCode, Gemini CLI, Cursor CLI.
"""

from .openclaw import openclaw_drops
from .plain import message_entries
from .recognise import read_drops
from .taking import capture_entries, import_drops

__all__ = ["capture_entries", "import_drops", "message_entries", "openclaw_drops", "read_drops"]
