-- What updates of records ask of accounts is done once: a repetition would undo a later change.

ALTER TABLE "user_records" ADD "lastAsked" integer DEFAULT 0 NOT NULL;
