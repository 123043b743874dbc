-- The version of a file is its PRAGMA user_version from here on. Executables from before look in _migrations for the steps that
-- they know, and refuse a file that names another: this row makes them refuse.

CREATE TABLE IF NOT EXISTS _migrations (name TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO _migrations (name) VALUES ('0007_versions');
