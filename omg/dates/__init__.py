"""
Finds days in text ("next Friday") and writes days as text ("3 weeks ago"). Today is always an argument, and a span is
its first and its last day.

    rules    Finds dates in English text: each rule is a pattern, and the days that its match means.
    days     Writes days as words, seen from today ("3 weeks ago"); finds the days that a question asks for; reads
             time zones.
"""
