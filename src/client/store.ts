import { createListeners, listen } from "./listeners.ts";

/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Where the client keeps the session. Clients with the same store, such as the tabs of a browser, share one session: they sign
 * out together, and only one of them refreshes it.
 */
export interface Store {
  /** null when there is none. */
  get(key: string): MaybePromise<string | null>;
  set(key: string, value: string): MaybePromise<void>;
  remove(key: string): MaybePromise<void>;
  /**
   * Runs `work` while no other client of this store runs work under that name. Without it clients take turns by a lease, which
   * they keep in the store.
   */
  lock?<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Calls the listener when another client of this store has changed a key. The function ends that. */
  subscribe?(listener: (key: string) => void): () => void;
}

/** Keeps everything in memory. */
export function memoryStore(): Store {
  const values = new Map<string, string>();
  const { add: subscribe, tell } = createListeners<[key: string]>();
  /** The last work under each name. */
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

/** `localStorage`, which the tabs of an origin share. Its `storage` event tells them of each other's changes. */
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
  // Missing on insecure origins, as plain http in a LAN.
  if (locks !== undefined) store.lock = async (name, work) => await locks.request(name, work);
  return store;
}

/**
 * `localStorage` of a page where it works, else memory: a browser may refuse it, and one process of a server has many users, whose
 * sessions it must not share.
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
