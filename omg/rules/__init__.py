"""
The Observer without a model: rules that note what people assert, decide, prefer and plan.

    observer       Reads a conversation and replies as a model would.
    assertions     The sentences of a message, and what each asserts.
    corrections    Reads corrections, and finds what they put right.
    wording        How a note is worded: in the third person, with absolute dates.
    drafts         Whether a statement repeats, changes or ends a note, or becomes a new one.
"""
