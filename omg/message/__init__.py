"""Messages and turns: how a drop is read, cleaned, redacted, stored and cut into pieces."""
