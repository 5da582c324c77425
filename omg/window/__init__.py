"""
The bounded window: a long conversation's observed beginning leaves the context, and its notes take its place.

    cut        which turns may go, and when: the law, without I/O
    messages   a message as the law sees it, and what it costs
    observed   which turns are observed, or hold nothing that memory keeps
    forks      what of them was said in a conversation that this one was forked from
    timeline   the notes that stand for them, as one text that stays as it is until the next cut
    lines      its lines: notes, and how a person's words began; each says whose word it is
    served     what a message was served in an earlier request, put before it again
    context    all of it for one session, with what its graph knows
"""
