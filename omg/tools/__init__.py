"""
What the agent's tools, the /omg command and memory_search are answered.

Every answer is of the one graph that the asking session may see. A name from another graph is as unknown as one that
never was.

    tools       who answers which tool; the command /omg; memory_search's extra corpus
    reading     omg_search, omg_open
    changing    omg_remember, omg_correct, omg_forget, and the codes that make a choice real
"""
