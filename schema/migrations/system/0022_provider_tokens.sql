-- Tokens of providers are kept for the code of the config, encrypted.

ALTER TABLE "identities" ADD "tokens" text;
