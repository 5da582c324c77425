"""
Old conversations become drops of the spool, as the gateway's plugin would have written them.

    drops         which files there are; sessions cut into drops, and taken in
    transcripts   which reader a file has, judged by its content; OpenClaw's JSONL
    plain         JSONL of role, content and timestamp
    database      the live database of an OpenClaw agent
    entries       a session, and its messages as the gateway's own reader gives them; numbered lines of a file

Importing again adds nothing, and nothing is left out silently.
"""
