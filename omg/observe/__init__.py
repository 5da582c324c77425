"""
The Observer: pending turns become notes.

    run         Observes one batch: from pending turns to notes.
    question    The Observer's question to the model: instructions, known notes, and the messages.
    reply       The schema of the Observer's reply, and its edits.
"""
