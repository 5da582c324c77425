"""Messages that hold secrets, lines that hold none, texts that are slow to read: made before the patterns they try."""
