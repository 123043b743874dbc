import type { Elysia } from "elysia";
import { AppError, notFound } from "../../kernel/errors.ts";
import type { MaybePromise } from "../../kernel/maybe-promise.ts";
import type { Endpoint } from "./endpoint.ts";
import type { ElysiaContext, Http } from "./http.ts";
import { groupWide, isWide, methodOf, pathAt, pathOf, restOfPath, type WideGroup } from "./wide-paths.ts";

/** The methods in the order of `Allow`. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Adds the endpoints to `server` as routes of Elysia. Their descriptions are built on demand (openapi/document.ts). */
export function mountEndpoints(server: Elysia, http: Http, endpoints: readonly Endpoint[]): void {
  for (const endpoint of endpoints) {
    if (isWide(endpoint)) continue;
    server.route(methodOf(endpoint.route), pathOf(endpoint.route), http.endpoint(endpoint));
  }
  for (const group of groupWide(endpoints)) mountWide(server, http, group);
}

function mountWide(server: Elysia, http: Http, group: WideGroup): void {
  const paths = [...group.wide, ...group.fixed];
  const all = paths.flatMap(({ endpoints }) => [...endpoints.values()]);
  const handlers = new Map(all.map((endpoint) => [endpoint, http.endpoint(endpoint)]));
  const serve = ({ request, params = {}, route }: ElysiaContext): MaybePromise<Response> => {
    let rest: string;
    try {
      rest = restOfPath(request.url, group);
    } catch (cause) {
      return http.refusal(cause, request);
    }
    const at = pathAt(group, rest);
    if (at === null) return http.refusal(nothingAt(request), request);
    const { method } = request;
    const endpoint = at.endpoints.get(method) ?? (method === "HEAD" ? at.endpoints.get("GET") : undefined);
    const handler = endpoint === undefined ? undefined : handlers.get(endpoint);
    if (handler === undefined) {
      const allowed = METHODS.filter((name) => at.endpoints.has(name));
      return http.refusal(methodRefused(request, methodsOf(allowed)), request);
    }
    return handler({ request, params: Object.assign(params, at.params), route });
  };
  // Every method is routed: whether the path allows it is known only from the end of the path.
  for (const method of METHODS) {
    // Elysia detects which members of its context a handler names, and parses the body for one that takes them all.
    server.route(method, group.pattern, ({ request, params, route }) => serve({ request, params, route }));
  }
}

const nothingAt = (request: Request): AppError => notFound(`There is nothing at ${new URL(request.url).pathname}`);

/** Returns the methods, with those that the server answers by itself. */
export function methodsOf(declared: readonly string[]): string[] {
  if (declared.length === 0) return [];
  return [...new Set([...declared, ...(declared.includes("GET") ? ["HEAD"] : []), "OPTIONS"])];
}

export function methodRefused(request: Request, allowed: readonly string[]): AppError {
  const names = allowed.join(", ");
  return new AppError(405, `${request.method} is not allowed; use ${names}`, { headers: { allow: names } });
}
