"""
Whether a text says what its sources say: the one judge of all that may come to stand in a prompt.

    statements what a person states, asks and denies; what they accept of a proposal
    sight      everything in sight of one reply: whose words are whose
    judge      what a note, a change or a hint may say, and who it is held to come from
    corrections  whether a person asked for a note to be changed
"""
