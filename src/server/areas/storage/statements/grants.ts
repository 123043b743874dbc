import { asc, eq, inArray, lte } from "drizzle-orm";
import { storageGrants as grants } from "../../../../../schema/storage.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type GrantRecord = typeof grants.$inferSelect;

export const grantById = reading((db, v: { id: string }) => db.select().from(grants).where(eq(grants.id, v.id)));

export const insertGrant = writing((db, v: GrantRecord) =>
  db.insert(grants).values({ id: v.id, bucket: v.bucket, key: v.key, auth: v.auth, expiresAt: v.expiresAt }),
);

export const deleteGrant = writing((db, v: { id: string }) => db.delete(grants).where(eq(grants.id, v.id)));

/** Deletes expired grants, at most `limit`, so that one clean-up never delays other writes for long. */
export const deleteExpiredGrants = writing((db, v: { now: number; limit: number }) => {
  const expired = db
    .select({ id: grants.id })
    .from(grants)
    .where(lte(grants.expiresAt, v.now))
    .orderBy(asc(grants.expiresAt))
    .limit(v.limit);
  return db.delete(grants).where(inArray(grants.id, expired));
});
