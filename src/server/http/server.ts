import { type AnyElysia, Elysia } from "elysia";
import type { Cors } from "./cors.ts";
import { createUnrouted } from "./exchange/unrouted.ts";
import type { Http } from "./http.ts";
import { hostnameOptions } from "./listening/requests.ts";
import type { WideGroup } from "./wide-paths.ts";

/** Files at `/`. */
export interface Site {
  /** Answers GET or HEAD; null: there is nothing. Errors: 416, 429. */
  answer(request: Request, url: URL): Response | null;
  /** Whether a GET request would find something. */
  has(pathname: string): boolean;
}

/**
 * Creates the Elysia instance to which areas add their routes. It answers what no route does: 404, 405 with `Allow`, preflights,
 * and HEAD where there is a GET.
 */
export function createServer(
  http: Http,
  cors: Cors,
  { site = null, isTls = false, wide = [] }: { site?: Site | null; isTls?: boolean; wide?: readonly WideGroup[] } = {},
): AnyElysia {
  const server = new Elysia({ normalize: false, handler: hostnameOptions({ isTls }) });

  const unrouted = createUnrouted(http, cors, () => server.routes, { site, wide });
  const answerUnrouted = async (request: Request): Promise<Response> => {
    const url = new URL(request.url);
    const { pathname } = url;
    if (site !== null && (request.method === "GET" || request.method === "HEAD")) {
      const response = site.answer(request, url);
      if (response !== null) return response;
    }
    if (request.method === "HEAD" && unrouted.methodsAt(pathname).includes("GET")) {
      const get = http.inPlaceOf(request, new Request(request.url, { headers: request.headers }));
      const { status, headers, body } = await server.fetch(get);
      await body?.cancel();
      return new Response(null, { status, headers });
    }
    return unrouted.answer(request, pathname);
  };

  return server.onError(({ code, error, request }) => {
    if (code === "NOT_FOUND") return answerUnrouted(request).catch((cause: unknown) => http.refusal(cause, request));
    return http.refusal(error, request);
  });
}
