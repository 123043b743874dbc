import { and, eq, gt, inArray, lte, sql } from "drizzle-orm";
import { codeFailures, oneTimeSecrets } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type OneTimeSecret = typeof oneTimeSecrets.$inferSelect;
export type SecretPurpose = OneTimeSecret["purpose"];

/** A second secret under the same hash (a new code for the same address) replaces the first. */
export const putSecret = writing((db, v: Omit<OneTimeSecret, "attempts">) =>
  db
    .insert(oneTimeSecrets)
    .values({ hash: v.hash, purpose: v.purpose, userId: v.userId, payload: v.payload, expiresAt: v.expiresAt })
    .onConflictDoUpdate({
      target: oneTimeSecrets.hash,
      set: { purpose: v.purpose, userId: v.userId, payload: v.payload, attempts: 0, expiresAt: v.expiresAt },
    }),
);

/** No row if it is unknown, has another purpose, or has expired by `now`. */
export const findSecret = reading((db, v: Pick<OneTimeSecret, "hash" | "purpose"> & { now: number }) =>
  db
    .select()
    .from(oneTimeSecrets)
    .where(
      and(eq(oneTimeSecrets.hash, v.hash), eq(oneTimeSecrets.purpose, v.purpose), gt(oneTimeSecrets.expiresAt, v.now)),
    ),
);

/** Whether the user has a secret that expires after `after`, and not after `upTo`. */
export const recentSecret = reading((db, v: { userId: string; purpose: SecretPurpose; after: number; upTo: number }) =>
  db
    .select({ hash: oneTimeSecrets.hash })
    .from(oneTimeSecrets)
    .where(
      and(
        eq(oneTimeSecrets.userId, v.userId),
        eq(oneTimeSecrets.purpose, v.purpose),
        gt(oneTimeSecrets.expiresAt, v.after),
        lte(oneTimeSecrets.expiresAt, v.upTo),
      ),
    )
    .limit(1),
);

export const deleteSecret = writing((db, v: Pick<OneTimeSecret, "hash">) =>
  db.delete(oneTimeSecrets).where(eq(oneTimeSecrets.hash, v.hash)),
);

export const countAttempt = writing((db, v: Pick<OneTimeSecret, "hash">) =>
  db
    .update(oneTimeSecrets)
    .set({ attempts: sql`${oneTimeSecrets.attempts} + 1` })
    .where(eq(oneTimeSecrets.hash, v.hash)),
);

export const deleteSecretsOfUser = writing((db, v: { userId: string }) =>
  db.delete(oneTimeSecrets).where(eq(oneTimeSecrets.userId, v.userId)),
);

/** Invitations with `data` are left: their users accept them signed in. */
const isKept = and(
  eq(oneTimeSecrets.purpose, "invite"),
  sql`json_type(${oneTimeSecrets.payload}, '$.data') is not null`,
);

export const deleteSecretsOfOwner = writing((db, v: { userId: string }) =>
  db.delete(oneTimeSecrets).where(and(eq(oneTimeSecrets.userId, v.userId), sql`not (${isKept})`)),
);

/** Deletes a user's invitations without `data`. */
export const deletePlainInvitations = writing((db, v: { userId: string }) =>
  db
    .delete(oneTimeSecrets)
    .where(and(eq(oneTimeSecrets.userId, v.userId), eq(oneTimeSecrets.purpose, "invite"), sql`not (${isKept})`)),
);

export const deleteSecretsFor = writing((db, v: { userId: string; purpose: SecretPurpose }) =>
  db.delete(oneTimeSecrets).where(and(eq(oneTimeSecrets.userId, v.userId), eq(oneTimeSecrets.purpose, v.purpose))),
);

export const expiredSecret = reading((db, v: { now: number }) =>
  db.select({ hash: oneTimeSecrets.hash }).from(oneTimeSecrets).where(lte(oneTimeSecrets.expiresAt, v.now)).limit(1),
);

export const deleteExpiredSecrets = writing((db, v: { now: number; limit: number }) => {
  const expired = db
    .select({ hash: oneTimeSecrets.hash })
    .from(oneTimeSecrets)
    .where(lte(oneTimeSecrets.expiresAt, v.now))
    .limit(v.limit);
  return db.delete(oneTimeSecrets).where(inArray(oneTimeSecrets.hash, expired));
});

/** Wrong codes under this key since its day began; no row if there were none, or the day is over by `now`. */
export const failuresOf = reading((db, v: { key: string; now: number }) =>
  db
    .select()
    .from(codeFailures)
    .where(and(eq(codeFailures.key, v.key), gt(codeFailures.endsAt, v.now))),
);

/** Counts a failure; the first one begins a day that ends at `endsAt`. */
export const countFailure = writing((db, v: { key: string; now: number; endsAt: number }) => {
  const goesOn = sql`${codeFailures.endsAt} > ${v.now}`;
  return db
    .insert(codeFailures)
    .values({ key: v.key, failures: 1, endsAt: v.endsAt })
    .onConflictDoUpdate({
      target: codeFailures.key,
      set: {
        failures: sql`case when ${goesOn} then ${codeFailures.failures} + 1 else 1 end`,
        endsAt: sql`case when ${goesOn} then ${codeFailures.endsAt} else ${v.endsAt} end`,
      },
    });
});

export const endedFailures = reading((db, v: { now: number }) =>
  db.select({ key: codeFailures.key }).from(codeFailures).where(lte(codeFailures.endsAt, v.now)).limit(1),
);

export const deleteEndedFailures = writing((db, v: { now: number; limit: number }) => {
  const ended = db
    .select({ key: codeFailures.key })
    .from(codeFailures)
    .where(lte(codeFailures.endsAt, v.now))
    .limit(v.limit);
  return db.delete(codeFailures).where(inArray(codeFailures.key, ended));
});
