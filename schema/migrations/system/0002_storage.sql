-- Files in buckets: what a key names, and what is on its way in. Times are milliseconds since 1970.

CREATE TABLE storage_objects (
  bucket TEXT NOT NULL,
  key TEXT NOT NULL,
  fileId TEXT NOT NULL UNIQUE, -- names the bytes; a new one with every overwrite
  size INTEGER NOT NULL, -- bytes
  contentType TEXT NOT NULL,
  customMetadata TEXT NOT NULL DEFAULT '{}', -- JSON object of strings
  uploadedBy TEXT, -- a user's id; NULL: a service key or the server
  uploaded INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1, -- goes up with every change of the metadata
  PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE storage_uploads (
  id TEXT PRIMARY KEY NOT NULL,
  bucket TEXT NOT NULL,
  key TEXT NOT NULL,
  contentType TEXT NOT NULL,
  customMetadata TEXT NOT NULL DEFAULT '{}',
  ownerId TEXT, -- NULL: a service key
  createdAt INTEGER NOT NULL
) STRICT;
CREATE INDEX storage_uploads_createdAt ON storage_uploads (createdAt);
CREATE INDEX storage_uploads_owner ON storage_uploads (bucket, ownerId);

CREATE TABLE storage_parts (
  uploadId TEXT NOT NULL REFERENCES storage_uploads (id) ON DELETE CASCADE,
  partNumber INTEGER NOT NULL,
  fileId TEXT NOT NULL UNIQUE, -- names the bytes, and is the part's etag
  size INTEGER NOT NULL,
  PRIMARY KEY (uploadId, partNumber)
) STRICT, WITHOUT ROWID;

CREATE TABLE storage_grants (
  id TEXT PRIMARY KEY NOT NULL,
  bucket TEXT NOT NULL,
  key TEXT NOT NULL,
  auth TEXT, -- JSON; NULL: a service key
  expiresAt INTEGER NOT NULL
) STRICT;
CREATE INDEX storage_grants_expiresAt ON storage_grants (expiresAt);
