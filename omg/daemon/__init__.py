"""
The process that the gateway keeps: it answers on a socket, and observes in the background.

    daemon     what is asked and answered, its threads, its lock, signals and log
    server     HTTP with JSON on a unix socket
    lending    the gateway's model, lent by the plugin
"""
