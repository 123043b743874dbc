import type { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { AppError, insufficientStorage, isDiskFull } from "../../kernel/errors.ts";
import { INSTANCE_CACHE_KIB, INSTANCE_STATEMENTS_MAX, SWEEP_DELAY_MS, WAITING_FOR_ROOM_MAX } from "../limits.ts";
import { readMeta, writeMeta } from "../meta.ts";
import type {
  Change,
  DatabaseFile,
  OpenedFile,
  OutboxOptions,
  ReadOptions,
  ReadPageOptions,
  ReadResult,
  Row,
  SqlValue,
  Statement,
  StorageEngine,
  Sync,
  Transaction,
} from "../types.ts";
import { Rehearsal } from "../writer/rehearsal.ts";
import { type InstanceBounds, lacksDescriptors } from "./descriptors.ts";
import { createTemplate } from "./new-file.ts";
import { shortage } from "./sqlite-errors.ts";
import { UnfitInstances } from "./unfit-instances.ts";

export interface InstanceFilesOptions {
  /** The directory of the `INSTANCE.db` files; created with the first of them. */
  directory: string;
  /** Bounds of files open at once. Beyond them the least recently used files are closed. */
  bounds: InstanceBounds;
  migrate(sqlite: Database): void;
  onChange?(instanceId: string, groups: readonly (readonly Change[])[]): void;
  onCommit?(instanceId: string, groups: readonly (readonly Change[])[]): void;
  /** `OpenOptions.outbox` of an instance's file. */
  outbox?(instanceId: string): OutboxOptions | undefined;
  /** Called when a file does not fit the declaration; requests to it are answered with 503. */
  onUnfit?(instanceId: string, cause: Error): void;
}

export interface InstanceFiles {
  exists(instanceId: string): boolean;
  /**
   * The instance's file; null if it does not exist and `create` is false. The result may be kept: it opens the file at its
   * first use, and again if the file was closed since. With `create`, the first use creates the file. A write that fails, or
   * announces no change, does not: `write` is tried on an empty database first, and then runs again on the new file.
   */
  get(instanceId: string, options: { create: boolean }): DatabaseFile | null;
  /** Number of open files. */
  readonly size: number;
  /** The files that are open now, which their use keeps open. */
  openFiles(): DatabaseFile[];
  close(): Promise<void>;
}

/** Work that waits until its instance's file is open. */
interface Waiting {
  /** Begins the work synchronously, so that the file is not idle when this returns. */
  begin(file: OpenedFile): void;
  reject(error: unknown): void;
}

interface OpenInstance {
  file: OpenedFile;
  isClosing: boolean;
  useCount: number;
}

/** One file per instance, opened on demand; the least recently used are closed. Instance ids are validated and contain no path. */
class Instances implements InstanceFiles {
  readonly #engine: StorageEngine;
  readonly #options: InstanceFilesOptions;
  readonly #bounds: InstanceBounds;
  readonly #unfit: UnfitInstances;
  /** In the order of last use. */
  readonly #open = new Map<string, OpenInstance>();
  /** The initial content of a new instance; created for the first one. */
  #template: Uint8Array | null = null;
  #rehearsal: Rehearsal | null = null;
  /** Work that waits for an open file, by instance, in order of arrival. */
  readonly #waiting = new Map<string, Waiting[]>();
  #waitingCount = 0;
  #closingCount = 0;
  #isSweepDue = false;

  constructor(engine: StorageEngine, options: InstanceFilesOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#bounds = options.bounds;
    this.#unfit = new UnfitInstances(engine.clock, options.onUnfit);
  }

  get size(): number {
    return this.#open.size;
  }

  openFiles(): DatabaseFile[] {
    return [...this.#open.keys()].map((id) => new InstanceFile(this, id, this.#pathOf(id)));
  }

  exists(instanceId: string): boolean {
    return this.#open.has(instanceId) || existsSync(this.#pathOf(instanceId));
  }

  get(instanceId: string, options: { create: boolean }): DatabaseFile | null {
    if (!options.create && !this.exists(instanceId)) return null;
    return new InstanceFile(this, instanceId, this.#pathOf(instanceId));
  }

  async close(): Promise<void> {
    for (const instanceId of [...this.#waiting.keys()]) {
      for (const { reject } of this.#takeWaiting(instanceId)) reject(new Error("the server is stopping"));
    }
    await Promise.all([...this.#open.values()].map(({ file }) => file.close()));
    this.#open.clear();
    this.#rehearsal?.close();
    this.#rehearsal = null;
  }

  async write<T>(instanceId: string, work: (tx: Transaction) => Sync<T>): Promise<T> {
    if (!this.exists(instanceId)) {
      this.#rehearsal ??= new Rehearsal(this.#options.migrate);
      const { result, isChange } = this.#rehearsal.run(work);
      if (!isChange) return result;
    }
    return this.withRoom(instanceId, (file) => file.write(work));
  }

  async closeInstance(instanceId: string): Promise<void> {
    await this.#open.get(instanceId)?.file.close();
    this.#open.delete(instanceId);
  }

  /** Uses the file. Waits first if all files that may be open are busy. Errors: 503, too many wait. */
  withRoom<T>(instanceId: string, work: (file: OpenedFile) => Promise<T>): Promise<T> {
    if (this.#isFull && !this.#open.has(instanceId)) this.#makeRoom();
    if (!this.#isFull || this.#open.has(instanceId)) return attempt(() => work(this.use(instanceId)));
    if (this.#waitingCount >= WAITING_FOR_ROOM_MAX) return Promise.reject(this.#tooMany());
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting = { begin: (file) => resolve(attempt(() => work(file))), reject };
      const group = this.#waiting.get(instanceId);
      if (group === undefined) this.#waiting.set(instanceId, [waiting]);
      else group.push(waiting);
      this.#waitingCount += 1;
    });
  }

  /** Opens files with waiting work while there is room, and begins all work that waits for each. */
  #admit(): void {
    for (const instanceId of [...this.#waiting.keys()]) {
      if (this.#isFull) this.#makeRoom();
      if (this.#isFull && !this.#open.has(instanceId)) return;
      try {
        this.use(instanceId);
      } catch (error) {
        for (const waiting of this.#takeWaiting(instanceId)) waiting.reject(error);
      }
    }
  }

  #takeWaiting(instanceId: string): readonly Waiting[] {
    const group = this.#waiting.get(instanceId) ?? [];
    this.#waiting.delete(instanceId);
    this.#waitingCount -= group.length;
    return group;
  }

  /** Returns the open file, now the most recently used. Errors: 503 if all files that may be open are busy, 507. */
  use(instanceId: string): OpenedFile {
    const known = this.#open.get(instanceId);
    if (known !== undefined) {
      known.useCount += 1;
      this.#open.delete(instanceId);
      this.#open.set(instanceId, known);
      return known.file;
    }
    this.#makeRoom();
    if (this.#isFull) throw this.#tooMany();
    const file = this.#openFile(instanceId);
    this.#open.set(instanceId, { file, isClosing: false, useCount: 1 });
    for (const waiting of this.#takeWaiting(instanceId)) waiting.begin(file);
    return file;
  }

  #openFile(instanceId: string): OpenedFile {
    this.#unfit.refuseKnown(instanceId);
    try {
      mkdirSync(this.#options.directory, { recursive: true });
      return this.#engine.open(this.#pathOf(instanceId), {
        migrate: (sqlite) => {
          this.#options.migrate(sqlite);
          assertIdentity(sqlite, instanceId);
        },
        template: () => {
          this.#template ??= createTemplate(this.#options.migrate);
          return this.#template;
        },
        onChange: (groups) => this.#options.onChange?.(instanceId, groups),
        onCommit: (groups) => this.#options.onCommit?.(instanceId, groups),
        outbox: this.#options.outbox?.(instanceId),
        cacheKiB: INSTANCE_CACHE_KIB,
        statementsMax: INSTANCE_STATEMENTS_MAX,
      });
    } catch (error) {
      // Opening a file writes some pages to the disk, even for a read.
      if (isDiskFull(error)) throw insufficientStorage(error);
      throw lacksDescriptors() ? shortage(error) : this.#unfit.refusal(instanceId, error);
    }
  }

  #pathOf(instanceId: string): string {
    return join(this.#options.directory, `${instanceId}.db`);
  }

  /** Makes room for one more file by closing the least recently used ones. A busy file is never closed. */
  #makeRoom(): void {
    const { openMax, overMax, closingMax } = this.#bounds;
    for (const [instanceId, instance] of this.#open) {
      if (this.#open.size - this.#closingCount < openMax) return;
      if (instance.isClosing || !instance.file.isIdle) continue;
      if (this.#closingCount < closingMax) void this.#closeBeside(instanceId, instance);
      else if (this.#open.size >= openMax + overMax) this.#closeNow(instanceId, instance);
      else break;
    }
    // Busy files were skipped. A timer tries them again, in case no other file is opened.
    if (this.#open.size - this.#closingCount < openMax || this.#isSweepDue) return;
    this.#isSweepDue = true;
    this.#engine.clock.after(SWEEP_DELAY_MS, () => {
      this.#isSweepDue = false;
      this.#makeRoom();
      this.#admit();
    });
  }

  get #isFull(): boolean {
    const { openMax, overMax, closingMax } = this.#bounds;
    return this.#open.size >= openMax + overMax + closingMax;
  }

  #tooMany(): AppError {
    return new AppError(503, `Too many database instances are in use (at most ${this.#bounds.openMax})`);
  }

  /** Moves the WAL off the main thread, then closes the file. A use of the file meanwhile keeps it open. */
  async #closeBeside(instanceId: string, instance: OpenInstance): Promise<void> {
    const { useCount } = instance;
    instance.isClosing = true;
    this.#closingCount += 1;
    try {
      await instance.file.prepareClose();
      if (instance.useCount === useCount && instance.file.isIdle) this.#closeNow(instanceId, instance);
    } finally {
      instance.isClosing = false;
      this.#closingCount -= 1;
      // Also if the file has stayed open: waiting work may need another file to be closed.
      this.#admit();
    }
  }

  #closeNow(instanceId: string, instance: OpenInstance): void {
    this.#open.delete(instanceId);
    instance.file.closeNow();
  }
}

/** Turns a synchronous throw of `work` into a rejection. */
async function attempt<T>(work: () => Promise<T>): Promise<T> {
  return work();
}

/** On a case-insensitive file system, two instances could have the same file, and so the same records. */
function assertIdentity(sqlite: Database, instanceId: string): void {
  const owner = readMeta(sqlite, "instance");
  if (owner === null) writeMeta(sqlite, "instance", instanceId);
  else if (owner !== instanceId) {
    throw new AppError(409, `The instance "${instanceId}" has the same file name as "${owner}" on this file system`);
  }
}

/** An instance by its name. If its file was closed to make room, the next use opens it again. */
class InstanceFile implements DatabaseFile {
  readonly #instances: Instances;
  readonly #instanceId: string;
  readonly path: string;

  constructor(instances: Instances, instanceId: string, path: string) {
    this.#instances = instances;
    this.#instanceId = instanceId;
    this.path = path;
  }

  get sqlite(): Database {
    return this.#instances.use(this.#instanceId).sqlite;
  }

  query<R = Row>(sql: string): Statement<R> {
    return this.#instances.use(this.#instanceId).query<R>(sql);
  }

  write<T>(work: (tx: Transaction) => Sync<T>): Promise<T> {
    return this.#instances.write(this.#instanceId, work);
  }

  read(sql: string, params: readonly SqlValue[], options?: ReadOptions): Promise<unknown[][]> {
    return this.#instances.withRoom(this.#instanceId, (file) => file.read(sql, params, options));
  }

  readPage<R>(sql: string, params: readonly SqlValue[], options: ReadPageOptions<R>): Promise<ReadResult<R>> {
    return this.#instances.withRoom(this.#instanceId, (file) => file.readPage(sql, params, options));
  }

  rowCount(table: string): number {
    return this.#instances.use(this.#instanceId).rowCount(table);
  }

  assertReadable(): void {
    this.#instances.use(this.#instanceId).assertReadable();
  }

  tableBytes(table: string): number | null {
    return this.#instances.use(this.#instanceId).tableBytes(table);
  }

  close(): Promise<void> {
    return this.#instances.closeInstance(this.#instanceId);
  }
}

export function createInstanceFiles(engine: StorageEngine, options: InstanceFilesOptions): InstanceFiles {
  return new Instances(engine, options);
}
