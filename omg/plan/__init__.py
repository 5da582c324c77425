"""
Proposed edits as drafts of notes; the text of maps, index and Now.

    edits          Edit, a proposal for one note, and NoteDraft, the note as it will be.
    drafts         Plan: turns edits into drafts of notes, and drafts into the changes of one receipt.
    mentions       Links names and titles of other notes that occur in a text.
    corrections    Rewords a sentence of a note because a person asked for it.
    pages          The generated text of maps, the index note and Now.
"""
