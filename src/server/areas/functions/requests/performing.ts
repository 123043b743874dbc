import type { Context } from "elysia";
import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { isPromise, type MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { Lookups, LookupWatch } from "../../../access/lookups/lookups.ts";
import { authOf } from "../../../access/principal.ts";
import type { RouteAccess, RouteContext } from "../../../config/types.ts";
import type { Unrouted } from "../../../http/exchange/unrouted.ts";
import type { HttpParts } from "../../../http/http.ts";
import { type Ask, judge } from "../../../sockets/judge.ts";
import type { StandingRights } from "../../../sockets/standing-rights.ts";
import { HELD_OPEN_FROM_SECONDS, TIMEOUT_SECONDS } from "../limits.ts";
import { createAccess } from "./access.ts";
import type { createBodies } from "./bodies.ts";
import { belongsTo, type Call, callOf } from "./call.ts";
import { checkCookies, decodeParams } from "./parts.ts";
import type { Running } from "./running.ts";
import type { SocketOptions } from "./socket-options.ts";

/** The options of a route: its own, and those of the guards and plugins around it. */
export interface RouteOptions {
  method: string;
  /** The pattern, such as `/api/functions/orders/:id`. */
  pattern: string;
  access: readonly RouteAccess[];
  /** The timeout in seconds; null: the default. */
  timeout: number | null;
  /** Whether the route has parsers of its own. */
  parsesItself: boolean;
  /** The options of a WebSocket. */
  socket: SocketOptions | null;
}

/** A compiled route of Elysia: it parses, validates and calls the handler. */
export type Handle = (context: Context) => MaybePromise<Response>;

/** The context that exists once the server serves. */
export interface Serving {
  http: HttpParts;
  unrouted: Unrouted;
  boundedBody: ReturnType<typeof createBodies>;
}

export interface PerformingDeps {
  running: Running;
  clock: Clock;
  logger: Logger;
  /** The lookups, for the context of rules. */
  lookups: Lookups;
  /** The rights, re-evaluated after commits that change what a rule has looked at. */
  rights: Pick<StandingRights, "begin">;
  serving: () => Serving | null;
}

/** Creates the wrapper of every route: the caller is identified and authorized before Elysia parses cookies, query or body. */
export function createPerforming(deps: PerformingDeps) {
  const { running, serving } = deps;
  return (route: RouteOptions, handle: Handle): Handle => {
    const mayCall = createAccess(route.pattern, route.access, deps);
    const hasRules = route.access.some((rule) => rule !== true);
    const seconds = route.timeout ?? TIMEOUT_SECONDS;

    const perform = (context: Context, call: Call, { boundedBody }: Serving): MaybePromise<Response> => {
      running.checkRoom();
      checkCookies(context.request.headers);
      const bounded = boundedBody(context.request, call);
      if (bounded !== context.request) context.request = belongsTo(call, bounded);
      if (seconds >= HELD_OPEN_FROM_SECONDS) call.hold();
      const answer = handle(context);
      return isPromise(answer) ? running.within(answer, seconds, (cause) => call.failure(cause)) : answer;
    };

    return (context) => {
      const call = callOf(context.request);
      const server = serving();
      // After a hook that replaces the request, its caller is unknown.
      if (call === undefined || server === null) throw new Error("a request came without its caller");
      const fail = (cause: unknown): Response => call.failure(cause);
      try {
        introduce(context, call, route);
        if (call.refusal !== null) throw call.refusal;
        decodeParams(context.params);
        const about = () => ({ request: call.request, params: { ...context.params } });
        // Set if the rules have looked up records.
        const ask: Ask = (watch) => mayCall(call.principal, about, watch);
        const allowed = (hasLookedUp: boolean): MaybePromise<Response> => {
          if (hasLookedUp) call.ask = ask;
          if (hasLookedUp) call.askAgain = () => judge(ask, deps.rights);
          return perform(context, call, server);
        };
        const asked = hasRules ? judge(ask, deps.rights) : ask(UNWATCHED);
        if (!isPromise(asked)) return allowed(asked);
        const answered = asked.then((hasLookedUp) => {
          // The session may have ended during a rule's await. [HT136]
          server.http.requirePresent(call.principal);
          return allowed(hasLookedUp);
        });
        return answered.catch(fail);
      } catch (cause) {
        return fail(cause);
      }
    };
  };
}

/** The watch of a route without rules. */
const UNWATCHED: LookupWatch = { lookedAt() {} };

/** Adds the caller to the handler's context. */
function introduce(context: Context, call: Call, { pattern, parsesItself, socket }: RouteOptions): void {
  call.route = pattern;
  call.parsesItself = parsesItself;
  call.socket = socket;
  const { principal } = call;
  const known = context as unknown as RouteContext;
  known.auth = authOf(principal);
  if (principal.kind === "serviceKey") known.serviceKey = { name: principal.name };
  known.requestId = call.requestId;
  Object.defineProperty(context, "address", lazyAddress(call));
}

/** Defines the address lazily: few handlers read it, and it costs more than all else here. */
const lazyAddress = (call: Call): PropertyDescriptor => ({
  configurable: true,
  enumerable: true,
  get: () => call.address,
  set(this: object, value: unknown) {
    Object.defineProperty(this, "address", { configurable: true, enumerable: true, writable: true, value });
  },
});
