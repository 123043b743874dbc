-- The bytes of records' files (fields of type `file`): which there are, and whose. What they are called is in the records.

CREATE TABLE "storage_claims" (
	"fileId" text PRIMARY KEY NOT NULL,
	"bucket" text NOT NULL,
	"size" integer NOT NULL,
	"ownerId" text,
	"namespace" text NOT NULL,
	"instanceId" text NOT NULL,
	"storedAt" integer NOT NULL,
	"isPending" integer NOT NULL
) STRICT;
CREATE INDEX "storage_claims_place" ON "storage_claims" ("namespace","instanceId","fileId");
CREATE INDEX "storage_claims_pending" ON "storage_claims" ("fileId") WHERE "isPending" = 1;
