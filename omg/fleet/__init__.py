"""
Many machines on Postgres (the extra `fleet`, docs/fleet.md).

    store    The database of a fleet: the connection, tenants and their tokens, drops, jobs, status and metrics.
    homes    The graphs of a fleet: Postgres holds their files as rows, and this machine checks them out as small
             homes.
    serve    The processes of a fleet: `omg fleet serve` answers the gateways, `omg fleet work` observes and reflects.
"""
