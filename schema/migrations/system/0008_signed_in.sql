-- Users who have never signed in may be invited. Of earlier users nothing says so: they count as having signed in.

ALTER TABLE "users" ADD "hasSignedIn" integer DEFAULT false NOT NULL;
UPDATE "users" SET "hasSignedIn" = true;
