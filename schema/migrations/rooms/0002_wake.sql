-- Timers are read by namespace: the rooms of a namespace that is no longer declared stay until they expire, and must not be
-- read each time. Files without a version may have either index.

DROP INDEX IF EXISTS rooms_by_timer;
CREATE INDEX IF NOT EXISTS rooms_by_wake ON rooms (namespace, next_timer_at, id) WHERE next_timer_at IS NOT NULL;
