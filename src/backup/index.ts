import { resolve } from "node:path";
import type { BackupsConfig } from "../config/types.ts";
import { ownerIdOf } from "../disk/owner-id.ts";
import type { Schedules } from "../jobs/index.ts";
import type { Clock, Millis } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Logger } from "../kernel/logger.ts";
import { openDestination } from "./schedule/destinations.ts";
import { type BackupJob, presentBackups } from "./schedule/job.ts";
import { createJobProcess, type RunBackupJob } from "./schedule/job-process.ts";
import { claimDestination } from "./schedule/ownership.ts";

/** The name of the jobs that make scheduled backups. */
const BACKUP_JOB_NAME = "platform.backup";

/** Figures of scheduled backups for the metrics; counters begin at the start. */
export interface BackupsLoad {
  backupsMade: number;
  backupsFailed: number;
  /** Time and size of the last successful backup, also of an earlier start; 0 before the first. */
  lastBackupAt: Millis;
  lastBackupBytes: number;
  /** When a scheduled backup was last verified, also of an earlier start; 0: never. */
  lastBackupVerifiedAt: Millis;
  /** Whether the last scheduled backup has failed, or is known from its name to have failed its verification. */
  hasLastFailed: boolean;
}

export interface BackupsArea {
  readonly load: BackupsLoad;
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
  schedules: Schedules;
  /** How a backup is made. Default: in a process of its own. */
  run?: RunBackupJob;
}

/**
 * Makes backups at the times of the schedule, in UTC, as jobs. Times while the server does not run are skipped; a backup that a
 * stop has cancelled is made after the next start.
 */
export function createBackupsArea(deps: BackupsAreaDeps): BackupsArea {
  const { config, clock, logger } = deps;
  const load: BackupsLoad = {
    backupsMade: 0,
    backupsFailed: 0,
    lastBackupAt: 0,
    lastBackupBytes: 0,
    lastBackupVerifiedAt: 0,
    hasLastFailed: false,
  };
  if (config === undefined || deps.isDrill) return { load };
  const run = deps.run ?? createJobProcess(clock);
  const job = jobOf(config, deps);

  const make = async (signal: AbortSignal): Promise<void> => {
    const startedAt = clock.now();
    try {
      const { rotationProblem, ...made } = await run(job, signal);
      load.backupsMade++;
      load.hasLastFailed = false;
      load.lastBackupAt = clock.now();
      load.lastBackupBytes = made.sizeBytes;
      load.lastBackupVerifiedAt = made.verifiedAt ?? load.lastBackupVerifiedAt;
      logger.info("a scheduled backup was made", { ...made, durationMs: clock.now() - startedAt });
      if (rotationProblem !== null) {
        logger.error("older backups could not be deleted; the next backup retries", { reason: rotationProblem });
      }
    } catch (cause) {
      if (!signal.aborted) {
        load.backupsFailed++;
        load.hasLastFailed = true;
        logger.error("a scheduled backup failed; the next one tries again", { reason: reasonOf(cause) });
      }
      throw cause;
    }
  };

  deps.schedules.add({
    name: BACKUP_JOB_NAME,
    schedule: config.schedule,
    timezone: "UTC",
    catchUp: "never",
    retries: 0,
    timeout: null,
    run: ({ signal }) => make(signal),
  });
  void readPresent(job, load);
  if (deps.takeOver) void takeOverDestination(job, deps);
  return { load };
}

/** An alert on the age of the last backup must not fire after each start. A failing destination is reported by the next backup. */
async function readPresent(job: BackupJob, load: BackupsLoad): Promise<void> {
  const present = await presentBackups(job).catch(() => null);
  if (present === null) return;
  const { newest, verifiedAt, hasLastFailed } = present;
  load.lastBackupVerifiedAt = Math.max(load.lastBackupVerifiedAt, verifiedAt ?? 0);
  // A backup of this start is newer.
  if (load.backupsMade + load.backupsFailed > 0) return;
  load.hasLastFailed = hasLastFailed;
  if (newest === null) return;
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
function jobOf({ keep, to, verify = false }: BackupsConfig, deps: BackupsAreaDeps): BackupJob {
  const dataDirectory = resolve(deps.dataDirectory);
  return {
    dataDirectory,
    owner: { id: ownerIdOf(dataDirectory, deps.ids), directory: dataDirectory },
    keep,
    verify,
    to: "folder" in to ? { folder: resolve(to.folder) } : to,
  };
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
