"""
A person's own hand: write and correct notes, take a change back, export, join and move memories.

    notes    find, write, link, rename, merge, supersede, pin, forget: each a cycle that `undo` takes back
    correct  a sentence of a note said anew, on a person's word
    undo     take a cycle back; the history of a note
    export   all notes as one page, or as JSON
    people   one person's memory under another session key
"""
