import { and, asc, eq, inArray, sql } from "drizzle-orm";
import { identities, mfaFactors, mfaRecoveryCodes, passkeys } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type Factor = typeof mfaFactors.$inferSelect;

export const factorsOfUser = reading((db, v: { userId: string }) =>
  db
    .select()
    .from(mfaFactors)
    .where(eq(mfaFactors.userId, v.userId))
    .orderBy(asc(mfaFactors.createdAt), asc(mfaFactors.id)),
);

export const insertFactor = writing((db, v: Omit<Factor, "verified" | "usedSteps">) =>
  db.insert(mfaFactors).values({ id: v.id, userId: v.userId, type: v.type, secret: v.secret, createdAt: v.createdAt }),
);

/** A factor is verified once one of its codes was right. */
export const setUsedSteps = writing((db, v: Pick<Factor, "id" | "usedSteps">) =>
  db.update(mfaFactors).set({ verified: true, usedSteps: v.usedSteps }).where(eq(mfaFactors.id, v.id)),
);

/** Recovery codes are deleted with their factor. */
export const deleteFactors = writing((db, v: { userId: string }) =>
  db.delete(mfaFactors).where(eq(mfaFactors.userId, v.userId)),
);

/** Deletes the factor of this kind, verified or not, with its recovery codes. */
export const deleteFactorsOfType = writing((db, v: Pick<Factor, "userId" | "type">) =>
  db.delete(mfaFactors).where(and(eq(mfaFactors.userId, v.userId), eq(mfaFactors.type, v.type))),
);

export const deleteUnverifiedFactors = writing((db, v: { userId: string }) =>
  db.delete(mfaFactors).where(and(eq(mfaFactors.userId, v.userId), eq(mfaFactors.verified, false))),
);

export const insertRecoveryCode = writing((db, v: typeof mfaRecoveryCodes.$inferSelect) =>
  db.insert(mfaRecoveryCodes).values({ userId: v.userId, factorId: v.factorId, hash: v.hash }),
);

/** Deletes the code, of a verified factor only. */
export const takeRecoveryCode = writing((db, v: Pick<typeof mfaRecoveryCodes.$inferSelect, "userId" | "hash">) => {
  const verified = db.select({ id: mfaFactors.id }).from(mfaFactors).where(eq(mfaFactors.verified, true));
  return db
    .delete(mfaRecoveryCodes)
    .where(
      and(
        eq(mfaRecoveryCodes.userId, v.userId),
        eq(mfaRecoveryCodes.hash, v.hash),
        inArray(mfaRecoveryCodes.factorId, verified),
      ),
    );
});

export type Identity = typeof identities.$inferSelect;

export const identityBySubject = reading((db, v: Pick<Identity, "provider" | "subject">) =>
  db
    .select()
    .from(identities)
    .where(and(eq(identities.provider, v.provider), eq(identities.subject, v.subject))),
);

export const identitiesOfUser = reading((db, v: { userId: string }) =>
  db
    .select()
    .from(identities)
    .where(eq(identities.userId, v.userId))
    .orderBy(asc(identities.createdAt), asc(identities.id)),
);

export const insertIdentity = writing(
  (db, v: Omit<Identity, "lastSignInAt" | "validFrom" | "tokens"> & { tokens?: string | null }) =>
    db.insert(identities).values({
      id: v.id,
      userId: v.userId,
      provider: v.provider,
      subject: v.subject,
      email: v.email,
      createdAt: v.createdAt,
      lastSignInAt: v.createdAt,
      emailVerified: v.emailVerified,
      tokens: v.tokens ?? null,
    }),
);

/** Keeps the provider's tokens of an identity, encrypted. */
export const keepTokens = writing((db, v: { id: string; tokens: string | null }) =>
  db.update(identities).set({ tokens: v.tokens }).where(eq(identities.id, v.id)),
);

/** Removes the tokens of providers that a user has let be kept. */
export const deleteTokensOfUser = writing((db, v: { userId: string }) =>
  db.update(identities).set({ tokens: null }).where(eq(identities.userId, v.userId)),
);

export const touchIdentity = writing((db, v: Pick<Identity, "id" | "email" | "lastSignInAt" | "emailVerified">) =>
  db
    .update(identities)
    .set({ email: v.email, lastSignInAt: v.lastSignInAt, emailVerified: v.emailVerified })
    .where(eq(identities.id, v.id)),
);

/** The user's address has changed: that the provider verified the former one says nothing about it. */
export const unmarkIdentities = writing((db, v: { userId: string }) =>
  db.update(identities).set({ emailVerified: false }).where(eq(identities.userId, v.userId)),
);

/** Identities whose provider has not verified the user's present address. */
export const deleteUnverifiedIdentities = writing((db, v: { userId: string }) =>
  db.delete(identities).where(and(eq(identities.userId, v.userId), eq(identities.emailVerified, false))),
);

/** Moves a user's identities to another one. `email`: the address that is the user's from now on. */
export const moveIdentities = writing((db, v: { userId: string; to: string; email: string | null }) =>
  db
    .update(identities)
    .set({
      userId: v.to,
      emailVerified: sql`CASE WHEN ${identities.email} = ${v.email} THEN ${identities.emailVerified} ELSE 0 END`,
    })
    .where(eq(identities.userId, v.userId)),
);

/** Refuses the tokens that an issuer has given to the user so far. */
export const refuseTokensOfUser = writing((db, v: { userId: string; now: number }) =>
  db.update(identities).set({ validFrom: v.now }).where(eq(identities.userId, v.userId)),
);

/** Refuses the tokens that an issuer has given so far; nothing where the id is none of an identity. */
export const refuseTokensOf = writing((db, v: { id: string; now: number }) =>
  db.update(identities).set({ validFrom: v.now }).where(eq(identities.id, v.id)),
);

export const deleteIdentity = writing((db, v: { id: string }) => db.delete(identities).where(eq(identities.id, v.id)));

export const deleteIdentitiesOfUser = writing((db, v: { userId: string }) =>
  db.delete(identities).where(eq(identities.userId, v.userId)),
);

export type Passkey = typeof passkeys.$inferSelect;

export const passkeyById = reading((db, v: { id: string }) => db.select().from(passkeys).where(eq(passkeys.id, v.id)));

export const passkeysOfUser = reading((db, v: { userId: string }) =>
  db.select().from(passkeys).where(eq(passkeys.userId, v.userId)).orderBy(asc(passkeys.createdAt), asc(passkeys.id)),
);

export const insertPasskey = writing((db, v: Omit<Passkey, "lastUsedAt">) =>
  db.insert(passkeys).values({
    id: v.id,
    userId: v.userId,
    publicKey: v.publicKey,
    counter: v.counter,
    transports: v.transports,
    deviceType: v.deviceType,
    backedUp: v.backedUp,
    name: v.name,
    createdAt: v.createdAt,
  }),
);

export const usePasskey = writing((db, v: Pick<Passkey, "id" | "counter" | "backedUp" | "lastUsedAt">) =>
  db
    .update(passkeys)
    .set({ counter: v.counter, backedUp: v.backedUp, lastUsedAt: v.lastUsedAt })
    .where(eq(passkeys.id, v.id)),
);

export const deletePasskey = writing((db, v: { id: string }) => db.delete(passkeys).where(eq(passkeys.id, v.id)));

/** Moves a user's passkeys to another one. */
export const movePasskeys = writing((db, v: { userId: string; to: string }) =>
  db.update(passkeys).set({ userId: v.to }).where(eq(passkeys.userId, v.userId)),
);

export const deletePasskeysOfUser = writing((db, v: { userId: string }) =>
  db.delete(passkeys).where(eq(passkeys.userId, v.userId)),
);
