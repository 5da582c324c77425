"""
The process beside the gateway: answers on a socket, and observes in the background.

    daemon     The daemon: its server, routes, threads, lock, signals and log.
    lending    The agent's own model, lent by the gateway: questions wait here until the plugin fetches them.
"""
