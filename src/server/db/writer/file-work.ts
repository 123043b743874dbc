import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import {
  CHECKPOINT_TIMEOUT_MS,
  INDEX_TIMEOUT_MS,
  READ_PROCESS_IDLE_MS,
  REPLACE_TIMEOUT_MS,
  WAITING_READS_MAX,
} from "../limits.ts";
import { ProcessPool } from "../processes/pool.ts";
import { queryError } from "../processes/query-error.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import type { CheckpointRequest } from "./checkpoints.ts";
import type { GateAnswer } from "./commit-gate.ts";

/** A request to `file-job.ts`. */
export type FileRequest =
  | { op: "ready" }
  | ({ op: "checkpoint"; path: string } & CheckpointRequest)
  /** Checkpoints the whole WAL, restarts it, and truncates it to `walBytesLimit` if it is longer. */
  | { op: "restart"; path: string; walBytesLimit: number }
  /** Replaces the content by that of the database `source`, which gets the number of the commit. */
  | { op: "replace"; path: string; source: string }
  /** Indexes some of the pending texts. */
  | { op: "index"; path: string; walBytesLimit: number };

/** Runs checkpoints and indexing of database files in a separate process, one request at a time. */
export class FileWork {
  readonly #pool: ProcessPool;

  constructor(clock: Clock) {
    this.#pool = new ProcessPool({
      clock,
      program: "db/writer/file-job",
      // The writer waits for the end of a checkpoint and for an indexing slice.
      priority: "same",
      settings: null,
      processesMax: 1,
      placesMax: WAITING_READS_MAX,
      idleMs: READ_PROCESS_IDLE_MS,
    });
  }

  async checkpoint(path: string, request: CheckpointRequest): Promise<void> {
    await this.#run({ op: "checkpoint", path, ...request }, CHECKPOINT_TIMEOUT_MS);
  }

  /**
   * Checkpoints the whole WAL, restarts it, and truncates its file to `walBytesLimit` if it is longer. Nothing else may write to
   * `path` meanwhile.
   */
  async restartWal(path: string, walBytesLimit: number, answer: GateAnswer): Promise<void> {
    await this.#run({ op: "restart", path, walBytesLimit }, CHECKPOINT_TIMEOUT_MS, answer);
  }

  /** Starts the process if it is not running. */
  async ready(): Promise<void> {
    await this.#run({ op: "ready" }, INDEX_TIMEOUT_MS);
  }

  /** Indexes some of the pending texts of `path`; false: none is left. Nothing else may write to it meanwhile. */
  async indexTexts(path: string, walBytesLimit: number, answer: GateAnswer): Promise<boolean> {
    return (await this.#run({ op: "index", path, walBytesLimit }, INDEX_TIMEOUT_MS, answer)) === true;
  }

  /**
   * Replaces the content of `path` by that of `source`, in one commit. Nothing else may write to `path` meanwhile. Errors: those of
   * SQLite; `path` is as it was.
   */
  async replaceContent(path: string, source: string, answer: GateAnswer): Promise<void> {
    await this.#run({ op: "replace", path, source }, REPLACE_TIMEOUT_MS, answer);
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }

  #run(request: FileRequest, timeoutMs: number, answer?: GateAnswer): Promise<unknown> {
    return this.#pool.run({
      request,
      ...(answer === undefined ? {} : { answer }),
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: timeoutMs,
      runMs: timeoutMs,
      signals: [],
      refusals: {
        queueFull: () => new AppError(503, "Too many files wait for a checkpoint"),
        waitedTooLong: () => new AppError(503, `The ${request.op} waited longer than ${timeoutMs} ms for others`),
        ranTooLong: () => new AppError(408, `The ${request.op} took longer than ${timeoutMs} ms and was stopped`),
        ended: (exit) => new Error(`a process for file work ended by itself (${exit})`),
      },
      failed: queryError,
      restart: () => {},
    });
  }
}
