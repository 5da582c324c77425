"""
Chooses the memory for a prompt: `system`, which rarely changes, and `prompt`, new each time.

decide.py decides when `system` is rendered anew. This is called an activation.

    decide      Decides which notes a prompt is given, and when `system` is rendered anew.
    prompt      The text of `system` and `prompt`, within their budgets.
    passages    Quotations: the messages that answer a prompt, each cut to its answering passage.
"""
