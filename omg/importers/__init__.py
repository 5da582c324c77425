"""
Old conversations become drops of the spool, as the gateway's plugin would have written them.

    run           take drops in
    drops         cut sessions into drops; which files there are
    transcripts   which reader a file has, judged by its content; OpenClaw's JSONL
    plain         JSONL of role, content and timestamp
    database      the live database of an OpenClaw agent
    entries       a session, and its messages as the gateway's own reader gives them
    lines         numbered lines of a file, also of a compressed one

One rule: importing again adds nothing, and nothing is left out silently.
"""
