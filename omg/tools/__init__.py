"""
Answers the agent's tools, the /omg command and memory_search.

Every answer comes from the one graph that the asking session may see. A name from another graph is answered
like an unknown name.

    tools        Finds the session's graph, and passes tool calls and /omg commands to their functions.
    reading      Answers omg_search and omg_open: notes, messages word for word, and one note in full.
    changing     Answers omg_remember and omg_correct: what an agent may change, and on whose word.
    sentences    Decides whether a person's message says a sentence, or corrects a sentence.
    removing     Answers omg_forget and `/omg forget`: shows what each choice would remove, with a code, and removes
                 what a code confirms.
    today        Answers `/omg today`, `/omg decide` and `/omg why` in five lines for any channel, and writes the
                 notice below a reply.
    settling     Settles doubts of the memory and undoes changes: `/omg confirm`, `reject`, `keep`, `undo`, and the
                 page's buttons.
"""
