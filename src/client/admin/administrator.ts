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

/** The service key that an administrator has signed in with. */
export interface SignedInKey {
  name: string;
  scopes: readonly string[];
}

/** A server's administration in a browser, with a session instead of a service key. */
export interface Administrator extends Administration {
  /** The key of the session; null when there is none. */
  current(): Promise<SignedInKey | null>;
  /** With a service key, or the code of a link. Errors: `PlatformError`. */
  signIn(credentials: { key: string } | { code: string }): Promise<SignedInKey>;
  signOut(): Promise<void>;
  /** Any endpoint, with the rights of the key, or of whom it acts as. */
  request<T = unknown>(method: Method, path: string, options?: RequestOptions): Promise<T>;
  /** The tables of a namespace, or of one instance. */
  db(namespace: string, instanceId?: string): AnyDatabase;
  /** The files of a bucket. Uploads that were broken off go on after a reload, where there is a `store`. */
  storage(bucket: string): Bucket;
  /** The same server as a user sees it; null: as nobody. Needs the root key. */
  as(userId: string | null): Administrator;
  /** Realtime, with the rights of the key. */
  readonly socket: Socket;
  /** Another WebSocket of the server that takes tickets, such as `/api/admin/logs/live`. Nothing is opened before it is held. */
  openSocket(path: string): Socket;
  /** The address of a path, for links and pictures. */
  url: Transport["url"];
  close(): void;
}

const HEADERS = { "X-Platform-Admin": "1" };
const SESSION = "/api/admin/session";
const NOBODY = "anonymous";

/**
 * `url`: the origin of the page, as the session's cookie is sent nowhere else. `store`: where the ids of unfinished uploads are kept,
 * in memory by default.
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
  /** Whom it acts as. */
  userId: string | null;
}

function administratorOf(deps: AdministratorDeps): Administrator {
  /** A connection keeps its ticket: the next one needs another. */
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
