"""
Old conversations become drops in the spool, in the form that the gateway's plugin writes.

    readers    reads a file: OpenClaw's transcripts and its live database, JSONL of role, content and timestamp
    drops      cuts sessions into drops and takes them in

Importing again adds nothing, and what is left out is counted or named.
"""
