"""
The process beside the gateway: answers on a socket, and observes in the background.

    daemon     The daemon: its routes, threads, lock, signals and log.
    server     HTTP with JSON on a unix socket.
    lending    The agent's own model, lent by the gateway: questions wait here until the plugin fetches them.
"""
