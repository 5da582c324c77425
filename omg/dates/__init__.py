"""Days: how they are spoken of, what they span, how they are written."""
