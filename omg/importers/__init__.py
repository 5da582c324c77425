"""
Imports old conversations: reads their files, cuts them into drops, and takes these in through the spool.

The content of a file decides which reader it has (recognise.py). A line, a message or a chat that cannot be read is
reported in `ReadingProgress.skipped`, what nobody said is counted in `left_out`, and the others are read. Importing again
adds nothing: messages keep their ids, so a message that a hook captured, and that an export and a live database hold too,
is taken in once.
"""

from .drops import drop_name, said_epoch_ms
from .openclaw import import_agents_notes, openclaw_drops, openclaw_state_drops
from .plain import message_entries
from .recognise import read_drops
from .taking import capture_entries, import_drops

__all__ = [
    "capture_entries",
    "drop_name",
    "import_agents_notes",
    "import_drops",
    "message_entries",
    "openclaw_drops",
    "openclaw_state_drops",
    "read_drops",
    "said_epoch_ms",
]
