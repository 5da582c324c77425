"""
The folder of one identity: what cannot be derived again.

    files         private files: atomic writes, appended lines, locks; what cannot be read, set aside
    pending       turns that wait to be observed
    state         what is live in each session
    tombstones    what was forgotten, as salted hashes
    uses          how often a note was of use
    graph         Graph: all of these, with the vault and the index
"""
