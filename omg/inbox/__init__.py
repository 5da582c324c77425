"""Loose notes and day files: read, and whether an agent may have written them."""
