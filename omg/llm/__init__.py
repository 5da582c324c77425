"""
Asks a language model, in a child process, and records what it cost. What a reply means is for the Observer and the
Reflector to say.

    asker      Asks a model, through LiteLLM or the gateway's plugin, with retries, fallbacks and the day's cap.
    child      The child process that imports LiteLLM, seen from both ends of its pipe.
    replies    A question to a model and its reply: its size, what it cost, what is wrong with it, and the JSON in it.
"""
