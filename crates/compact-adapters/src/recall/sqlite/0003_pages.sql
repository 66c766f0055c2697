-- Terms stand in pages, texts in stretches: both take half as much room as alone. Everything here comes from the archive,
-- so what there is makes room and is drawn again.
DROP TABLE postings;
DROP TABLE entries;
DELETE FROM receipts;
DELETE FROM sessions;

-- Texts of entries, one behind the other, in a zstd frame. Those of one addition share it.
CREATE TABLE texts (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    frame   BLOB    NOT NULL
) STRICT;

CREATE INDEX texts_by_session ON texts (session);

-- One row per entry and session. Its passages are numbered in a row, from `first` on; the numbers are
-- those of the postings.
CREATE TABLE entries (
    session  INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    receipt  INTEGER NOT NULL REFERENCES receipts (id) ON DELETE CASCADE,
    hash     BLOB    NOT NULL CHECK (length(hash) = 16),
    entry_id TEXT    NOT NULL,
    ordinal  INTEGER,
    partner  INTEGER, -- where the other half of its exchange stands
    said_at  TEXT,
    role     TEXT    NOT NULL,
    voice    TEXT    NOT NULL,
    first    INTEGER PRIMARY KEY,
    passages INTEGER NOT NULL, -- how many it has
    spans    BLOB    NOT NULL, -- of each passage: how far it begins behind the one before, and its length
    text     INTEGER NOT NULL, -- in which of the texts it stands, its first byte, and its bytes
    start    INTEGER NOT NULL,
    length   INTEGER NOT NULL,
    UNIQUE (session, hash)
) STRICT;

CREATE INDEX entries_by_receipt ON entries (receipt);
CREATE INDEX entries_by_ordinal ON entries (session, ordinal);

-- Which passages hold a term, 65,536 numbers to a block. A block comes first, so that an addition writes to one stretch
-- of the file. Terms that begin with a space are ours: a session, or who speaks.
CREATE TABLE postings (
    block INTEGER NOT NULL,
    first TEXT    NOT NULL, -- no term of the page is smaller, and none of the page before is larger
    terms BLOB    NOT NULL, -- a zstd frame; of each: bytes shared with the one before, its others, its passages
    UNIQUE (block, first)
) STRICT;
