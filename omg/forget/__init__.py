"""
Take something back so that no byte of it stays: note, archive, receipts, pending, snapshots, index, logs.

    selection   what would go with it: shown to the person first
    erase       the erasing, which a crash does not stop halfway
    traces      where else something of it stands: links, receipts, replaced graphs, drops, logs

The gateway's own transcripts are OpenClaw's to delete; the caller says so.
"""
