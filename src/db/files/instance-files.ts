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
  /** Holds one `INSTANCE.db` for each instance; made with the first of them. */
  directory: string;
  /** Files open at once; beyond it the ones used longest ago are closed. */
  bounds: InstanceBounds;
  migrate(sqlite: Database): void;
  onChange?(instanceId: string, groups: readonly (readonly Change[])[]): void;
  /** Told when a file is found not to fit what is declared; its requests are 503. */
  onUnfit?(instanceId: string, cause: Error): void;
}

export interface InstanceFiles {
  exists(instanceId: string): boolean;
  /**
   * The instance's file; null when there is none and `create` is false. What is returned may be kept: it opens the file
   * at its first use, and again if that was closed in between. With `create`, the file is made at the first use, but by
   * no write that fails, or announces no change: `write` is tried on an empty database first, and runs again on the new file.
   */
  get(instanceId: string, options: { create: boolean }): DatabaseFile | null;
  /** Files open now. */
  readonly size: number;
  close(): Promise<void>;
}

/** What is to be done once its instance's file is open. */
interface Waiting {
  /** Begins the work at once, so that the file is not idle when it returns. */
  begin(file: OpenedFile): void;
  reject(error: unknown): void;
}

interface OpenInstance {
  file: OpenedFile;
  isClosing: boolean;
  useCount: number;
}

/** One file per instance, opened on demand and closed by last use. Instance ids have been checked: no path is in them. */
class Instances implements InstanceFiles {
  readonly #engine: StorageEngine;
  readonly #options: InstanceFilesOptions;
  readonly #bounds: InstanceBounds;
  readonly #unfit: UnfitInstances;
  /** In the order of last use. */
  readonly #open = new Map<string, OpenInstance>();
  /** What a new instance begins with; made for the first of them. */
  #template: Uint8Array | null = null;
  #rehearsal: Rehearsal | null = null;
  /** Work that waits for room, by instance, in the order of arrival. */
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

  /** Uses the file, after a wait while every place is taken by one with work under way. Errors: 503, too many wait. */
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

  /** Opens what is waited for, as long as there is room: all who wait for a file go on with it. */
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

  /** The open file, now the one used last. Errors: 503 when every place is taken by a file with work under way, 507. */
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
        cacheKiB: INSTANCE_CACHE_KIB,
        statementsMax: INSTANCE_STATEMENTS_MAX,
      });
    } catch (error) {
      // Opening takes some pages beside the file, for reading too.
      if (isDiskFull(error)) throw insufficientStorage(error);
      throw lacksDescriptors() ? shortage(error) : this.#unfit.refusal(instanceId, error);
    }
  }

  #pathOf(instanceId: string): string {
    return join(this.#options.directory, `${instanceId}.db`);
  }

  /** Makes room for one more file among those used longest ago; one with work under way is never closed. */
  #makeRoom(): void {
    const { openMax, overMax, closingMax } = this.#bounds;
    for (const [instanceId, instance] of this.#open) {
      if (this.#open.size - this.#closingCount < openMax) return;
      if (instance.isClosing || !instance.file.isIdle) continue;
      if (this.#closingCount < closingMax) void this.#closeBeside(instanceId, instance);
      else if (this.#open.size >= openMax + overMax) this.#closeNow(instanceId, instance);
      else break;
    }
    // Busy ones were passed over: somebody has to come back for them when no new file is asked for.
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

  /** The WAL is moved beside the loop first; whoever uses the file meanwhile keeps it open. */
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
      // Also when the file has stayed open: another may have to be closed for those who wait.
      this.#admit();
    }
  }

  #closeNow(instanceId: string, instance: OpenInstance): void {
    this.#open.delete(instanceId);
    instance.file.closeNow();
  }
}

/** What `work` throws at once is a rejection too. */
async function attempt<T>(work: () => Promise<T>): Promise<T> {
  return work();
}

/** A file system that ignores case would give two instances one file, and each the other's records. */
function assertIdentity(sqlite: Database, instanceId: string): void {
  const owner = readMeta(sqlite, "instance");
  if (owner === null) writeMeta(sqlite, "instance", instanceId);
  else if (owner !== instanceId) {
    throw new AppError(409, `The instance "${instanceId}" cannot be told from "${owner}" by this file system`);
  }
}

/** An instance by its name: whatever is closed for want of room is opened again by the next use. */
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
