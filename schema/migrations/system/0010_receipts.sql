-- A client whose connection was lost repeats an upload, and gets the answer that it missed.

CREATE TABLE "storage_receipts" (
	"id" text PRIMARY KEY NOT NULL,
	"bucket" text NOT NULL,
	"key" text NOT NULL,
	"ownerId" text,
	"size" integer NOT NULL,
	"uploaded" integer NOT NULL
) STRICT;
CREATE INDEX "storage_receipts_uploaded" ON "storage_receipts" ("uploaded");
CREATE INDEX "storage_receipts_owner" ON "storage_receipts" ("ownerId","uploaded");
