import { resolve } from "node:path";
import type { BackupsConfig } from "../config/types.ts";
import { ownerIdOf } from "../disk/owner-id.ts";
import type { Clock, Millis } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { openDestination } from "./schedule/destinations.ts";
import { type BackupJob, newestBackup } from "./schedule/job.ts";
import { createJobProcess, type RunBackupJob } from "./schedule/job-process.ts";
import { claimDestination } from "./schedule/ownership.ts";

/** Figures of scheduled backups for the metrics; counters begin at the start. */
export interface BackupsLoad {
  backupsMade: number;
  backupsFailed: number;
  /** Time and size of the last successful backup, also of an earlier start; 0 before the first. */
  lastBackupAt: Millis;
  lastBackupBytes: number;
}

export interface BackupsArea {
  readonly load: BackupsLoad;
  /** Cancels a running backup, and starts no further one. */
  stop(): Promise<void>;
}

export interface BackupsAreaDeps {
  /** undefined: no scheduled backups. */
  config: BackupsConfig | undefined;
  /** A drill makes no backups, as they would replace those of the server. */
  isDrill: boolean;
  /** Takes the destination over from another data directory. */
  takeOver: boolean;
  dataDirectory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  /** How a backup is made. Default: in a process of its own. */
  run?: RunBackupJob;
}

/** Makes backups at the times of the schedule, in UTC. Times while the server does not run are skipped. */
export function createBackupsArea(deps: BackupsAreaDeps): BackupsArea {
  const { config, clock, logger } = deps;
  const load: BackupsLoad = { backupsMade: 0, backupsFailed: 0, lastBackupAt: 0, lastBackupBytes: 0 };
  if (config === undefined || deps.isDrill) return { load, async stop() {} };
  const run = deps.run ?? createJobProcess(clock);
  const job = jobOf(config, deps);
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
        logger.error("older backups could not be deleted; the next backup retries", { reason: rotationProblem });
      }
    } catch (cause) {
      if (stopping.signal.aborted) return;
      load.backupsFailed++;
      logger.error("a scheduled backup failed; the next one tries again", { reason: reasonOf(cause) });
    }
  };
  const begin = (): void => {
    if (running !== null) {
      logger.warn("a scheduled backup is skipped, as the previous one is still running");
      return;
    }
    running = make().finally(() => {
      running = null;
    });
  };
  /** The time decides, as a timer may fire early. */
  const waitFor = (due: Millis): void => {
    const waitMs = due - clock.now();
    if (waitMs > 0) {
      cancel = clock.after(waitMs, () => waitFor(due));
      return;
    }
    begin();
    waitForNext();
  };
  const waitForNext = (): void => {
    const next = Bun.cron.parse(config.schedule, clock.now(), { tz: "UTC" });
    if (next !== null) waitFor(next.getTime());
  };

  waitForNext();
  void readNewest(job, load);
  if (deps.takeOver) void takeOverDestination(job, deps);
  return {
    load,
    async stop() {
      cancel();
      stopping.abort();
      await running;
    },
  };
}

/** An alert on the age of the last backup must not fire after each start. A failing destination is reported by the next backup. */
async function readNewest(job: BackupJob, load: BackupsLoad): Promise<void> {
  const newest = await newestBackup(job).catch(() => null);
  if (newest === null || newest.at <= load.lastBackupAt) return;
  load.lastBackupAt = newest.at;
  load.lastBackupBytes = newest.sizeBytes;
}

/** At the start only: a server that ran with it for long could take the destination from its successor. */
async function takeOverDestination(job: BackupJob, { clock, logger }: BackupsAreaDeps): Promise<void> {
  const destination = openDestination(job.to, job.dataDirectory);
  try {
    await claimDestination(destination, { owner: job.owner, clock, takeOver: true });
  } catch (cause) {
    logger.error("the destination of backups could not be taken over", { reason: reasonOf(cause) });
  }
}

/** Relative paths are relative to the working directory. */
function jobOf({ keep, to }: BackupsConfig, deps: BackupsAreaDeps): BackupJob {
  const dataDirectory = resolve(deps.dataDirectory);
  return {
    dataDirectory,
    owner: { id: ownerIdOf(dataDirectory, deps.ids), directory: dataDirectory },
    keep,
    to: "folder" in to ? { folder: resolve(to.folder) } : to,
  };
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
