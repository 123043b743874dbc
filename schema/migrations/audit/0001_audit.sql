-- Entries are stored as they were written in the files of their changes: a row has those of a transaction, so that taking them
-- costs little. Reports look into rows beside the server, from the newest on.

CREATE TABLE batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  batch TEXT NOT NULL UNIQUE, -- the id of the row that was taken, so that it is taken once
  kind TEXT NOT NULL, -- change, session
  at INTEGER NOT NULL, -- of the last entry; milliseconds since 1970
  entries TEXT NOT NULL -- a JSON array
) STRICT;
-- Retention finds what is too old, and the first of a kind, without reading the entries of others.
CREATE INDEX batches_by_time ON batches (at);
CREATE INDEX batches_by_kind ON batches (kind);
