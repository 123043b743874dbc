import type { TablesAmong, TypesOf } from "../server/config/typed/declared.ts";
import { createAuth } from "./auth/auth.ts";
import type { InTurn } from "./auth/lease.ts";
import { createSession } from "./auth/session.ts";
import type { Auth } from "./auth/types.ts";
import type { ClientContext, ClientOptions } from "./context.ts";
import { createFeatures, type Features } from "./features.ts";
import { later } from "./later.ts";
import { createListeners } from "./listeners.ts";
import { createOffline } from "./offline/lazy.ts";
import type { Offline } from "./offline/types.ts";
import { type Runtime, systemRuntime } from "./runtime.ts";
import { socketOf } from "./socket/socket.ts";
import { defaultStore } from "./store.ts";
import { createDatabase } from "./tables/table.ts";
import { NO_LOCAL_WRITES, sendWrite } from "./tables/writes.ts";
import { createSend } from "./transport/send.ts";
import { createTransport } from "./transport/transport.ts";
import type { Database } from "./types/table.ts";

/** Client of one server, typed by its config. */
export interface Client<Config = unknown> extends Features<TypesOf<Config>> {
  /** Returns the tables of a namespace; with `instanceId`, those of one instance. */
  db<Namespace extends keyof TypesOf<Config>["databases"] & string>(
    namespace: Namespace,
    instanceId?: string,
  ): Database<TablesAmong<TypesOf<Config>["databases"], Namespace>>;
  readonly auth: Auth;
  /** Writes that wait for a connection. Needs the option `offline`. */
  readonly offline: Offline;
  /** Ends connections, timers and listeners. The session stays in the store. */
  close(): void;
}

/**
 * Creates a client of the server at `url`, typed by a config: `createClient<typeof config>({ url })`. Without a type, all values
 * are plain JSON. Errors: `TypeError` for an invalid `url`.
 */
export const createClient = <Config = unknown>(options: ClientOptions): Client<Config> =>
  clientOf(createContext(options, systemRuntime));

/** Creates the client of a context. */
export function clientOf<Config>(context: ClientContext): Client<Config> {
  return {
    ...createFeatures<TypesOf<Config>>(context),
    // Only the types differ: the names of tables and fields are the config's.
    db: (namespace, instanceId) => createDatabase(context, namespace, instanceId) as never,
    auth: createAuth(context),
    offline: createOffline(context),
    close: () => context.close(),
  };
}

/** Creates the parts that all features share. `runtime` is an argument for tests. */
export function createContext(options: ClientOptions, runtime: Runtime): ClientContext {
  // `new URL("localhost:8787")` parses as the protocol "localhost:". Parsed as a base it is refused.
  const address = new URL("", options.url);
  const base = address.origin + address.pathname.replace(/\/+$/, "");
  const store = options.store ?? defaultStore();
  const send = createSend({ base, runtime });
  // Code for stores without a lock is loaded by the first turn.
  const inTurn: InTurn = async (turn) =>
    store.lock?.(turn.key, turn.work) ?? (await later()).leased(store, runtime, turn);
  const session = createSession({ store, runtime, send, host: address.host, inTurn });
  const transport = createTransport({ base, runtime }, send, session);
  const { add: onClose, tell: end } = createListeners();
  onClose(session.close);
  const context: ClientContext = {
    options,
    runtime,
    store,
    inTurn,
    session,
    transport,
    writes: NO_LOCAL_WRITES,
    deliver: (write) => sendWrite(transport, write),
    socket: () => Promise.resolve(socketOf(context)),
    onClose,
    close() {
      // Work registered after the close, by code that was still loading, ends at once.
      context.onClose = (work) => {
        work();
        return () => {};
      };
      end();
    },
  };
  return context;
}
