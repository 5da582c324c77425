"""
A note as a value: its properties and its text, parsed and rendered. No I/O.

    markdown    The text of a note: links, the generated block, the history, and names made from titles.
    note        Node: parses a markdown file into a value, and renders it; the properties of a note, and the maps.
"""
