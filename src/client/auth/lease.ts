import { pause, type Runtime } from "../runtime.ts";
import type { Store } from "../store.ts";

/** Lease duration. Longer than all attempts of one refresh. */
const REFRESH_LEASE_MS = 15_000;
/** Interval at which a waiting client reads the store during another client's refresh. */
const REFRESH_POLL_MS = 100;
/** Delay after which the holder of a lease checks whether another client took it at the same moment. */
const REFRESH_SETTLE_MS = 30;

export interface Turn<T> {
  /** Store key of the lease. */
  key: string;
  work: () => Promise<T>;
  /** Called while another client holds the lease. A result other than undefined ends the wait and is returned. Default: none. */
  outcome?: () => Promise<T | undefined>;
}

/** Runs `work` exclusively among the clients of a store: under its lock, or else under a lease in it. */
export type InTurn = <T>(turn: Turn<T>) => Promise<T>;

/**
 * Runs `work` under a lease in a store without a lock. The lease of a crashed client expires. One that ends later than a lease can
 * last, after a change of the clock, counts as expired.
 */
export async function leased<T>(store: Store, runtime: Runtime, { key, work, outcome }: Turn<T>): Promise<T> {
  const id = runtime.uuid();
  const holder = async () => ((await store.get(key)) ?? "").split(" ");
  for (;;) {
    const [, until] = await holder();
    const leftMs = (Number(until) || 0) - runtime.now();
    if (leftMs <= 0 || leftMs > REFRESH_LEASE_MS) {
      await store.set(key, `${id} ${runtime.now() + REFRESH_LEASE_MS}`);
      // The store has no compare-and-set: of two clients that write at the same moment, the later one holds the lease.
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
