import type { Clock } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import type { AccountFile } from "./account-file.ts";
import { CLEANUP_CHUNK_ROWS, CLEANUP_INTERVAL_MS } from "./limits.ts";
import { deleteExpiredSecrets } from "./store/secrets.ts";
import { deleteExpiredSessions } from "./store/sessions.ts";

/** Removes expired sessions and secrets from time to time; the function returned ends it. */
export function startCleanup(deps: { file: AccountFile; clock: Clock; logger: Logger }): () => void {
  let isStopped = false;
  let cancel = () => {};

  const clean = async (): Promise<void> => {
    for (let removed = CLEANUP_CHUNK_ROWS; removed >= CLEANUP_CHUNK_ROWS && !isStopped; ) {
      removed = await deps.file.write((write) => {
        const sessions = deleteExpiredSessions(write.tx, write.now, CLEANUP_CHUNK_ROWS);
        write.ended(sessions);
        return Math.max(sessions.length, deleteExpiredSecrets(write.tx, write.now, CLEANUP_CHUNK_ROWS));
      });
    }
  };
  const schedule = (): void => {
    if (isStopped) return;
    cancel = deps.clock.after(CLEANUP_INTERVAL_MS, () => {
      void clean()
        .catch((cause: unknown) => deps.logger.error("Removing expired sessions failed", { cause }))
        .finally(schedule);
    });
  };

  schedule();
  return () => {
    isStopped = true;
    cancel();
  };
}
