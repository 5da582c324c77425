"""
The graph as one HTML page for a browser. assets/ has its scripts, vendor/ the library that draws it.

    build    Builds the HTML page: search, filters, and links from note to note.
"""
