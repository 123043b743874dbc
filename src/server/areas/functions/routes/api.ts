import { type AnyElysia, type Context, Cookie, Elysia, ElysiaFile } from "elysia";
import type { AppAccess } from "../../../config/app/index.ts";
import { MARKERS } from "../../../config/sections/functions/markers.ts";
import type { FunctionsApi, RouteContext, Routes } from "../../../config/types.ts";
import { hostnameOptions } from "../../../http/listening/requests.ts";
import { ADAPTER } from "./adapter.ts";
import { guardRoutes, type Handle, type KnownRoutes, type RouteOptions } from "./guarded.ts";

export const PREFIX = "/api/functions";

/**
 * The Elysia instance with the routes of a config. It is not the server's: what a plugin does to all requests concerns these alone.
 * Errors: what `routes` or a plugin throws.
 */
export async function createApi(deps: {
  routes: Routes;
  app: AppAccess;
  isTls: boolean;
  around(route: RouteOptions, handle: Handle): Handle;
  onFailure(context: Context): unknown;
}): Promise<{ api: AnyElysia; known: KnownRoutes }> {
  nameClasses();
  const context: RouteContext = { auth: null, serviceKey: null, app: deps.app, requestId: "", address: "" };
  const api = new Elysia({ adapter: ADAPTER, prefix: PREFIX, handler: hostnameOptions(deps) })
    .decorate(context)
    .macro(MARKERS);
  const known = guardRoutes(api, deps.around, deps.onFailure);
  // Its types say more than an instance that was made here can prove: which macros there are.
  const built = await deps.routes(api as unknown as FunctionsApi);
  if (built !== (api as AnyElysia) && built instanceof Elysia) api.use(built);
  await loaded(api);
  // Errors outside any route, a path without a route among them.
  api.onError(deps.onFailure as never);
  return { api, known };
}

/** Elysia knows these classes by their names, which the build shortens: Bun 1.4.5 ignores `keepNames`. */
function nameClasses(): void {
  for (const [name, known] of Object.entries({ Cookie, ElysiaFile })) {
    Object.defineProperty(known, "name", { value: name, configurable: true });
  }
}

/** Elysia itself prints why a plugin cannot be loaded, and goes on without its routes. */
async function loaded(api: AnyElysia): Promise<void> {
  const { promises } = api.modules as unknown as { promises: Promise<unknown>[] };
  await Promise.all(promises);
  await api.modules;
}
