"""
Long conversations: observed turns leave the context, and their notes take their place.

    cut        Decides which turns leave the context.
    context    One session of the context engine: which messages leave the context, and what stands for them.
"""
