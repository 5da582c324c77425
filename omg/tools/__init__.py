"""
Answers the agent's tools, the /omg command and memory_search.

Every answer comes from the one graph that the asking session may see. A name from another graph is answered
like an unknown name.

    tools        Finds the graph that a session may see, and who answers its tool call or /omg command.
    reading      omg_search and omg_open: notes, messages word for word, and one note in full.
    changing     omg_remember and omg_correct: what an agent may change, and on whose word.
    sentences    Compares a text with what a person said: whether they said just that, said just what changes, or
                 plainly agreed.
    removing     omg_forget and `/omg forget`: show what each choice would remove, with a code, and remove what a code
                 confirms.
    today        Answers `/omg today`, `/omg decide` and `/omg why` in five lines for any channel, and writes the
                 notice below a reply.
    settling     Settles doubts of the memory and undoes changes: `/omg confirm`, `reject`, `keep`, `undo`, and the
                 page's buttons.
"""
