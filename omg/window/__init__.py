"""
The bounded window: a long conversation's observed beginning leaves the context, and its notes take its place.

    cut        which turns may go, and when, and the notes that stand for them; without I/O
    context    one session: what its graph has observed, its forks, what its messages were served before
"""
