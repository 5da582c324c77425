"""
Models: text in, text out.

    question    what is asked, and why there is no reply
    asker       retries, fallbacks and the day's cap
    child       the process that imports LiteLLM
    places      how many calls of a model are under way at once
    ledger      what was asked and what it cost
    windows     tokens that a model takes in and gives
    replies     of no use, degenerate, thinking aloud
    jsontext    JSON out of a reply

What a reply means is for the Observer and the Reflector to say.
"""
