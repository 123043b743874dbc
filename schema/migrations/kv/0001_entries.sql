-- The keys of one namespace. They are in byte order, which is what the BINARY collation of SQLite gives.

CREATE TABLE IF NOT EXISTS entries (
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL, -- JSON
  expires_at INTEGER -- milliseconds since 1970; NULL: never
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;
