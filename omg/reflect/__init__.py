"""
The Reflector, at night: repetitions, contradictions, maps, weeks and months.

    run          One night over one graph, from its lock to its receipt.
    drafting     The drafts of one night: what changed, what is done about it, and what a model is asked.
    verdicts     Asks a model about groups of notes, and reads its verdict on each group.
    permitted    Which of a model's verdicts on notes are carried out.
    similar      Notes that are alike: merges repetitions, and finds what a model has to compare.
    periods      Reflections on weeks and months: which are due, and their pages.
    topics       Which notes belong together; splits maps that have grown too long.
"""
