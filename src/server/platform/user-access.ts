import { plainCopy } from "../../kernel/json/copy.ts";
import { frozenJson } from "../../kernel/json/frozen.ts";
import { ANONYMOUS, type Principal } from "../access/principal.ts";
import type { RealtimeArea } from "../areas/realtime/index.ts";
import type { StorageArea } from "../areas/storage/index.ts";
import type { TablesArea } from "../areas/tables/index.ts";
import type { UserAccess } from "../config/app/index.ts";
import type { Auth } from "../config/types.ts";

type Caller = Extract<Principal, { kind: "anonymous" | "user" }>;

/** Creates `app.as(auth)`: what HTTP would do for this user. Errors: `TypeError` for a value that is neither a user nor null. */
export function createUserAccess(
  areas: { tables: TablesArea; storage: StorageArea; realtime: RealtimeArea },
  auth: Auth | null,
): UserAccess {
  const caller = callerOf(auth);
  return {
    db: (namespace, instanceId) => areas.tables.accessor(caller, namespace, instanceId),
    storage: (bucket) => areas.storage.accessor(caller, bucket),
    broadcast: (channel, event, payload) => areas.realtime.broadcastAs(caller, channel, event, payload),
  };
}

/** Resolves the caller. A forgotten argument must not become an anonymous caller, whose rights may exceed the expected ones. */
function callerOf(auth: Auth | null): Caller {
  if (auth === null) return ANONYMOUS as Extract<Principal, { kind: "anonymous" }>;
  if (typeof auth !== "object" || typeof auth.id !== "string") {
    throw new TypeError("app.as takes the auth of a rule, hook or route, or null for nobody");
  }
  return { kind: "user", auth: frozenJson(plainCopy(auth)), sessionId: "" };
}
