import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import { SWEEP_INTERVAL_MS, SWEEP_ROWS_MAX } from "../limits.ts";
import type { ExpiringRoom, RoomStore } from "./store.ts";

/**
 * Deletes expired rooms, a bounded number at a time. Before that, the expiry of rooms with players is renewed: their time to
 * live starts when the last player leaves. [RM37]
 */
export function startSweep(deps: {
  store: RoomStore;
  /** Rooms with players, and when they would expire if they were saved now. */
  occupied(): readonly ExpiringRoom[];
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { store, clock, logger } = deps;
  /** null: the next step starts a round. */
  let toRenew: ExpiringRoom[] | null = null;
  return startSweeping({
    clock,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: 0,
    async sweep() {
      toRenew ??= [...deps.occupied()];
      if (toRenew.length > 0) {
        await store.renew(toRenew.splice(-SWEEP_ROWS_MAX));
        return true;
      }
      const isMore = await store.removeExpired(clock.now());
      if (!isMore) toRenew = null;
      return isMore;
    },
    onFailure(cause) {
      toRenew = null;
      logger.error("expired rooms cannot be deleted", { cause });
    },
  });
}
