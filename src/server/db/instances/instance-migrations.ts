import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { AppError, insufficientStorage, isDiskFull } from "../../../kernel/errors.ts";
import { DeadlineError, within } from "../../../kernel/time/deadline.ts";
import { MIGRATED_NOW_BYTES_MAX, MIGRATION_WAIT_MS } from "../limits.ts";
import { hasWal, openUnchanged } from "../open-unchanged.ts";
import { isAsDeclared } from "../schema/declared.ts";
import type { Declaration } from "../schema/types.ts";
import type { StorageEngine } from "../types.ts";
import type { UnfitInstances } from "./unfit-instances.ts";

interface UnderWay {
  /** Settles when the file can be opened, or is unfit. */
  ended: Promise<void>;
  stopping: AbortController;
}

/** Large instances whose tables are changed by another process before they are opened, because that takes long. [DB310] */
export class InstanceMigrations {
  readonly #engine: StorageEngine;
  readonly #unfit: UnfitInstances;
  readonly #declaration: Declaration;
  readonly #isAsDeclared: (sqlite: Database) => boolean;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(engine: StorageEngine, declaration: Declaration, unfit: UnfitInstances) {
    this.#engine = engine;
    this.#unfit = unfit;
    this.#declaration = declaration;
    this.#isAsDeclared = isAsDeclared(declaration.tables);
  }

  /**
   * Resolves when opening the file, which is not open, takes no long work; undefined: now. Errors: 503, the file does not fit
   * what is declared, or its change takes longer than MIGRATION_WAIT_MS.
   */
  ready(instanceId: string, path: string): Promise<void> | undefined {
    const known = this.#underWay.get(instanceId);
    if (known !== undefined) return this.#waited(known.ended);
    if (!this.#isLongWork(path)) return undefined;
    this.#unfit.refuseKnown(instanceId);
    const stopping = new AbortController();
    const ended = this.#engine
      .migrate({ path, ...this.#declaration }, stopping.signal)
      .catch((cause: unknown) => {
        throw isDiskFull(cause) ? insufficientStorage(cause) : this.#unfit.refusal(instanceId, cause);
      })
      .finally(() => this.#underWay.delete(instanceId));
    this.#underWay.set(instanceId, { ended, stopping });
    return this.#waited(ended);
  }

  /** Errors: 503 while another process has the file. */
  refuseUnderWay(instanceId: string): void {
    if (this.#underWay.has(instanceId)) throw underWay();
  }

  /** Ends the change of the file's tables, which stay as they were. Never rejects. */
  async stop(instanceId: string, reason: Error): Promise<void> {
    const known = this.#underWay.get(instanceId);
    known?.stopping.abort(reason);
    await known?.ended.catch(() => {});
  }

  /** A file that a crash has left with a WAL is opened as always, with all its checks. */
  #isLongWork(path: string): boolean {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size <= MIGRATED_NOW_BYTES_MAX || hasWal(path)) return false;
    try {
      using sqlite = openUnchanged(path);
      return !this.#isAsDeclared(sqlite);
    } catch {
      // Opening it says what is wrong.
      return false;
    }
  }

  async #waited(ended: Promise<void>): Promise<void> {
    try {
      await within(this.#engine.clock, MIGRATION_WAIT_MS, ended);
    } catch (cause) {
      throw cause instanceof DeadlineError ? underWay() : cause;
    }
  }
}

const underWay = (): AppError =>
  new AppError(503, "The instance is being changed to what is declared; the request may be sent again", {
    headers: { "retry-after": "1" },
  });
