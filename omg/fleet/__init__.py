"""
Many machines on Postgres: `pip install "omg-memory[fleet]"` (docs/fleet.md).

    store       the connection; tenants and their tokens; drops; status and metrics
    tree        the files of a graph as rows: checked out into a folder, committed in one transaction
    homes       graphs checked out on this machine, each as a small home; changed, committed and dropped
    work        `omg fleet work`: Procrastinate's jobs, what is due, stalled jobs
    serve       `omg fleet serve`: the daemon's routes over HTTP
    moves       homes in and out, and a person's edits
"""
