"""
Take something back so that no byte of it stays: note, archive, receipts, pending, snapshots, index, logs.

    words       whether a text holds words, however they are written, and the text without them
    selection   what would go with it: shown to the person first
    redacting   or only the words, and all else stays: what has them, and the replacing
    renaming    a note's text without the words, and another name where its own holds them
    erase       the erasing, which a crash does not stop halfway
    traces      where else in its graph something of it stands: links, receipts, the archive
    copies      in graphs that were replaced, or merged into this one
    homefiles   in the home: drops, logs, cursors, temporary files
    bare        a graph in which nothing is left
    beyond      what is not ours to change: named, with its path
"""
