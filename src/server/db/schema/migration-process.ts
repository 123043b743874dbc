import type { Clock } from "../../../kernel/clock.ts";
import { AppError } from "../../../kernel/errors.ts";
import { MIGRATION_TIMEOUT_MS, MIGRATIONS_WAITING_MAX, READ_PROCESS_IDLE_MS } from "../limits.ts";
import { ProcessPool } from "../processes/pool.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import { openError } from "../writer/sqlite-errors.ts";
import type { FormerDatetimes } from "./datetimes.ts";
import { MigrationFailed, type MigrationRequest, SchemaMismatch } from "./types.ts";

/** An error as the process reports it. */
export type MigrationFailure =
  | { kind: "mismatch"; problems: readonly string[] }
  | { kind: "failed"; message: string }
  /** `code`: that of SQLite or of the system; empty: none. */
  | { kind: "file"; message: string; code: string };

/** Migrates the tables of files in another process, one file after another. [DB310] */
export class MigrationProcess {
  readonly #pool: ProcessPool;

  constructor(clock: Clock) {
    this.#pool = new ProcessPool({
      clock,
      program: "db/schema/migration-job",
      settings: null,
      processesMax: 1,
      placesMax: MIGRATIONS_WAITING_MAX,
      idleMs: READ_PROCESS_IDLE_MS,
    });
  }

  /**
   * Migrates a file as `declaredMigration` does, and returns what it passes to `onFormer`. Settles when no process has the file open. Errors: those of `declaredMigration`,
   * after which the file is unchanged; one that names the file; the reason of `signal`; 503 when too many files wait.
   */
  async run(request: MigrationRequest, signal: AbortSignal): Promise<readonly FormerDatetimes[]> {
    const { path } = request;
    const former = await this.#pool.run({
      request,
      caller: SERVER_CALLER.callerName,
      places: 1,
      waitMs: MIGRATION_TIMEOUT_MS,
      runMs: MIGRATION_TIMEOUT_MS,
      signals: [{ signal, reason: () => signal.reason }],
      refusals: {
        queueFull: () => new AppError(503, "Too many instances wait to be changed to what is declared"),
        waitedTooLong: () => new AppError(503, "The instance waited too long to be changed to what is declared"),
        ranTooLong: () => new MigrationFailed(`changing its tables took longer than ${MIGRATION_TIMEOUT_MS} ms`),
        ended: (exit) => new MigrationFailed(`the process that changed its tables ended by itself (${exit})`),
      },
      // The program's `failureOf` returned it.
      failed: (failure) => errorOf(path, failure as MigrationFailure),
      restart: () => {},
    });
    // The answer of the program.
    return former as readonly FormerDatetimes[];
  }

  stop(): Promise<void> {
    return this.#pool.stop();
  }
}

function errorOf(path: string, failure: MigrationFailure): Error {
  switch (failure.kind) {
    case "mismatch":
      return new SchemaMismatch(failure.problems);
    case "failed":
      return new MigrationFailed(failure.message);
    case "file":
      return openError(path, Object.assign(new Error(failure.message), { code: failure.code }));
  }
}
