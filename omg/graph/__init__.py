"""
The folder of one identity: pending turns, archive, state, locks, tombstones.

    state    The state of a graph: its sessions, its latest observation and reflection, how often notes were of use,
             and what prompts were given.
    graph    Graph: everything that belongs to one identity.
"""
