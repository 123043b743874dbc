import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import { startSweeping } from "../kernel/sweeping.ts";
import type { AccountFile } from "./account-file.ts";
import { CLEANUP_CHUNK_ROWS, CLEANUP_INTERVAL_MS, CLEANUP_PAUSE_MS } from "./limits.ts";
import { deleteExpiredSessions, expiredSession } from "./statements/sessions.ts";
import { deleteEndedCodeFailures, hasEndedCodeFailures } from "./store/code-failures.ts";
import { deleteExpiredSecrets, hasExpiredSecrets } from "./store/secrets.ts";

/** Removes expired sessions, which closes their sockets, secrets, and counts of wrong codes. */
export function startCleanup(deps: { file: AccountFile; clock: Clock; logger: Logger }): () => Promise<void> {
  const { file, clock, logger } = deps;
  return startSweeping({
    ...{ clock, intervalMs: CLEANUP_INTERVAL_MS, pauseMs: CLEANUP_PAUSE_MS },
    async sweep() {
      // Look-ups in indexes: a write would cost a sync of the disk every time.
      const now = clock.now();
      const isDue =
        expiredSession.get(file.sql, { now }) !== null ||
        hasExpiredSecrets(file.sql, now) ||
        hasEndedCodeFailures(file.sql, now);
      if (!isDue) return false;
      const removed = await file.write((write) => {
        const sessions = deleteExpiredSessions.all(write.tx, { now: write.now, limit: CLEANUP_CHUNK_ROWS });
        write.ended(sessions.map(({ id }) => id));
        const secretCount = deleteExpiredSecrets(write.tx, write.now, CLEANUP_CHUNK_ROWS);
        const failureCount = deleteEndedCodeFailures(write.tx, write.now, CLEANUP_CHUNK_ROWS);
        return Math.max(sessions.length, secretCount, failureCount);
      });
      return removed >= CLEANUP_CHUNK_ROWS;
    },
    onFailure: (cause) => logger.error("removing expired sessions failed", { cause }),
  });
}
