"""Disposable sqlite over one vault: rows, links, search, archived messages, vectors."""
