import * as admin from "./admin.ts";
import * as auth from "./auth.ts";
import * as push from "./push.ts";
import * as storage from "./storage.ts";
import * as tables from "./tables.ts";

/** Every table of system.db. */
export const systemTables = { ...admin, ...auth, ...push, ...storage, ...tables };
