import { and, asc, eq, gt, sql } from "drizzle-orm";
import { users } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

/** An account with the hash of its password, which never leaves the area. */
export type SecretAccount = typeof users.$inferSelect;

export const userById = reading((db, v: { id: string }) => db.select().from(users).where(eq(users.id, v.id)));

export const userByEmail = reading((db, v: { email: string }) =>
  db.select().from(users).where(eq(users.email, v.email)),
);

/** Addresses with other characters than those of ASCII, in their order, after one of them. */
export const otherForms = reading((db, v: { after: string; limit: number }) =>
  db
    .select({ id: users.id, email: users.email, emailVerified: users.emailVerified })
    .from(users)
    .where(and(sql`${users.email} GLOB '*[^ -~]*'`, gt(users.email, v.after)))
    .orderBy(asc(users.email))
    .limit(v.limit),
);

/** The same address in another form. The caller has made sure that nobody has it. */
export const renameAddress = writing((db, v: { id: string; email: string }) =>
  db.update(users).set({ email: v.email }).where(eq(users.id, v.id)),
);

export type UserValues = Omit<SecretAccount, "seq" | "emailVisibility" | "disabled" | "customClaims" | "updatedAt">;

/** The caller has made sure that neither the id nor the email is taken. */
export const insertUser = writing((db, v: UserValues) =>
  db
    .insert(users)
    .values({
      id: v.id,
      email: v.email,
      emailVerified: v.emailVerified,
      passwordHash: v.passwordHash,
      displayName: v.displayName,
      avatarUrl: v.avatarUrl,
      role: v.role,
      isAnonymous: v.isAnonymous,
      metadata: v.metadata,
      appMetadata: v.appMetadata,
      hasSignedIn: v.hasSignedIn,
      createdAt: v.createdAt,
      updatedAt: v.createdAt,
    })
    .returning(),
);

export const updateUser = writing((db, v: Omit<SecretAccount, "seq" | "createdAt" | "hasSignedIn">) =>
  db
    .update(users)
    .set({
      email: v.email,
      emailVerified: v.emailVerified,
      emailVisibility: v.emailVisibility,
      passwordHash: v.passwordHash,
      displayName: v.displayName,
      avatarUrl: v.avatarUrl,
      role: v.role,
      isAnonymous: v.isAnonymous,
      disabled: v.disabled,
      metadata: v.metadata,
      appMetadata: v.appMetadata,
      customClaims: v.customClaims,
      updatedAt: v.updatedAt,
    })
    .where(eq(users.id, v.id)),
);

export const markSignedIn = writing((db, v: { id: string }) =>
  db.update(users).set({ hasSignedIn: true }).where(eq(users.id, v.id)),
);

export const clearPassword = writing((db, v: { id: string }) =>
  db.update(users).set({ passwordHash: null }).where(eq(users.id, v.id)),
);

/** Sessions, factors, identities and passkeys are deleted with it. */
export const deleteUser = writing((db, v: { id: string }) => db.delete(users).where(eq(users.id, v.id)));
