-- The vectors move into a table of sqlite-vec, which searches chunks of them.

ALTER TABLE vectors RENAME TO plain_vectors;
CREATE VIRTUAL TABLE vectors USING vec0(
  embedding float[{{dimensions}}] distance_metric={{distance}}, chunk_size={{chunkVectors}}
);
INSERT INTO vectors (rowid, embedding) SELECT rowid, embedding FROM plain_vectors ORDER BY rowid;
DROP TABLE plain_vectors;
