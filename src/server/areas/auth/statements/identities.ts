import { and, asc, eq } from "drizzle-orm";
import { identities } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

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

export const insertIdentity = writing((db, v: Omit<Identity, "lastSignInAt">) =>
  db.insert(identities).values({
    id: v.id,
    userId: v.userId,
    provider: v.provider,
    subject: v.subject,
    email: v.email,
    createdAt: v.createdAt,
    lastSignInAt: v.createdAt,
    emailVerified: v.emailVerified,
  }),
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

/** Those whose provider has not verified the user's present address. */
export const deleteUnverifiedIdentities = writing((db, v: { userId: string }) =>
  db.delete(identities).where(and(eq(identities.userId, v.userId), eq(identities.emailVerified, false))),
);

export const deleteIdentity = writing((db, v: { id: string }) => db.delete(identities).where(eq(identities.id, v.id)));

export const deleteIdentitiesOfUser = writing((db, v: { userId: string }) =>
  db.delete(identities).where(eq(identities.userId, v.userId)),
);
