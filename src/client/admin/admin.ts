import type { TypesOf } from "../../config/typed/declared.ts";
import { createContext } from "../client.ts";
import type { ClientContext } from "../context.ts";
import { createFeatures, type Features } from "../features.ts";
import { systemRuntime } from "../runtime.ts";
import { memoryStore } from "../store.ts";
import { createDatabase } from "../tables/database.ts";
import { PlatformError } from "../transport/errors.ts";
import { createSend, urlOf } from "../transport/send.ts";
import type { Transport } from "../transport/types.ts";
import type { Database } from "../types/table.ts";
import { type Administration, createAdministration } from "./administration.ts";

export interface AdminOptions {
  /** The address of the server. */
  url: string;
  /** The root key, or one of the config's `serviceKeys`. What its scopes do not allow is `forbidden`. */
  serviceKey: string;
}

/** A client with the rights of a service key: no rule is asked. Errors of all: `PlatformError`. */
export interface AdminClient<Config = unknown>
  extends Administration,
    Pick<Features<TypesOf<Config>>, "storage" | "functions"> {
  /** The tables of a namespace; with `instanceId`, those of one instance of it. They cannot be live. */
  db<Namespace extends keyof TypesOf<Config>["databases"] & string>(
    namespace: Namespace,
    instanceId?: string,
  ): Database<TypesOf<Config>["databases"][Namespace]>;
}

/** Whether people can look into this program: every visitor of a page, or who has the app, would have the key. */
function isPublic(): boolean {
  const { document, navigator } = globalThis as { document?: unknown; navigator?: Partial<Navigator> };
  const isPage = document !== undefined || /^Mozilla\//.test(navigator?.userAgent ?? "");
  return isPage || navigator?.product === "ReactNative";
}

/**
 * A client for servers and scripts. Errors: `Error` in a browser or an app, where whoever uses it could read the key;
 * `TypeError` for a `url` that is none.
 */
export function createAdminClient<Config = unknown>({ url, serviceKey }: AdminOptions): AdminClient<Config> {
  if (isPublic()) {
    throw new Error(
      "platform/admin does not run in a browser or an app: everybody who uses it could read the service key, which passes all " +
        "rules. Use platform/client there, and call a route of the config for what needs more rights.",
    );
  }
  const context = adminContext(url, serviceKey);
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

/** A client's context without a user. */
function adminContext(url: string, serviceKey: string): ClientContext {
  const context = createContext({ url, store: memoryStore() }, systemRuntime);
  const base = context.transport.url("");
  const send = createSend({ base, runtime: systemRuntime });
  const transport: Transport = {
    // A type of the caller's choice: the answers of the server are not checked again.
    request: async <T>(...[method, path, options = {}]: Parameters<Transport["request"]>) => {
      const idempotent = options.idempotent === true ? systemRuntime.uuid() : options.idempotent;
      const headers = { ...options.headers, "X-Platform-Service-Key": serviceKey };
      return (await send(method, path, { ...options, idempotent, headers })) as T;
    },
    token: async () => null,
    userId: () => null,
    onAuth: () => () => {},
    url: (path, query) => urlOf(base, path, query),
  };
  const noSocket = new PlatformError({
    status: 0,
    code: "unauthenticated",
    message: "Live queries need a user, and platform/admin has none",
  });
  return {
    ...context,
    transport,
    deliver: ({ request: { method, path, query, body, idempotencyKey } }) =>
      transport.request(method, path, { query, body, idempotent: idempotencyKey ?? false }),
    socket: () => Promise.reject(noSocket),
  };
}
