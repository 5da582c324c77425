"""
What is to be written: drafts of notes, and the generated pages that list them.

    edits       Edit: what is proposed; and how a note's words, sources and priority are joined
    bodies      the prose of a note as an update changes it
    mentions    titles that stand in a text → links
    pages       what stands on a map, the index note and Now: entries → text
    mappages    MapPages: which notes each map will list, and the changes to these pages
    drafts      Plan: edits → drafts → the changes of one receipt
"""
