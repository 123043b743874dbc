import { type Clock, systemClock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { type Foreground, Pacing } from "../../../kernel/observing/foreground.ts";
import { traced } from "../../../kernel/observing/request-trace.ts";
import { type DatabaseFile, deleteOutboxRows, jobId, readOutboxRows, type StoredOutboxRow } from "../../db/index.ts";
import type { PassedJob } from "../../jobs/index.ts";
import {
  DRAIN_BUSY_PAUSE_MS,
  DRAIN_BYTES_MAX,
  DRAIN_PAUSE_MS,
  DRAIN_RETRY_MAX_MS,
  DRAIN_RETRY_MS,
  DRAIN_ROWS_MAX,
  DRAINS_MAX,
} from "./limits.ts";
import type { PassJobs, Place } from "./types.ts";

export interface DrainsDeps {
  pass: PassJobs;
  /** Returns the file; null: it does not exist any more. */
  fileOf(place: Place): DatabaseFile | null;
  foreground: Foreground;
  clock: Clock;
  logger: Logger;
}

/** A file that waits for its turn, with the delay of its next retry. */
interface Turn {
  readonly place: Place;
  readonly retryMs: number;
}

/**
 * Passes the rows of outboxes to the queue, then deletes them. A row that was passed and not deleted, because the server died in
 * between, is passed again; the queue dedupes it by its id. Rows are read inside a write, which resolves when everything that it
 * has read is on disk: no run may begin for a change that the disk could still lose. [TG8] [TG10]
 */
export class Drains {
  readonly #deps: DrainsDeps;
  /** Waiting files by the place's key, in the order of their turns. One entry for each file with waiting rows. */
  readonly #waiting = new Map<string, Turn>();
  readonly #running = new Map<string, { isWanted: boolean; ended: Promise<void> }>();
  readonly #retries = new Map<string, () => void>();
  /** Functions that end the pauses of running drains. */
  readonly #pauses = new Set<() => void>();
  #isStopped = false;
  readonly #pacing: Pacing;

  constructor(deps: DrainsDeps) {
    this.#deps = deps;
    this.#pacing = new Pacing(deps.foreground, DRAIN_BUSY_PAUSE_MS);
  }

  /** Queues a file to be drained. Call when rows may wait in it. */
  wake(place: Place): void {
    const key = keyOf(place);
    const running = this.#running.get(key);
    if (running !== undefined) running.isWanted = true;
    else if (!this.#retries.has(key) && !this.#waiting.has(key)) {
      this.#waiting.set(key, { place, retryMs: DRAIN_RETRY_MS });
      this.#next();
    }
  }

  /** Stops after the running steps. Remaining rows wait in their files. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#waiting.clear();
    for (const cancel of this.#retries.values()) cancel();
    for (const end of [...this.#pauses]) end();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  #next(): void {
    for (const [key, turn] of this.#waiting) {
      if (this.#isStopped || this.#running.size >= DRAINS_MAX) return;
      this.#waiting.delete(key);
      this.#start(key, turn);
    }
  }

  #start(key: string, { place, retryMs }: Turn): void {
    const running = { isWanted: false, ended: Promise.resolve() };
    this.#running.set(key, running);
    // The request that wakes it does not wait for it.
    running.ended = traced(undefined, () => this.#drain(place, running)).then(
      () => {
        this.#end(key);
        if (running.isWanted) this.wake(place);
      },
      (cause: unknown) => {
        this.#end(key);
        this.#retry(key, { place, retryMs }, cause);
      },
    );
  }

  #end(key: string): void {
    this.#running.delete(key);
    this.#next();
  }

  #retry(key: string, { place, retryMs }: Turn, cause: unknown): void {
    if (this.#isStopped) return;
    const { clock, logger } = this.#deps;
    if (retryMs === DRAIN_RETRY_MS) {
      logger.error("triggers: jobs wait in their outbox: they cannot be passed to the queue", { ...place, cause });
    }
    const cancel = clock.after(retryMs, () => {
      this.#retries.delete(key);
      // Waits for a turn again: on a full disk all files fail at once.
      this.#waiting.set(key, { place, retryMs: Math.min(2 * retryMs, DRAIN_RETRY_MAX_MS) });
      this.#next();
    });
    this.#retries.set(key, cancel);
  }

  /** Waits for the timer `after`, or until the drains are stopped. */
  #pause(after: (end: () => void) => () => void): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#pauses.delete(end);
        resolve();
      };
      const cancel = after(end);
      this.#pauses.add(end);
    });
  }

  /** Drains a file until no row waits, or until other files wait and it has had a step; it sets `isWanted` then. */
  async #drain(place: Place, running: { isWanted: boolean }): Promise<void> {
    const { fileOf, pass } = this.#deps;
    let passed: StoredOutboxRow | null = null;
    for (;;) {
      running.isWanted = false;
      this.#pacing.step();
      const file = fileOf(place);
      if (file === null) return;
      const rows: StoredOutboxRow[] = await file.write((tx) => {
        if (passed !== null) deleteOutboxRows(tx, passed);
        return readOutboxRows(tx, { rowsMax: DRAIN_ROWS_MAX, bytesMax: DRAIN_BYTES_MAX });
      });
      if (passed !== null && rows.length > 0 && this.#waiting.size > 0) {
        // A turn ends after a step, as files that are written constantly would starve all others.
        running.isWanted = true;
        return;
      }
      passed = rows.at(-1) ?? null;
      if (passed === null) {
        if (!running.isWanted) return;
        continue;
      }
      if (this.#isStopped) return;
      await pass(rows.flatMap(jobsOf));
      // Real time, as in the other pause: no test waits for it.
      if (rows.length < DRAIN_ROWS_MAX) await this.#pause((end) => systemClock.after(DRAIN_PAUSE_MS, end));
      else if (this.#pacing.leftMs > 0) await this.#pause((end) => this.#pacing.after(end));
    }
  }
}

function jobsOf({ id, names, seq: _, ...job }: StoredOutboxRow): PassedJob[] {
  return names.map((name, index) => ({ ...job, id: jobId(id, index), name }));
}

const keyOf = (place: Place): string =>
  place.kind === "system" ? "system" : `${place.namespace}/${place.instanceId ?? ""}`;
