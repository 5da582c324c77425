"""
Proposed edits, as drafts; the text of maps, index and Now.

    edits          what may be proposed of a note
    drafts         Plan: edits → drafts of notes
    mentions       links where a note's text names another note
    corrections    what a person's own words change, and what waits for them
    pages          the text of maps, index and Now
"""
