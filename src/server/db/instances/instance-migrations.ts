import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { AppError, insufficientStorage, isDiskFull } from "../../../kernel/errors.ts";
import { DeadlineError, within } from "../../../kernel/time/deadline.ts";
import { MIGRATED_NOW_BYTES_MAX, MIGRATION_WAIT_MS, REWRITTEN_NOW_BYTES_MAX } from "../limits.ts";
import { hasWal, openUnchanged } from "../open-unchanged.ts";
import { type FormerDatetimes, hasFormerDatetimes } from "../schema/datetimes.ts";
import { isAsDeclared } from "../schema/declared.ts";
import type { Declaration } from "../schema/types.ts";
import type { StorageEngine } from "../types.ts";
import type { UnfitInstances } from "./unfit-instances.ts";

interface UnderWay {
  /** Settles when the file can be opened, or is unfit. */
  ended: Promise<void>;
  stopping: AbortController;
}

/** Called with the fields whose datetimes could not all be rewritten. */
export type OnFormer = (instanceId: string, former: readonly FormerDatetimes[]) => void;

/** Migrates large instances in another process before they are opened, because that takes long. [DB310] */
export class InstanceMigrations {
  readonly #engine: StorageEngine;
  readonly #unfit: UnfitInstances;
  readonly #declaration: Declaration;
  readonly #isAsDeclared: (sqlite: Database) => boolean;
  readonly #onFormer: OnFormer;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(
    engine: StorageEngine,
    declaration: Declaration,
    { unfit, onFormer }: { unfit: UnfitInstances; onFormer: OnFormer },
  ) {
    this.#engine = engine;
    this.#onFormer = onFormer;
    this.#unfit = unfit;
    this.#declaration = declaration;
    this.#isAsDeclared = isAsDeclared(declaration.tables);
  }

  /**
   * Resolves when the file, which is not open, can be opened without long work; undefined: now. Errors: 503, the file does not fit
   * the declaration, or its migration takes longer than MIGRATION_WAIT_MS.
   */
  ready(instanceId: string, path: string): Promise<void> | undefined {
    const known = this.#underWay.get(instanceId);
    if (known !== undefined) return this.#waited(known.ended);
    if (!this.#isLongWork(path)) return undefined;
    this.#unfit.refuseKnown(instanceId);
    const stopping = new AbortController();
    const ended = this.#engine
      .migrate({ path, ...this.#declaration }, stopping.signal)
      .then((former) => this.#onFormer(instanceId, former))
      .catch((cause: unknown) => {
        throw isDiskFull(cause) ? insufficientStorage(cause) : this.#unfit.refusal(instanceId, cause);
      })
      .finally(() => this.#underWay.delete(instanceId));
    this.#underWay.set(instanceId, { ended, stopping });
    return this.#waited(ended);
  }

  /** Throws a 503 error while another process migrates the file. */
  refuseUnderWay(instanceId: string): void {
    if (this.#underWay.has(instanceId)) throw changeUnderWay("The instance");
  }

  /** Aborts the migration of the file, whose tables stay as they were. Never rejects. */
  async stop(instanceId: string, reason: Error): Promise<void> {
    const known = this.#underWay.get(instanceId);
    known?.stopping.abort(reason);
    await known?.ended.catch(() => {});
  }

  /**
   * Reports whether opening the file takes a long migration. A file that a crash left with a WAL is opened as usual, with all
   * checks.
   */
  #isLongWork(path: string): boolean {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size <= REWRITTEN_NOW_BYTES_MAX || hasWal(path)) return false;
    try {
      using sqlite = openUnchanged(path);
      return size > MIGRATED_NOW_BYTES_MAX ? !this.#isAsDeclared(sqlite) : hasFormerDatetimes(sqlite);
    } catch {
      // Opening the file reports the problem.
      return false;
    }
  }

  async #waited(ended: Promise<void>): Promise<void> {
    try {
      await within(this.#engine.clock, MIGRATION_WAIT_MS, ended);
    } catch (cause) {
      throw cause instanceof DeadlineError ? changeUnderWay("The instance") : cause;
    }
  }
}

export const changeUnderWay = (what: string): AppError =>
  new AppError(503, `${what} is being changed to what is declared; the request may be sent again`, {
    headers: { "retry-after": "1" },
  });
