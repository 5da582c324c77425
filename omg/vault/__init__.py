"""
A folder of markdown notes: the only writer of .md files.

    files    one file put in the place of another, atomically; what we wrote, path by path
    vault    Vault: read, write, remove, and whose words a file has
"""
