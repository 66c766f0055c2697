-- When an entry was said, and where the other half of its exchange stands. Everything here comes from the
-- archive, so what there is makes room and is drawn again with them.
DELETE FROM compact.recall_sessions;

ALTER TABLE compact.recall_entries ADD COLUMN partner BIGINT;
ALTER TABLE compact.recall_entries ADD COLUMN said_at TEXT;

CREATE INDEX recall_entries_by_ordinal ON compact.recall_entries (session, ordinal);
