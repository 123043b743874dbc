import type { Clock } from "../../kernel/clock.ts";
import { AppError } from "../../kernel/errors.ts";
import { CHECKPOINT_TIMEOUT_MS, INDEX_TIMEOUT_MS, READ_PROCESS_IDLE_MS, WAITING_READS_MAX } from "../limits.ts";
import { ProcessPool } from "../processes/pool.ts";
import { queryError } from "../processes/query-error.ts";
import { SERVER_CALLER } from "../server-caller.ts";

/** What `file-job.ts` is asked. */
export type FileRequest =
  | { op: "ready" }
  | { op: "checkpoint"; path: string }
  /** Moves the whole WAL and starts it over; a longer one is cut back to `walBytesLimit`. */
  | { op: "restart"; path: string; walBytesLimit: number }
  /** Has SQLite index some of the texts that wait for it. */
  | { op: "index"; path: string; walBytesLimit: number };

/** What is done to database files in a process of its own, one file after the other. */
export class FileWork {
  readonly #pool: ProcessPool;

  constructor(clock: Clock) {
    this.#pool = new ProcessPool({
      clock,
      program: "db/writer/file-job",
      settings: null,
      processesMax: 1,
      placesMax: WAITING_READS_MAX,
      idleMs: READ_PROCESS_IDLE_MS,
    });
  }

  async checkpoint(path: string): Promise<void> {
    await this.#run({ op: "checkpoint", path }, CHECKPOINT_TIMEOUT_MS);
  }

  /** Moves the whole WAL, starts it over and cuts it back to `walBytesLimit`. Nothing else may write to `path` meanwhile. */
  async restartWal(path: string, walBytesLimit: number): Promise<void> {
    await this.#run({ op: "restart", path, walBytesLimit }, CHECKPOINT_TIMEOUT_MS);
  }

  /** Starts a process where there is none. */
  async ready(): Promise<void> {
    await this.#run({ op: "ready" }, INDEX_TIMEOUT_MS);
  }

  /** Indexes some of the texts that wait in `path`; false: none is left. Nothing else may write to it meanwhile. */
  async indexTexts(path: string, walBytesLimit: number): Promise<boolean> {
    return (await this.#run({ op: "index", path, walBytesLimit }, INDEX_TIMEOUT_MS)) === true;
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }

  #run(request: FileRequest, timeoutMs: number): Promise<unknown> {
    return this.#pool.run({
      request,
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
