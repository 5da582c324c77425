"""
Many machines on Postgres (the extra `fleet`, docs/fleet.md).

    store    The database of a fleet: the connection, tenants and their tokens, drops, jobs, status and metrics.
    tree     The files of one graph as rows of Postgres: checked out into a folder, committed in one transaction.
    homes    Graphs checked out on this machine, each as a small home that the other rooms use unchanged.
    work     `omg fleet work`: runs Procrastinate's jobs, any number at once, on any machine.
    serve    `omg fleet serve`: the daemon's routes over HTTP, with a bearer token for each tenant.
    moves    Moves homes into and out of a fleet, and takes a person's edits of checked-out vaults.
"""
