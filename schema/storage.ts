import { sql } from "drizzle-orm";
// biome-ignore lint/suspicious/noDeprecatedImports: another overload of primaryKey is meant
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { JsonObject } from "../src/kernel/json/json.ts";

/** A column of custom metadata, as JSON. */
const metadata = () => text({ mode: "json" }).$type<{ [name: string]: string }>().notNull().default({});

/** Files by key. Times are milliseconds since 1970. */
export const storageObjects = sqliteTable(
  "storage_objects",
  {
    bucket: text().notNull(),
    key: text().notNull(),
    /** Random; names the bytes in `storage/` or in the bucket's object store. A new one with every overwrite. */
    fileId: text().notNull().unique(),
    /** Bytes. */
    size: integer().notNull(),
    contentType: text().notNull(),
    customMetadata: metadata(),
    /** The id of a user; null: a service key or the server. */
    uploadedBy: text(),
    uploaded: integer().notNull(),
    /** Increases with every change of the metadata. */
    revision: integer().notNull().default(1),
  },
  (table) => [
    primaryKey({ columns: [table.bucket, table.key] }),
    // For exports of users and merges of accounts.
    index("storage_objects_uploadedBy")
      .on(table.uploadedBy, table.bucket, table.key)
      .where(sql`"uploadedBy" IS NOT NULL`),
  ],
);

/** Multipart uploads that have not been completed. */
export const storageUploads = sqliteTable(
  "storage_uploads",
  {
    id: text().primaryKey().notNull(),
    bucket: text().notNull(),
    key: text().notNull(),
    contentType: text().notNull(),
    customMetadata: metadata(),
    /** The id of a user; null: a service key. */
    ownerId: text(),
    /** 0 once the upload has ended: what is left of it counts as expired. */
    createdAt: integer().notNull(),
  },
  (table) => [
    index("storage_uploads_createdAt").on(table.createdAt),
    index("storage_uploads_owner").on(table.bucket, table.ownerId),
  ],
);

export const storageParts = sqliteTable(
  "storage_parts",
  {
    uploadId: text()
      .notNull()
      .references(() => storageUploads.id, { onDelete: "cascade" }),
    partNumber: integer().notNull(),
    /** Random; names the bytes, and is the part's etag. */
    fileId: text().notNull().unique(),
    size: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.uploadId, table.partNumber] })],
);

/** Results of uploads that a client may repeat, because it may not have got the answer. Kept for a day. */
export const storageReceipts = sqliteTable(
  "storage_receipts",
  {
    /** `upload:` and the id of a multipart upload, or `key:` and the hash of a caller and its idempotency key. */
    id: text().primaryKey().notNull(),
    bucket: text().notNull(),
    key: text().notNull(),
    /** The id of a user; null: a service key. */
    ownerId: text(),
    size: integer().notNull(),
    uploaded: integer().notNull(),
  },
  (table) => [
    index("storage_receipts_uploaded").on(table.uploaded),
    index("storage_receipts_owner").on(table.ownerId, table.uploaded),
  ],
);

/** Stored bytes of buckets with a quota. */
export const storageUsage = sqliteTable(
  "storage_usage",
  {
    bucket: text().notNull(),
    /** The id of a user; empty: everybody together. */
    ownerId: text().notNull(),
    bytes: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.bucket, table.ownerId] })],
);

/** Claims of the bytes of records' files. What they are called is in the records. */
export const storageClaims = sqliteTable(
  "storage_claims",
  {
    /** Random; names the bytes in `storage/` or in the bucket's object store. */
    fileId: text().primaryKey().notNull(),
    bucket: text().notNull(),
    /** Bytes. */
    size: integer().notNull(),
    /** The id of the user who sent the file; null: a service key. */
    ownerId: text(),
    namespace: text().notNull(),
    /** Empty in a static namespace. */
    instanceId: text().notNull(),
    /** Milliseconds since 1970. */
    storedAt: integer().notNull(),
    /** 1 until it is known that a record has the file. */
    isPending: integer().notNull(),
  },
  (table) => [
    index("storage_claims_place").on(table.namespace, table.instanceId, table.fileId),
    // For merges of accounts.
    index("storage_claims_owner").on(table.ownerId, table.fileId).where(sql`"ownerId" IS NOT NULL`),
    index("storage_claims_pending").on(table.fileId).where(sql`"isPending" = 1`),
  ],
);

/** Signed upload URLs that have not been used. */
export const storageGrants = sqliteTable(
  "storage_grants",
  {
    id: text().primaryKey().notNull(),
    bucket: text().notNull(),
    key: text().notNull(),
    /**
     * Caller who requested the URL: a user as rules see one, or `{ serviceKey: NAME }`; each with `actor`, if audited. null: the server.
     */
    auth: text({ mode: "json" }).$type<JsonObject>(),
    expiresAt: integer().notNull(),
  },
  (table) => [index("storage_grants_expiresAt").on(table.expiresAt)],
);
