-- Who may compact a session. A fence is never given twice.
CREATE TABLE leases (
    fence   INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT    NOT NULL UNIQUE, -- by name: a session may be claimed before anything is known of it
    ends    INTEGER NOT NULL         -- milliseconds of Unix time
) STRICT;
