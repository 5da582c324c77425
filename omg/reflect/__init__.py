"""
The Reflector, at night: repetitions, contradictions, maps, weeks and months.

    run         One night over one graph: drafts what changes, asks a model, and writes it under the lock as one
                receipt.
    verdicts    Asks a model about groups of notes, reads its verdict on each group, and decides which verdicts are
                carried out.
    checking    What a night's verdicts would have persons' notes say: claims, which are checked as those of the
                Observer are.
    similar     Notes that are alike: merges repetitions, and finds what a model has to compare.
    periods     Reflections on weeks and months: which are due, and their pages.
    topics      Which notes belong together; splits maps that have grown too long.
    maps        What a model tells of maps at night: what each is about and where it stands, in two or three sentences
                with links.
"""
