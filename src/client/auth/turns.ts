import type { Turn } from "./lease.ts";

/** Runs `work` exclusively among the clients of the store: under the store's lock, or else under a lease, whose code is loaded then. */
export const inTurn = async <T>(turn: Turn<T>): Promise<T> =>
  turn.store.lock?.(turn.key, turn.work) ?? (await import("../small-features.ts")).leased(turn);
