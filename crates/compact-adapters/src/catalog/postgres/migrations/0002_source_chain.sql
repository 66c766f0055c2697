-- Names the history that was compacted; none for what came before this column.
ALTER TABLE compact.receipts ADD COLUMN source_chain BYTEA CHECK (length(source_chain) = 16);

CREATE INDEX receipts_by_source ON compact.receipts (source_chain) WHERE source_chain IS NOT NULL;
