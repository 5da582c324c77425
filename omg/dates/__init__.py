"""
Days in text: finds them ("next Friday") and writes them ("3 weeks ago"). Pure: today is always an argument, and a
span is its first and its last day.

    rules    The forms of dates in English: a pattern for each, and the days that a match means.
    days     A day in words, seen from today ("3 weeks ago", "was due 2 days ago"); the days that a question asks for;
             time zones.
"""
