import { createContext } from "../client.ts";
import type { ClientContext } from "../context.ts";
import type { Runtime } from "../runtime.ts";
import { memoryStore, type Store } from "../store.ts";
import { sendWrite } from "../tables/writes.ts";
import { asGiven, createSend } from "../transport/send.ts";
import type { Transport } from "../transport/types.ts";

interface Server {
  url: string;
  runtime: Runtime;
  /** Of every request: they say who asks. */
  headers: Readonly<Record<string, string>>;
  /** For what is under way, such as uploads; in memory by default. */
  store?: Store;
  /** Whom it acts as; null: nobody. */
  userId?: string | null;
}

/** A client's context without a session of a user. `live` is what its live queries would connect with. */
export function keyContext(
  { url, runtime, headers, store = memoryStore(), userId = null }: Server,
  live: Pick<ClientContext, "socket"> & Pick<Transport, "token">,
): ClientContext {
  // With a store of its own: a session of the site on the same origin is none of this client's.
  const context = createContext({ url, store: memoryStore() }, runtime);
  const send = createSend({ base: context.transport.url(""), runtime });
  const transport: Transport = {
    ...context.transport,
    // A type of the caller's choice: the answers of the server are not checked again.
    request: async <T>(...[method, path, given = {}]: Parameters<Transport["request"]>) => {
      const options = asGiven(given);
      const idempotent = options.idempotent === true ? runtime.uuid() : options.idempotent;
      return (await send(method, path, { ...options, idempotent, headers: { ...options.headers, ...headers } })) as T;
    },
    token: live.token,
    userId: () => userId,
    onAuth: () => () => {},
  };
  return { ...context, store, transport, deliver: (write) => sendWrite(transport, write), socket: live.socket };
}
