"""
Loose notes: what people leave in inbox/, and what the agent writes to its memory files.

    runs     when an agent was at work, and what it may have written then
    notes    files → messages
"""
