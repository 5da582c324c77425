"""
Forgets notes, messages or words: removes them from every file that OMG keeps.

    places       Every place where a graph and its home keep text, and how words are found in it.
    selection    Finds what a forgetting removes: notes, messages, words, and links to them.
    removal      Changes every text that OMG keeps: when something is forgotten or redacted, and when the doctor
                 removes secrets.
    erase        Forgets or redacts what a Selection names, step by step.
"""
