"""
Disposable sqlite over one vault and its archive: rows, links, search, vectors.

    store       the file: tables, connections, damage
    terms       text as the full-text index holds it, a question as terms
    links       which note a link leads to
    entries     Entry: a note as the index lists it
    vectors     the notes' vectors, as one matrix
    archived    messages: taken in, found, and what was said around them
    rows        a Node as rows, and what in them depends on other notes
    changes     files and tables brought to one state
    scores      how well a note answers a question
    walk        from the best notes to what they link to
    search      a question → hits
    index       Index: all of the above behind one class
"""
