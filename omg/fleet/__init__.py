"""
Many machines on Postgres: `pip install "omg-memory[fleet]"` (docs/fleet.md).

    tree        the files of a graph as rows: checked out into a folder, committed in one transaction
    store       the connection; tenants and their tokens; drops
    homes       graphs checked out on this machine, each as a small home, and when they are dropped
    jobs        Procrastinate's jobs: observe, reflect, rebuild; what is due; stalled jobs
    work        `omg fleet work`
    serve       `omg fleet serve`: the daemon's routes over HTTP
    moves       homes in and out, and a person's edits
    metrics     Prometheus, status, doctor
"""
