import { createContext } from "../client.ts";
import type { ClientContext } from "../context.ts";
import type { Runtime } from "../runtime.ts";
import { memoryStore } from "../store.ts";
import { sendWrite } from "../tables/writes.ts";
import { createSend } from "../transport/send.ts";
import type { Transport } from "../transport/types.ts";

interface Server {
  url: string;
  runtime: Runtime;
  /** Of every request: they say who asks. */
  headers: Readonly<Record<string, string>>;
}

/** A client's context without a user. `live` is what its live queries would connect with. */
export function keyContext(
  { url, runtime, headers }: Server,
  live: Pick<ClientContext, "socket"> & Pick<Transport, "token">,
): ClientContext {
  const context = createContext({ url, store: memoryStore() }, runtime);
  const send = createSend({ base: context.transport.url(""), runtime });
  const transport: Transport = {
    ...context.transport,
    // A type of the caller's choice: the answers of the server are not checked again.
    request: async <T>(...[method, path, options = {}]: Parameters<Transport["request"]>) => {
      const idempotent = options.idempotent === true ? runtime.uuid() : options.idempotent;
      return (await send(method, path, { ...options, idempotent, headers: { ...options.headers, ...headers } })) as T;
    },
    token: live.token,
    userId: () => null,
    onAuth: () => () => {},
  };
  return { ...context, transport, deliver: (write) => sendWrite(transport, write), socket: live.socket };
}
