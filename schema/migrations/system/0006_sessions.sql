-- A user has at most 1,000 sessions from now on: of those who have more, the ones used last stay.

DELETE FROM sessions WHERE id IN (
  SELECT id FROM (
    SELECT id, row_number() OVER (PARTITION BY userId ORDER BY lastUsedAt DESC, id DESC) AS place FROM sessions
  ) WHERE place > 1000
);
