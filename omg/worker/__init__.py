"""
Looks after all graphs of one home: records new turns, observes them on time, reflects at night, and shows the status.

    registry    Keeps every graph of one home: decides which graph a session uses, opens graphs, and records people's
                changes to files.
    intake      Reads drops from the spool and notes from the inbox, and stores them as pending turns.
    worker      Observes pending turns in the background, up to `[observation] parallel` graphs at a time.
    schedule    Decides when pending turns are observed.
    nights      Runs the Reflector over all graphs of a home, at night from cron or when enough has changed; rebuilds
                a graph's notes.
    status      Reports what `omg status` shows: what runs, what waits and why, what it cost, and what the night did.
    events      Writes and reads events.jsonl: one JSON line for each thing that happened.
"""
