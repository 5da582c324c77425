"""
The folder of one identity: pending turns, archive, state, locks, tombstones.

    state    What is live in each session, when a graph was last observed and reflected, how often notes were of use,
             and what prompts were given.
    graph    Graph: everything that belongs to one identity.
"""
