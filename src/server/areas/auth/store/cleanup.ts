import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import { CLEANUP_CHUNK_ROWS, CLEANUP_INTERVAL_MS, CLEANUP_PAUSE_MS } from "../limits.ts";
import { deleteEndedFailures, deleteExpiredSecrets, endedFailures, expiredSecret } from "../statements/secrets.ts";
import { deleteExpiredSessions, expiredSession } from "../statements/sessions.ts";
import type { AccountFile } from "./account-file.ts";

/** Removes expired sessions, which closes their sockets, secrets, and counts of wrong codes. */
export function startCleanup(deps: { file: AccountFile; clock: Clock; logger: Logger }): () => Promise<void> {
  const { file, clock, logger } = deps;
  return startSweeping({
    clock,
    intervalMs: CLEANUP_INTERVAL_MS,
    pauseMs: CLEANUP_PAUSE_MS,
    async sweep() {
      // Look-ups in indexes: a write would cost a sync of the disk every time.
      const now = clock.now();
      const isDue =
        expiredSession.get(file.sql, { now }) !== null ||
        expiredSecret.get(file.sql, { now }) !== null ||
        endedFailures.get(file.sql, { now }) !== null;
      if (!isDue) return false;
      const removed = await file.write((write) => {
        const bounds = { now: write.now, limit: CLEANUP_CHUNK_ROWS };
        const sessions = deleteExpiredSessions.all(write.tx, bounds);
        write.expired(sessions.map(({ id }) => id));
        const secretCount = deleteExpiredSecrets.run(write.tx, bounds);
        const failureCount = deleteEndedFailures.run(write.tx, bounds);
        return Math.max(sessions.length, secretCount, failureCount);
      });
      return removed >= CLEANUP_CHUNK_ROWS;
    },
    onFailure: (cause) => logger.error("Removing expired sessions failed", { cause }),
  });
}
