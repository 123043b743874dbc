import { and, asc, count, desc, eq, gt, inArray, lt, lte, ne, or, sql } from "drizzle-orm";
import {
  storageGrants as grants,
  storageParts as parts,
  storageUploads as uploads,
} from "../../../../../schema/storage.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type UploadRecord = typeof uploads.$inferSelect;
export type PartRecord = typeof parts.$inferSelect;

export const uploadById = reading((db, v: { id: string }) => db.select().from(uploads).where(eq(uploads.id, v.id)));

export const insertUpload = writing((db, v: UploadRecord) =>
  db.insert(uploads).values({
    id: v.id,
    bucket: v.bucket,
    key: v.key,
    contentType: v.contentType,
    customMetadata: v.customMetadata,
    ownerId: v.ownerId,
    createdAt: v.createdAt,
  }),
);

/** Counts the unfinished uploads of one owner. */
export const countUploads = reading((db, v: Pick<UploadRecord, "bucket" | "ownerId">) =>
  db
    .select({ count: count().as("count") })
    .from(uploads)
    .where(and(eq(uploads.bucket, v.bucket), sql`${uploads.ownerId} is ${v.ownerId}`, gt(uploads.createdAt, 0))),
);

export const endUpload = writing((db, v: { id: string }) =>
  db.update(uploads).set({ createdAt: 0 }).where(eq(uploads.id, v.id)),
);

export const deleteUpload = writing((db, v: { id: string }) => db.delete(uploads).where(eq(uploads.id, v.id)));

export const uploadsUntil = reading((db, v: { createdAt: number; limit: number }) =>
  db
    .select({ id: uploads.id })
    .from(uploads)
    .where(lte(uploads.createdAt, v.createdAt))
    .orderBy(asc(uploads.createdAt))
    .limit(v.limit),
);

/** Selects uploads, newest first: those before a time, or at that time with a smaller id. */
export const uploadsBefore = reading((db, v: { createdAt: number; id: string; limit: number }) =>
  db
    .select()
    .from(uploads)
    .where(
      and(
        gt(uploads.createdAt, 0),
        lte(uploads.createdAt, v.createdAt),
        or(lt(uploads.createdAt, v.createdAt), lt(uploads.id, v.id)),
      ),
    )
    .orderBy(desc(uploads.createdAt), desc(uploads.id))
    .limit(v.limit),
);

export const extentOfParts = reading((db, v: { uploadId: string }) =>
  db
    .select({ count: count().as("count"), size: sql<number>`coalesce(sum(${parts.size}), 0)`.as("size") })
    .from(parts)
    .where(eq(parts.uploadId, v.uploadId)),
);

export const partsOf = reading((db, v: { uploadId: string }) =>
  db
    .select({ partNumber: parts.partNumber, fileId: parts.fileId, size: parts.size })
    .from(parts)
    .where(eq(parts.uploadId, v.uploadId))
    .orderBy(asc(parts.partNumber)),
);

export const firstParts = reading((db, v: { uploadId: string; limit: number }) =>
  db
    .select({ partNumber: parts.partNumber, fileId: parts.fileId, size: parts.size })
    .from(parts)
    .where(eq(parts.uploadId, v.uploadId))
    .orderBy(asc(parts.partNumber))
    .limit(v.limit),
);

export const partFile = reading((db, v: { uploadId: string; partNumber: number }) =>
  db
    .select({ fileId: parts.fileId })
    .from(parts)
    .where(and(eq(parts.uploadId, v.uploadId), eq(parts.partNumber, v.partNumber))),
);

/** Sums the bytes of all parts but one. */
export const sizeOfOthers = reading((db, v: { uploadId: string; partNumber: number }) =>
  db
    .select({ size: sql<number>`coalesce(sum(${parts.size}), 0)`.as("size") })
    .from(parts)
    .where(and(eq(parts.uploadId, v.uploadId), ne(parts.partNumber, v.partNumber))),
);

/** Selects a stamp that changes with every part that is uploaded or replaced. */
export const stampOfParts = reading((db, v: { uploadId: string }) => {
  const ordered = db
    .select({ fileId: parts.fileId })
    .from(parts)
    .where(eq(parts.uploadId, v.uploadId))
    .orderBy(asc(parts.partNumber))
    .as("ordered");
  return db.select({ stamp: sql<string>`coalesce(group_concat(${ordered.fileId}, ''), '')`.as("stamp") }).from(ordered);
});

export const putPart = writing((db, v: PartRecord) =>
  db
    .insert(parts)
    .values({ uploadId: v.uploadId, partNumber: v.partNumber, fileId: v.fileId, size: v.size })
    .onConflictDoUpdate({
      target: [parts.uploadId, parts.partNumber],
      set: { fileId: sql`excluded.fileId`, size: sql`excluded.size` },
    }),
);

export const deleteParts = writing((db, v: { uploadId: string; until: number }) =>
  db.delete(parts).where(and(eq(parts.uploadId, v.uploadId), lte(parts.partNumber, v.until))),
);

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
