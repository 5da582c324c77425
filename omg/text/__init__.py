"""
How a text is read, the same way everywhere: its characters, sentences and links. No I/O.

    characters   the invisible ones, and which scripts put no spaces between words
    sentences    where sentences begin, and the marks of lists
    links        links as a reader sees them
"""
