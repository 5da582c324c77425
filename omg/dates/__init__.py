"""
Days, in and out of words. Pure: today is always an argument, and a span is its first and its last day.

    rules    a text, said on a day → the days it speaks of: the forms of dates in English, tense, spans
    days     a day in words: "3 weeks ago", "was due 2 days ago"; time zones
"""
