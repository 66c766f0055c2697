CREATE SCHEMA IF NOT EXISTS compact;

-- How far the tables of each part are.
CREATE TABLE IF NOT EXISTS compact.migrations (
    part    TEXT PRIMARY KEY,
    version INTEGER NOT NULL
);
