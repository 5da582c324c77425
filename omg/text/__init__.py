"""
How a text is read, the same way everywhere. No I/O but the word list and the table of tokens.

    characters   invisible ones, scripts without spaces, one form for what is written in several
    words        the words of a text, those that tell something, and whether a word stands among others
    english      verbs and stems of English, with english.toml
    sentences    where sentences begin, and the marks of lists
    negation     whether a text says that something is not so
    links        links as a reader sees them
    tokens       how much a text costs
"""
