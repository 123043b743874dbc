import { createListeners, listen } from "./listeners.ts";

/** Value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Storage of the session. Clients with the same store, such as the tabs of a browser, share one session: they sign out together,
 * and only one of them refreshes it.
 */
export interface Store {
  /** Returns a value; null if there is none. */
  get(key: string): MaybePromise<string | null>;
  set(key: string, value: string): MaybePromise<void>;
  remove(key: string): MaybePromise<void>;
  /** Runs `work` exclusively among the clients of this store, per name. Without this method clients use a lease in the store. */
  lock?<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Calls the listener when another client of this store has changed a key. Returns a function that unsubscribes. */
  subscribe?(listener: (key: string) => void): () => void;
}

/** Creates a store in memory. */
export function memoryStore(): Store {
  const values = new Map<string, string>();
  const { add: subscribe, tell } = createListeners<[key: string]>();
  /** Last work under each name. */
  const last = new Map<string, Promise<unknown>>();
  return {
    get: (key) => values.get(key) ?? null,
    set(key, value) {
      values.set(key, value);
      tell(key);
    },
    remove(key) {
      values.delete(key);
      tell(key);
    },
    subscribe,
    lock(name, work) {
      const mine = (last.get(name) ?? Promise.resolve()).then(work);
      last.set(
        name,
        mine.catch(() => {}),
      );
      return mine;
    },
  };
}

/** Creates a store in `localStorage`, shared by the tabs of an origin. The `storage` event reports changes of other tabs. */
export function browserStore(storage: Storage): Store {
  const locks = typeof navigator === "undefined" ? undefined : navigator.locks;
  const store: Store = {
    get: (key) => storage.getItem(key),
    set: (key, value) => storage.setItem(key, value),
    remove: (key) => storage.removeItem(key),
    subscribe: (listener) =>
      listen(globalThis, "storage", ({ key, storageArea }: StorageEvent) => {
        if (storageArea === storage && key !== null) listener(key);
      }),
  };
  // Web Locks are missing on insecure origins, such as plain http in a LAN.
  if (locks !== undefined) store.lock = async (name, work) => await locks.request(name, work);
  return store;
}

/**
 * Returns a store in the page's `localStorage` if that works, else in memory: a browser may refuse it, and a server process must
 * not share sessions among its users.
 */
export function defaultStore(): Store {
  try {
    if (typeof document === "undefined") return memoryStore();
    localStorage.setItem("platform.probe", "");
    localStorage.removeItem("platform.probe");
    return browserStore(localStorage);
  } catch {
    return memoryStore();
  }
}
