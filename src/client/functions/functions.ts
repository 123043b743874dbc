import type { Treaty } from "@elysiajs/eden/treaty2";
import type { AnyElysia } from "elysia";
import type { ClientContext } from "../context.ts";

type Mounted<Api> = Api extends { api: { functions: infer Functions } } ? Functions : unknown;

/** The routes of a config as Eden Treaty has them. */
export type FunctionsOf<Routes> =
  Awaited<Routes> extends infer Api
    ? unknown extends Api
      ? unknown
      : Api extends AnyElysia
        ? Mounted<Treaty.Create<Api>>
        : unknown
    : unknown;

/** The last names of a path, at which a request is sent instead of adding a parameter to the path. */
const METHODS = new Set(["get", "post", "put", "patch", "delete", "head", "options"]);

/** Members of the socket that `subscribe` gives which are no methods; `then`: it is none, and no promise. */
const VALUES = new Set(["url", "ws", "then"]);

/**
 * The routes of a config: a path is written as members and calls, `functions.orders({ id }).get()`. The path is kept until a
 * method is called; what does the rest is loaded then. It does what Eden Treaty does, whose types it has.
 */
export function createFunctions(context: ClientContext): unknown {
  const node = (path: readonly string[]): unknown =>
    new Proxy(() => {}, {
      get(_, name) {
        // What is awaited by mistake is no route `then`.
        if (name === "~path") return `/api/functions/${path.join("/")}`;
        if (typeof name === "symbol" || (name === "then" && path.length === 0)) return undefined;
        return node([...path, name]);
      },
      apply(_, __, given: readonly unknown[]) {
        const last = path.at(-1) ?? "";
        if (METHODS.has(last)) return import("./calls.ts").then(({ call }) => call(context, path, given));
        if (last === "subscribe") return lazySocket(context, path.slice(0, -1), given);
        const [parameter] = Object.values(given[0] ?? {});
        return node([...path, encodeURIComponent(String(parameter))]);
      },
    });
  return node([]);
}

/** A socket whose calls wait until its code is loaded. */
function lazySocket(context: ClientContext, path: readonly string[], given: readonly unknown[]): unknown {
  const opened = import("./calls.ts").then(({ openRouteSocket }) => openRouteSocket(context, path, given[0]));
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
