CREATE TABLE sessions (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT    NOT NULL UNIQUE,
    passages INTEGER NOT NULL DEFAULT 0 -- how many it has
) STRICT;

-- One row per compaction whose input has been added.
CREATE TABLE receipts (
    id         INTEGER PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    receipt_id TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    UNIQUE (session, receipt_id)
) STRICT;

-- One row per entry and session. Its passages are numbered in a row, from `first` on; the numbers are
-- those of the postings.
CREATE TABLE entries (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    receipt  INTEGER NOT NULL REFERENCES receipts (id) ON DELETE CASCADE,
    hash     BLOB    NOT NULL CHECK (length(hash) = 16),
    entry_id TEXT    NOT NULL,
    ordinal  INTEGER,
    role     TEXT    NOT NULL,
    voice    TEXT    NOT NULL,
    first    INTEGER NOT NULL UNIQUE,
    spans    BLOB    NOT NULL, -- start and end of each passage in the text, as 32-bit numbers
    text     BLOB    NOT NULL, -- a zstd frame
    UNIQUE (session, hash)
) STRICT;

CREATE INDEX entries_by_receipt ON entries (receipt);

-- Which passages hold a term, 65,536 numbers to a block. A block comes first, so that an addition
-- writes to one stretch of the file. Terms that begin with a space are ours: a session, or who speaks.
CREATE TABLE postings (
    block    INTEGER NOT NULL,
    term     TEXT    NOT NULL,
    passages BLOB    NOT NULL, -- their numbers in the block, ascending, as 16-bit numbers
    PRIMARY KEY (block, term)
) STRICT, WITHOUT ROWID;
