"""
The Reflector: tidies the notes, by night or once enough has changed, and looks back on weeks and months.

    run                  one cycle over one graph: locks, the receipt, the log page
    drafting → cycle     what a cycle drafts, and what it asks a model; what it came to
    snapshot, seen       the notes a cycle works on; what former cycles have seen and asked
    similar → groups     notes that are alike; what there is to ask about them, loops and titles, and what together
    verdicts → permitted the question on groups of notes and a model's reply to it; what of that is done
    revise               merge, supersede, describe, close, retitle and link notes; mend links
    periods              weeks and months that are over, and the pages written on them
    lookback, threads    what a model says of them; what rules do where there is none
    upkeep               links to former paths; which notes go dormant
    map_split, topics    maps that grew too long are split into topics
"""
