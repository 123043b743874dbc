import { join, resolve } from "node:path";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import type { Principals } from "../../access/principals.ts";
import type { ScheduledBackupsConfig } from "../../config/types.ts";
import { ownerIdOf } from "../../disk/owner-id.ts";
import type { Owner } from "../../disk/owner-marker.ts";
import { cronTimes, type Queue, SCHEDULE_KEY, type Schedules } from "../../jobs/index.ts";
import { type Destination, openDestination } from "./destination/destinations.ts";
import { claimDestination, presentBackups } from "./destination/notes.ts";
import { backupEndpoints } from "./endpoints.ts";
import type { BackupJob, BackupResult } from "./job/job.ts";
import { createJobProcess, type RunBackupJob } from "./job/job-process.ts";
import { BACKUPS_FOLDER } from "./layout.ts";
import { LOCAL_KEEP } from "./limits.ts";
import { createBackupsService, createLinks, createVerification, Runs, type Verification } from "./service.ts";

/** Name of the jobs that make backups. */
const BACKUP_JOB_NAME = "platform.backup";

/** Metrics of backups; counters begin at the start. */
export interface BackupsLoad {
  backupsMade: number;
  backupsFailed: number;
  /** Time and size of the last successful backup, also of an earlier start; 0 before the first. */
  lastBackupAt: Millis;
  lastBackupBytes: number;
  /** Time of the last verification, also of an earlier start; 0: never. */
  lastBackupVerifiedAt: Millis;
  /** Whether the last backup has failed, or is known from its name to have failed its verification. */
  hasLastFailed: boolean;
}

export type BackupsArea = ReturnType<typeof createBackupsArea>;

export interface BackupsAreaDeps {
  /** Config; undefined: no scheduled backups, and requested ones are stored in the data directory. */
  config: ScheduledBackupsConfig | undefined;
  /** Whether the config declares a continuous backup as well. */
  isContinuous: boolean;
  /** A drill makes no backups, as they would replace those of the server. */
  isDrill: boolean;
  /** Whether to take the destination over from another data directory. */
  takeOver: boolean;
  dataDirectory: string;
  clock: Clock;
  ids: Ids;
  logger: Logger;
  schedules: Schedules;
  queue: Queue;
  principals: Pick<Principals, "requireUsable">;
  audit: { record(change: { action: string; target: string; after?: unknown }): Promise<void> };
  /** Runs a backup. Default: in a process of its own. */
  run?: RunBackupJob;
}

/**
 * Makes backups as jobs: at the times of the schedule, in UTC, and on request. Times while the server does not run are
 * skipped; a backup cancelled by a stop is made after the next start.
 */
export function createBackupsArea(deps: BackupsAreaDeps) {
  const { config, clock, ids, queue, isDrill } = deps;
  const place = placeOf(config, deps.dataDirectory);
  const destination = openDestination(place.to, place.dataDirectory, clock);
  const runs = new Runs(clock);
  const startedAt = clock.now();
  const load: BackupsLoad = {
    backupsMade: 0,
    backupsFailed: 0,
    lastBackupAt: 0,
    lastBackupBytes: 0,
    lastBackupVerifiedAt: 0,
    hasLastFailed: false,
  };
  const verification = createVerification({ ...deps, place, runs, load });
  if (!isDrill) {
    const make = createMaking({ ...deps, place, load, runs, verification });
    const job = { retries: 0, timeout: null };
    if (config === undefined) queue.define(BACKUP_JOB_NAME, { ...job, concurrency: 1, run: make });
    else {
      const { schedule } = config;
      deps.schedules.add({ ...job, name: BACKUP_JOB_NAME, schedule, timezone: "UTC", catchUp: "never", run: make });
    }
    void readPresent(destination, load);
    if (deps.takeOver && config !== undefined) void takeOverDestination(destination, ownerOf(deps), deps);
  }
  const service = createBackupsService({
    destination,
    runs,
    queue,
    isDrill,
    clock,
    ids,
    jobName: BACKUP_JOB_NAME,
    jobKey: SCHEDULE_KEY,
    startVerification: verification.start,
  });
  return {
    endpoints: backupEndpoints({
      service,
      links: createLinks(deps),
      config: { schedule: config?.schedule ?? null, keep: place.keep, continuous: deps.isContinuous && !isDrill },
      audit: (change) => deps.audit.record(change),
    }),
    load,
    /** Whether two times of the schedule have passed since the last backup that succeeded, and since the start. */
    isOverdue: (): boolean =>
      !isDrill && config !== undefined && hasMissedTwo(config.schedule, { load, startedAt, clock }),
    /** Cancels a verification. Backups are cancelled by the stop of the jobs. */
    stop: verification.stop,
  };
}

/**
 * Whether two scheduled times have passed since the last success and since the start. A backup that never ends never fails,
 * so only the clock can tell. [BK26]
 */
function hasMissedTwo(
  schedule: string,
  { load, startedAt, clock }: { load: BackupsLoad; startedAt: Millis; clock: Clock },
): boolean {
  const now = clock.now();
  const times = cronTimes(schedule, "UTC");
  // A backup time in the future comes from a clock that was ahead, and says nothing.
  const since = load.lastBackupAt > now ? startedAt : Math.max(startedAt, load.lastBackupAt);
  const first = times.next(since);
  const second = first === null ? null : times.next(first);
  return second !== null && second <= now;
}

type Place = Omit<BackupJob, "owner">;

/** Returns the place of the backups. Relative paths are relative to the working directory. */
function placeOf(config: ScheduledBackupsConfig | undefined, directory: string): Place {
  const dataDirectory = resolve(directory);
  const {
    keep,
    to,
    verify = false,
  } = config ?? { keep: LOCAL_KEEP, to: { folder: join(dataDirectory, BACKUPS_FOLDER) } };
  return { dataDirectory, keep, verify, to: "folder" in to ? { folder: resolve(to.folder) } : to };
}

/** Returns the owner that marks destinations, creating the id of the data directory if it has none yet. */
function ownerOf({ dataDirectory, ids }: Pick<BackupsAreaDeps, "dataDirectory" | "ids">): Owner {
  const directory = resolve(dataDirectory);
  return { id: ownerIdOf(directory, ids), directory };
}

interface MakingDeps extends Pick<BackupsAreaDeps, "clock" | "ids" | "logger" | "dataDirectory" | "run"> {
  place: Place;
  load: BackupsLoad;
  runs: Runs;
  verification: Verification;
}

function createMaking(deps: MakingDeps): (job: { id: string; signal: AbortSignal }) => Promise<void> {
  const { place, load, runs, verification, clock, logger } = deps;
  const run = deps.run ?? createJobProcess<BackupJob, BackupResult>(clock);
  return async ({ id, signal }) => {
    await verification.ended();
    const startedAt = clock.now();
    try {
      const owner = ownerOf(deps);
      const { rotationProblem, ...made } = await runs.follow(runs.get(id) ?? runs.add(id, "create"), () =>
        run({ ...place, owner }, signal),
      );
      load.backupsMade++;
      load.hasLastFailed = false;
      load.lastBackupAt = clock.now();
      load.lastBackupBytes = made.sizeBytes;
      load.lastBackupVerifiedAt = made.verifiedAt ?? load.lastBackupVerifiedAt;
      logger.info("a backup was made", { ...made, durationMs: clock.now() - startedAt });
      if (rotationProblem !== null) {
        logger.error("older backups could not be deleted; the next backup retries", { reason: rotationProblem });
      }
    } catch (cause) {
      if (!signal.aborted) {
        load.backupsFailed++;
        load.hasLastFailed = true;
        logger.error("a backup failed; the next one tries again", { reason: reasonOf(cause) });
      }
      throw cause;
    }
  };
}

/**
 * Reads the last backup at the destination, so that an alert on its age does not fire after each start. A failing
 * destination is reported by the next backup.
 */
async function readPresent(destination: Destination, load: BackupsLoad): Promise<void> {
  const present = await presentBackups(destination).catch(() => null);
  if (present === null) return;
  const { newest, verifiedAt, hasLastFailed } = present;
  load.lastBackupVerifiedAt = Math.max(load.lastBackupVerifiedAt, verifiedAt ?? 0);
  // A backup made since the start is newer.
  if (load.backupsMade + load.backupsFailed > 0) return;
  load.hasLastFailed = hasLastFailed;
  if (newest === null) return;
  load.lastBackupAt = newest.at;
  load.lastBackupBytes = newest.sizeBytes;
}

/** Takes the destination over, at the start only: a server that ran with the option for long could take it from its successor. */
async function takeOverDestination(
  destination: Destination,
  owner: Owner,
  { clock, logger }: Pick<BackupsAreaDeps, "clock" | "logger">,
): Promise<void> {
  try {
    await claimDestination(destination, { owner, clock, takeOver: true });
  } catch (cause) {
    logger.error("the destination of backups could not be taken over", { reason: reasonOf(cause) });
  }
}
