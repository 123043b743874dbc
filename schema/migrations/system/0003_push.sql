-- Push notifications: devices, what they are subscribed to, and what has been sent. Times are milliseconds since 1970.

CREATE TABLE push_devices (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, -- order of the first registration; the cursor of a message to a topic
  userId TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  deviceId TEXT NOT NULL,
  token TEXT NOT NULL UNIQUE,
  platform TEXT NOT NULL, -- android, ios, web
  metadata TEXT NOT NULL DEFAULT '{}', -- JSON object, the administrator's
  createdAt INTEGER NOT NULL,
  registeredAt INTEGER NOT NULL, -- the last time
  UNIQUE (userId, deviceId)
) STRICT;

CREATE TABLE push_topics (
  topic TEXT NOT NULL,
  deviceSeq INTEGER NOT NULL REFERENCES push_devices (seq) ON DELETE CASCADE,
  PRIMARY KEY (topic, deviceSeq)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_topics_deviceSeq ON push_topics (deviceSeq);

CREATE TABLE push_logs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  userId TEXT, -- NULL: sent to a bare token
  status TEXT NOT NULL, -- sent, failed, removed
  platform TEXT NOT NULL,
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  error TEXT,
  timestamp INTEGER NOT NULL
) STRICT;
CREATE INDEX push_logs_userId ON push_logs (userId, seq);
CREATE INDEX push_logs_timestamp ON push_logs (timestamp);
