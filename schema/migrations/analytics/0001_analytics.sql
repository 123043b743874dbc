-- Events and requests are written at the end of their B-trees, in the order of time, which costs the main thread least: with
-- indexes by name and by user, writing events took ten times as long. The one index covers every count, so that only lists
-- read rows. Days are named by their first millisecond in UTC.

CREATE TABLE IF NOT EXISTS events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  timestamp INTEGER NOT NULL, -- milliseconds since 1970
  name TEXT NOT NULL,
  user_id TEXT, -- NULL: the event names no user
  properties TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_time ON events (timestamp, id, name, user_id);

CREATE TABLE IF NOT EXISTS endpoints (
  id INTEGER PRIMARY KEY,
  method TEXT NOT NULL,
  route TEXT NOT NULL, -- the pattern of the path
  category TEXT NOT NULL,
  UNIQUE (method, route)
) STRICT;

CREATE TABLE IF NOT EXISTS requests (
  second INTEGER NOT NULL, -- since 1970
  endpoint INTEGER NOT NULL,
  status INTEGER NOT NULL,
  user_id TEXT NOT NULL, -- empty: no user
  requests INTEGER NOT NULL,
  duration_us INTEGER NOT NULL, -- of all of them together
  PRIMARY KEY (second, endpoint, status, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS event_days (
  day INTEGER NOT NULL,
  name TEXT NOT NULL, -- empty: all events of the day
  events INTEGER NOT NULL,
  users INTEGER NOT NULL,
  PRIMARY KEY (day, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS request_days (
  day INTEGER NOT NULL,
  category TEXT NOT NULL, -- empty: all requests of the day
  endpoint INTEGER NOT NULL, -- 0: the whole category
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  users INTEGER NOT NULL,
  PRIMARY KEY (day, category, endpoint)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS summarized (
  kind TEXT PRIMARY KEY NOT NULL, -- events, requests
  until INTEGER NOT NULL -- milliseconds since 1970
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO summarized (kind, until) VALUES ('events', 0), ('requests', 0);
