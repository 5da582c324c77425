"""
The process that the gateway keeps: it answers on a socket, and observes in the background.

    process   the one daemon of a home: lock, signals, log
    daemon    what is asked and answered, and its threads
    server    HTTP with JSON on a unix socket
    lending   the gateway's model, lent by the plugin
    watch     events of a folder's files
"""
