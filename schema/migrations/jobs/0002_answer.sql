-- What another server answered to a try. After `data`, which only lists of administrators read together with it.
ALTER TABLE jobs ADD COLUMN answer TEXT; -- JSON, of the latest try that had an answer
