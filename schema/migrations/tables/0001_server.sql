-- The server's own tables in a file of declared tables. Files without a version may have some of them.

CREATE TABLE IF NOT EXISTS _platform_meta (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- The rows of each table, kept by the transactions that change them.
CREATE TABLE IF NOT EXISTS _platform_counts (name TEXT PRIMARY KEY NOT NULL, rows INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Records whose texts are yet to be indexed: deleting a row of it indexes its record.
CREATE TABLE IF NOT EXISTS _platform_pending_texts (
  "table" TEXT NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY ("table", id)
) STRICT, WITHOUT ROWID;

-- The migrations of the config that have run.
CREATE TABLE IF NOT EXISTS _platform_migrations (
  "table" TEXT NOT NULL,
  version INTEGER NOT NULL,
  description TEXT NOT NULL,
  PRIMARY KEY ("table", version)
) STRICT, WITHOUT ROWID;
