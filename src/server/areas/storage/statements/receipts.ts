import { and, asc, desc, eq, inArray, lt, lte, sql } from "drizzle-orm";
import { storageReceipts as receipts } from "../../../../../schema/storage.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type ReceiptRecord = typeof receipts.$inferSelect;

export const receiptById = reading((db, v: { id: string }) => db.select().from(receipts).where(eq(receipts.id, v.id)));

export const insertReceipt = writing((db, v: ReceiptRecord) =>
  db.insert(receipts).values({
    id: v.id,
    bucket: v.bucket,
    key: v.key,
    ownerId: v.ownerId,
    size: v.size,
    uploaded: v.uploaded,
  }),
);

/** Selects the time of an owner's `nth` latest receipt. */
export const nthReceipt = reading((db, v: { ownerId: string | null; nth: number }) =>
  db
    .select({ uploaded: receipts.uploaded })
    .from(receipts)
    .where(sql`${receipts.ownerId} is ${v.ownerId}`)
    .orderBy(desc(receipts.uploaded))
    .limit(1)
    .offset(v.nth),
);

export const deleteReceiptsOf = writing((db, v: { ownerId: string | null; before: number }) =>
  db.delete(receipts).where(and(sql`${receipts.ownerId} is ${v.ownerId}`, lt(receipts.uploaded, v.before))),
);

/** Deletes old receipts, at most `limit`, so that one clean-up never delays other writes for long. */
export const deleteReceiptsUntil = writing((db, v: { until: number; limit: number }) => {
  const expired = db
    .select({ id: receipts.id })
    .from(receipts)
    .where(lte(receipts.uploaded, v.until))
    .orderBy(asc(receipts.uploaded))
    .limit(v.limit);
  return db.delete(receipts).where(inArray(receipts.id, expired));
});
