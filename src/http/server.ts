import { type AnyElysia, Elysia } from "elysia";
import { notFound } from "../kernel/errors.ts";
import type { Cors } from "./cors.ts";
import type { Http } from "./http.ts";
import { METHODS, methodRefused, methodsOf } from "./mount.ts";
import { NOSNIFF } from "./security-headers.ts";

/**
 * The Elysia instance to which areas add their routes. It answers what no route does: 404, 405 with `Allow`, preflights, and
 * HEAD where there is a GET.
 */
export function createServer(http: Http, cors: Cors): AnyElysia {
  const server = new Elysia({ normalize: false, handler: { standardHostname: false } });

  /** The methods of the routes at a path, in the order in which `Allow` names them. */
  const allowedMethods = (path: string): string[] => {
    const declared = server.routes.filter(({ path: pattern }) => isAt(pattern, path)).map(({ method }) => method);
    return methodsOf(METHODS.filter((method) => declared.includes(method)));
  };

  const unrouted = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const allow = allowedMethods(pathname);
    if (request.method === "OPTIONS" && allow.length > 0) {
      const headers = cors.preflight(request, allow.join(", "));
      const common = { ...NOSNIFF, "x-request-id": http.nextRequestId() };
      return new Response(null, { status: 204, headers: { ...headers, ...common } });
    }
    if (request.method === "HEAD" && allow.includes("GET")) {
      const get = http.inPlaceOf(request, new Request(request.url, { headers: request.headers }));
      const { status, headers, body } = await server.fetch(get);
      await body?.cancel();
      return new Response(null, { status, headers });
    }
    if (allow.length === 0) throw notFound(`There is nothing at ${pathname}`);
    throw methodRefused(request, allow);
  };

  return server.onError(({ code, error, request }) => {
    if (code === "NOT_FOUND") return unrouted(request).catch((cause: unknown) => http.refusal(cause, request));
    return http.refusal(error, request);
  });
}

/** Whether the router finds this pattern at the path. A slash at the end of either makes no difference. */
function isAt(pattern: string, path: string): boolean {
  const wanted = segmentsOf(pattern);
  const given = segmentsOf(path);
  if (wanted.at(-1) === "*" ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((segment, index) => segment === "*" || segment.startsWith(":") || segment === given[index]);
}

const segmentsOf = (path: string): string[] => path.replace(/\/$/, "").split("/");
