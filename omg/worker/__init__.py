"""
All graphs of one home: taken in, observed on time, reflected at night, reported.

    registry    whose graphs there are, opened and brought up to their files; what a new vault starts with
    intake      what comes in: drops and loose notes, as turns that wait; a long drop is read in a process of its own
    worker      what is observed, when, and by which model; the threads that do it
    schedule    when: the rules, without I/O
    nights      the Reflector, graph after graph
    delegate    what a command hands to the daemon
    status      what is up, what waits and why
    events      what happened, a line each
"""
