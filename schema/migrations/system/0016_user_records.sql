-- Which accounts the table of users in a namespace's file lacks: the two files cannot commit together.

CREATE TABLE "user_marks" (
	"userId" text PRIMARY KEY NOT NULL,
	"mark" integer NOT NULL
) STRICT;
CREATE TABLE "user_records" (
	"id" integer PRIMARY KEY NOT NULL,
	"place" text NOT NULL,
	"lastMark" integer DEFAULT 0 NOT NULL,
	"seenCount" integer DEFAULT 0 NOT NULL
) STRICT;
