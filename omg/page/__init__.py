"""The graph as one page for a browser."""
