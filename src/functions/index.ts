import type { Lookups } from "../access/lookups/lookups.ts";
import type { SessionEvents } from "../access/sessions.ts";
import type { AppAccess } from "../config/app/index.ts";
import type { Routes } from "../config/types.ts";
import type { Cors } from "../http/cors.ts";
import { createUnrouted } from "../http/exchange/unrouted.ts";
import type { HttpParts } from "../http/http.ts";
import type { Described } from "../http/openapi/document.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../kernel/maybe-promise.ts";
import type { SocketServer } from "../sockets/server/socket-server.ts";
import { createBodies } from "./requests/bodies.ts";
import { Call } from "./requests/call.ts";
import { createOnFailure } from "./requests/failures.ts";
import { createPerforming, type Serving } from "./requests/performing.ts";
import { createRunning } from "./requests/running.ts";
import { createApi } from "./routes/api.ts";
import { describeRoutes } from "./routes/describe.ts";
import { createFunctionSockets } from "./sockets/function-sockets.ts";

export interface FunctionsArea {
  /** The routes in OpenAPI's form. */
  describe(): Promise<Described>;
  /** Begins to answer requests below `/api/functions`. */
  serve(http: HttpParts, cors: Cors): (request: Request) => MaybePromise<Response>;
  stop(): void;
}

export interface FunctionsDeps {
  routes: Routes;
  app: AppAccess;
  clock: Clock;
  logger: Logger;
  lookups: Lookups;
  sockets: SocketServer;
  sessions: SessionEvents;
}

/** The routes of a config. Errors: what its `routes` throws. */
export async function createFunctionsArea(deps: FunctionsDeps): Promise<FunctionsArea> {
  const calls = new WeakMap<Request, Call>();
  const running = createRunning(deps.clock);
  let serving: Serving | null = null;
  const performing = createPerforming({ ...deps, calls, running, serving: () => serving });
  const onFailure = createOnFailure(calls, () => serving);
  const { api, known } = await createApi({ ...deps, around: performing, onFailure });
  const sockets = createFunctionSockets({ ...deps, calls });
  /** As GET, without its body. Elysia would read all of the body for its length, and some have no end. */
  const head = async (request: Request, http: HttpParts): Promise<Response> => {
    const call = calls.get(request);
    const get = http.inPlaceOf(request, new Request(request.url, { headers: request.headers, signal: request.signal }));
    if (call !== undefined) calls.set(get, call);
    const { status, headers, body } = await api.fetch(get);
    await body?.cancel();
    // No route by GET took it, but one by HEAD may.
    if (call?.route === null) return api.fetch(request);
    return new Response(null, { status, headers });
  };
  return {
    describe: () => describeRoutes(api, known),
    serve(http, cors) {
      serving = { http, boundedBody: createBodies(http), unrouted: createUnrouted(http, cors, () => api.routes) };
      // Elysia's types are those of Bun's own server, of which routes get this part.
      api.server = sockets.server as unknown as typeof api.server;
      api.compile();
      return createAnswer(http, calls, (request) =>
        request.method === "HEAD" ? head(request, http) : api.fetch(request),
      );
    },
    stop() {
      running.stop();
      sockets.stop();
    },
  };
}

function createAnswer(
  http: HttpParts,
  calls: WeakMap<Request, Call>,
  fetch: (request: Request) => MaybePromise<Response>,
): (request: Request) => MaybePromise<Response> {
  const serve = (call: Call): MaybePromise<Response> => {
    if (call.isLimited) return call.finish(call.failure(call.refusal));
    calls.set(call.request, call);
    try {
      const answered = fetch(call.request);
      if (!isPromise(answered)) return call.finish(answered);
      return answered.then(
        (response) => call.finish(response),
        (cause: unknown) => call.finish(call.failure(cause)),
      );
    } catch (cause) {
      return call.finish(call.failure(cause));
    }
  };
  return (request) => {
    const call = new Call(http, request);
    const identifying = call.identify();
    return identifying === undefined ? serve(call) : identifying.then(() => serve(call));
  };
}
