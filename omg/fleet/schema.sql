-- The tables of a fleet, beside Procrastinate's own. A tenant is what a home is on one machine.

CREATE TABLE IF NOT EXISTS omg_tenants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    token_hash bytea NOT NULL UNIQUE,  -- SHA-256; the token itself is in no row
    made_at timestamptz NOT NULL DEFAULT now()
);

-- A graph, or with the folder '' the files of the home itself (omg.toml, owners.json, the ledger).
CREATE TABLE IF NOT EXISTS omg_graphs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL REFERENCES omg_tenants ON DELETE CASCADE,
    folder text NOT NULL,
    generation bigint NOT NULL DEFAULT 0,  -- grows with each commit of work; work on an older one is not committed
    revision bigint NOT NULL DEFAULT 0,    -- grows with every write: copies of an older one are behind
    erased bigint NOT NULL DEFAULT 0,      -- the revision that last forgot something: older copies are deleted whole
    due_at timestamptz,                    -- when to look again at what waits to be observed
    night_at timestamptz,                  -- when it is reflected next; NULL: nothing new since the last time
    UNIQUE (tenant, folder)
);
CREATE INDEX IF NOT EXISTS omg_graphs_due ON omg_graphs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS omg_graphs_night ON omg_graphs (night_at) WHERE night_at IS NOT NULL;

-- A file, in parts of 64 KiB: an appended line rewrites the last part alone.
CREATE TABLE IF NOT EXISTS omg_files (
    graph bigint NOT NULL REFERENCES omg_graphs ON DELETE CASCADE,
    path text NOT NULL,
    part int NOT NULL,
    revision bigint NOT NULL,  -- that wrote this part
    mtime_ns bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (graph, path, part)
);

-- What was said and is in no graph yet.
CREATE TABLE IF NOT EXISTS omg_drops (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    graph bigint NOT NULL REFERENCES omg_graphs ON DELETE CASCADE,
    name text NOT NULL,
    bytes bytea NOT NULL,
    came_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (graph, name)
);
