import { pause, type Runtime } from "../runtime.ts";
import type { Store } from "../store.ts";

/** A client that refreshes holds the lease of its store for at most this long. Longer than the tries of one refresh. */
const REFRESH_LEASE_MS = 15_000;
/** How often a client that waits for another one's refresh looks into the store. */
const REFRESH_POLL_MS = 100;
/** After which the holder of a lease looks whether another client took it at the same moment. */
const REFRESH_SETTLE_MS = 30;

interface Turn<T> {
  store: Store;
  runtime: Runtime;
  /** Where the lease is kept. */
  key: string;
  work: () => Promise<T>;
  /** Asked while another client has the lease: what is not undefined ends the wait, and is the result. Default: nothing is. */
  outcome?: () => Promise<T | undefined>;
}

/**
 * Runs `work` while no other client of the store does: by the lock of the store, or else by a lease in it. The lease of a client
 * that has died ends by itself; so does one whose end is further away than a lease is long, which a changed clock leaves behind.
 */
export async function inTurn<T>({ store, runtime, key, work, outcome }: Turn<T>): Promise<T> {
  if (store.lock !== undefined) return store.lock(key, work);
  const id = runtime.uuid();
  const holder = async () => ((await store.get(key)) ?? "").split(" ");
  for (;;) {
    const [, until] = await holder();
    const leftMs = Number(until ?? 0) - runtime.now();
    if (leftMs <= 0 || leftMs > REFRESH_LEASE_MS) {
      await store.set(key, `${id} ${runtime.now() + REFRESH_LEASE_MS}`);
      // A store cannot compare and set: of two clients that write at the same moment, the later one keeps the lease.
      await pause(runtime, REFRESH_SETTLE_MS);
      if ((await holder())[0] === id) break;
    }
    await pause(runtime, REFRESH_POLL_MS);
    const known = await outcome?.();
    if (known !== undefined) return known;
  }
  try {
    return await work();
  } finally {
    if ((await holder())[0] === id) await store.remove(key);
  }
}
