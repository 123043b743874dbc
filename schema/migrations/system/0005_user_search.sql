-- Users are found by the beginning of their name, in letters A-Z of either case; by email there is an index already.

CREATE INDEX users_displayName ON users (displayName COLLATE NOCASE, seq);
