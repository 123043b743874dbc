-- Rows from `since` on and before `until` are in the daily sums: they are being removed, and no longer count. Both are 0 when all
-- have been removed: later rows of such a day, as after a clock that was wrong, are rows like any other. Before this step
-- every row before `until` counted as summed up.

ALTER TABLE summarized ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
