"""
The bounded window: a long conversation's observed beginning leaves the context, and its notes take its place.

    cut        which turns may go, and when: the law, without I/O
    forks      what of it was said in a conversation that it was forked from
    messages   a message as the law sees it, and what it costs
    observed   which of them are observed, or hold nothing that memory keeps
    timeline   the notes that stand for them, as one text that stays as it is until the next cut
    lines      its lines: notes, and how a person's words began; each says whose word it is
    served     what a message was served in an earlier request, put before it again
    context    all three for one session, with what its graph knows
"""
