"""
The Reflector: tidies the notes, by night or once enough has changed, and looks back on weeks and months.

    run                  one cycle over one graph: locks, the receipt, the log page
    cycle                what a cycle drafts, and what it asks a model
    snapshot, seen       the notes a cycle works on; what former cycles have seen
    similar → verdicts   notes that are alike; what a model says of them, and which of it is done
    revise               merge, supersede and describe notes; mend links
    periods              reflections on weeks and months
    upkeep               links to former paths; which notes go dormant
    map_split, topics    maps that grew too long are split into topics
"""
