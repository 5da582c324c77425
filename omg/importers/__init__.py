"""
Imports old conversations: reads their files and writes them as drops into the spool.

    readers    Reads a file of old conversations as sessions and their entries.
    drops      Cuts old conversations into drops and takes them in through the spool.

Importing again adds nothing, and what is left out is counted or named.
"""
