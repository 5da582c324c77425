"""
What the agent's tools, the /omg command and memory_search are answered.

    tools    omg_search, omg_open, omg_remember, omg_forget; the command /omg
    codes    one-use codes that make a forget real
    corpus   memory_search's extra corpus

One rule: every answer is of the one graph that the asking session may see; a name from another graph is as unknown
as one that never was.
"""
