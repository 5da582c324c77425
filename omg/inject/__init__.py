"""
The slice of memory that a prompt is given: `system`, stable between activations, and `prompt`, new each time.

At an activation, `system` is rendered anew (decide.py).

    decide      Decides which notes a prompt is given, and when `system` is rendered anew.
    prompt      The text of `system` and `prompt`, within their budgets.
    passages    Quotations: the messages that answer a prompt, each cut to its answering passage.
"""
