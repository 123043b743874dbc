-- Exports of users and merges of accounts look for the files that a user has uploaded.

CREATE INDEX "storage_objects_uploadedBy" ON "storage_objects" ("uploadedBy","bucket","key") WHERE "uploadedBy" IS NOT NULL;
