import { BoundedMap } from "../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import { AppError, conflict, notFound, reasonOf, unauthorized } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { ServiceKeyPrincipal } from "../../access/keys/service-keys.ts";
import type { Principals } from "../../access/principals.ts";
import type { Queue } from "../../jobs/index.ts";
import type { Destination, StoredBackup } from "./destination/destinations.ts";
import { isFailedName, isOwnName, timeOfOwn } from "./destination/names.ts";
import { readVerified } from "./destination/notes.ts";
import type { BackupJob, VerifyJob, VerifyResult } from "./job/job.ts";
import { createJobProcess } from "./job/job-process.ts";
import { BACKUPS_SHOWN_MAX, LINK_BYTES, LINK_TTL_MS, LINKS_MAX, RUNS_KEPT_MAX } from "./limits.ts";
import { BackupError } from "./types.ts";

/** A backup at the destination. */
export interface ListedBackup {
  name: string;
  /** Start of the backup, in milliseconds since 1970. */
  at: number;
  sizeBytes: number;
  verifiedAt: number | null;
  isFailed: boolean;
}

/** Operations on backups for administrators. Rights are checked by the endpoints. */
export type BackupsService = ReturnType<typeof createBackupsService>;

interface ServiceDeps {
  destination: Destination;
  runs: Runs;
  queue: Queue;
  /** Name of the jobs that make backups. */
  jobName: string;
  /** Key of the job, shared with scheduled jobs, so that a schedule and a request make one backup. */
  jobKey: string;
  isDrill: boolean;
  /** Begins the verification of a backup, which `run` follows. */
  startVerification(run: Run, name: string): void;
  clock: Clock;
  ids: Ids;
}

export function createBackupsService(deps: ServiceDeps) {
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
    /** Finds a backup at the destination. Errors: 404; 503 when the destination fails. */
    find,
    /** Lists the runs since the start, newest first. */
    runs(): Run[] {
      if (queue.unfinished(jobName) === 0) runs.endWaiting();
      return runs.all;
    },
    /** Lists backups, newest first, at most BACKUPS_SHOWN_MAX. Errors: 503 when the destination fails. */
    async list(): Promise<ListedBackup[]> {
      const [present, { byName }] = await asked(Promise.all([destination.backups(), readVerified(destination)]));
      return present
        .slice(-BACKUPS_SHOWN_MAX)
        .map(({ name, sizeBytes }) => {
          const verifiedAt = byName.get(name) ?? null;
          return { name, at: timeOfOwn(name) ?? 0, sizeBytes, verifiedAt, isFailed: isFailedName(name) };
        })
        .sort((one, other) => other.at - one.at);
    },
    /** Begins a backup. Errors: 409 while another run has not ended, 503 in a drill. */
    async create(): Promise<Run> {
      requireIdle();
      const id = deps.ids.uuid();
      const given = await queue.enqueue(jobName, { scheduledAt: isoTime(deps.clock.now()) }, { id, key: deps.jobKey });
      if (given !== id) throw busy();
      // The job may have begun already.
      return runs.get(id) ?? runs.add(id, "create");
    },
    /** Begins a verification. Errors: as `create`; 404. */
    async verify(name: string): Promise<Run> {
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

/** Issues and checks tickets with which a browser downloads a backup, as a link cannot carry the header of a key. */
export interface Links {
  issue(name: string, key: ServiceKeyPrincipal): { ticket: string; expiresAt: Millis };
  /**
   * Checks a ticket without using it up. Errors: 401 for a ticket that is unknown, used, too old, or for another backup;
   * those of `requireUsable`.
   */
  check(ticket: string, name: string, address: () => string): void;
  /** Uses a ticket up. Errors: those of `check`. */
  take(ticket: string, name: string, address: () => string): void;
}

export function createLinks({
  clock,
  ids,
  principals,
}: {
  clock: Clock;
  ids: Ids;
  principals: Pick<Principals, "requireUsable">;
}): Links {
  const waiting = new BoundedMap<string, { name: string; key: ServiceKeyPrincipal; until: Millis }>(LINKS_MAX);
  const links: Links = {
    issue(name, key) {
      const ticket = ids.secret(LINK_BYTES);
      const expiresAt = clock.now() + LINK_TTL_MS;
      waiting.set(ticket, { name, key, until: expiresAt });
      return { ticket, expiresAt };
    },
    check(ticket, name, address) {
      const found = waiting.peek(ticket);
      if (found?.name !== name || found.until <= clock.now()) {
        throw unauthorized("The link has been used, is too old, or is for another backup");
      }
      principals.requireUsable(found.key, address);
    },
    take(ticket, name, address) {
      try {
        links.check(ticket, name, address);
      } finally {
        waiting.delete(ticket);
      }
    },
  };
  return links;
}

/** A backup, or a verification, run by this process. */
export interface Run {
  readonly id: string;
  readonly action: "create" | "verify";
  /** Name of the backup; null: none yet. */
  name: string | null;
  state: "waiting" | "running" | "done" | "failed";
  startedAt: Millis | null;
  endedAt: Millis | null;
  /** Reason of the failure; null: none. */
  error: string | null;
  found: Found | null;
}

/** Contents of a backup. */
export interface Found {
  fileCount: number;
  contentBytes: number;
  /** Number of databases; null when the backup was not verified. */
  databaseCount: number | null;
}

/** Keeps the newest runs, in memory. */
export class Runs {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Run>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** All runs kept, newest first. */
  get all(): Run[] {
    return [...this.#runs.values()].reverse();
  }

  get isRunning(): boolean {
    return this.all.some(({ state }) => state === "running");
  }

  get(id: string): Run | null {
    return this.#runs.get(id) ?? null;
  }

  add(id: string, action: Run["action"], name: string | null = null): Run {
    const run: Run = { id, action, name, state: "waiting", startedAt: null, endedAt: null, error: null, found: null };
    this.#runs.set(id, run);
    // Only the newest can be unfinished, as one runs at a time.
    for (const old of [...this.#runs.keys()].slice(0, -RUNS_KEPT_MAX)) this.#runs.delete(old);
    return run;
  }

  /** Ends the runs that waited for a job that no longer exists. */
  endWaiting(): void {
    for (const run of this.#runs.values()) {
      if (run.state === "waiting") Object.assign(run, { state: "failed", error: "The job was cancelled" });
    }
  }

  /** Follows `work`, and resolves to its result. Errors: those of `work`. */
  async follow<Result extends { fileCount: number; contentBytes: number }>(
    run: Run,
    work: () => Promise<Result & { name?: string; databaseCount?: number }>,
  ): Promise<Result> {
    Object.assign(run, { state: "running", startedAt: this.#clock.now(), endedAt: null, error: null });
    try {
      const result = await work();
      const { fileCount, contentBytes, databaseCount = null, name = run.name } = result;
      Object.assign(run, { state: "done", name, found: { fileCount, contentBytes, databaseCount } });
      return result;
    } catch (cause) {
      run.state = "failed";
      run.error = reasonOf(cause);
      throw cause;
    } finally {
      run.endedAt = this.#clock.now();
    }
  }
}

/** Verifies one backup at a time, in a process of its own. */
export type Verification = ReturnType<typeof createVerification>;

export function createVerification(deps: {
  place: Pick<BackupJob, "dataDirectory" | "to">;
  runs: Runs;
  load: { lastBackupVerifiedAt: Millis };
  clock: Clock;
  logger: Logger;
}) {
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
    start(run: Run, name: string): void {
      current = perform(run, name);
    },
    /** Resolves once no verification runs. */
    ended: (): Promise<void> => current,
    /** Cancels the running verification. */
    async stop(): Promise<void> {
      stopping.abort();
      await current;
    },
  };
}
