import auth from "./001_auth.sql" with { type: "text" };
import storage from "./002_storage.sql" with { type: "text" };
import push from "./003_push.sql" with { type: "text" };
import signIn from "./004_sign_in.sql" with { type: "text" };
import userSearch from "./005_user_search.sql" with { type: "text" };
import sessions from "./006_sessions.sql" with { type: "text" };

/**
 * Every step of system.db, in the order in which they run. A step that has been released is never changed: a new one
 * follows it.
 */
export const systemMigrations: readonly { name: string; sql: string }[] = [
  { name: "001_auth", sql: auth },
  { name: "002_storage", sql: storage },
  { name: "003_push", sql: push },
  { name: "004_sign_in", sql: signIn },
  { name: "005_user_search", sql: userSearch },
  { name: "006_sessions", sql: sessions },
];
