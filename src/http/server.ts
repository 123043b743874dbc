import { type AnyElysia, Elysia } from "elysia";
import { AppError, notFound } from "../kernel/errors.ts";
import type { Cors } from "./cors.ts";
import type { Http } from "./http.ts";
import { NOSNIFF } from "./security-headers.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/**
 * The Elysia instance that areas add their routes to, with the answers that belong to no route: 404, 405 with `Allow`,
 * preflights, HEAD where there is GET. Decisions 13.
 */
export function createServer(http: Http, cors: Cors): AnyElysia {
  const server = new Elysia({ normalize: false, handler: { standardHostname: false } });

  const allowedMethods = (path: string): string[] => {
    const inTree = (method: string) => server.router.http.find(method, path) !== null;
    // Paths without parameters are kept beside the tree, with or without the slash at their end.
    const { static: fixed } = server.router;
    const bare = path.replace(/\/$/, "");
    const isFixed = (method: string) => [bare, `${bare}/`].some((one) => fixed[one]?.[method] !== undefined);
    const methods: string[] = METHODS.filter((method) => inTree(method) || isFixed(method));
    if (methods.includes("GET") && !methods.includes("HEAD")) methods.push("HEAD");
    if (methods.length > 0) methods.push("OPTIONS");
    return methods;
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
    throw new AppError(405, `${request.method} is not allowed here, but ${allow.join(", ")}`, {
      headers: { allow: allow.join(", ") },
    });
  };

  return server.onError(({ code, error, request }) => {
    if (code === "NOT_FOUND") return unrouted(request).catch((cause: unknown) => http.refusal(cause, request));
    return http.refusal(error, request);
  });
}
