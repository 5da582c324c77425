"""
Models: text in, text out. What a reply means is for the Observer and the Reflector to say.

    asker      retries, fallbacks and the day's cap
    child      the process that imports LiteLLM
    ledger     what was asked and what it cost; how many calls are under way
    replies    a question, its reply, and what is wrong with one; JSON out of a reply
"""
