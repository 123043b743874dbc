-- When the user of a session last proved who they are, and which of its access tokens count; wrong codes of a day.

ALTER TABLE sessions ADD COLUMN provedAt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokenVersion INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET provedAt = createdAt;

CREATE TABLE code_failures (
  key TEXT PRIMARY KEY NOT NULL, -- what the codes are for, and whose
  failures INTEGER NOT NULL,
  endsAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX code_failures_endsAt ON code_failures (endsAt);
