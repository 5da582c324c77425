-- The tables of a fleet, beside Procrastinate's own. A tenant holds what a home holds on one machine.

CREATE TABLE IF NOT EXISTS omg_tenants (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    token_hash bytea NOT NULL UNIQUE,  -- SHA-256; the token itself is in no row
    made_at timestamptz NOT NULL DEFAULT now()
);

-- A graph; with the folder '' the home's own files (omg.toml, owners.json, the ledger).
CREATE TABLE IF NOT EXISTS omg_graphs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL REFERENCES omg_tenants ON DELETE CASCADE,
    folder text NOT NULL,
    generation bigint NOT NULL DEFAULT 0,  -- grows with each commit of work; work on an older generation is not committed
    revision bigint NOT NULL DEFAULT 0,    -- grows with every write; a copy with an older revision is outdated
    erased bigint NOT NULL DEFAULT 0,      -- the revision that last forgot something; older copies are deleted whole
    due_at timestamptz,                    -- when to observe the waiting turns
    night_at timestamptz,                  -- when to reflect next; NULL: nothing is new since the last time
    UNIQUE (tenant, folder)
);
CREATE INDEX IF NOT EXISTS omg_graphs_due ON omg_graphs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS omg_graphs_night ON omg_graphs (night_at) WHERE night_at IS NOT NULL;

-- A file, in parts of 64 KiB, so that an appended line rewrites only the last part.
CREATE TABLE IF NOT EXISTS omg_files (
    graph bigint NOT NULL REFERENCES omg_graphs ON DELETE CASCADE,
    path text NOT NULL,
    part int NOT NULL,
    revision bigint NOT NULL,  -- the revision that wrote this part
    mtime_ns bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (graph, path, part)
);

-- Turns that no graph has taken in yet.
CREATE TABLE IF NOT EXISTS omg_drops (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    graph bigint NOT NULL REFERENCES omg_graphs ON DELETE CASCADE,
    name text NOT NULL,
    bytes bytea NOT NULL,
    came_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (graph, name)
);
