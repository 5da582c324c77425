"""
A folder of markdown notes: the only code that writes .md files.

    files    Writes one file atomically, and keeps the old file while an editor may still save into it.
    vault    Vault: reads, writes and removes notes, and keeps what a person wrote.
"""
