"""
The Reflector, at night: repetitions, contradictions, maps, weeks and months.

    run         One night over one graph: drafts what changes, asks a model, and writes everything as one receipt.
    verdicts    Asks a model about groups of notes, reads its verdict on each group, and decides which verdicts are
                carried out.
    checking    The claims of a night's verdicts about persons' notes, which a model checks like the Observer's
                claims.
    similar     Similar notes: merges repetitions, and finds the pairs that a model has to compare.
    periods     Reflections on weeks and months: which are due, and their pages.
    topics      Which notes belong together; splits maps that have grown too long.
    maps        Asks a model at night what each map is about and where it stands; the answer is two or three sentences
                with links.
"""
