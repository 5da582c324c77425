"""The process that the gateway keeps: socket, worker, and the gateway's model."""
