"""
What the agent's tools, the /omg command and memory_search are answered.

    tools       who answers which tool; the command /omg
    reading     omg_search, omg_open
    remembering omg_remember
    correcting  omg_correct
    forgetting  omg_forget: the choices, and the one that was made
    codes       one-use codes that make a choice real
    asked       what a gateway sends with a question
    corpus      memory_search's extra corpus

One rule: every answer is of the one graph that the asking session may see; a name from another graph is as unknown
as one that never was.
"""
