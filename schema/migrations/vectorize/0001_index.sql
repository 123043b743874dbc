-- One index: `items` has ids and metadata, and `vectors` the vectors under the same rowid.

CREATE TABLE index_definition (dimensions INTEGER NOT NULL, metric TEXT NOT NULL) STRICT;
INSERT INTO index_definition VALUES ({{dimensions}}, '{{metric}}');
CREATE TABLE items (rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metadata TEXT NOT NULL) STRICT;
CREATE TABLE vectors (rowid INTEGER PRIMARY KEY, embedding BLOB NOT NULL) STRICT;
