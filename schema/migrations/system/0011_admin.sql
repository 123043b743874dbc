-- Administrators who signed in with a service key.

CREATE TABLE "admin_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"stamp" text NOT NULL,
	"lastUsedAt" integer NOT NULL,
	"expiresAt" integer NOT NULL
) STRICT;
CREATE INDEX "admin_sessions_expiresAt" ON "admin_sessions" ("expiresAt");
