"""
A folder of markdown notes: the only writer of .md files.

    files      one file put in the place of another, atomically
    parts      a note as parts, each with a mark by which it is known again
    written    what we wrote, path by path
    vault      Vault: read, write, remove, and whose words a file has
"""
