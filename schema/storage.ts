// biome-ignore lint/suspicious/noDeprecatedImports: another overload of primaryKey is meant
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Stored files: what a key names at present. The bytes lie under `storage/`, or in the bucket's object store, by `fileId`. */
export const storageObjects = sqliteTable(
  "storage_objects",
  {
    bucket: text().notNull(),
    key: text().notNull(),
    fileId: text().notNull().unique(),
    size: integer().notNull(),
    contentType: text().notNull(),
    customMetadata: text({ mode: "json" }).notNull().default({}),
    uploadedBy: text(),
    uploaded: integer().notNull(),
    revision: integer().notNull().default(1),
  },
  (table) => [primaryKey({ columns: [table.bucket, table.key] })],
);

/** Multipart uploads that have not been completed. */
export const storageUploads = sqliteTable(
  "storage_uploads",
  {
    id: text().primaryKey().notNull(),
    bucket: text().notNull(),
    key: text().notNull(),
    contentType: text().notNull(),
    customMetadata: text({ mode: "json" }).notNull().default({}),
    ownerId: text(),
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
    fileId: text().notNull().unique(),
    size: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.uploadId, table.partNumber] })],
);

/** Signed upload URLs that have not been used; `auth` is who asked for them, as rules see it. */
export const storageGrants = sqliteTable(
  "storage_grants",
  {
    id: text().primaryKey().notNull(),
    bucket: text().notNull(),
    key: text().notNull(),
    auth: text({ mode: "json" }),
    expiresAt: integer().notNull(),
  },
  (table) => [index("storage_grants_expiresAt").on(table.expiresAt)],
);
