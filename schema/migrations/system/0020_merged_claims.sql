-- Merges of accounts look for the files of records that a user has sent.

CREATE INDEX "storage_claims_owner" ON "storage_claims" ("ownerId","fileId") WHERE "ownerId" IS NOT NULL;
