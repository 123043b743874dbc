-- Accounts have a language, in which mails are written, and a phone number. A session knows the invitation that began it.

ALTER TABLE "sessions" ADD "invitation" text;
ALTER TABLE "users" ADD "language" text;
ALTER TABLE "users" ADD "phone" text;
CREATE UNIQUE INDEX "users_phone" ON "users" ("phone") WHERE "users"."phone" IS NOT NULL;
