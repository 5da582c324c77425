"""
A SQLite index of one vault and its archive: search by words, meaning, date and link. It is derived: delete it, and it
is made again.

    store         The SQLite file: tables, connections, damage; the terms of a text.
    links         Finds the note that a link leads to: by path, id, alias, or the end of a path.
    archived      The archive's messages in the index: who said what, and what was said around it.
    rows          A note as rows of the index, and what in them depends on other notes.
    search        Search: a question gives hits, best first, each with why it was found; the notes' vectors.
    index         Index: everything that is asked of a graph without opening its files.
    statements    The statements of the archive's messages: what is searched of what was said.
"""
