"""The graph as one page for a browser (build.py); assets/ has its scripts, vendor/ the library that draws."""
