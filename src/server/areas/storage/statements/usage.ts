import { and, eq, gt, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import {
  storageClaims as claims,
  storageObjects as objects,
  storageParts as parts,
  storageUploads as uploads,
  storageUsage as usage,
} from "../../../../../schema/storage.ts";
import { reading, writing } from "../../../db/declare-query.ts";

type UsageRecord = typeof usage.$inferSelect;
type Holder = Pick<UsageRecord, "bucket" | "ownerId">;

export const usageOf = reading((db, v: Holder) =>
  db
    .select({ bytes: usage.bytes })
    .from(usage)
    .where(and(eq(usage.bucket, v.bucket), eq(usage.ownerId, v.ownerId))),
);

export const addUsage = writing((db, v: UsageRecord) =>
  db
    .insert(usage)
    .values({ bucket: v.bucket, ownerId: v.ownerId, bytes: v.bytes })
    .onConflictDoUpdate({
      target: [usage.bucket, usage.ownerId],
      set: { bytes: sql`${usage.bytes} + excluded.bytes` },
    }),
);

export const deleteUsage = writing((db, v: Holder) =>
  db.delete(usage).where(and(eq(usage.bucket, v.bucket), eq(usage.ownerId, v.ownerId))),
);

export const deleteUsageOf = writing((db, v: { bucket: string }) => db.delete(usage).where(eq(usage.bucket, v.bucket)));

export const bucketsWithUsage = reading((db, _: Record<string, never>) =>
  db.selectDistinct({ bucket: usage.bucket }).from(usage),
);

/**
 * Sums the bytes of a bucket's files, of those of records, and of the parts of its unfinished uploads, by owner; owner null: service keys and the
 * server.
 */
export const countedUsage = reading((db, v: { bucket: string }) =>
  unionAll(
    db
      .select({
        ownerId: sql<string | null>`${objects.uploadedBy}`.as("ownerId"),
        bytes: sql<number>`sum(${objects.size})`.as("bytes"),
      })
      .from(objects)
      .where(eq(objects.bucket, v.bucket))
      .groupBy(objects.uploadedBy),
    db
      .select({
        ownerId: sql<string | null>`${uploads.ownerId}`.as("ownerId"),
        bytes: sql<number>`sum(${parts.size})`.as("bytes"),
      })
      .from(parts)
      .innerJoin(uploads, eq(parts.uploadId, uploads.id))
      .where(and(eq(uploads.bucket, v.bucket), gt(uploads.createdAt, 0)))
      .groupBy(uploads.ownerId),
    db
      .select({
        ownerId: sql<string | null>`${claims.ownerId}`.as("ownerId"),
        bytes: sql<number>`sum(${claims.size})`.as("bytes"),
      })
      .from(claims)
      .where(eq(claims.bucket, v.bucket))
      .groupBy(claims.ownerId),
  ),
);

/** Selects the size and the owner of the file at an address, for quotas. */
export const heldAt = reading((db, v: { bucket: string; key: string }) =>
  db
    .select({ ownerId: sql<string | null>`${objects.uploadedBy}`.as("ownerId"), size: objects.size })
    .from(objects)
    .where(and(eq(objects.bucket, v.bucket), eq(objects.key, v.key))),
);

/** Selects the size of one part. */
export const partSize = reading((db, v: { uploadId: string; partNumber: number }) =>
  db
    .select({ size: parts.size })
    .from(parts)
    .where(and(eq(parts.uploadId, v.uploadId), eq(parts.partNumber, v.partNumber))),
);
