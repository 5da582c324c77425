"""
Messages and turns: what was said, cleaned of secrets and of OMG's own text. No I/O.

    turn          Message and Turn: what was said in one exchange with the agent, and which parts of it are
                  *material*.
    drop          Parses a spool file of the gateway's plugin into a Turn.
    envelope      Takes off what hosts and OMG put around a person's words.
    statements    Splits a message into statements (sentences and list items), and says of each whether it is the
                  person's own.
    consent       Consent is a whole message: a plain yes, or a code alone.
    wording       Turns a sentence into tokens, to compare two sentences: words in lower case, days as digits, "I" and
                  "the user" alike.
"""
