"""Old conversations become drops of the spool: plain files, OpenClaw's transcripts and database."""
