-- When an entry was said, and where the other half of its exchange stands. Everything here comes from the
-- archive, so what there is makes room and is drawn again with them.
DELETE FROM postings;
DELETE FROM entries;
DELETE FROM receipts;
DELETE FROM sessions;

ALTER TABLE entries ADD COLUMN partner INTEGER;
ALTER TABLE entries ADD COLUMN said_at TEXT;

CREATE INDEX entries_by_ordinal ON entries (session, ordinal);
