"""
The Reflector tidies a graph at night: repetitions, contradictions, maps, weeks and months.

    run         Runs one night over one graph: drafts what changes, asks a model, and writes everything as one
                receipt.
    verdicts    Asks a model about groups of notes, reads a verdict on each group, and decides which verdicts are
                carried out.
    checking    Has a model check what a night's verdicts would do to persons' notes.
    similar     Merges repeated notes, finds similar notes for a model to compare, mends links, and marks unused notes
                as dormant.
    periods     Decides which weeks and months need a reflection, and makes the pages.
    topics      Groups notes that belong together, and splits maps that have grown too long.
    maps        Asks a model at night what each map is about and where things stand; the answer is two or three
                sentences with links.
"""
