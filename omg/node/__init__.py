"""
A note as a value: its properties and its text, parsed and rendered. No I/O.

    fields      The properties of a note: their names, the values they may have, and a reader for each.
    markdown    The text of a note: links, the generated block, the history, and names made from titles.
    note        Node: parses a markdown file into a value, and renders it.
"""
