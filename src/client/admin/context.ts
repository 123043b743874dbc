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
  /** Headers of every request, which authenticate the caller. */
  headers: Readonly<Record<string, string>>;
  /** Store for state of unfinished work, such as uploads; in memory by default. */
  store?: Store;
  /** Id of the user whom the client acts as; null: none. */
  userId?: string | null;
}

/** Creates a client context without a user's session. `live` provides the connection of its live queries. */
export function keyContext(
  { url, runtime, headers, store = memoryStore(), userId = null }: Server,
  live: Pick<ClientContext, "socket"> & Pick<Transport, "token">,
): ClientContext {
  // The store is separate, so that a user's session on the same origin is not picked up.
  const context = createContext({ url, store: memoryStore() }, runtime);
  const send = createSend({ base: context.transport.url(""), runtime });
  const transport: Transport = {
    ...context.transport,
    // The type is the caller's choice: responses are not validated again.
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
