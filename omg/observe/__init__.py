"""
The Observer: turns that are pending become notes.

    run         a batch → known notes and one question → the reply's edits on a Plan → a receipt → the vault
    question    what the model is shown; a small model is asked message by message
    reply       the schema of its answer, and an untrusted text → edits. A new field of an edit is added here (schema, ReplyItem, to_edit) and in plan/edits.py
"""
