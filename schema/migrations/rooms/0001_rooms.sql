-- Saved rooms. Times are milliseconds since 1970. Files without a version may have the tables.

CREATE TABLE IF NOT EXISTS rooms (
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  shared TEXT NOT NULL, -- JSON, as players, server, metadata, timers and present
  shared_version INTEGER NOT NULL,
  players TEXT NOT NULL, -- { [userId]: { state, version } }
  server TEXT NOT NULL,
  metadata TEXT NOT NULL,
  timers TEXT NOT NULL, -- { [name]: { dueAt, data } }
  present TEXT NOT NULL, -- the players in the room: [{ userId, connectionId, role, auth, sessionId }]
  saved_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  next_timer_at INTEGER, -- NULL: no timer is set
  PRIMARY KEY (namespace, id)
) STRICT;
CREATE INDEX IF NOT EXISTS rooms_by_expiry ON rooms (expires_at);
