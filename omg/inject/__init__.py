"""
The slice of memory that a prompt is given: `system`, stable between activations, and `prompt`, fresh each time.

    decide      when `system` is rendered anew, which notes bear on the prompt, what is kept of it
    prompt      both texts, within their budgets
    former      whether a note says something else by now
    passages    what was said, cut to what answers
"""
