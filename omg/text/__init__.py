"""
How a text is read: its characters, words, sentences and negations, and its cost in tokens. The only files read
are the word list and the table of tokens.

    characters    Removes or replaces characters: invisible ones, accents, and letters with several forms in Unicode.
    words         Splits a text into words and sentences; finds stems and negations.
    tokens        Counts the tokens of a text, without network and without a model.
"""
