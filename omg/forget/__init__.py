"""
Forgets notes, messages or words: removes them from every file that OMG keeps.

    words       whether a text holds words, however they are written, and the text without them
    traces      what is to go, as a text may speak of it; which other notes do
    places      every place where a graph and its home keep text, and one way to change what stands there
    selection   what would go: shown to the person first
    redacting   or only the words, and all else stays: what has them, and the replacing
    erase       the erasing of a selection, and the journal of both, which a crash does not stop halfway
    bare        a graph in which nothing is left
    beyond      what is not ours to change: named, with its path
"""
