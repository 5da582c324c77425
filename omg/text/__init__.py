"""
How a text is read: its characters, words, sentences and negations, and its cost in tokens. No I/O but the word list
and the table of tokens.

    characters    Characters: invisible ones, scripts without spaces between words, and Unicode normal forms.
    words         The words of a text: all of them, those that carry meaning, their stems, and negation; its
                  sentences.
    tokens        Counts the tokens of a text, without network and without a model.
"""
