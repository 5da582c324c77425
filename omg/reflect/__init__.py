"""
The Reflector, by night: repetitions, contradictions, which map a note is on, weeks and months.

    run          one cycle over one graph, from its lock to its receipt
    drafting     what a cycle drafts, and what a model is asked
    verdicts     which notes a model compares, its verdicts, and what was compared before
    permitted    what of a model's verdicts is done
    similar      what is done without a model: repetitions, former links, dormant notes
    periods      what is due of weeks, months and projects, and their pages
    topics       which notes belong together; maps that grew too long are split
"""
