-- One form of an address everywhere: a start finds the few of which there may be others. An identity vouches for the user's
-- present address only: of users who have changed it, none does any more, and a password reset removes it.

UPDATE "identities" SET "emailVerified" = false
WHERE "email" IS NOT (SELECT "users"."email" FROM "users" WHERE "users"."id" = "identities"."userId");
CREATE INDEX "users_otherForms" ON "users" ("email") WHERE "users"."email" GLOB '*[^ -~]*';
