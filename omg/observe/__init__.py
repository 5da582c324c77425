"""The Observer: from a batch of turns to notes."""
