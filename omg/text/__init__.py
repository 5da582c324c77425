"""
How a text is read, the same way everywhere. No I/O but the word list and the table of tokens.

    characters    invisible ones, scripts without spaces, one form for what is written in several; links as labels
    words         the words of a text, those that tell something, stems of English (english.toml), negation
    sentences     where sentences begin, and the marks of lists
    tokens        how much a text costs
"""
