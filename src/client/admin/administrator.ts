import { type Runtime, systemRuntime } from "../runtime.ts";
import { SharedSocket, socketOf } from "../socket/socket.ts";
import type { Socket } from "../socket/types.ts";
import { createBucket } from "../storage/bucket.ts";
import type { Bucket } from "../storage/types.ts";
import { memoryStore, type Store } from "../store.ts";
import { type AnyDatabase, createDatabase } from "../tables/table.ts";
import { PlatformError } from "../transport/errors.ts";
import type { Method, RequestOptions, Transport } from "../transport/types.ts";
import { type Administration, createAdministration } from "./administration.ts";
import { keyContext } from "./context.ts";

/** Service key that an administrator has signed in with. */
export interface SignedInKey {
  name: string;
  scopes: readonly string[];
}

/** Administration of a server from a browser, with a session instead of a service key. */
export interface Administrator extends Administration {
  /** Returns the key of the session; null without a session. */
  current(): Promise<SignedInKey | null>;
  /** Signs in with a service key, or with the code of a link. Errors: `PlatformError`. */
  signIn(credentials: { key: string } | { code: string }): Promise<SignedInKey>;
  signOut(): Promise<void>;
  /** Requests any endpoint, with the rights of the key, or of the user it acts as. */
  request<T = unknown>(method: Method, path: string, options?: RequestOptions): Promise<T>;
  /** Returns the tables of a namespace, or of one instance. */
  db(namespace: string, instanceId?: string): AnyDatabase;
  /** Returns the files of a bucket. With a `store`, interrupted uploads resume after a reload. */
  storage(bucket: string): Bucket;
  /** Returns a client that sees the server as this user does; null: anonymously. Needs the root key. */
  as(userId: string | null): Administrator;
  /** Realtime connection, with the rights of the key. */
  readonly socket: Socket;
  /**
   * Returns a connection to another WebSocket endpoint that takes tickets, such as `/api/admin/logs/live`. It opens at the first
   * `hold`.
   */
  openSocket(path: string): Socket;
  /** Returns the address of a path, for links and images. */
  url: Transport["url"];
  close(): void;
}

const HEADERS = { "X-Platform-Admin": "1" };
const SESSION = "/api/admin/session";
const NOBODY = "anonymous";

/**
 * Creates the client of a page. `url`: the page's own origin, as the session cookie is sent nowhere else. `store`: holds the ids
 * of unfinished uploads; in memory by default.
 */
export function createAdministrator({
  url,
  runtime = systemRuntime,
  store = memoryStore(),
}: {
  url: string;
  runtime?: Runtime;
  store?: Store;
}): Administrator {
  return administratorOf({ url, runtime, store, headers: HEADERS, userId: null });
}

interface AdministratorDeps {
  url: string;
  runtime: Runtime;
  store: Store;
  headers: Record<string, string>;
  /** Id of the user whom the client acts as; null: none. */
  userId: string | null;
}

function administratorOf(deps: AdministratorDeps): Administrator {
  /** Returns a source of tickets. A ticket stays with its connection: each new connection needs another. */
  const ticketsFor = (connection: () => Socket): Transport["token"] => {
    let ticket: string | null = null;
    return async () => {
      if (ticket === null || connection().status !== "connected") {
        ticket = (await request<{ ticket: string }>("POST", "/api/admin/socket-ticket")).ticket;
      }
      return ticket;
    };
  };
  const context = keyContext(deps, {
    token: ticketsFor(() => socket),
    socket: async () => socket,
  });
  const { transport } = context;
  const { request, url } = transport;
  const socket = socketOf(context);
  return {
    ...createAdministration(transport),
    async current() {
      try {
        return await request<SignedInKey>("GET", SESSION);
      } catch (error) {
        if (error instanceof PlatformError && error.status === 401) return null;
        throw error;
      }
    },
    async signIn(credentials) {
      await request("POST", SESSION, { body: credentials, raw: true });
      return request<SignedInKey>("GET", SESSION);
    },
    signOut: async () => void (await request("DELETE", SESSION, { raw: true })),
    request,
    db: (namespace, instanceId) => createDatabase(context, namespace, instanceId),
    storage: (bucket) => createBucket(context, bucket),
    as: (userId) =>
      administratorOf({ ...deps, userId, headers: { ...HEADERS, "X-Platform-Act-As": userId ?? NOBODY } }),
    socket,
    openSocket(path) {
      const opened: Socket = new SharedSocket(
        { ...context, transport: { ...transport, token: ticketsFor(() => opened) } },
        path,
      );
      return opened;
    },
    url,
    close: context.close,
  };
}
