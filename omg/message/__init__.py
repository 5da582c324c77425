"""
Messages and turns: what was said, cleaned and without secrets. No I/O.

    turn        Message and Turn: parts of a conversation, their JSON
    drop        a spool file, or the gateway's entries → messages; which files an agent may have written
    envelope    what is put around words, and how it is taken off
    material    which parts of a message a person passes on rather than says
"""
