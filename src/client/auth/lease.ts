import { REFRESH_LEASE_MS, REFRESH_POLL_MS, REFRESH_SETTLE_MS } from "../limits.ts";
import { pause, type Runtime } from "../runtime.ts";
import type { Store } from "../store.ts";

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
