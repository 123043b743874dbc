import { and, asc, eq, gt, gte, lt, ne, sql } from "drizzle-orm";
import { userRecords, users } from "../../../../../schema/auth.ts";
import { reading, writing } from "../../../db/declare-query.ts";

/** An account with the hash of its password, which never leaves the area. */
export type SecretAccount = typeof users.$inferSelect;

export const userById = reading((db, v: { id: string }) => db.select().from(users).where(eq(users.id, v.id)));

export const userByEmail = reading((db, v: { email: string }) =>
  db.select().from(users).where(eq(users.email, v.email)),
);

export const userByPhone = reading((db, v: { phone: string }) =>
  db.select().from(users).where(eq(users.phone, v.phone)),
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

/** Stores the address in another form, which the caller has made sure that nobody has. */
export const renameAddress = writing((db, v: { id: string; email: string }) =>
  db.update(users).set({ email: v.email }).where(eq(users.id, v.id)),
);

export type UserValues = Omit<SecretAccount, "seq" | "customClaims" | "updatedAt">;

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
      emailVisibility: v.emailVisibility,
      isAnonymous: v.isAnonymous,
      disabled: v.disabled,
      metadata: v.metadata,
      appMetadata: v.appMetadata,
      hasSignedIn: v.hasSignedIn,
      language: v.language,
      phone: v.phone,
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
      language: v.language,
      phone: v.phone,
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

/** The columns of a list entry. Metadata, of which a user may have 32 KB, is not read. */
const entry = {
  seq: users.seq,
  id: users.id,
  email: users.email,
  displayName: users.displayName,
  role: users.role,
  emailVerified: users.emailVerified,
  isAnonymous: users.isAnonymous,
  disabled: users.disabled,
  createdAt: users.createdAt,
};

const nameIgnoringCase = sql`${users.displayName} collate nocase`;

/** Lists accounts in order of creation. */
export const entriesAfter = reading((db, v: { after: number; limit: number }) =>
  db.select(entry).from(users).where(gt(users.seq, v.after)).orderBy(asc(users.seq)).limit(v.limit),
);

export const entryByEmail = reading((db, v: { email: string }) =>
  db.select(entry).from(users).where(eq(users.email, v.email)),
);

/** Emails from `from` on and before `end`, without those up to `after`. */
export const entriesByEmail = reading((db, v: { from: string; after: string; end: string; limit: number }) =>
  db
    .select(entry)
    .from(users)
    // One lower bound: of two, SQLite looks up the first alone and reads every email between them.
    .where(and(gte(users.email, sql`max(${v.from}, ${v.after})`), ne(users.email, v.after), lt(users.email, v.end)))
    .orderBy(asc(users.email))
    .limit(v.limit),
);

/** The users of one name, in either case, in order of creation. */
export const entriesOfName = reading((db, v: { name: string; after: number; limit: number }) =>
  db
    .select(entry)
    .from(users)
    .where(and(eq(nameIgnoringCase, v.name), gt(users.seq, v.after)))
    .orderBy(asc(users.seq))
    .limit(v.limit),
);

/** Names after `after` and before `end`, in either case. */
export const entriesByName = reading((db, v: { after: string; end: string; limit: number }) =>
  db
    .select(entry)
    .from(users)
    .where(and(gt(nameIgnoringCase, v.after), lt(nameIgnoringCase, v.end)))
    .orderBy(asc(nameIgnoringCase), asc(users.seq))
    .limit(v.limit),
);

// The number of the last change of an account that an update of its record has asked for, and that the account has.

export const lastAsked = reading((db) => db.select({ lastAsked: userRecords.lastAsked }).from(userRecords));

export const setLastAsked = writing((db, v: { lastAsked: number }) =>
  db.update(userRecords).set({ lastAsked: v.lastAsked }),
);
