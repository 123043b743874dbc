import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, conflict, notFound } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import { isoTime } from "../../../../kernel/time/iso-datetime.ts";
import type { Queue } from "../../../jobs/index.ts";
import { BACKUPS_SHOWN_MAX } from "../limits.ts";
import type { Destination, StoredBackup } from "../schedule/destinations.ts";
import { isFailedName, isOwnName, timeOfOwn } from "../schedule/names.ts";
import { readVerified } from "../schedule/verified.ts";
import { BackupError } from "../types.ts";
import type { Run, Runs } from "./runs.ts";

/** A backup at the destination. */
export interface ListedBackup {
  name: string;
  /** When it was begun. */
  at: number;
  sizeBytes: number;
  verifiedAt: number | null;
  isFailed: boolean;
}

/** Backups for administrators. Rights are checked by the endpoints. */
export interface BackupsService {
  /** Newest first, at most BACKUPS_SHOWN_MAX. Errors: 503 where the destination fails. */
  list(): Promise<ListedBackup[]>;
  /** Since the start, newest first. */
  runs(): Run[];
  /** Begins one. Errors: 409 while another run has not ended, 503 in a drill. */
  create(): Promise<Run>;
  /** Begins it. Errors: as `create`; 404. */
  verify(name: string): Promise<Run>;
  /** Errors: 404; 503 where the destination fails. */
  find(name: string): Promise<StoredBackup>;
  readonly destination: Destination;
}

interface ServiceDeps {
  destination: Destination;
  runs: Runs;
  queue: Queue;
  /** The name of the jobs that make backups. */
  jobName: string;
  /** What jobs of a schedule have as well, so that a schedule and a request make one backup. */
  jobKey: string;
  isDrill: boolean;
  /** Begins the verification of a backup, which `run` follows. */
  startVerification(run: Run, name: string): void;
  clock: Clock;
  ids: Ids;
}

export function createBackupsService(deps: ServiceDeps): BackupsService {
  const { destination, runs, queue, jobName } = deps;
  const asked = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (cause) {
      const reason = cause instanceof BackupError ? cause.message : `${destination.name} cannot be read`;
      throw new AppError(503, reason, { cause });
    }
  };
  const requireIdle = (): void => {
    if (deps.isDrill) throw new AppError(503, "This server runs as a drill: it makes and verifies no backups");
    if (runs.isRunning || queue.unfinished(jobName) > 0) throw busy();
  };
  const find = async (name: string): Promise<StoredBackup> => {
    const present = isOwnName(name) ? await asked(destination.backups()) : [];
    const found = present.find((backup) => backup.name === name);
    if (found === undefined) throw notFound(`There is no backup "${name}"`);
    return found;
  };
  return {
    destination,
    find,
    runs() {
      if (queue.unfinished(jobName) === 0) runs.endWaiting();
      return runs.all;
    },
    async list() {
      const [present, { byName }] = await asked(Promise.all([destination.backups(), readVerified(destination)]));
      return present
        .slice(-BACKUPS_SHOWN_MAX)
        .map(({ name, sizeBytes }) => {
          const verifiedAt = byName.get(name) ?? null;
          return { name, at: timeOfOwn(name) ?? 0, sizeBytes, verifiedAt, isFailed: isFailedName(name) };
        })
        .sort((one, other) => other.at - one.at);
    },
    async create() {
      requireIdle();
      const id = deps.ids.uuid();
      const given = await queue.enqueue(jobName, { scheduledAt: isoTime(deps.clock.now()) }, { id, key: deps.jobKey });
      if (given !== id) throw busy();
      // The job may have begun already.
      return runs.get(id) ?? runs.add(id, "create");
    },
    async verify(name) {
      requireIdle();
      await find(name);
      // Another request may have begun meanwhile.
      requireIdle();
      const run = runs.add(deps.ids.uuid(), "verify", name);
      deps.startVerification(run, name);
      return run;
    },
  };
}

const busy = (): AppError => conflict("A backup is being made or verified; one runs at a time");
