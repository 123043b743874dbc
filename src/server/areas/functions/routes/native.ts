import type { BunRequest } from "bun";
import { type AnyElysia, type Context, redirect, status } from "elysia";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { NativeHandler, NativeRoutes } from "../../../http/listening/requests.ts";
import type { Call } from "../requests/call.ts";
import type { Handle, RouteOptions } from "../requests/performing.ts";
import type { KnownRoutes } from "./guarded.ts";

/** The members of an Elysia instance that this file reads; its types keep them private. */
interface Composed {
  singleton: { decorator: Record<string, unknown>; store: Record<string, unknown> };
  event: { request?: readonly unknown[]; trace?: readonly unknown[] };
  extender: { higherOrderFunctions: readonly unknown[] };
}

/** The functions that answer requests: `serve` by one route, `answer` by whichever matches. */
export interface Answering {
  serve(request: Request, perform: (call: Call) => MaybePromise<Response>): MaybePromise<Response>;
  answer(request: Request): MaybePromise<Response>;
}

const METHODS = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);

/**
 * Returns the routes for Bun's own router, which saves the work of two Elysia routers: those where both routers agree about every
 * path. None if a hook affects requests before their route is known.
 */
export function nativeRoutes(api: AnyElysia, known: KnownRoutes, answering: Answering): NativeRoutes {
  const composed = api as unknown as Composed;
  const { event, extender } = composed;
  const isHooked = [event.request, event.trace, extender.higherOrderFunctions].some((hooks = []) => hooks.length > 0);
  if (isHooked) return {};
  const routes = [...known.values()];
  const native: Record<string, Record<string, NativeHandler>> = {};
  for (const route of routes) {
    if (!isAgreed(route, routes)) continue;
    const handlers = native[route.pattern] ?? {};
    native[route.pattern] = handlers;
    handlers[route.method] = nativeHandler(composed, route, answering);
  }
  return native;
}

function nativeHandler(
  { singleton }: Composed,
  { method, pattern, handle }: RouteOptions & { handle: Handle },
  { serve, answer }: Answering,
): NativeHandler {
  const isDynamic = pattern.includes(":");
  return (request) => {
    // Bun also matches GET routes for HEAD, and decodes parameters with invalid percent-encoding.
    if (request.method !== method || (isDynamic && isDoubtful(request.params))) return answer(request);
    return serve(request, () => handle(contextOf(singleton, request)));
  };
}

/**
 * Creates the context that Elysia creates for each request. The decorators have the members of `RouteContext`. The address is read
 * lazily: Bun builds its text from the request's parts.
 */
function contextOf({ decorator, store }: Composed["singleton"], request: BunRequest): Context {
  let own: { url?: string; path?: string; qi?: number } = {};
  const context = {
    ...decorator,
    request,
    store,
    get url() {
      return own.url ?? request.url;
    },
    set url(url) {
      own = { ...own, url };
    },
    get path() {
      return own.path ?? partsOf(request.url).path;
    },
    set path(path) {
      own = { ...own, path };
    },
    get qi() {
      return own.qi ?? partsOf(request.url).qi;
    },
    set qi(qi) {
      own = { ...own, qi };
    },
    redirect,
    status,
    set: { headers: Object.create(null) as Context["set"]["headers"], status: 200 },
    params: request.params,
  };
  // Elysia's type has members that Elysia adds itself, such as `body`.
  return context as unknown as Context;
}

/** Returns the path of a URL, and the index of the question mark after it; -1: there is none. */
function partsOf(url: string): { path: string; qi: number } {
  const pathAt = url.indexOf("/", url.indexOf("://") + 3);
  const qi = url.indexOf("?", pathAt + 1);
  return { path: url.slice(pathAt, qi === -1 ? url.length : qi), qi };
}

const isDoubtful = (params: Readonly<Record<string, string>>): boolean => {
  for (const name in params) if (/[%\uFFFD]/.test(params[name] ?? "%")) return true;
  return false;
};

/** Whether Bun's router matches this route with exactly the requests of Elysia's router. */
function isAgreed(route: RouteOptions, all: readonly RouteOptions[]): boolean {
  return (
    isKnownToBoth(route) && all.every((other) => other === route || isInOrder(route, other) || !overlap(route, other))
  );
}

const isStatic = ({ pattern }: RouteOptions): boolean => !/[:*?]/.test(pattern);

/** Whether a pattern means the same to both routers. Each parameter name must be unique. */
function isKnownToBoth({ method, pattern }: RouteOptions): boolean {
  const segments = pattern.split("/").slice(1);
  const names = segments.filter((segment) => segment.startsWith(":"));
  const isPlainPath = segments.every((segment) => /^(?::[A-Za-z]\w*|[\w\-.~]+)$/.test(segment));
  return METHODS.has(method) && isPlainPath && new Set(names).size === names.length;
}

/** Whether the order is the same: in both routers a path without parameters takes precedence, for its method alone. */
function isInOrder(route: RouteOptions, other: RouteOptions): boolean {
  if (route.pattern === other.pattern) return METHODS.has(other.method);
  return isStatic(route) ? !isStatic(other) : isStatic(other) && isKnownToBoth(other);
}

/** Whether both patterns match a common path. */
function overlap(route: RouteOptions, other: RouteOptions): boolean {
  const ours = route.pattern.split("/");
  const theirs = other.pattern.replace(/\/$/, "").split("/");
  // An optional parameter, or the rest of a path.
  const isOpen = /[*?]/.test(other.pattern);
  if (!isOpen && ours.length !== theirs.length) return false;
  return theirs.every((segment, index) => {
    const own = ours[index];
    if (isOpen && (own === undefined || /[*?]/.test(segment))) return true;
    return own === segment || own?.startsWith(":") === true || segment.startsWith(":");
  });
}
