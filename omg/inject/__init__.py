"""
The slice of memory that a prompt is given: `system`, stable between activations, and `prompt`, fresh each time.

    decide   when `system` is rendered anew, which notes bear on the prompt, what is kept of it
    sure     whether what was found answers the prompt well enough to be given
    course   whether the prompt asks for the course of something, and of what, or for several things
    named    the maps, topics and projects that the prompt names, and their lines
    system   the stable text, within its budget
    passages what was said, cut to what answers
    former   whether a note says something else by now
    prompt   the fresh text, within its budget
"""
