import type { Clock } from "../../../../kernel/clock.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import { startSweeping } from "../../../../kernel/time/sweeping.ts";
import type { DatabaseFile } from "../../../db/index.ts";
import { ANSWERS_SWEEP_MS, ANSWERS_SWEEP_PAUSE_MS, SWEPT_AT_ONCE } from "../limits.ts";
import type { Namespace } from "../records/namespaces.ts";
import { hasExpired, sweepSome } from "./kept-answers.ts";

/**
 * Removes expired answers of files that get no further keys, in short transactions. Instances are swept while they are open;
 * expired answers are not replayed, swept or not. [TB325]
 */
export function startAnswerSweep(deps: {
  namespaces: ReadonlyMap<string, Namespace>;
  clock: Clock;
  logger: Logger;
}): () => Promise<void> {
  const { namespaces, clock, logger } = deps;
  const failed = (cause: unknown): void =>
    logger.error("sweeping expired answers of idempotency keys failed", { cause });
  return startSweeping({
    clock,
    intervalMs: ANSWERS_SWEEP_MS,
    pauseMs: ANSWERS_SWEEP_PAUSE_MS,
    async sweep(stopping) {
      const now = clock.now();
      let isMore = false;
      for (const file of openFiles(namespaces)) {
        if (stopping.aborted) break;
        try {
          if (!hasExpired(file, now)) continue;
          if (await file.write((tx) => sweepSome(tx, now, SWEPT_AT_ONCE))) isMore = true;
        } catch (cause) {
          // The other files are swept all the same.
          failed(cause);
        }
      }
      return isMore;
    },
    onFailure: failed,
  });
}

function* openFiles(namespaces: ReadonlyMap<string, Namespace>): Generator<DatabaseFile> {
  for (const namespace of namespaces.values()) {
    if (namespace.kind === "static") yield namespace.file;
    else yield* namespace.instances.openFiles();
  }
}
