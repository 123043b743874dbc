import type { AnyElysia, Elysia } from "elysia";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { AppAccess } from "../../app/index.ts";
import type { RuleContext } from "../../context.ts";
import type { Auth } from "../../identity.ts";
import { func } from "../../shape/schema.ts";

/** The context of a route's `access` rule: the request, and lookups as in every rule. */
export interface RouteAccessContext extends Pick<RuleContext, "table" | "db"> {
  /** The request, whose body is not for rules: a rule that reads it takes it from the handler. */
  request: Request;
  params: { [name: string]: string };
}

/** The access of a route: everybody, or callers for whom the rule returns true. `auth` is null without a user. */
export type RouteAccess = true | ((auth: Auth | null, context: RouteAccessContext) => MaybePromise<boolean>);

/** The members that handlers of routes receive beside Elysia's. */
export type RouteContext<App = AppAccess> = {
  /** The user; null without one, also for a service key. */
  auth: Auth | null;
  /** The service key; null unless the request has a valid one. */
  serviceKey: { name: string } | null;
  /** The server's own access, which bypasses rules. `app.as(auth)` has the rights of a user. */
  app: App;
  /** The request id, as in the answer's header `X-Request-Id` and the log. */
  requestId: string;
  /** The client's address. */
  address: string;
};

/** The empty object type that Elysia's types require. */
type None = Record<never, never>;

/** An Elysia instance at `/api/functions`. */
export type FunctionsApi<App = AppAccess> = Elysia<
  "/api/functions",
  { decorator: RouteContext<App>; store: None; derive: None; resolve: None },
  { typebox: None; error: None },
  {
    schema: None;
    standaloneSchema: None;
    macro: {
      /** Callers that the route allows. Absent: a signed-in user. */
      access?: RouteAccess;
      /** The timeout in seconds, after which a handler's answer is 503; 60 by default. */
      timeout?: number;
    };
    macroFn: { access: (access: RouteAccess) => None; timeout: (seconds: number) => None };
    parser: None;
    response: None;
  }
>;

/** Adds routes to `api`, an Elysia instance at `/api/functions`, and returns it. */
export type Routes = (api: FunctionsApi) => MaybePromise<AnyElysia>;

export const RoutesSection = func<Routes>();
