-- A password reset removes identities whose address the provider had not verified. Of earlier ones nothing says so: they stay.

ALTER TABLE "identities" ADD "emailVerified" integer DEFAULT true NOT NULL;
