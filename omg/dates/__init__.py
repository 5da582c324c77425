"""
Finds days in text ("next Friday") and writes days as text ("3 weeks ago").

Functions take today's date as an argument. A span of days is a pair: the first day and the last day.

    rules    Finds dates in English text: each rule is a pattern, and the days that its match means.
    days     Writes days as words, seen from today ("3 weeks ago"); finds the days that a question asks for; reads
             time zones.
"""
