import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { startSweeping } from "../../../kernel/time/sweeping.ts";
import type { AuditKind } from "../../db/index.ts";
import {
  CHANGES_MAX_BYTES,
  SESSIONS_MAX_BYTES,
  SWEEP_FIRST_MS,
  SWEEP_INTERVAL_MS,
  SWEEP_PAUSE_MS,
  SWEEP_STEP_ROWS,
  SWEPT_AT_ONCE_MS,
} from "./limits.ts";
import type { AuditStore } from "./store.ts";

/** Removes entries that are too old or too many, in small steps. The returned function stops it. [AL8] */
export function startRetention(deps: {
  store: () => AuditStore | null;
  retentionMs: number;
  clock: Clock;
  logger: Logger;
  bounds?: { changes: number; sessions: number };
}): () => Promise<void> {
  const { store: opened, retentionMs, clock, logger } = deps;
  const { changes, sessions } = deps.bounds ?? { changes: CHANGES_MAX_BYTES, sessions: SESSIONS_MAX_BYTES };
  /**
   * Time up to which this sweep removes entries. It is bounded, so that a clock that is far ahead, as after a battery has failed,
   * costs few entries before somebody notices.
   */
  let until: Millis | null = null;
  /** Bytes above the bounds, summed up once per sweep. */
  let surplus: Map<AuditKind, number> | null = null;
  return startSweeping({
    clock,
    firstMs: SWEEP_FIRST_MS,
    intervalMs: SWEEP_INTERVAL_MS,
    pauseMs: SWEEP_PAUSE_MS,
    async sweep(stopping) {
      const store = opened();
      if (store === null) return false;
      const oldest = store.oldest();
      if (until === null && oldest !== null) until = Math.min(clock.now() - retentionMs, oldest + SWEPT_AT_ONCE_MS);
      if (until !== null && (await store.removeUntil(until, SWEEP_STEP_ROWS)) === SWEEP_STEP_ROWS) return true;
      if (surplus === null) {
        const bytes = await store.sizes(stopping);
        surplus = new Map([
          ["change", (bytes.get("change") ?? 0) - changes],
          ["session", (bytes.get("session") ?? 0) - sessions],
        ]);
      }
      for (const [kind, bytes] of surplus) {
        if (bytes <= 0) continue;
        surplus.set(kind, bytes - (await store.removeFirst(kind, SWEEP_STEP_ROWS)));
        return true;
      }
      surplus = null;
      until = null;
      return false;
    },
    onFailure: (cause) => logger.error("audit: removing old entries failed", { cause }),
  });
}
