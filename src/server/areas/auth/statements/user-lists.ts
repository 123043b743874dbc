import { and, asc, eq, gt, gte, lt, ne, sql } from "drizzle-orm";
import { users } from "../../../../../schema/auth.ts";
import { reading } from "../../../db/declare-query.ts";

/** Metadata, of which a user may have 32 KB, is not read. */
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

/** In order of creation. */
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

/** Of one name, in either case, in order of creation. */
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
