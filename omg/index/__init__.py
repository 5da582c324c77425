"""
A SQLite index of one vault and its archive: search by words, meaning, date and link. The index can be deleted
at any time, and is made again from the vault's and the archive's files.

    store         The SQLite file: tables, connections, damage; the terms of a text.
    links         Finds the note that a link leads to: by path, id, alias, or the end of a path.
    archived      Indexes the archive's messages: who said what, and which messages were said just before and after.
    rows          Writes a note's rows in the index, and updates the columns that depend on other notes.
    search        Finds the notes that answer a question, best first, each with its reason; keeps the notes' vectors.
    index         Index: answers questions about the notes and messages of one graph without opening their files.
    statements    Indexes and searches the statements of the archive's messages.
"""
