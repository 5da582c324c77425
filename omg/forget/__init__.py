"""
Forgets notes, messages or words: removes them from every file that OMG keeps.

    places       Every place where a graph and its home keep text, and one way to change it.
    selection    Finds what a forgetting removes: notes, messages, words, and links to them.
    erase        Forgets or redacts what a Selection names, step by step.
"""
