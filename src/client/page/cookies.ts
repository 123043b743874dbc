import type { CookieOptions } from "../cookies.ts";
import type { Store } from "../store.ts";

/** `cookieStore()` of a page, whose code is loaded when a page asks for it. */
export function cookieStore(header?: undefined, options?: CookieOptions): Store {
  const loading = import("../cookies.ts").then((cookies) => cookies.cookieStore(header, options));
  return {
    get: async (key) => (await loading).get(key),
    set: async (key, value) => (await loading).set(key, value),
    remove: async (key) => (await loading).remove(key),
    subscribe(listener) {
      let hasEnded = false;
      let end = () => {
        hasEnded = true;
      };
      void loading.then((store) => {
        if (!hasEnded) end = store.subscribe?.(listener) ?? end;
      });
      return () => end();
    },
  };
}
