import { type AnyElysia, Elysia } from "elysia";
import { AppError, notFound } from "../kernel/errors.ts";
import type { MaybePromise } from "../kernel/maybe-promise.ts";
import type { Endpoint } from "./endpoint.ts";
import type { ElysiaContext, Http } from "./http.ts";
import { operationOf } from "./openapi/operation.ts";
import { endpointsAt, groupWide, isWide, methodOf, pathOf, restOfPath, type WideGroup } from "./wide-paths.ts";

/** In the order in which `Allow` names them. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** The endpoints as routes of Elysia, each with its description. */
export function mountEndpoints(http: Http, endpoints: readonly Endpoint[]): AnyElysia {
  const routes = new Elysia();
  for (const endpoint of endpoints) {
    if (isWide(endpoint)) continue;
    const { declaration, route } = endpoint;
    const detail = declaration.isDocumented === false ? { hide: true } : operationOf(endpoint);
    routes.route(methodOf(route), pathOf(route), http.endpoint(endpoint), { detail });
  }
  for (const group of groupWide(endpoints)) mountWide(http, routes, group);
  return routes;
}

function mountWide(http: Http, routes: AnyElysia, group: WideGroup): void {
  const all = [...group.members, ...group.fixed];
  const handlers = new Map(all.map(({ endpoint }) => [endpoint, http.endpoint(endpoint)]));
  const serve = ({ request, params = {}, route }: ElysiaContext): MaybePromise<Response> => {
    let rest: string;
    try {
      rest = restOfPath(request.url, group);
    } catch (cause) {
      return http.refusal(cause, request);
    }
    const found = endpointsAt(group, rest);
    const ofMethod = (wanted: string) => found.find(({ method }) => method === wanted);
    const here = ofMethod(request.method) ?? (request.method === "HEAD" ? ofMethod("GET") : undefined);
    const handler = here === undefined ? undefined : handlers.get(here.endpoint);
    if (here === undefined || handler === undefined) {
      const allowed = METHODS.filter((method) => ofMethod(method) !== undefined);
      const refusal = found.length === 0 ? nothingAt(request) : methodRefused(request, methodsOf(allowed));
      return http.refusal(refusal, request);
    }
    const { "*": _, ...base } = params;
    return handler({ request, params: { ...base, ...here.params }, route });
  };
  // A method that none of the group has is refused by what its path ends in.
  for (const method of METHODS) {
    // Elysia reads which members of its context a handler names, and parses the body for one that takes them all.
    routes.route(method, group.pattern, ({ request, params, route }) => serve({ request, params, route }), {
      detail: { hide: true },
    });
  }
}

const nothingAt = (request: Request): AppError => notFound(`There is nothing at ${new URL(request.url).pathname}`);

/** With those that the server answers by itself. */
export function methodsOf(declared: readonly string[]): string[] {
  if (declared.length === 0) return [];
  return [...new Set([...declared, ...(declared.includes("GET") ? ["HEAD"] : []), "OPTIONS"])];
}

export function methodRefused(request: Request, allowed: readonly string[]): AppError {
  const names = allowed.join(", ");
  return new AppError(405, `${request.method} is not allowed; use ${names}`, { headers: { allow: names } });
}
