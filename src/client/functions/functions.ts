import type { Treaty } from "@elysiajs/eden/treaty2";
import type { AnyElysia } from "elysia";
import type { ClientContext } from "../context.ts";
import { later } from "../later.ts";

type Mounted<Api> = Api extends { api: { functions: infer Functions } } ? Functions : unknown;

/** Routes of a config, with Eden Treaty's types. */
export type FunctionsOf<Routes> =
  Awaited<Routes> extends infer Api
    ? unknown extends Api
      ? unknown
      : Api extends AnyElysia
        ? Mounted<Treaty.Create<Api>>
        : unknown
    : unknown;

/** Path endings that send a request instead of adding a parameter to the path. */
const METHODS = new Set(["get", "post", "put", "patch", "delete", "head", "options"]);

/**
 * Members of the socket returned by `subscribe` that are not methods. `then` is included, so that the socket does not look like a
 * promise.
 */
const VALUES = new Set(["url", "ws", "then"]);

/**
 * Creates the routes of a config. A path is written as members and calls, `functions.orders({ id }).get()`, and collected until a
 * method is called; the rest of the code is loaded then. It behaves like Eden Treaty, whose types it has.
 */
export function createFunctions(context: ClientContext): unknown {
  const node = (path: readonly string[]): unknown =>
    new Proxy(() => {}, {
      get(_, name) {
        // Awaiting the object by mistake must not call a route `then`.
        if (name === "~path") return `/api/functions/${path.join("/")}`;
        if (typeof name === "symbol" || (name === "then" && path.length === 0)) return undefined;
        return node([...path, name]);
      },
      apply(_, __, given: readonly unknown[]) {
        const last = path.at(-1) ?? "";
        if (METHODS.has(last)) return later().then(({ call }) => call(context, path, given));
        if (last === "subscribe") return lazySocket(context, path.slice(0, -1), given);
        const [parameter] = Object.values(given[0] ?? {});
        return node([...path, encodeURIComponent(String(parameter))]);
      },
    });
  return node([]);
}

/** Creates a socket whose calls wait until its code is loaded. */
function lazySocket(context: ClientContext, path: readonly string[], given: readonly unknown[]): unknown {
  const opened = later().then(({ openRouteSocket }) => openRouteSocket(context, path, given[0]));
  let socket: Awaited<typeof opened> | null = null;
  void opened.then((own) => {
    socket = own;
  });
  const lazy: unknown = new Proxy(
    {},
    {
      get(_, name) {
        if (name === "~path") return `/api/functions/${path.join("/")}`;
        if (typeof name === "symbol" || VALUES.has(name)) return Reflect.get(socket ?? {}, name);
        return (...values: readonly unknown[]) => {
          // All other members are methods.
          void opened.then((own) => Reflect.apply(Reflect.get(own, name), own, values));
          return lazy;
        };
      },
    },
  );
  return lazy;
}
