import { and, asc, eq, gt, gte, ne, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import {
  storageClaims as claims,
  storageObjects as objects,
  storageParts as parts,
} from "../../../../../schema/storage.ts";
import { reading, writing } from "../../../db/declare-query.ts";

export type ObjectRecord = typeof objects.$inferSelect;
type Address = Pick<ObjectRecord, "bucket" | "key">;

/** Selects the metadata as unparsed text: it may be large, and most requests for a file do not need it. */
const withMetadataText = {
  bucket: objects.bucket,
  key: objects.key,
  fileId: objects.fileId,
  size: objects.size,
  contentType: objects.contentType,
  customMetadata: sql<string>`${objects.customMetadata}`.as("customMetadata"),
  uploadedBy: objects.uploadedBy,
  uploaded: objects.uploaded,
  revision: objects.revision,
};

export const objectAt = reading((db, v: Address) =>
  db
    .select(withMetadataText)
    .from(objects)
    .where(and(eq(objects.bucket, v.bucket), eq(objects.key, v.key))),
);

export const objectVersion = reading((db, v: Address) =>
  db
    .select({ fileId: objects.fileId, revision: objects.revision })
    .from(objects)
    .where(and(eq(objects.bucket, v.bucket), eq(objects.key, v.key))),
);

/** Selects the keys of the files that a user has uploaded, after a key, in order. */
export const keysOfUploader = reading((db, v: { userId: string; bucket: string; after: string; limit: number }) =>
  db
    .select({ key: objects.key })
    .from(objects)
    .where(and(eq(objects.uploadedBy, v.userId), eq(objects.bucket, v.bucket), gt(objects.key, v.after)))
    .orderBy(asc(objects.key))
    .limit(v.limit),
);

/** Selects the files that a user has uploaded, at most so many. */
export const filesOfUploader = reading((db, v: { userId: string; limit: number }) =>
  db
    .select({ bucket: objects.bucket, key: objects.key, size: objects.size })
    .from(objects)
    .where(eq(objects.uploadedBy, v.userId))
    .limit(v.limit),
);

/** Makes another user the one who has uploaded a file. */
export const moveFile = writing((db, v: { bucket: string; key: string; to: string }) =>
  db
    .update(objects)
    .set({ uploadedBy: v.to, revision: sql`${objects.revision} + 1` })
    .where(and(eq(objects.bucket, v.bucket), eq(objects.key, v.key))),
);

interface ListRange {
  bucket: string;
  after: string;
  from: string;
  limit: number;
}

/** Uses a single lower bound: given two, SQLite seeks to the first alone and reads every key between them. */
const inRange = (v: ListRange) =>
  and(eq(objects.bucket, v.bucket), gte(objects.key, sql`max(${v.after}, ${v.from})`), ne(objects.key, v.after));

/** Selects files in the byte order of their keys: those after `after` that are not before `from`. */
export const objectsInOrder = reading((db, v: ListRange) =>
  db.select(withMetadataText).from(objects).where(inRange(v)).orderBy(asc(objects.key)).limit(v.limit),
);

/** Selects the columns that a list shows, with the order and range of `objectsInOrder`. */
export const listedInOrder = reading((db, v: ListRange) =>
  db
    .select({ key: objects.key, size: objects.size, contentType: objects.contentType, uploaded: objects.uploaded })
    .from(objects)
    .where(inRange(v))
    .orderBy(asc(objects.key))
    .limit(v.limit),
);

/** Finds the file, the part of an upload, or the claim of a record's file, that has these bytes. */
export const ownerOfBytes = reading((db, v: { fileId: string }) =>
  unionAll(
    db.select({ fileId: objects.fileId }).from(objects).where(eq(objects.fileId, v.fileId)),
    db.select({ fileId: parts.fileId }).from(parts).where(eq(parts.fileId, v.fileId)),
    db.select({ fileId: claims.fileId }).from(claims).where(eq(claims.fileId, v.fileId)),
  ),
);

export const putObject = writing((db, v: ObjectRecord) =>
  db
    .insert(objects)
    .values({
      bucket: v.bucket,
      key: v.key,
      fileId: v.fileId,
      size: v.size,
      contentType: v.contentType,
      customMetadata: v.customMetadata,
      uploadedBy: v.uploadedBy,
      uploaded: v.uploaded,
      revision: v.revision,
    })
    .onConflictDoUpdate({
      target: [objects.bucket, objects.key],
      set: {
        fileId: sql`excluded.fileId`,
        size: sql`excluded.size`,
        contentType: sql`excluded.contentType`,
        customMetadata: sql`excluded.customMetadata`,
        uploadedBy: sql`excluded.uploadedBy`,
        uploaded: sql`excluded.uploaded`,
        revision: sql`excluded.revision`,
      },
    }),
);

export const deleteObject = writing((db, v: Address) =>
  db.delete(objects).where(and(eq(objects.bucket, v.bucket), eq(objects.key, v.key))),
);
