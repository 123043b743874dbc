import { type AnyElysia, type Context, Cookie, Elysia, ElysiaFile } from "elysia";
import type { AppAccess } from "../../../config/app/index.ts";
import { MARKERS } from "../../../config/sections/functions/markers.ts";
import type { FunctionsApi, RouteContext, Routes } from "../../../config/types.ts";
import { hostnameOptions } from "../../../http/listening/requests.ts";
import type { Handle, RouteOptions } from "../requests/performing.ts";
import { ADAPTER } from "./adapter.ts";
import { guardRoutes, type KnownRoutes } from "./guarded.ts";

const PREFIX = "/api/functions";

/**
 * Creates the Elysia instance with the routes of a config. It is separate from the server's: a plugin that acts on all requests
 * affects only these. Errors: what `routes` or a plugin throws.
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
  // The types require macros that an instance created here cannot prove to have.
  const built = await deps.routes(api as unknown as FunctionsApi);
  if (built !== (api as AnyElysia) && built instanceof Elysia) api.use(built);
  await loaded(api);
  // Handles errors outside any route, including a path without a route.
  api.onError(deps.onFailure as never);
  return { api, known };
}

/** Restores the class names by which Elysia recognises these classes: the build shortens them, as Bun 1.4.5 ignores `keepNames`. */
function nameClasses(): void {
  for (const [name, known] of Object.entries({ Cookie, ElysiaFile })) {
    Object.defineProperty(known, "name", { value: name, configurable: true });
  }
}

/** Waits for plugins. Elysia itself only prints why a plugin cannot be loaded, and continues without its routes. */
async function loaded(api: AnyElysia): Promise<void> {
  const { promises } = api.modules as unknown as { promises: Promise<unknown>[] };
  await Promise.all(promises);
  await api.modules;
}
