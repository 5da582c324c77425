"""
Messages and turns: what was said, cleaned and without secrets. No I/O.

    turn          Message and Turn
    drop          a spool file, or the gateway's entries → messages
    envelope      what is put around words, and how it is taken off
    machinery     calls of OMG's own skill and tools, left out
    stored        turns and messages as JSON
    pieces        a conversation cut to a model's window
    writes        which files an agent may have written
"""
