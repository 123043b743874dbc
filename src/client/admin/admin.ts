import type { TablesAmong, TypesOf } from "../../server/config/typed/declared.ts";
import { createFeatures, type Features } from "../features.ts";
import { systemRuntime } from "../runtime.ts";
import { createDatabase } from "../tables/table.ts";
import { localError } from "../transport/errors.ts";
import type { Database } from "../types/table.ts";
import { type Administration, createAdministration } from "./administration.ts";
import { keyContext } from "./context.ts";

export interface AdminOptions {
  /** Address of the server. */
  url: string;
  /** The root key, or one of the config's `serviceKeys`. Anything outside its scopes fails with `forbidden`. */
  serviceKey: string;
}

/** Client with the rights of a service key: no rules are evaluated. Failed calls reject with `PlatformError`. */
export interface AdminClient<Config = unknown>
  extends Administration,
    Pick<Features<TypesOf<Config>>, "storage" | "functions"> {
  /** Returns the tables of a namespace; with `instanceId`, those of one instance. They do not support live queries. */
  db<Namespace extends keyof TypesOf<Config>["databases"] & string>(
    namespace: Namespace,
    instanceId?: string,
  ): Database<TablesAmong<TypesOf<Config>["databases"], Namespace>>;
}

/** Returns whether this program's code is public: every visitor of a page, or user of an app, could read the key. */
function isPublic(): boolean {
  const { document, navigator } = globalThis as { document?: unknown; navigator?: Partial<Navigator> };
  const isPage = document !== undefined || /^Mozilla\//.test(navigator?.userAgent ?? "");
  return isPage || navigator?.product === "ReactNative";
}

/**
 * Creates a client for servers and scripts. Errors: `Error` in a browser or an app, where any user could read the key;
 * `TypeError` for an invalid `url`.
 */
export function createAdminClient<Config = unknown>({ url, serviceKey }: AdminOptions): AdminClient<Config> {
  if (isPublic()) {
    throw new Error(
      "platform/admin does not run in a browser or an app: everybody who uses it could read the service key, which passes all " +
        "rules. Use platform/client there, and call a route of the config for what needs more rights.",
    );
  }
  const headers = { "X-Platform-Service-Key": serviceKey };
  const noSocket = localError("unauthenticated", "Live queries need a user, and platform/admin has none");
  const socket = () => Promise.reject(noSocket);
  const context = keyContext({ url, runtime: systemRuntime, headers }, { token: async () => null, socket });
  const { transport } = context;
  const { storage, functions } = createFeatures<TypesOf<Config>>(context);
  return {
    ...createAdministration(transport),
    storage,
    functions,
    // Only the types differ: the names of tables and fields are the config's.
    db: (namespace, instanceId) => createDatabase(context, namespace, instanceId) as never,
  };
}
