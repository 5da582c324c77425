"""
The folder of one identity: pending turns, archive, state, locks, tombstones.

    state    state.json: what is live in each session, and when a graph was last observed and reflected.
    graph    Graph: everything that belongs to one identity.
    given    What recent prompts were given and why: a line for each prompt, in `given.jsonl` of a graph.
"""
