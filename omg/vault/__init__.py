"""A folder of markdown notes: the only writer of .md files."""
