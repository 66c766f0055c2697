CREATE TABLE sessions (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- One row per compaction whose input has been added.
CREATE TABLE receipts (
    id         INTEGER PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    receipt_id TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    UNIQUE (session, receipt_id)
) STRICT;

-- One row per entry and session.
CREATE TABLE entries (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    receipt  INTEGER NOT NULL REFERENCES receipts (id) ON DELETE CASCADE,
    hash     BLOB    NOT NULL CHECK (length(hash) = 16),
    entry_id TEXT    NOT NULL,
    ordinal  INTEGER,
    role     TEXT    NOT NULL,
    voice    TEXT    NOT NULL,
    text     BLOB    NOT NULL, -- a zstd frame
    UNIQUE (session, hash)
) STRICT;

CREATE INDEX entries_by_receipt ON entries (receipt);

-- Stretches of an entry's text, by byte.
CREATE TABLE passages (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    entry INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;

CREATE INDEX passages_by_entry ON passages (entry);

-- The different terms of each passage and, as `#ID`, its session. Which terms there are is not
-- SQLite's decision: they come parted by spaces and stay whole. Where they stand in the passage is
-- not needed to find it, so it is not stored.
CREATE VIRTUAL TABLE terms USING fts5(
    words,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = "ascii tokenchars '_./:-@#'"
);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, 'row');
