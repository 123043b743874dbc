import { type AnyElysia, Elysia } from "elysia";
import type { Cors } from "./cors.ts";
import { createUnrouted } from "./exchange/unrouted.ts";
import type { Http } from "./http.ts";

/**
 * The Elysia instance to which areas add their routes. It answers what no route does: 404, 405 with `Allow`, preflights, and
 * HEAD where there is a GET.
 */
export function createServer(http: Http, cors: Cors): AnyElysia {
  const server = new Elysia({ normalize: false, handler: { standardHostname: false } });

  const unrouted = createUnrouted(http, cors, () => server.routes);
  const answerUnrouted = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
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
