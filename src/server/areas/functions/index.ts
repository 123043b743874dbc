import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../../kernel/maybe-promise.ts";
import { traced } from "../../../kernel/observing/request-trace.ts";
import type { Lookups } from "../../access/lookups/lookups.ts";
import type { Principals } from "../../access/principals.ts";
import type { SessionEvents, UserEvents } from "../../access/sessions.ts";
import type { AppAccess } from "../../config/app/index.ts";
import type { Routes } from "../../config/types.ts";
import type { Cors } from "../../http/cors.ts";
import { createUnrouted } from "../../http/exchange/unrouted.ts";
import type { HttpParts } from "../../http/http.ts";
import type { NativeRoutes } from "../../http/listening/requests.ts";
import type { Described } from "../../http/openapi/document.ts";
import type { MeterSocket } from "../../sockets/clients.ts";
import type { SocketServer } from "../../sockets/socket-server.ts";
import type { StandingRights } from "../../sockets/standing-rights.ts";
import { createBodies } from "./requests/bodies.ts";
import { belongsTo, Call, callOf } from "./requests/call.ts";
import { createOnFailure } from "./requests/failures.ts";
import { createPerforming, type Serving } from "./requests/performing.ts";
import { createRunning } from "./requests/running.ts";
import { createApi } from "./routes/api.ts";
import { describeRoutes } from "./routes/describe.ts";
import { type Answering, nativeRoutes } from "./routes/native.ts";
import { createFunctionSockets } from "./sockets/function-sockets.ts";

export interface FunctionsDeps {
  routes: Routes;
  app: AppAccess;
  /** Whether the server listens with TLS. */
  isTls: boolean;
  clock: Clock;
  logger: Logger;
  lookups: Lookups;
  sockets: SocketServer;
  meter: MeterSocket;
  sessions: SessionEvents & UserEvents;
  rights: StandingRights;
  principals: Pick<Principals, "isPresent" | "requirePresent">;
}

export type FunctionsArea = Awaited<ReturnType<typeof createFunctionsArea>>;

/** Creates the area of a config's routes. Errors: what its `routes` throws. */
export async function createFunctionsArea(deps: FunctionsDeps) {
  const running = createRunning(deps.clock);
  let serving: Serving | null = null;
  const performing = createPerforming({ ...deps, running, serving: () => serving });
  const onFailure = createOnFailure(() => serving);
  const { api, known } = await createApi({ ...deps, around: performing, onFailure });
  const sockets = createFunctionSockets(deps);
  /**
   * Answers HEAD as GET. Elysia would read the whole body for its length, and some have no end: Bun omits the body, and knows the
   * length of one that is no stream.
   */
  const head = async (request: Request, http: HttpParts): Promise<Response> => {
    const call = callOf(request);
    const get = http.inPlaceOf(request, new Request(request.url, { headers: request.headers, signal: request.signal }));
    if (call !== undefined) belongsTo(call, get);
    const response = await api.fetch(get);
    if (call?.route !== null) return response;
    // No GET route matched; a HEAD route may.
    await response.body?.cancel();
    return api.fetch(request);
  };
  return {
    /** The routes in OpenAPI's form. */
    describe: (): Promise<Described> => describeRoutes(api, known),
    /** Begins to answer requests below `/api/functions`. `native`: the routes that need no other router than Bun's. */
    serve(http: HttpParts, cors: Cors): { answer(request: Request): MaybePromise<Response>; native: NativeRoutes } {
      serving = { http, boundedBody: createBodies(http), unrouted: createUnrouted(http, cors, () => api.routes) };
      // Elysia's types are those of Bun's own server, of which routes receive this part.
      api.server = sockets.server as unknown as typeof api.server;
      api.compile();
      const serve = createServe(http);
      const answer = (request: Request): MaybePromise<Response> =>
        serve(request, () => (request.method === "HEAD" ? head(request, http) : api.fetch(request)));
      return { answer, native: nativeRoutes(api, known, { serve, answer }) };
    },
    stop(): void {
      running.stop();
      sockets.stop();
    },
  };
}

/** Creates the routes of a config without a server. Errors: what its `routes` throws. */
export async function tryRoutes(routes: Routes): Promise<void> {
  await createApi({ routes, app: STAND_IN, isTls: false, around: (_, handle) => handle, onFailure() {} });
}

/** A stand-in that has every member, and does nothing. */
const STAND_IN = new Proxy((): AppAccess => STAND_IN, {
  // Otherwise an `await` would treat it as a promise that never settles.
  get: (_, name) => (name === "then" ? undefined : STAND_IN),
}) as unknown as AppAccess; // No type says that it has every member.

/** Creates the function that identifies the caller of a request and performs it. */
function createServe(http: HttpParts): Answering["serve"] {
  const answered = (call: Call, perform: (call: Call) => MaybePromise<Response>): MaybePromise<Response> => {
    if (call.isLimited) return call.finish(call.failure(call.refusal));
    try {
      const response = perform(call);
      if (!isPromise(response)) return call.finish(response);
      call.wait();
      return response.then(
        (settled) => call.finish(settled),
        (cause: unknown) => call.finish(call.failure(cause)),
      );
    } catch (cause) {
      return call.finish(call.failure(cause));
    }
  };
  return (request, perform) => {
    const call = new Call(http, request);
    const identifying = call.identify();
    const inTrace = () => traced(call.trace, answered, call, perform);
    if (identifying === undefined) return inTrace();
    call.wait();
    return identifying.then(inTrace);
  };
}
