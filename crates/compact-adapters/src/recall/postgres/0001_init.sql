-- The names of sessions as in the catalog; nothing refers to it, so that either may be dropped.
CREATE TABLE compact.recall_sessions (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key      BYTEA  NOT NULL UNIQUE,
    name     BYTEA  NOT NULL,
    passages BIGINT NOT NULL DEFAULT 0 -- how many it has
);

-- One row per compaction whose input has been added.
CREATE TABLE compact.recall_receipts (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session    BIGINT NOT NULL REFERENCES compact.recall_sessions (id) ON DELETE CASCADE,
    receipt_id TEXT   NOT NULL,
    created_at TEXT   NOT NULL,
    UNIQUE (session, receipt_id)
);

-- One row per entry and session.
CREATE TABLE compact.recall_entries (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session  BIGINT NOT NULL REFERENCES compact.recall_sessions (id) ON DELETE CASCADE,
    receipt  BIGINT NOT NULL REFERENCES compact.recall_receipts (id) ON DELETE CASCADE,
    hash     BYTEA  NOT NULL CHECK (length(hash) = 16),
    entry_id BYTEA  NOT NULL,
    ordinal  BIGINT,
    role     TEXT   NOT NULL,
    voice    TEXT   NOT NULL,
    text     BYTEA  NOT NULL, -- a zstd frame
    UNIQUE (session, hash)
);

CREATE INDEX recall_entries_by_receipt ON compact.recall_entries (receipt);

-- Stretches of entries that are found by themselves, by the terms that they hold.
CREATE TABLE compact.recall_passages (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT   NOT NULL,
    entry   BIGINT   NOT NULL REFERENCES compact.recall_entries (id) ON DELETE CASCADE,
    first   INTEGER  NOT NULL, -- bytes of the text
    beyond  INTEGER  NOT NULL,
    told    BOOLEAN  NOT NULL, -- a person or the model speaks
    terms   TSVECTOR NOT NULL
);

CREATE INDEX recall_passages_by_entry ON compact.recall_passages (entry);
CREATE INDEX recall_passages_by_term ON compact.recall_passages USING gin (terms) WITH (fastupdate = off);
