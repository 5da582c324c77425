"""
Forgets notes, messages or words: removes them from every file that OMG keeps.

    places       every place where text is kept, whether it holds words, and what is not ours to change
    selection    what would go: shown to the person first
    erase        the erasing of a selection, or of words only; a crash does not stop it halfway
"""
