import type { CookieOptions } from "../cookies.ts";
import { deferred, once, whenLoaded } from "../deferred.ts";
import type { Store } from "../store.ts";

// What a page without a build imports from "/client/index.js".
export { createClient } from "../client.ts";
export { memoryStore } from "../store.ts";
export { deleteField, increment } from "../tables/writes.ts";
export { PlatformError } from "../transport/errors.ts";

/** `cookieStore()` of a page, whose code is loaded when a page asks for it. */
export function cookieStore(header?: undefined, options?: CookieOptions): Store {
  const load = once(async () => (await import("../small-features.ts")).cookieStore(header, options));
  void load().catch(() => {});
  return {
    ...deferred(load, "get", "set", "remove"),
    subscribe: (listener) => whenLoaded(load(), (store) => store.subscribe?.(listener) ?? (() => {})),
  };
}
