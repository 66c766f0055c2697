-- Sessions by the name their host gives them. Any text, also none.
CREATE TABLE sessions (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- One row per compaction. `seq` is the order in which they came in.
CREATE TABLE receipts (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    session         INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    receipt_id      TEXT    NOT NULL,
    created_at      TEXT    NOT NULL,
    summary_version INTEGER NOT NULL,
    previous        TEXT,
    input_pack      BLOB CHECK (length(input_pack) = 32),
    format          TEXT    NOT NULL,
    receipt         TEXT    NOT NULL, -- JSON
    entry_hashes    BLOB    NOT NULL CHECK (length(entry_hashes) % 16 = 0),
    view_hashes     BLOB    NOT NULL CHECK (length(view_hashes) % 16 = 0),
    new_from        INTEGER NOT NULL,
    continues       TEXT    NOT NULL CHECK (continues IN ('fresh', 'view', 'transcript')),
    UNIQUE (session, receipt_id)
) STRICT;

CREATE INDEX receipts_by_id ON receipts (receipt_id, seq);

CREATE TABLE events (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    event   TEXT    NOT NULL -- JSON
) STRICT;

CREATE INDEX events_by_session ON events (session, seq);

CREATE TABLE attempts (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at      TEXT    NOT NULL,
    turn    TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    tokens  INTEGER NOT NULL
) STRICT;

CREATE INDEX attempts_by_session ON attempts (session, seq);
