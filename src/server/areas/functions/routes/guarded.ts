import type { AnyElysia, Context } from "elysia";
import { ACCESS, TIMEOUT } from "../../../config/sections/functions/markers.ts";
import type { RouteAccess } from "../../../config/types.ts";
import { kindOfBody, readBody } from "../requests/bodies.ts";
import type { Handle, RouteOptions } from "../requests/performing.ts";
import type { SocketOptions } from "../requests/socket-options.ts";
import { type Declared, Part } from "../values/part.ts";
import type { Schema } from "../values/schema.ts";
import { replaceSchemas, type Schemas } from "./replaced-schemas.ts";

/** Routes by `METHOD pattern`, each with the handler of its requests: Elysia's compiled route and its wrapper. */
export type KnownRoutes = ReadonlyMap<string, RouteOptions & { handle: Handle }>;

/** Wraps a compiled route: the wrapper runs before anything of the request is parsed. */
type Around = (route: RouteOptions, handle: Handle) => Handle;

/** The members of an Elysia instance that this file changes; its types keep them private. */
interface Registering {
  add(method: string, path: string, handle: unknown, hooks?: Hooks, options?: { skipPrefix?: boolean }): void;
  config: { prefix?: string };
  applyMacro(hooks: object): void;
  definitions: { type: Readonly<Record<string, Schema>> };
  validator: { getCandidate(): Schemas };
  standaloneValidator: Record<string, readonly Schemas[] | null>;
  routeTree: Record<string, number>;
  router: {
    history: { composed: Handle | null; hooks: Hooks; path: string; method: string }[];
    http: { add(method: string, path: string, store: Store): unknown };
  };
}

interface Hooks extends Schemas {
  websocket?: Omit<SocketOptions, "error" | "part"> & { error?: unknown; body?: Declared };
  transform?: readonly Hook[];
  parse?: readonly Hook[];
  error?: readonly Hook[];
  standaloneValidator?: readonly Schemas[];
}

interface Hook {
  fn: unknown;
  scope?: string;
  /** Whether it is asynchronous, which Elysia would otherwise guess from the source. */
  isAsync?: boolean;
}

/** The match of Elysia's router for a path with parameters. */
interface Store {
  handler?: Handle | undefined;
  compile(): Handle;
}

const marked = (hooks: Hooks, name: symbol): unknown[] =>
  (hooks.transform ?? [])
    .map(({ fn }) => (fn as { [name: symbol]: unknown })[name])
    .filter((value) => value !== undefined);

/**
 * Wraps every route that is added to `api` from now on in `around`. Elysia adds the routes of groups, guards and plugins by the
 * same method, including those of plugins that are loaded later. Its own hooks would be too late: cookies are validated before the
 * first of them, and the body before those that see the parameters. Returns the routes by `METHOD pattern`, including later ones.
 */
export function guardRoutes(api: AnyElysia, around: Around, onFailure: (context: Context) => unknown): KnownRoutes {
  const known = new Map<string, RouteOptions & { handle: Handle }>();
  const registering = api as unknown as Registering;
  const { http } = registering.router;
  const add = registering.add.bind(registering);
  const addToRouter = http.add.bind(http);

  registering.add = (method, path, handle, given = {}, options = {}) => {
    // Several routes may share the object.
    const hooks = { ...given };
    // Macros may bring schemas. They are applied here, and Elysia finds nothing left to apply.
    registering.applyMacro(hooks);
    const restore = replaceSchemas(registering, hooks);
    // Elysia itself ignores errors of a WebSocket's handlers that no hook answers.
    const { websocket } = hooks;
    if (websocket !== undefined) websocket.error = [websocket.error ?? [], onFailure].flat();
    const guarded = createLateGuard(around);
    http.add = (routedMethod, routedPath, store) => addToRouter(routedMethod, routedPath, guarded.store(store));
    try {
      add(method, path, handle, hooks, options);
    } finally {
      http.add = addToRouter;
      restore();
    }
    const record = addedRecord(registering, method, path, options.skipPrefix === true);
    const [timeout = null] = marked(record.hooks, TIMEOUT).slice(-1) as number[];
    const access = marked(record.hooks, ACCESS) as RouteAccess[];
    const { transform = [], error = [], parse = [] } = record.hooks;
    const parsesItself = parse.length > 0;
    const socket = websocket === undefined ? null : socketOf(registering, websocket);
    const route = { method, pattern: record.path, access, timeout, parsesItself, socket };
    guarded.know(route);
    const own = transform.filter(({ fn }) => !(ACCESS in (fn as object) || TIMEOUT in (fn as object)));
    // Elysia would keep only the last of repeated parameters.
    record.hooks.transform = record.hooks.query === undefined ? own : [{ fn: readQuery, isAsync: false }, ...own];
    // Runs after parsers of the route that have left the body to others.
    if (typeof parse.at(-1)?.fn === "function") record.hooks.parse = [...parse, { fn: parseByType }];
    // Runs after those of the config, which may answer errors of their routes as they like.
    record.hooks.error = [...error.filter(({ fn }) => fn !== onFailure), { fn: onFailure, scope: "local" }];
    known.set(`${method} ${record.path}`, { ...route, handle: guarded.record(record) });
  };
  return known;
}

// Destructured: Elysia detects from a hook's source which members it takes.
const readQuery = ({ url, qi }: { url: string; qi: number }) => ({
  query: queryOf(qi === -1 ? "" : url.slice(qi + 1)),
});
const parseByType = ({ request }: Context) => readBody(request, kindOfBody(request.headers) ?? undefined);

/** Parses the parameters of a query; repeated ones become lists. */
function queryOf(text: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    const before = query[name];
    if (before === undefined) query[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else query[name] = [before, value];
  }
  return query;
}

function socketOf(registering: Registering, options: NonNullable<Hooks["websocket"]>): SocketOptions {
  const models = () => registering.definitions.type;
  const part = options.body === undefined ? null : new Part("message", [options.body], models);
  // `add` has made it a list.
  return { ...options, error: options.error as SocketOptions["error"] & object, part };
}

/** Returns the added record, by the key under which Elysia itself finds it again. */
function addedRecord({ router, routeTree, config }: Registering, method: string, path: string, skipPrefix: boolean) {
  const withSlash = path === "" || path.startsWith("/") ? path : `/${path}`;
  const whole = skipPrefix ? withSlash : `${config.prefix ?? ""}${withSlash}`;
  const record = router.history[routeTree[`${method}_${whole}`] ?? -1];
  if (record === undefined) throw new Error(`${method} ${whole} was not added`);
  return record;
}

/** Creates the wrapper of one route, whose options are known only after Elysia has merged its hooks. */
function createLateGuard(around: Around) {
  let route: RouteOptions | null = null;
  const guard = (handle: Handle): Handle => {
    let inner: Handle | null = null;
    return (context) => {
      if (route === null) throw new Error("a route is served before its access rule is known");
      inner ??= around(route, handle);
      return inner(context);
    };
  };
  return {
    know(options: RouteOptions): void {
      route = options;
    },
    store(store: Store): Store {
      let handler: Handle | undefined;
      return {
        get handler() {
          return handler;
        },
        set handler(_value) {},
        compile() {
          handler ??= guard((context) => (store.handler ?? store.compile())(context));
          return handler;
        },
      };
    },
    /** Returns the handler. For a path without parameters, Elysia replaces it by the compiled route at the first request. */
    record(record: { composed: Handle | null }): Handle {
      let compiled = record.composed;
      const guarded = guard((context) => {
        if (compiled === null) throw new Error("a route has no handler");
        return compiled(context);
      });
      Object.defineProperty(record, "composed", {
        configurable: true,
        enumerable: true,
        get: () => guarded,
        set(value: Handle) {
          compiled = value;
        },
      });
      return guarded;
    },
  };
}
