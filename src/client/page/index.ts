import type { CookieOptions } from "../cookies.ts";
import { deferred, once, whenLoaded } from "../deferred.ts";
import { later } from "../later.ts";
import type { Store } from "../store.ts";

// Public exports of "/client/index.js", for pages without a build.
export { createClient } from "../client.ts";
export { memoryStore } from "../store.ts";
export { deleteField, increment } from "../tables/writes.ts";
export { PlatformError } from "../transport/errors.ts";

/** Creates the `cookieStore()` of a page. Its code is loaded on first use. */
export function cookieStore(header?: undefined, options?: CookieOptions): Store {
  const load = once(async () => (await later()).cookieStore(header, options));
  void load().catch(() => {});
  return {
    ...deferred(load, "get", "set", "remove"),
    subscribe: (listener) => whenLoaded(load(), (store) => store.subscribe?.(listener) ?? (() => {})),
  };
}
