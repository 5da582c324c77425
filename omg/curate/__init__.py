"""A person's own hand: write and correct notes, take back, export, join and move memories."""
