"""
What bench/qa.py is made of: an assistant with this memory is asked questions about the past, and judged. And what
bench/replay.py and bench/fidelity.py add to it.

    data      conversations and questions of LoCoMo, LongMemEval, BEAM and plain JSONL; which of them are asked
    vaults    each conversation, observed session by session through the library
    contexts  what the answerer is given to read: nothing, all, the last of it, a search, the slice, the notes
    model     one request to a model, and what it cost
    answers   the answerer, and the check that its quotes stand in what it read
    judge     the judge, who sees question, gold answer and answer
    report    points, intervals, tokens
    files     one file an item, whole or not there
    recorded  recorded requests and replies of the Observer and the Reflector, and a server that answers with them
    notes     the notes of a vault as plain text, read without omg

One rule: what was paid for is on disk before the next thing is asked, and is never asked again.
"""
