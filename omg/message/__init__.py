"""
Messages and turns: what was said, cleaned of secrets and of OMG's own text. No I/O.

    turn          Message and Turn: what was said in one exchange with the agent, and which parts are *material*.
    drop          Parses a spool file of the gateway's plugin into a Turn.
    envelope      Removes what the gateway and OMG added to a person's words.
    statements    Splits a message into statements, and decides which of them the person says as their own.
    consent       Decides whether a message gives consent: a plain yes, or a confirmation code alone.
    wording       Turns a sentence into tokens, to compare two sentences: words in lower case, days as digits, "I" and
                  "the user" alike.
"""
