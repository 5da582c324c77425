"""
The folder of one identity: what cannot be derived again.

    state         what is live in each session, and how often a note was of use; private files
    tombstones    what was forgotten, as salted hashes
    graph         Graph: these, the turns that wait, the vault and the index
"""
