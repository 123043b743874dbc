import { statSync } from "node:fs";
import { pause } from "../../../kernel/clock.ts";
import type { AppError } from "../../../kernel/errors.ts";
import { DeadlineError, within } from "../../../kernel/time/deadline.ts";
import { MIGRATED_NOW_BYTES_MAX, MIGRATION_WAIT_MS, UPGRADE_RETRY_MS } from "../limits.ts";
import { type FormerDatetimes, hasFormerDatetimes } from "../schema/datetimes.ts";
import { declaredMigration } from "../schema/declared.ts";
import type { Declaration, DeclaredOptions } from "../schema/types.ts";
import type { DatabaseFile, OpenedFile, OpenOptions, StorageEngine, Sync, Transaction } from "../types.ts";
import { InstanceFile, type InstanceUses } from "./instance-file.ts";
import { changeUnderWay } from "./instance-migrations.ts";

interface UpgradeOptions extends Omit<OpenOptions, "migrate" | "template"> {
  declaration: Declaration;
  /** Runs as `DeclaredOptions.first`; not part of the declaration, which another process gets. */
  first?: DeclaredOptions["first"];
  /** Called with the fields whose datetimes could not all be rewritten. */
  onFormer(former: readonly FormerDatetimes[]): void;
  /** Called when the datetimes could not be rewritten; it is tried again. */
  onFailure(cause: unknown): void;
}

/**
 * Opens the file of a namespace and migrates its tables. The datetimes of a large file of 0.2 are rewritten by another process, for
 * which requests to the file wait; all others are rewritten at once. Errors: those of `StorageEngine.open`. [TB685]
 */
export function openUpgraded(engine: StorageEngine, path: string, options: UpgradeOptions): DatabaseFile {
  const { declaration, first, onFormer, onFailure: _, ...open } = options;
  const { tables, options: declared } = declaration;
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const isLarge = size > MIGRATED_NOW_BYTES_MAX;
  const made = first === undefined ? {} : { first };
  const migrate = declaredMigration(tables, { ...declared, ...made, datetimes: isLarge ? "later" : "now" });
  const opened = () => engine.open(path, { ...open, migrate: (sqlite, commits) => migrate(sqlite, commits, onFormer) });
  const file = opened();
  if (!isLarge || !hasFormerDatetimes(file.sqlite)) return file;
  // Nothing has used it yet, and no other process may write to an open file.
  file.closeNow();
  const upgrade = new Upgrade(engine, path, { ...options, opened });
  return new InstanceFile(upgrade, { instanceId: path, path, since: null, creation: null });
}

/** A file that another process rewrites, and that is open afterwards. */
class Upgrade implements InstanceUses {
  readonly #engine: StorageEngine;
  readonly #path: string;
  readonly #options: UpgradeOptions & { opened: () => OpenedFile };
  #file: OpenedFile | null = null;
  #ended: Promise<void>;
  #isClosed = false;

  constructor(engine: StorageEngine, path: string, options: UpgradeOptions & { opened: () => OpenedFile }) {
    this.#engine = engine;
    this.#path = path;
    this.#options = options;
    this.#ended = this.#run();
  }

  /** Rewrites the file, until it has succeeded. */
  async #run(): Promise<void> {
    const { declaration, opened, onFormer, onFailure } = this.#options;
    while (!this.#isClosed) {
      try {
        const former = await this.#engine.upgrade({ path: this.#path, ...declaration });
        this.#file = opened();
        if (former.length > 0) onFormer(former);
        return;
      } catch (cause) {
        // The server stops: the next one rewrites the file.
        if (this.#engine.isStopped) return;
        onFailure(cause);
      }
      await pause(this.#engine.clock, UPGRADE_RETRY_MS);
    }
  }

  refuseDeleted(): void {}

  ready(): Promise<void> | undefined {
    return this.#file === null ? this.#waited() : undefined;
  }

  use(): OpenedFile {
    if (this.#file === null) throw underWay();
    return this.#file;
  }

  async write<T>(_id: string, _creation: null, work: (tx: Transaction) => Sync<T>): Promise<T> {
    await this.ready();
    return this.use().write(work);
  }

  async withRoom<T>(_id: string, work: (file: OpenedFile) => Promise<T>): Promise<T> {
    await this.ready();
    return work(this.use());
  }

  async closeInstance(): Promise<void> {
    this.#isClosed = true;
    await this.#file?.close();
  }

  async #waited(): Promise<void> {
    try {
      await within(this.#engine.clock, MIGRATION_WAIT_MS, this.#ended);
    } catch (cause) {
      throw cause instanceof DeadlineError ? underWay() : cause;
    }
  }
}

const underWay = (): AppError => changeUnderWay("The file of these tables");
