"""
Days, in and out of words. Pure; "today" is always an argument, and a span is its first and its last day.

    spans    the week around a day, the month two months on, which of several years is meant
    tense    whether a sentence looks back or ahead
    rules    the forms of dates in English, each with what it means
    spoken   a text, said on a day → the days it speaks of
    days     a day in words: "3 weeks ago", "was due 2 days ago"; time zones
"""
