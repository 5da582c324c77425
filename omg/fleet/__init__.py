"""
Many machines on Postgres (the extra `fleet`, docs/fleet.md).

    store    The database of a fleet: the connection, tenants and their tokens, drops, jobs, status and metrics.
    homes    Graphs of a fleet: rows of Postgres, checked out on this machine as small homes, moved in and out.
    serve    The processes of a fleet: `omg fleet serve` answers the gateways, `omg fleet work` observes and reflects.
"""
