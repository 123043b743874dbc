import { resolve } from "node:path";
import type { BackupsConfig } from "../config/types.ts";
import type { Clock, Millis } from "../kernel/clock.ts";
import type { Logger } from "../kernel/logger.ts";
import { WAIT_MAX_MS } from "./limits.ts";
import { type BackupJob, newestBackup } from "./schedule/job.ts";
import { createJobProcess, type RunBackupJob } from "./schedule/job-process.ts";

/** What has become of scheduled backups; the numbers are since the start. */
export interface BackupsLoad {
  backupsMade: number;
  backupsFailed: number;
  /** Of the last one that was made, also by an earlier start: when, and how large it is; 0 before the first. */
  lastBackupAt: Millis;
  lastBackupBytes: number;
}

export interface BackupsArea {
  readonly load: BackupsLoad;
  /** Ends the one that is under way, and begins no other. */
  stop(): Promise<void>;
}

export interface BackupsAreaDeps {
  /** Without one there are no scheduled backups. */
  config: BackupsConfig | undefined;
  /** true: none are made, as they would take the place of the server's own. */
  isDrill: boolean;
  dataDirectory: string;
  clock: Clock;
  logger: Logger;
  /** How a backup is made. Default: in a process of its own. */
  run?: RunBackupJob;
}

/** Makes backups at the times of the config's schedule, in UTC; times that pass while it does not run are left out. */
export function createBackupsArea(deps: BackupsAreaDeps): BackupsArea {
  const { config, clock, logger } = deps;
  const load: BackupsLoad = { backupsMade: 0, backupsFailed: 0, lastBackupAt: 0, lastBackupBytes: 0 };
  if (config === undefined || deps.isDrill) return { load, async stop() {} };
  const run = deps.run ?? createJobProcess(clock);
  const job = jobOf(config, deps.dataDirectory);
  const stopping = new AbortController();
  let running: Promise<void> | null = null;
  let cancel = () => {};

  const make = async (): Promise<void> => {
    const startedAt = clock.now();
    try {
      const { rotationProblem, ...made } = await run(job, stopping.signal);
      load.backupsMade++;
      load.lastBackupAt = clock.now();
      load.lastBackupBytes = made.sizeBytes;
      logger.info("a scheduled backup was made", { ...made, durationMs: clock.now() - startedAt });
      if (rotationProblem !== null) {
        logger.error("older backups could not be deleted; the next one tries again", { reason: rotationProblem });
      }
    } catch (cause) {
      if (stopping.signal.aborted) return;
      const reason = cause instanceof Error ? cause.message : String(cause);
      load.backupsFailed++;
      logger.error("a scheduled backup failed; the next one tries again", { reason });
    }
  };
  const begin = (): void => {
    if (running !== null) {
      logger.warn("a backup is still under way; this one is left out");
      return;
    }
    running = make().finally(() => {
      running = null;
    });
  };
  /** A timer may fire a little early, and holds 24 days at most: what counts is the time. */
  const waitFor = (due: Millis): void => {
    const waitMs = due - clock.now();
    if (waitMs > 0) {
      cancel = clock.after(Math.min(waitMs, WAIT_MAX_MS), () => waitFor(due));
      return;
    }
    begin();
    waitForNext();
  };
  const waitForNext = (): void => {
    const next = Bun.cron.parse(config.schedule, clock.now(), { tz: "UTC" });
    if (next !== null) waitFor(next.getTime());
  };

  /** An alert on the age of the last one must not fire at each start. */
  const readLast = async (): Promise<void> => {
    // A destination that does not answer is told of by the next backup, which it fails too.
    const newest = await newestBackup(job).catch(() => null);
    if (newest === null || newest.at <= load.lastBackupAt) return;
    load.lastBackupAt = newest.at;
    load.lastBackupBytes = newest.sizeBytes;
  };

  waitForNext();
  void readLast();
  return {
    load,
    async stop() {
      cancel();
      stopping.abort();
      await running;
    },
  };
}

/** Relative paths are meant from where the server was started. */
function jobOf({ keep, to }: BackupsConfig, dataDirectory: string): BackupJob {
  return {
    dataDirectory: resolve(dataDirectory),
    keep,
    to: "folder" in to ? { folder: resolve(to.folder) } : to,
  };
}
