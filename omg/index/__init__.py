"""
A SQLite index of one vault and its archive. It is derived: delete it, and it is made again.

    store       the file: tables, connections, damage; terms of a text and of a question; Entry, a note as listed
    links       which note a link leads to
    vectors     the notes' vectors, as one matrix
    archived    messages: taken in, found, and what was said around them
    rows        a Node as rows, and files and tables brought to one state
    search      a question → hits: scores, then links
    index       Index: all of the above behind one class
"""
