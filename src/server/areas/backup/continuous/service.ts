import { resolve } from "node:path";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import { AppError, reasonOf } from "../../../../kernel/errors.ts";
import type { Ids } from "../../../../kernel/ids.ts";
import type { Logger } from "../../../../kernel/logger.ts";
import type { ContinuousConfig } from "../../../config/types.ts";
import type { StorageEngine } from "../../../db/index.ts";
import { ProcessPool } from "../../../db/processes/pool.ts";
import { SERVER_CALLER } from "../../../db/server-caller.ts";
import { ownerIdOf } from "../../../disk/owner-id.ts";
import type { Spool, SpooledFile } from "./capture/spool.ts";
import type { Covered, LogPlace } from "./format/manifest.ts";
import {
  EVERY_DEFAULT_MS,
  KEEP_DAYS_DEFAULT,
  LAG_INTERVALS_MAX,
  MORE_PAUSE_MS,
  PASS_TIMEOUT_MS,
  PROCESS_IDLE_MS,
  RETRY_MAX_MS,
  RETRY_MS,
} from "./limits.ts";
import type { PassFailure } from "./ship/ship-job.ts";
import type { PassAnswer, PassRequest, ShipSettings } from "./ship/shipper.ts";
import type { StorePlace } from "./store/store.ts";
import { Verifier } from "./verify/verifier.ts";

/** Status of the continuous backup. */
export interface ContinuousState {
  ok: boolean;
  /** Age of the oldest commit, or content of a bucket, that is not in the store; 0: all are. */
  lagMs: number;
  lagBytes: number;
  /** Time at which a pass last brought everything to the store; null: not since the start. */
  lastAt: Millis | null;
  verifiedAt: Millis | null;
  /** Whether the last verification succeeded; null: there was none. */
  verified: boolean | null;
  uploads: number;
  failures: number;
  message: string | null;
}

/** The log of a cluster, of whose files the object store has copies. */
export interface StoredLog {
  /** Id of the cluster, to which the place belongs. */
  cluster: string;
  epoch: number;
  /** Returns the last place that is acknowledged; null: there is none. */
  place(): Omit<LogPlace, "epoch"> | null;
  /** Resolves when the log has everything that was committed before. Errors: it has not, or may never have. */
  settled(): Promise<void>;
  /** Told after each pass how far the store is. `found`: where it was before this server. */
  stored(state: Pick<PassAnswer, "covered" | "found" | "lastCopyAt">): void;
  /** Told that a pass has failed. */
  failed(reason: string): void;
}

export interface ContinuousDeps {
  config: ContinuousConfig;
  dataDirectory: string;
  takeOver: boolean;
  spool: Spool;
  /** The log of the cluster that the server owns the files of; null: it is alone. */
  log: StoredLog | null;
  engine: Pick<StorageEngine, "takePlace" | "syncCommits">;
  clock: Clock;
  ids: Ids;
  logger: Logger;
}

/** Brings what was captured to the store, once each interval, by a process beside the server. */
export class ContinuousBackup {
  readonly #deps: ContinuousDeps;
  readonly #settings: ShipSettings;
  readonly #pool: ProcessPool;
  readonly #verifier: Verifier;
  /** Files of records that are not in the store yet, oldest first. */
  #waiting: SpooledFile[] = [];
  /** Time since which files wait that have to be compared first; null: none does. */
  #comparingSince: Millis | null = null;
  /** Contents of buckets that are not in the store, as of the last pass; null: all are. */
  #contents: PassAnswer["contents"] = null;
  /** Whether a part of the last pass has to be tried again. */
  #hasProblems = false;
  #hasStored = false;
  #isDisplaced = false;
  /** Whether the place belongs to another data directory, or its store takes writes whose condition is not met. */
  #isRefused = false;
  #isStopped = false;
  #hasLost = false;
  #failedInARow = 0;
  #lastAt: Millis | null = null;
  #uploads = 0;
  #failures = 0;
  #message: string | null = null;
  /** Note of the process that stores: another server was storing here. */
  #notice: string | null = null;
  #cancel = (): void => {};
  #running: Promise<unknown> = Promise.resolve();

  constructor(deps: ContinuousDeps) {
    const { config, dataDirectory, clock, ids, log } = deps;
    this.#deps = deps;
    this.#settings = {
      dataDirectory,
      // The process that stores has another working directory.
      to: "folder" in config.to ? { folder: resolve(config.to.folder) } : config.to,
      keepDays: config.keepDays ?? KEEP_DAYS_DEFAULT,
      everyMs: config.everyMs ?? EVERY_DEFAULT_MS,
      owner: { id: log?.cluster ?? ownerIdOf(dataDirectory, ids), directory: dataDirectory },
      server: ids.uuid(),
      ...(log === null ? {} : { epoch: log.epoch }),
    };
    this.#pool = new ProcessPool({
      clock,
      program: "areas/backup/continuous/ship/ship-job",
      settings: null,
      processesMax: 1,
      placesMax: 1,
      idleMs: PROCESS_IDLE_MS,
    });
    const { to } = this.#settings;
    this.#verifier = new Verifier({
      request: { dataDirectory: resolve(dataDirectory), to },
      isDaily: config.verify ?? true,
      clock,
      logger: deps.logger,
    });
    this.#plan(0);
  }

  /** Brings everything to the store that was committed before. false: the store fails, or is another server's. */
  async storeNow(): Promise<boolean> {
    if (this.#isStopped || this.#isDisplaced) return false;
    this.#cancel();
    await this.#next();
    return this.#failedInARow === 0 && !this.#isDisplaced;
  }

  /** Begins a verification. Errors: 409 while one runs. */
  verify(): void {
    this.#verifier.begin();
  }

  /** The settings, with their defaults. */
  get settings(): Pick<ShipSettings, "everyMs" | "keepDays"> {
    const { everyMs, keepDays } = this.#settings;
    return { everyMs, keepDays };
  }

  /** The place, with an absolute path. */
  get place(): StorePlace {
    return this.#settings.to;
  }

  get state(): ContinuousState {
    const { spool, clock } = this.#deps;
    const oldest = [this.#waiting[0]?.firstAt ?? spool.firstAt, this.#comparingSince, this.#contents?.since ?? null]
      .filter((since) => since !== null)
      .reduce((least, since) => Math.min(least, since), clock.now());
    const lagMs = clock.now() - oldest;
    const isFailing = this.#failedInARow > 0 || this.#hasProblems;
    const isLate = isFailing && lagMs > LAG_INTERVALS_MAX * this.#settings.everyMs;
    const { verifiedAt, failure } = this.#verifier;
    return {
      ok: !(isLate || this.#isDisplaced || this.#isRefused || spool.isLost || failure !== null),
      lagMs,
      lagBytes: spool.waitingBytes + (this.#contents?.bytes ?? 0),
      lastAt: this.#lastAt,
      verifiedAt,
      verified: failure !== null ? false : verifiedAt === null ? null : true,
      uploads: this.#uploads,
      failures: this.#failures,
      message: spool.isLost
        ? LOST
        : (this.#message ?? (failure === null ? null : `the verification failed: ${failure}`)),
    };
  }

  /** Brings everything to the store that was committed before; the databases are closed. Gives up when the stop has to end. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    try {
      await this.#verifier.stop();
      await this.#running;
      if (!this.#isDisplaced) await this.#pass({ isLast: true });
    } finally {
      await this.#pool.stop();
    }
  }

  #plan(delayMs: number): void {
    if (this.#isStopped || this.#isDisplaced) return;
    this.#cancel();
    this.#cancel = this.#deps.clock.after(delayMs, () => void this.#next());
  }

  /** Runs a pass after the one that runs, and plans the next one. */
  async #next(): Promise<void> {
    const pass = this.#running.then(() => this.#pass({ isLast: false }));
    this.#running = pass;
    this.#plan(await pass);
  }

  /** Runs one pass. Resolves to the time until the next one. */
  async #pass({ isLast }: { isLast: boolean }): Promise<number> {
    const { everyMs } = this.#settings;
    try {
      const { hasMore } = await this.#store(isLast);
      this.#failedInARow = 0;
      return hasMore ? Math.min(MORE_PAUSE_MS, everyMs) : everyMs;
    } catch (cause) {
      this.#note(cause);
      return Math.max(everyMs, Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** Math.min(this.#failedInARow - 1, 10)));
    }
  }

  async #store(isLast: boolean): Promise<PassAnswer> {
    const { engine, spool, clock, takeOver, log } = this.#deps;
    const reached = log?.place() ?? null;
    const cut: Covered = { at: clock.now(), place: engine.takePlace() };
    if (log !== null && reached !== null) cut.log = { ...reached, epoch: log.epoch };
    spool.watchRoom();
    this.#noteLoss();
    const isLosing = spool.isLost;
    const rotated = spool.rotate();
    if (rotated !== null) this.#waiting.push(rotated);
    const files = [...this.#waiting];
    // Nothing leaves the machine before it is on its disk: a failure of power must not leave the store ahead.
    const skipped = await engine.syncCommits();
    // Nor before a cluster's log has it, which every other node may become the owner by.
    await log?.settled();
    const isFirst = !this.#hasStored;
    const { verifiedAt } = this.#verifier;
    const of = { settings: this.#settings, takeOver, isFirst, verifiedAt };
    const request = { ...of, files, skipped, cut, isLosing, isLast };
    const answer = await this.#run(request);
    this.#comparingSince = answer.hasMore ? (this.#comparingSince ?? files[0]?.firstAt ?? cut.at) : null;
    this.#contents = answer.contents;
    this.#hasProblems = answer.problems.length > 0;
    for (const file of files) spool.done(file);
    this.#waiting = this.#waiting.slice(files.length);
    this.#hasStored = true;
    this.#isRefused = false;
    this.#lastAt = clock.now();
    this.#uploads += answer.uploads;
    log?.stored(answer);
    if (answer.isComplete) this.#verifier.ready(answer.verifiedAt);
    this.#report(answer);
    return answer;
  }

  #report({ broken, problems, notice }: PassAnswer): void {
    const { logger } = this.#deps;
    if (broken.length > 0)
      logger.warn("commits were not captured: the files are compared as a whole", { files: broken });
    if (problems.length > 0) {
      this.#failures++;
      logger.warn("a part of the continuous backup has to wait", { problems });
    }
    if (notice !== null && this.#notice === null)
      logger.warn("another server has stored with a copy of this data directory");
    this.#notice = notice;
    this.#message = problems[0] ?? notice;
  }

  #noteLoss(): void {
    const { spool, logger } = this.#deps;
    if (spool.isLost && !this.#hasLost) logger.error(LOST);
    this.#hasLost = spool.isLost;
  }

  #note(cause: unknown): void {
    const { logger } = this.#deps;
    const reason = reasonOf(cause);
    this.#deps.log?.failed(reason);
    this.#failures++;
    this.#failedInARow++;
    const kind = cause instanceof StoreFailure ? cause.kind : "other";
    this.#isDisplaced = kind === "displaced";
    this.#isRefused = kind === "foreign" || kind === "weak";
    if (this.#message !== reason)
      logger.error("the continuous backup could not be stored; it is tried again", { reason });
    this.#message = reason;
  }

  async #run(request: PassRequest): Promise<PassAnswer> {
    const answer = await this.#pool.run({
      request,
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: PASS_TIMEOUT_MS,
      runMs: PASS_TIMEOUT_MS,
      signals: [],
      refusals: {
        queueFull: () => new AppError(503, "Another pass of the continuous backup runs"),
        waitedTooLong: () => new AppError(503, "The process of the continuous backup is busy"),
        ranTooLong: () => new AppError(408, "A pass of the continuous backup took too long and was stopped"),
        ended: (exit) => new Error(`the process of the continuous backup ended by itself (${exit})`),
      },
      // Written by ship-job.ts.
      failed: (failure) => new StoreFailure(failure as PassFailure),
    });
    // Written by ship-job.ts.
    return answer as PassAnswer;
  }
}

const LOST =
  "what waits for the continuous backup takes too much of the disk: commits are not captured until there is room";

class StoreFailure extends Error {
  override readonly name = "StoreFailure";
  readonly kind: PassFailure["kind"];
  constructor({ kind, message }: PassFailure) {
    super(message);
    this.kind = kind;
  }
}
