"""
A note as a value. No I/O.

    fields      the kinds of notes, the reader of each property, and which map lists a note
    markdown    the file: YAML read as Obsidian reads it; links, the generated block, the history
    note        Node: text → value → text
"""
