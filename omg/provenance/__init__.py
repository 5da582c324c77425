"""
Who said what a note says: the user, the assistant, or a tool.

    authors   who an edit comes from, by the messages that it cites, and what it may become then
    check     what a model is asked of an edit that would be the user's: do their own words bear it out?
    cases     fixed questions that tell whether a model can answer the check
    settle    what becomes of an edit by the answers
"""
