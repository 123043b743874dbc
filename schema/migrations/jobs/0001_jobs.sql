-- Durable jobs. Times are milliseconds since 1970. `data` is last, so that a scan does not read the pages of long texts.

CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY, -- the order in which jobs were enqueued
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  state INTEGER NOT NULL, -- 0 waiting, 1 waiting behind another job of its group, 2 running, 3 done, 4 failed
  attempt INTEGER NOT NULL, -- the tries that have begun
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  started_at INTEGER, -- of the latest try
  finished_at INTEGER, -- NULL until the job is done or has failed
  key TEXT,
  group_key TEXT,
  error TEXT, -- of the latest try that failed
  secret BLOB, -- encrypted; removed when the job is done
  data TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX jobs_due ON jobs (name, due_at, seq) WHERE state = 0;
CREATE INDEX jobs_listed ON jobs (name, state, seq);
CREATE UNIQUE INDEX jobs_by_key ON jobs (name, key) WHERE key IS NOT NULL AND state < 3;
CREATE INDEX jobs_by_group ON jobs (name, group_key, seq) WHERE group_key IS NOT NULL AND state < 3;
CREATE INDEX jobs_finished ON jobs (state, finished_at) WHERE state > 2;

-- Kept by the transactions that change jobs: counting a million rows would block the event loop.
CREATE TABLE job_counts (
  name TEXT PRIMARY KEY NOT NULL,
  waiting INTEGER NOT NULL,
  running INTEGER NOT NULL,
  done INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  failed_total INTEGER NOT NULL -- includes jobs that are no longer kept
) STRICT, WITHOUT ROWID;

-- The time for which each schedule last made a job, or skipped one.
CREATE TABLE schedules (
  name TEXT PRIMARY KEY NOT NULL,
  last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
