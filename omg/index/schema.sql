-- The tables of an index, but the two for full text (store.py). Days are ordinals (date.toordinal).

BEGIN IMMEDIATE;

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);

CREATE TABLE note (
    id INTEGER PRIMARY KEY,  -- never used twice: an id that a search holds must not come to mean another note
    path TEXT,
    node TEXT,               -- the note's own id
    type TEXT,
    title TEXT,
    description TEXT,
    priority TEXT,
    status TEXT,
    pinned INTEGER,
    standing INTEGER,
    loop TEXT,
    event TEXT,
    created TEXT,
    updated TEXT,
    origin TEXT,
    superseded_by TEXT,
    tags TEXT,               -- JSON
    home TEXT,               -- the MOC that lists it
    hit INTEGER,             -- whether a search may find it
    said_from INTEGER,
    said_to INTEGER,
    event_from INTEGER,
    event_to INTEGER,
    mtime INTEGER,           -- ns
    size INTEGER,
    hash TEXT
);
CREATE UNIQUE INDEX idx_note_path ON note (path);
CREATE INDEX idx_note_node ON note (node);
CREATE INDEX idx_note_home_status_type ON note (home, status, type);
CREATE INDEX idx_note_said_from ON note (said_from);
CREATE INDEX idx_note_event_from ON note (event_from);
CREATE INDEX idx_note_pinned ON note (pinned);
CREATE INDEX idx_note_standing ON note (standing);
CREATE INDEX idx_note_loop ON note (loop);
-- All columns that order the notes of a type (index.py).
CREATE INDEX idx_note_type_order ON note (type, status, priority, event_from, said_from, path);
CREATE INDEX idx_note_superseded_by ON note (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE bad (path TEXT PRIMARY KEY, mtime INTEGER, size INTEGER, reason TEXT);

-- The names of a note. rank: 0 path, 1 id, 2 alias
CREATE TABLE name (note INTEGER, leaf TEXT, full TEXT, rank INTEGER);
CREATE INDEX idx_name_leaf ON name (leaf);
CREATE INDEX idx_name_note ON name (note);

-- kind: as in links.py; 5 is CONTRADICTION
CREATE TABLE link (src INTEGER, dst INTEGER, target TEXT, full TEXT, leaf TEXT, kind INTEGER);
CREATE INDEX idx_link_src ON link (src);
CREATE INDEX idx_link_dst ON link (dst);
CREATE INDEX idx_link_leaf ON link (leaf);
CREATE INDEX idx_link_contradiction ON link (src, dst) WHERE kind = 5;

CREATE TABLE source (note INTEGER, session TEXT, id TEXT, kind TEXT, timestamp INTEGER);
CREATE INDEX idx_source_note ON source (note);
CREATE INDEX idx_source_id ON source (id);
CREATE INDEX idx_source_session_timestamp ON source (session, timestamp);

-- The columns of the notes' full-text table
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    title TEXT, description TEXT, body TEXT, tags TEXT, dates TEXT, linked TEXT, said TEXT, near TEXT, far TEXT
);

-- embedder: which one made the vector; '': no vector yet; 'gone': the note is gone
CREATE TABLE vector (note INTEGER PRIMARY KEY, embedder TEXT, data BLOB, rev INTEGER);
CREATE INDEX idx_vector_rev ON vector (rev);
CREATE INDEX idx_vector_embedder ON vector (embedder);

CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    mid TEXT,                -- the gateway's id
    key TEXT,
    session TEXT,
    timestamp INTEGER,
    role TEXT,
    talk INTEGER,            -- said by a person or the agent, in words
    file TEXT,
    line TEXT                -- as in the archive
);
CREATE UNIQUE INDEX idx_message_mid_session ON message (mid, session);
CREATE INDEX idx_message_key ON message (key);
CREATE INDEX idx_message_session_talk_timestamp_id ON message (session, talk, timestamp, id);
CREATE INDEX idx_message_file ON message (file);
CREATE INDEX idx_message_timestamp ON message (timestamp);

-- id: its message's row, who said it, and its place (statements.py); start, end: in the message's text; head: a place
CREATE TABLE statement (id INTEGER PRIMARY KEY, start INTEGER, "end" INTEGER, head INTEGER);
CREATE TABLE statement_vector (id INTEGER PRIMARY KEY, data BLOB);

CREATE TABLE archive (file TEXT PRIMARY KEY, "offset" INTEGER, tail BLOB);

COMMIT;
