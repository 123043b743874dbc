import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Sessions of administrators, who signed in with a service key. Times are in milliseconds. */
export const adminSessions = sqliteTable(
  "admin_sessions",
  {
    /** The hash of the cookie's value. */
    id: text().primaryKey(),
    /** The name of the service key. */
    key: text().notNull(),
    /** Fingerprint that shows whether the key is still the one that was signed in with. */
    stamp: text().notNull(),
    lastUsedAt: integer().notNull(),
    expiresAt: integer().notNull(),
  },
  (table) => [index("admin_sessions_expiresAt").on(table.expiresAt)],
);
