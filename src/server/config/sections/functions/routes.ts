import type { AnyElysia, Elysia } from "elysia";
import type { MaybePromise } from "../../../../kernel/maybe-promise.ts";
import type { AppAccess } from "../../app/index.ts";
import type { RuleContext } from "../../context.ts";
import type { Auth } from "../../identity.ts";
import { func } from "../../shape/schema.ts";

/** What `access` of a route sees beside the user: the request, and lookups as in every rule. */
export interface RouteAccessContext extends Pick<RuleContext, "table" | "db"> {
  /** Its body is not for rules: who reads it here takes it away from the handler. */
  request: Request;
  params: { [name: string]: string };
}

/** Who may call a route: everybody, or those for whom the rule gives true. `auth` is null without a user. */
export type RouteAccess = true | ((auth: Auth | null, context: RouteAccessContext) => MaybePromise<boolean>);

/** What handlers of routes get beside all that Elysia gives. */
export type RouteContext<App = AppAccess> = {
  /** null without a user, also for a service key. */
  auth: Auth | null;
  /** null unless the request has a valid service key. */
  serviceKey: { name: string } | null;
  /** The server's own access, which passes rules. `app.as(auth)` has the rights of a user. */
  app: App;
  /** As the answer's header `X-Request-Id` and the log have it. */
  requestId: string;
  /** The client's address. */
  address: string;
};

/** Elysia's types take an object without members where there is nothing. */
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
      /** Absent: a signed-in user. */
      access?: RouteAccess;
      /** Seconds until a handler that has not answered is 503; 60 by default. */
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
