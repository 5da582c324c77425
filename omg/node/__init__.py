"""
A note as a value: its properties and its text, parsed and rendered. No I/O.

    markdown    The text of a note: links, the generated block, the history, and names made from titles.
    note        Node: a note as a value, with its properties; and the table of maps.
"""
