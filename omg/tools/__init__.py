"""
Answers the agent's tools, the /omg command and memory_search.

Every answer is of the one graph that the asking session may see. A name from another graph is as unknown as one that
never was.

    tools       Finds the graph that a session may see, and who answers its tool call or /omg command.
    reading     omg_search and omg_open: notes, messages word for word, and one note in full.
    changing    omg_remember, omg_correct and omg_forget: what an agent may change, and on whose word.
"""
