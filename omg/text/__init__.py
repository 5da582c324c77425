"""
How a text is read, the same way everywhere: its characters and links. No I/O.

    characters   the invisible ones, and which scripts put no spaces between words
    links        links as a reader sees them
"""
