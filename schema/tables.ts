// biome-ignore lint/suspicious/noDeprecatedImports: another overload of primaryKey is meant
import { index, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Creators of instances, in namespaces with a quota of instances. */
export const instanceCreators = sqliteTable(
  "instance_creators",
  {
    namespace: text().notNull(),
    instanceId: text().notNull(),
    userId: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.namespace, table.instanceId] }),
    index("instance_creators_user").on(table.namespace, table.userId),
  ],
);
