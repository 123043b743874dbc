import type { Database } from "bun:sqlite";
import type { MaybePromise } from "../../../kernel/maybe-promise.ts";
import type {
  DatabaseFile,
  OpenedFile,
  ReadOptions,
  ReadPageOptions,
  ReadResult,
  Row,
  SqlValue,
  Statement,
  Sync,
  Transaction,
} from "../types.ts";

/** Creation by a write to an instance that did not exist when its handle was obtained. */
export interface InstanceCreation {
  /** The user to whose count the instance is added if this write creates it; null: nobody. */
  creator: string | null;
  /** Checks again the right to create the instance, as its conditions may have changed. Errors: there is none. */
  mayCreate(): MaybePromise<void>;
  /** Checks the right to an instance that another write has created meanwhile. Errors: there is none. */
  mayOpen(): MaybePromise<void>;
}

/** Operations of a namespace on one of its instances. */
export interface InstanceUses {
  /** Refuses handles from before the deletion of the instance: their rights were to another one. Errors: 404. */
  refuseDeleted(instanceId: string, since: number): void;
  use(instanceId: string): OpenedFile;
  /** Runs a write. `creation`: null where the instance existed. */
  write<T>(instanceId: string, creation: InstanceCreation | null, work: (tx: Transaction) => Sync<T>): Promise<T>;
  ready(instanceId: string): Promise<void> | undefined;
  withRoom<T>(instanceId: string, work: (file: OpenedFile) => Promise<T>): Promise<T>;
  closeInstance(instanceId: string): Promise<void>;
}

/** A handle of an instance, by its name. If its file was closed to make room, the next use opens it again. */
export class InstanceFile implements DatabaseFile {
  readonly #instances: InstanceUses;
  readonly #instanceId: string;
  /** The number of deletions when the handle was obtained; null: the instance did not exist. */
  readonly #since: number | null;
  readonly #creation: InstanceCreation | null;
  readonly path: string;

  constructor(
    instances: InstanceUses,
    options: { instanceId: string; path: string; since: number | null; creation: InstanceCreation | null },
  ) {
    const { instanceId, path, since, creation } = options;
    this.#instances = instances;
    this.#instanceId = instanceId;
    this.#since = since;
    this.#creation = creation;
    this.path = path;
  }

  get #id(): string {
    if (this.#since !== null) this.#instances.refuseDeleted(this.#instanceId, this.#since);
    return this.#instanceId;
  }

  ready(): Promise<void> | undefined {
    return this.#instances.ready(this.#id);
  }

  get sqlite(): Database {
    return this.#instances.use(this.#id).sqlite;
  }

  query<R = Row>(sql: string): Statement<R> {
    return this.#instances.use(this.#id).query<R>(sql);
  }

  async write<T>(work: (tx: Transaction) => Sync<T>): Promise<T> {
    return this.#instances.write(this.#id, this.#creation, work);
  }

  async read(sql: string, params: readonly SqlValue[], options?: ReadOptions): Promise<unknown[][]> {
    return this.#instances.withRoom(this.#id, (file) => file.read(sql, params, options));
  }

  async readPage<R>(sql: string, params: readonly SqlValue[], options: ReadPageOptions<R>): Promise<ReadResult<R>> {
    return this.#instances.withRoom(this.#id, (file) => file.readPage(sql, params, options));
  }

  async readElsewhere<T>(work: (ended: AbortSignal) => Promise<T>): Promise<T> {
    return this.#instances.withRoom(this.#id, (file) => file.readElsewhere(work));
  }

  rowCount(table: string): number {
    return this.#instances.use(this.#id).rowCount(table);
  }

  assertReadable(): void {
    this.#instances.use(this.#id).assertReadable();
  }

  tableBytes(table: string): number | null {
    return this.#instances.use(this.#id).tableBytes(table);
  }

  tableVersion(table: string): number | null {
    return this.#instances.use(this.#id).tableVersion(table);
  }

  startOf(): null {
    return null;
  }

  close(): Promise<void> {
    return this.#instances.closeInstance(this.#instanceId);
  }
}
