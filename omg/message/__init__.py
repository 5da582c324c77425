"""
Messages and turns: what was said, cleaned of secrets and of OMG's own text. No I/O.

    turn          Message and Turn: what was said in one exchange with the agent, and which parts of it are
                  *material*.
    drop          Parses a spool file of the gateway's plugin into a Turn.
    envelope      Takes off what hosts and OMG put around a person's words.
    statements    The statements of a message (sentences and list items), each with what governs it.
    consent       Consent is a whole message: a plain yes, or a code alone.
    wording       The words of a sentence as tokens, by which two sentences are compared whole: words in lower case,
                  days as digits, "I" and "the user" alike.
"""
