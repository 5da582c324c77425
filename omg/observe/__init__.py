"""
The Observer turns pending turns into notes.

    run         Observes one batch: turns pending messages into notes.
    former      Archives notes that only the rules of an earlier version would write.
    question    Builds the Observer's question to the model: instructions, known notes, and the messages.
    twins       Searches all notes for notes that resemble the new ones, because a model can name only notes that it
                was shown.
    reply       Defines the schema of the Observer's reply, and turns a reply into edits.
"""
