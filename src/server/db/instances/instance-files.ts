import { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { AppError, insufficientStorage, isDiskFull, notFound } from "../../../kernel/errors.ts";
import type { InstanceBounds } from "../files/descriptors.ts";
import { createTemplate } from "../files/new-file.ts";
import { DELETIONS_KNOWN_MAX, FACTS_AT_ONCE, INSTANCE_CACHE_KIB, INSTANCE_STATEMENTS_MAX } from "../limits.ts";
import { readMeta, writeMeta } from "../meta.ts";
import { openUnchanged } from "../open-unchanged.ts";
import { mayHaveOutboxRows } from "../outbox/rows.ts";
import { StatementCache } from "../reads/statement-cache.ts";
import type { FormerDatetimes } from "../schema/datetimes.ts";
import { declaredMigration } from "../schema/declared.ts";
import type { Declaration } from "../schema/types.ts";
import type { Change, DatabaseFile, OpenedFile, OutboxOptions, StorageEngine, Sync, Transaction } from "../types.ts";
import { type Commits, unnumbered } from "../writer/commit-gate.ts";
import { assertSynchronous, WriteTransaction } from "../writer/write-transaction.ts";
import { CatchingUp, type CatchUp } from "./catching-up.ts";
import { type InstanceCreation, InstanceFile, type InstanceUses } from "./instance-file.ts";
import {
  type InstanceFacts,
  type InstanceQuery,
  instanceFacts,
  isOwnName,
  listInstances,
  removeDatabase,
} from "./instance-listing.ts";
import { changeUnderWay, InstanceMigrations, type OnFormer } from "./instance-migrations.ts";
import { CountedCreations, type InstanceCreations, type InstanceQuota, withinQuota } from "./instance-quota.ts";
import { OpenInstances } from "./open-instances.ts";
import { Replacing, replacing } from "./replacing.ts";
import { UnfitInstances } from "./unfit-instances.ts";

export interface InstanceFilesOptions {
  /** The directory of the `INSTANCE.db` files; created with the first of them. */
  directory: string;
  /** Bounds of files open at once. Beyond them the least recently used files are closed. */
  bounds: InstanceBounds;
  declaration: Declaration;
  onChange?(instanceId: string, groups: readonly (readonly Change[])[], seqs: readonly number[]): void;
  onCommit?(instanceId: string, groups: readonly (readonly Change[])[]): void;
  /** `OpenOptions.outbox` of an instance's file. */
  outbox?(instanceId: string): OutboxOptions | undefined;
  /** Called when a file does not fit the declaration; requests to it are answered with 503. */
  onUnfit?(instanceId: string, cause: Error): void;
  /** Called when the datetimes of a file could not all be rewritten. */
  onFormer?(instanceId: string, former: readonly FormerDatetimes[]): void;
  /** Called when the content of an instance was replaced, before a request to it goes on. */
  onReplace?(instanceId: string): void;
  /** Called when an instance is removed, before another one of its id can be created. */
  onDelete?(instanceId: string): void;
  /**
   * Called when a file was opened, and by `catchUp`. Nothing else uses a file that was opened until the promise resolves. Where it
   * rejects, it is called again by the next use.
   */
  catchUp?: CatchUp | undefined;
  /** Absent: an instance may have any size. */
  quota?: InstanceQuota | undefined;
  /** Absent: nobody counts who creates instances. */
  creations?: InstanceCreations | undefined;
}

export interface InstanceFiles {
  exists(instanceId: string): boolean;
  /**
   * Resolves when the file is open, which it then is for the rest of that turn; undefined: it is open now, or does not exist.
   * Errors: those of `InstanceMigrations.ready`; those of opening it; 503 if all files that may be open are in use for longer than
   * ROOM_WAIT_MS, or too many requests wait.
   */
  ready(instanceId: string): Promise<void> | undefined;
  /** Lists instances by id. Errors: none where there is no instance. */
  list(query: InstanceQuery): Promise<{ instances: InstanceFacts[]; hasMore: boolean }>;
  /**
   * Ends what is under way in the instance, closes and removes its file; resolves when the removal is on disk. false: there is no
   * such instance. Handles from before are answered 404; a write that comes meanwhile waits, and creates a new instance. Errors:
   * 503 while the audit log cannot take its entries.
   */
  delete(instanceId: string): Promise<boolean>;
  /**
   * Replaces the content of an instance by that of the database `source`, in one commit, and makes the instance if it does not exist.
   * Requests to it wait meanwhile, 503 after REPLACE_WAIT_MS. Errors: those of `OpenedFile.replace`; the content is as it was.
   */
  replace(instanceId: string, source: string): Promise<void>;
  /**
   * Returns a handle of the instance's file; null if it does not exist and `create` is false. The handle may be kept: it opens the
   * file at its first use, and again if the file was closed since. With `create`, the first use creates the file. A write that
   * fails, or announces no change, does not: `write` is tried on an empty database first, and then runs again on the new file.
   * `creation`: of an instance that does not exist; by default it counts for nobody, and anybody may open it.
   */
  get(instanceId: string, options: { create: boolean; creation?: InstanceCreation }): DatabaseFile | null;
  /** Number of open files. */
  readonly size: number;
  /** Returns the files that are open now; using them keeps them open. */
  openFiles(): DatabaseFile[];
  openIds(): string[];
  /** Calls `catchUp` with the file of an instance, which stays open meanwhile. Nothing is done where there is no such instance. */
  catchUp(instanceId: string): Promise<void>;
  /** Returns the path of a file that a reader in another process may open now; null: it is not open, or about to be closed. */
  lendable(instanceId: string): string | null;
  /** Reads a file that is not open without opening it, as it is; null: it is open, or does not exist. Errors: those of SQLite. */
  peek<T>(instanceId: string, read: (sqlite: Database) => T): T | null;
  close(): Promise<void>;
}

const ANYBODYS: InstanceCreation = { creator: null, mayCreate() {}, mayOpen() {} };

/** Opens one file per instance, on demand; the least recently used are closed. Instance ids are validated and contain no path. */
class Instances implements InstanceFiles, InstanceUses {
  readonly #engine: StorageEngine;
  readonly #options: InstanceFilesOptions;
  readonly #open: OpenInstances;
  readonly #unfit: UnfitInstances;
  readonly #migrations: InstanceMigrations;
  readonly #migrate: ReturnType<typeof declaredMigration>;
  /** The initial content of a new instance; created for the first one. */
  #template: Uint8Array | null = null;
  #rehearsal: Rehearsal | null = null;
  readonly #deleting = new Map<string, Promise<boolean>>();
  /** Instances whose first writes are under way. */
  readonly #beginning = new Set<string>();
  /** Counts of creations by creator; null: they are not counted. */
  readonly #creating: CountedCreations | null;
  /** Instances without a file, as far as this turn of the event loop has asked. */
  readonly #missing = new Set<string>();
  readonly #deletions = new Deletions();
  readonly #replacing: Replacing;
  readonly #catchingUp: CatchingUp;

  constructor(engine: StorageEngine, options: InstanceFilesOptions) {
    this.#engine = engine;
    this.#options = options;
    const catchingUp = new CatchingUp(options.catchUp);
    this.#catchingUp = catchingUp;
    const isHeld = (id: string) => catchingUp.isHeld(id);
    this.#open = new OpenInstances(engine.clock, options.bounds, {
      openFile: (id) => this.#openFile(id),
      isHeld,
      isLent: (id) => engine.lending?.isLent(this.#pathOf(id)) === true,
      recall: (id) => engine.lending?.recall(this.#pathOf(id)),
    });
    this.#replacing = new Replacing(engine.clock);
    this.#unfit = new UnfitInstances(engine.clock, options.onUnfit);
    const onFormer: OnFormer = (id, former) => options.onFormer?.(id, former);
    this.#migrations = new InstanceMigrations(engine, options.declaration, { unfit: this.#unfit, onFormer });
    this.#migrate = declaredMigration(options.declaration.tables, options.declaration.options);
    const { creations } = options;
    const exists = (id: string) => this.exists(id);
    const deletion = (id: string) => this.#deleting.get(id);
    this.#creating = creations === undefined ? null : new CountedCreations(creations, { exists, deletion });
  }

  get size(): number {
    return this.#open.size;
  }

  openFiles(): DatabaseFile[] {
    return this.#open.ids().map((id) => this.#handle(id, { since: this.#deletions.count, creation: null }));
  }

  openIds(): string[] {
    return this.#open.ids();
  }

  async catchUp(instanceId: string): Promise<void> {
    if (this.exists(instanceId)) await this.withRoom(instanceId, (file) => this.#catchingUp.run(instanceId, file));
  }

  lendable(instanceId: string): string | null {
    // A file that has to catch up with others is used by nobody before it has.
    if (this.#catchingUp.isNeeded || this.#deleting.has(instanceId)) return null;
    if (this.#replacing.done(instanceId) !== undefined || !this.#open.isStaying(instanceId)) return null;
    return this.#pathOf(instanceId);
  }

  peek<T>(instanceId: string, read: (sqlite: Database) => T): T | null {
    if (this.#open.has(instanceId) || !this.exists(instanceId)) return null;
    const sqlite = openUnchanged(this.#pathOf(instanceId));
    try {
      return read(sqlite);
    } finally {
      sqlite.close();
    }
  }

  exists(instanceId: string): boolean {
    if (this.#deleting.has(instanceId)) return false;
    if (this.#open.has(instanceId)) return true;
    if (this.#missing.has(instanceId)) return false;
    if (existsSync(this.#pathOf(instanceId))) return true;
    // A first write asks several times. Only this process makes files, and none without `#openFile`.
    if (this.#missing.size === 0) setImmediate(() => this.#missing.clear());
    this.#missing.add(instanceId);
    return false;
  }

  get(
    instanceId: string,
    { create, creation = ANYBODYS }: { create: boolean; creation?: InstanceCreation },
  ): DatabaseFile | null {
    if (this.exists(instanceId)) return this.#handle(instanceId, { since: this.#deletions.count, creation: null });
    return create ? this.#handle(instanceId, { since: null, creation }) : null;
  }

  /** Returns a handle. `since`: the number of deletions now; null: the instance does not exist. */
  #handle(instanceId: string, was: { since: number | null; creation: InstanceCreation | null }): DatabaseFile {
    return new InstanceFile(this, { instanceId, path: this.#pathOf(instanceId), ...was });
  }

  refuseDeleted(instanceId: string, since: number): void {
    this.#deletions.refuse(instanceId, since);
  }

  async list(query: InstanceQuery): Promise<{ instances: InstanceFacts[]; hasMore: boolean }> {
    const { directory } = this.#options;
    const { ids, hasMore } = await listInstances(directory, query);
    const instances: InstanceFacts[] = [];
    for (let start = 0; start < ids.length; start += FACTS_AT_ONCE) {
      const some = ids.slice(start, start + FACTS_AT_ONCE).filter((id) => !this.#deleting.has(id));
      const facts = await Promise.all(some.map((id) => instanceFacts(directory, id)));
      instances.push(...facts.filter((one) => one !== null));
    }
    return { instances, hasMore };
  }

  async replace(instanceId: string, source: string): Promise<void> {
    const before = this.#replacing.done(instanceId) ?? this.#deleting.get(instanceId)?.catch(() => false);
    if (before !== undefined) {
      await before;
      return this.replace(instanceId, source);
    }
    await this.#replacing.run(instanceId, async () => {
      await this.#engine.lending?.recall(this.#pathOf(instanceId));
      await this.#migrated(instanceId);
      const replace = () => this.#open.withRoom(instanceId, (file) => file.replace(source));
      await (this.exists(instanceId) ? replace() : (this.#creating?.run(instanceId, null, replace) ?? replace()));
      // What is known of its tables is void, and they may be those of an earlier declaration.
      await this.#open.end(instanceId, replacing());
      this.#options.onReplace?.(instanceId);
    });
  }

  async delete(instanceId: string): Promise<boolean> {
    const replaced = this.#replacing.done(instanceId);
    if (replaced !== undefined) await replaced;
    if (this.#mayHaveEntries(instanceId)) await this.#tryToOpen(instanceId);
    const running = this.#deleting.get(instanceId);
    if (running !== undefined) return running.then(() => false);
    if (!this.exists(instanceId)) return false;
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    this.#deleting.set(instanceId, promise);
    // Before the first await: a write that waits for the deletion with an older handle must not create the next instance.
    this.#deletions.add(instanceId);
    const removed = async (): Promise<boolean> => {
      const isRemoved = await this.#remove(instanceId);
      if (isRemoved) {
        this.#options.onDelete?.(instanceId);
        await this.#options.creations?.removed(instanceId);
      }
      return isRemoved;
    };
    removed()
      .finally(() => this.#deleting.delete(instanceId))
      .then(resolve, reject);
    return promise;
  }

  /** Reports whether a file that is not open may have entries, as a crash leaves it. */
  #mayHaveEntries(instanceId: string): boolean {
    return this.exists(instanceId) && !this.#open.has(instanceId) && mayHaveOutboxRows(this.#pathOf(instanceId));
  }

  /** Opens the file, because the audit log takes entries from open files. A file that cannot be opened is removed all the same. */
  async #tryToOpen(instanceId: string): Promise<void> {
    try {
      await this.ready(instanceId);
    } catch {
      // The next use of the file reports the cause.
    }
  }

  async #remove(instanceId: string): Promise<boolean> {
    const path = this.#pathOf(instanceId);
    if (!(await isOwnName(path))) return false;
    const gone = deleted(instanceId);
    await this.#migrations.stop(instanceId, gone);
    await this.#open.end(instanceId, gone);
    this.#unfit.forget(instanceId);
    this.#catchingUp.forget(instanceId);
    this.#engine.removing(path);
    await removeDatabase(path);
    return true;
  }

  async close(): Promise<void> {
    await this.#open.closeAll();
    this.#rehearsal?.close();
    this.#rehearsal = null;
  }

  async write<T>(id: string, creation: InstanceCreation | null, asked: (tx: Transaction) => Sync<T>): Promise<T> {
    const { quota } = this.#options;
    const work = quota === undefined ? asked : withinQuota(quota, asked);
    const replaced = this.#replacing.waited(id);
    if (replaced !== undefined) await replaced;
    const deleting = this.#deleting.get(id);
    // Whether the deletion succeeds or not.
    if (deleting !== undefined) await deleting.catch(() => false);
    if (creation !== null && !this.exists(id)) await creation.mayCreate();
    // Concurrent first writes all belong to a new instance and need no right to open one.
    if (creation !== null && this.exists(id) && !this.#beginning.has(id)) await creation.mayOpen();
    const { turns } = this.#engine;
    while (!(this.exists(id) || turns.hasTime)) await turns.next();
    if (this.exists(id)) return this.withRoom(id, (file) => file.write(work));
    const { result, isChange } = this.#tried(work);
    if (!isChange) return result;
    const create = () => this.withRoom(id, (file) => file.write(work));
    this.#beginning.add(id);
    try {
      return await (this.#creating?.run(id, creation?.creator ?? null, create) ?? create());
    } finally {
      this.#beginning.delete(id);
    }
  }

  /** Tries the first write to an instance. Errors: those of `work`. */
  #tried<T>(work: (tx: Transaction) => Sync<T>): { result: T; isChange: boolean } {
    const { turns } = this.#engine;
    const startedAt = turns.now();
    try {
      this.#rehearsal ??= new Rehearsal(this.#migrate);
      return this.#rehearsal.run(work);
    } finally {
      turns.charge(turns.now() - startedAt);
    }
  }

  closeInstance(instanceId: string): Promise<void> {
    return this.#open.close(instanceId);
  }

  ready(instanceId: string): Promise<void> | undefined {
    if (!this.exists(instanceId)) return undefined;
    const replaced = this.#replacing.waited(instanceId);
    if (replaced !== undefined) return replaced.then(() => this.ready(instanceId));
    const migrated = this.#migrated(instanceId);
    if (migrated !== undefined) return migrated.then(() => this.ready(instanceId));
    const opened = this.#open.whenOpen(instanceId);
    if (!this.#catchingUp.isNeeded) return opened;
    if (opened !== undefined) return opened.then(() => this.ready(instanceId));
    return this.#catchingUp.before(instanceId, this.#open.use(instanceId))?.then(() => this.ready(instanceId));
  }

  #migrated(instanceId: string): Promise<void> | undefined {
    if (this.#open.has(instanceId)) return undefined;
    return this.#migrations.ready(instanceId, this.#pathOf(instanceId));
  }

  /** Uses the file once it is ready. Waits first if all files that may be open are busy. Errors: 503, too many wait. */
  withRoom<T>(instanceId: string, work: (file: OpenedFile) => Promise<T>): Promise<T> {
    if (this.#deleting.has(instanceId)) return Promise.reject(deleted(instanceId));
    const replaced = this.#replacing.waited(instanceId);
    if (replaced !== undefined) return replaced.then(() => this.withRoom(instanceId, work));
    const migrated = this.#migrated(instanceId);
    if (migrated !== undefined) return migrated.then(() => this.withRoom(instanceId, work));
    return this.#open.withRoom(instanceId, (file) => {
      const before = this.#catchingUp.before(instanceId, file);
      return before === undefined ? work(file) : before.then(() => this.withRoom(instanceId, work));
    });
  }

  /** Returns the open file, now the most recently used. Errors: 503 if all files that may be open are busy, 507. */
  use(instanceId: string): OpenedFile {
    if (this.#deleting.has(instanceId)) throw deleted(instanceId);
    const file = this.#open.use(instanceId);
    if (this.#catchingUp.before(instanceId, file) !== undefined) throw changeUnderWay(`The instance "${instanceId}"`);
    return file;
  }

  #openFile(instanceId: string): OpenedFile {
    this.#missing.delete(instanceId);
    // Waiting work may be admitted before the deletion refuses it.
    if (this.#deleting.has(instanceId)) throw deleted(instanceId);
    this.#unfit.refuseKnown(instanceId);
    this.#migrations.refuseUnderWay(instanceId);
    // Checked before a folder is made at a path that leads elsewhere.
    if (this.#engine.refusal !== null) throw this.#engine.refusal;
    try {
      mkdirSync(this.#options.directory, { recursive: true });
      const file = this.#engine.open(this.#pathOf(instanceId), {
        migrate: (sqlite, commits = unnumbered(sqlite)) => {
          this.#migrate(sqlite, commits, (former) => this.#options.onFormer?.(instanceId, former));
          assertIdentity(sqlite, instanceId, commits);
        },
        template: () => {
          this.#template ??= createTemplate(this.#migrate);
          return this.#template;
        },
        onChange: (groups, seqs) => this.#options.onChange?.(instanceId, groups, seqs),
        onCommit: (groups) => this.#options.onCommit?.(instanceId, groups),
        outbox: this.#options.outbox?.(instanceId),
        cacheKiB: INSTANCE_CACHE_KIB,
        statementsMax: INSTANCE_STATEMENTS_MAX,
      });
      this.#catchingUp.begin(instanceId, file);
      return file;
    } catch (error) {
      // Opening a file writes some pages to the disk, even for a read.
      if (isDiskFull(error)) throw insufficientStorage(error);
      throw this.#unfit.refusal(instanceId, error);
    }
  }

  #pathOf(instanceId: string): string {
    return join(this.#options.directory, `${instanceId}.db`);
  }
}

export function createInstanceFiles(engine: StorageEngine, options: InstanceFilesOptions): InstanceFiles {
  return new Instances(engine, options);
}

/**
 * Refuses a file that belongs to another instance: on a case-insensitive file system, two instances could have the same file, and
 * so the same records.
 */
function assertIdentity(sqlite: Database, instanceId: string, commits: Commits): void {
  const owner = readMeta(sqlite, "instance");
  if (owner === null) commits.transaction(() => writeMeta(sqlite, "instance", instanceId));
  else if (owner !== instanceId) {
    throw new AppError(409, `The instance "${instanceId}" has the same file name as "${owner}" on this file system`);
  }
}

/** Remembers recent deletions of instances, so that older handles are refused. */
class Deletions {
  readonly #known = new Map<string, number>();
  /** The number of deletions. */
  count = 0;

  add(instanceId: string): void {
    this.count += 1;
    this.#known.delete(instanceId);
    this.#known.set(instanceId, this.count);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > DELETIONS_KNOWN_MAX) this.#known.delete(oldest);
  }

  /** Refuses a handle obtained when `count` was `since`. Errors: 404 for an instance that was deleted later. */
  refuse(instanceId: string, since: number): void {
    if (this.#known.size === 0) return;
    if ((this.#known.get(instanceId) ?? 0) > since) throw deleted(instanceId);
  }
}

const deleted = (instanceId: string): AppError => notFound(`The instance "${instanceId}" was deleted`);

/** An empty database in memory, on which the first write to a file is tried before that file is created. */
class Rehearsal {
  readonly #sqlite = new Database(":memory:");
  readonly #statements = new StatementCache(this.#sqlite, INSTANCE_STATEMENTS_MAX);

  constructor(migrate: (sqlite: Database) => void) {
    migrate(this.#sqlite);
    this.#sqlite.run("PRAGMA foreign_keys = ON");
  }

  /** Runs `work` and rolls it back. Returns its result and whether it changes anything. Errors: those of `work`. */
  run<T>(work: (tx: Transaction) => Sync<T>): { result: T; isChange: boolean } {
    const tx = new WriteTransaction(this.#sqlite, this.#statements, () => {});
    this.#statements.query("BEGIN").run();
    try {
      const result = work(tx);
      assertSynchronous(result);
      // Sync<T> is T, or never for a promise. A promise was refused above.
      return { result: result as T, isChange: tx.changes.length > 0 || tx.enqueued.length > 0 };
    } finally {
      tx.end();
      if (this.#sqlite.inTransaction) this.#statements.query("ROLLBACK").run();
    }
  }

  close(): void {
    this.#statements.close();
    this.#sqlite.close();
  }
}
