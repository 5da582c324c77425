"""
The Observer: turns that are pending become notes.

    run           a batch → known notes and one question → the reply's edits on a Plan → a receipt → the vault
    question      what the model is shown: instructions, known notes, how the conversation stood, the messages
    reply         what it answers: the schema, and an untrusted text → edits (a field of an edit: here and plan/edits.py)
    small_model   the same for small models: one message a call, two fields asked for
"""
