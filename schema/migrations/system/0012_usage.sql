-- What buckets with a quota hold: a row for each owner, and one with the owner '' for all of them together.

CREATE TABLE "storage_usage" (
	"bucket" text NOT NULL,
	"ownerId" text NOT NULL,
	"bytes" integer NOT NULL,
	PRIMARY KEY("bucket", "ownerId")
) STRICT, WITHOUT ROWID;
