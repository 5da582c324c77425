"""
The slice of memory that a prompt is given: `system`, stable between activations, and `prompt`, fresh each time.

    decide   when `system` is rendered anew, which notes bear on the prompt, what is kept of it
    render   the texts, within their budget
"""
