"""Models: the asker, LiteLLM's child process, the ledger of what it cost."""
