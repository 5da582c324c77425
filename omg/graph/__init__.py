"""
The folder of one identity: pending turns, archive, state, locks, tombstones.

    state    state.json: what is live in each session, and when a graph was last observed and reflected. Also how often
             notes were of use (`uses.jsonl`), and what recent prompts were given (`given.jsonl`).
    graph    Graph: everything that belongs to one identity.
"""
