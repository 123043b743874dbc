-- Endpoints are told apart by what they were asked about (a table, a bucket, a room type), and latencies are kept as histograms:
-- percentiles of any range and of any endpoints together are those of the sum of their histograms, which averages cannot give.
-- A histogram has a row for each of its buckets that is not empty, so that sums are plain SQL. Slow requests are kept whole.

CREATE TABLE endpoints_by_target (
  id INTEGER PRIMARY KEY,
  method TEXT NOT NULL,
  route TEXT NOT NULL, -- the pattern of the path
  category TEXT NOT NULL,
  target TEXT NOT NULL DEFAULT '', -- empty: none, or recorded before there were targets
  UNIQUE (method, route, target)
) STRICT;
INSERT INTO endpoints_by_target (id, method, route, category) SELECT id, method, route, category FROM endpoints;
DROP TABLE endpoints;
ALTER TABLE endpoints_by_target RENAME TO endpoints;

CREATE TABLE latencies (
  minute INTEGER NOT NULL, -- since 1970
  endpoint INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  PRIMARY KEY (minute, endpoint, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE latency_days (
  day INTEGER NOT NULL,
  endpoint INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  PRIMARY KEY (day, endpoint, bucket)
) STRICT, WITHOUT ROWID;

ALTER TABLE request_days ADD COLUMN errors_4xx INTEGER NOT NULL DEFAULT 0; -- 0 for days that were summarised before
INSERT OR IGNORE INTO summarized (kind, until, since) VALUES ('latencies', 0, 0);

CREATE TABLE slow_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL, -- milliseconds since 1970
  request TEXT NOT NULL -- JSON
) STRICT;
