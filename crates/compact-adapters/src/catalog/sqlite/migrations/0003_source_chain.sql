-- Names the history that was compacted; none for what came before this column.
ALTER TABLE receipts ADD COLUMN source_chain BLOB CHECK (length(source_chain) = 16);

CREATE INDEX receipts_by_source ON receipts (source_chain) WHERE source_chain NOT NULL;
