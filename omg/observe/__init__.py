"""
The Observer: pending turns become notes.

    run         Observes one batch: from pending turns to notes.
    former      Notes of earlier rules: those that the rules of today would not write go to the archive, once, by one
                receipt.
    question    The Observer's question to the model: instructions, known notes, and the messages.
    twins       New notes that the vault may have already: searches all notes for similar ones.
    reply       The schema of the Observer's reply, and its edits.
"""
