-- Tokens of other issuers that were issued before a revocation are refused.

ALTER TABLE "identities" ADD "validFrom" integer DEFAULT 0 NOT NULL;
