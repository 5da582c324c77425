"""
A note as a value. No I/O.

    fields        the kinds of notes, and the reader of each property
    markdown      the body: links, the generated block, the history, names made of titles
    properties    the head: YAML read as Obsidian reads it, written so that every reader agrees
    note          Node: text → value → text
    maptable      the maps there are, and which one lists a note
"""
