-- Sessions by the name their host gives them. Any text, also none: PostgreSQL's texts do not hold
-- every character and its indexes not every length, so names are bytes and found by their BLAKE3.
CREATE TABLE compact.sessions (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key  BYTEA NOT NULL UNIQUE,
    name BYTEA NOT NULL -- UTF-8: convert_from(name, 'UTF8')
);

-- One row per compaction. `seq` is the order in which they came in.
CREATE TABLE compact.receipts (
    seq             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session         BIGINT NOT NULL REFERENCES compact.sessions (id) ON DELETE CASCADE,
    receipt_id      TEXT COLLATE "C" NOT NULL,
    created_at      TEXT   NOT NULL,
    summary_version BIGINT NOT NULL,
    previous        TEXT,
    input_pack      BYTEA CHECK (length(input_pack) = 32),
    -- As in the receipt, which PostgreSQL cannot look into when a text of it holds a NUL.
    advice_pack     BYTEA CHECK (length(advice_pack) = 32),
    format          TEXT   NOT NULL,
    receipt         JSON   NOT NULL,
    entry_hashes    BYTEA  NOT NULL CHECK (length(entry_hashes) % 16 = 0),
    view_hashes     BYTEA  NOT NULL CHECK (length(view_hashes) % 16 = 0),
    new_from        BIGINT NOT NULL,
    continues       TEXT   NOT NULL CHECK (continues IN ('fresh', 'view', 'transcript')),
    UNIQUE (session, receipt_id)
);

CREATE INDEX receipts_by_id ON compact.receipts (receipt_id, seq);
CREATE INDEX receipts_by_session ON compact.receipts (session, seq);

CREATE TABLE compact.events (
    seq     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES compact.sessions (id) ON DELETE CASCADE,
    event   JSON   NOT NULL
);

CREATE INDEX events_by_session ON compact.events (session, seq);

CREATE TABLE compact.attempts (
    seq     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL REFERENCES compact.sessions (id) ON DELETE CASCADE,
    at      TEXT   NOT NULL,
    turn    TEXT   NOT NULL,
    outcome TEXT   NOT NULL,
    tokens  BIGINT NOT NULL
);

-- Who may compact a session. A fence is never given twice.
CREATE TABLE compact.leases (
    key   BYTEA PRIMARY KEY, -- of the session: it may be claimed before anything is known of it
    fence BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
    ends  TIMESTAMPTZ NOT NULL
);

CREATE INDEX attempts_by_session ON compact.attempts (session, seq);
