"""
The Observer: turns that are pending become notes.

    run           a batch → known notes and one question → the reply's edits on a Plan → a receipt → the vault
    question      what the model is shown: instructions, known notes, how the conversation stood, the messages
    reply         what it answers: the schema, and an untrusted text → edits. A new field of an edit is added here
                  (schema, ReplyItem, to_edit) and in plan/edits.py
    small_model   the same for small models: one message a call, two fields asked for
"""
