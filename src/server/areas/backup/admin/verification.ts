import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { reasonOf } from "../../../../kernel/errors.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { BackupJob } from "../schedule/job.ts";
import { createJobProcess } from "../schedule/job-process.ts";
import type { VerifyJob, VerifyResult } from "../verify/stored.ts";
import type { Run, Runs } from "./runs.ts";

/** Verifies one backup at a time, in a process of its own. */
export interface Verification {
  start(run: Run, name: string): void;
  /** Resolves once none runs. */
  ended(): Promise<void>;
  /** Cancels what runs. */
  stop(): Promise<void>;
}

export function createVerification(deps: {
  place: Pick<BackupJob, "dataDirectory" | "to">;
  runs: Runs;
  load: { lastBackupVerifiedAt: Millis };
  clock: Clock;
  logger: Logger;
}): Verification {
  const { runs, load, clock, logger } = deps;
  const { dataDirectory, to } = deps.place;
  const verify = createJobProcess<VerifyJob, VerifyResult>(clock);
  const stopping = new AbortController();
  let current: Promise<void> = Promise.resolve();
  const { signal } = stopping;

  const perform = async (run: Run, stored: string): Promise<void> => {
    try {
      const { verifiedAt } = await runs.follow(run, () => verify({ dataDirectory, to, stored }, signal));
      load.lastBackupVerifiedAt = Math.max(load.lastBackupVerifiedAt, verifiedAt);
      logger.info("a backup was verified", { name: stored });
    } catch (cause) {
      if (!signal.aborted) logger.error("a backup does not hold", { name: stored, reason: reasonOf(cause) });
    }
  };
  return {
    start(run, name) {
      current = perform(run, name);
    },
    ended: () => current,
    async stop() {
      stopping.abort();
      await current;
    },
  };
}
