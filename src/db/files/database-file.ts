import { Database } from "bun:sqlite";
import { closeSync, existsSync, rmSync } from "node:fs";
import type { Clock } from "../../kernel/clock.ts";
import { isDiskFull } from "../../kernel/errors.ts";
import type { Ids } from "../../kernel/ids.ts";
import {
  BUSY_TIMEOUT_MS,
  CACHE_KIB,
  CHECKPOINT_PAGES,
  PAGE_BYTES,
  READ_TIMEOUT_MS,
  STATEMENTS_MAX,
} from "../limits.ts";
import type { LongRead, LongReads } from "../reads/long-reads.ts";
import { ReadTransaction } from "../reads/read-transaction.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import type {
  OpenedFile,
  OpenOptions,
  PreparedRead,
  ReadOptions,
  ReadPageOptions,
  ReadResult,
  Row,
  SqlValue,
  Statement,
  Sync,
  Transaction,
} from "../types.ts";
import { Checkpoints } from "../writer/checkpoints.ts";
import type { FileWork } from "../writer/file-work.ts";
import { hasPendingTexts } from "../writer/pending-texts.ts";
import { RowCounts } from "../writer/row-counts.ts";
import { StatementCache } from "../writer/statement-cache.ts";
import { TextIndexer } from "../writer/text-indexer.ts";
import { createWalSync, type SyncFile, type WalSync } from "../writer/wal-sync.ts";
import { Writer } from "../writer/writer.ts";
import type { DirectorySync } from "./directory-sync.ts";
import { assertOpenable, markFile, newFileId } from "./file-identity.ts";
import { writeNewFile } from "./new-file.ts";
import { isFileError, openError } from "./sqlite-errors.ts";

export interface FileDependencies {
  clock: Clock;
  ids: Ids;
  queries: LongReads;
  checkpointer: FileWork;
  indexer: FileWork;
  /** Runs slices of indexing one after the other, of whatever file. */
  inIndexTurn: <T>(work: () => Promise<T>) => Promise<T>;
  onFailure: (path: string, cause: unknown) => void;
  onClose: () => void;
  directories: DirectorySync;
  syncFile: SyncFile | undefined;
}

interface Opened {
  sqlite: Database;
  sync: WalSync;
  /** Of a file that was just made from a template; null for any other. */
  newFileDescriptor: number | null;
  /** The WAL was not there before, and has nothing in it yet. */
  isWalNew: boolean;
}

/** Opens `path` with every setting, and migrated. Throws an Error that names the path; a new file is removed again then. */
function openSqlite(path: string, options: OpenOptions, { ids, directories, syncFile }: FileDependencies): Opened {
  const isNew = !existsSync(path);
  const isWalNew = !existsSync(`${path}-wal`);
  const template = isNew ? options.template?.() : undefined;
  let newFileDescriptor: number | null = null;
  let sqlite: Database | null = null;
  try {
    if (template !== undefined) newFileDescriptor = writeNewFile(path, template, newFileId(ids));
    if (!isNew) assertOpenable(path);
    sqlite = new Database(path, { create: true, readwrite: true });
    configure(sqlite, options, ids);
    if (!isNew && !isWalNew) moveLeftWal(sqlite);
    if (isWalNew) sqlite.run("PRAGMA synchronous = OFF");
    migrate(sqlite, options);
    // Makes the WAL where nothing has been read yet.
    sqlite.query("PRAGMA schema_version").get();
    const sync = createWalSync({ databasePath: path, newFileDescriptor, directories, syncFile });
    return { sqlite, sync, newFileDescriptor, isWalNew };
  } catch (error) {
    sqlite?.close();
    if (newFileDescriptor !== null) closeSync(newFileDescriptor);
    // What never was a database of ours leaves no trace.
    if (isNew) for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    if (error instanceof MigrationFailure) throw isFileError(error.cause) ? openError(path, error.cause) : error.cause;
    throw openError(path, error);
  }
}

/**
 * A WAL that a crash or a failed sync has left: what can be read of it need not be on the disk, and later syncs would not
 * put it there. Moving it writes and syncs it anew. Errors: the sync fails.
 */
function moveLeftWal(sqlite: Database): void {
  try {
    sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
  } catch (error) {
    // Without room for it the WAL stays, as it may: it is read where it lies.
    if (!isDiskFull(error)) throw error;
  }
}

/** What a migration has thrown, which is thrown on as it is. */
class MigrationFailure extends Error {}

function migrate(sqlite: Database, options: OpenOptions): void {
  try {
    options.migrate?.(sqlite);
  } catch (cause) {
    throw new MigrationFailure("a migration failed", { cause });
  }
}

/**
 * The WAL is synced beside the loop: see wal-sync.ts. NORMAL keeps the one sync that cannot be had there: of the header
 * when a WAL starts over, before frames of before are overwritten. A new WAL has no such frames, and its first
 * transaction runs without it.
 */
const SYNC_BETWEEN_WALS = "PRAGMA synchronous = NORMAL";

function configure(sqlite: Database, options: OpenOptions, ids: Ids): void {
  const checkpointBytes = (options.checkpointPages ?? CHECKPOINT_PAGES) * PAGE_BYTES;
  sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  sqlite.run(`PRAGMA page_size = ${PAGE_BYTES}`);
  markFile(sqlite, ids);
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run(SYNC_BETWEEN_WALS);
  sqlite.run("PRAGMA wal_autocheckpoint = 0");
  sqlite.run(`PRAGMA journal_size_limit = ${checkpointBytes}`);
  sqlite.run("PRAGMA foreign_keys = ON");
  sqlite.run("PRAGMA temp_store = MEMORY");
  sqlite.run(`PRAGMA cache_size = -${options.cacheKiB ?? CACHE_KIB}`);
  for (const extension of options.extensions ?? []) sqlite.loadExtension(extension);
}

/**
 * Leaves the WAL beside the file, as a crash does: moving it would make a write permanent that was answered with a failure.
 * SQLite moves it when the last connection is closed, unless that one may not write.
 */
function closeAsItIs(path: string, sqlite: Database): void {
  let last: Database | null = null;
  try {
    last = new Database(path, { readonly: true });
    last.query("SELECT count(*) FROM sqlite_schema").get();
  } catch {
    // No descriptor is left for it, say: the WAL is moved then, and the server has said all the same that the write failed.
  }
  sqlite.close();
  last?.close();
}

/** One open file: its connection, its writer, and the ways to read it. */
export class OpenFile implements OpenedFile {
  readonly path: string;
  readonly sqlite: Database;
  readonly #statements: StatementCache;
  readonly #reads: ReadTransaction;
  readonly #counts: RowCounts;
  readonly #writer: Writer;
  readonly #checkpoints: Checkpoints;
  readonly #indexer: TextIndexer;
  readonly #closeSync: () => void;
  readonly #newFileDescriptor: number | null;
  readonly #extensions: readonly string[];
  readonly #dependencies: FileDependencies;
  #isWalNew: boolean;
  #readsUnderWay = 0;
  #whenReadsEnd: (() => void)[] = [];
  #closing: Promise<void> | null = null;
  #isClosed = false;

  constructor(path: string, options: OpenOptions, dependencies: FileDependencies) {
    this.path = path;
    this.#dependencies = dependencies;
    this.#extensions = options.extensions ?? [];
    const { sqlite, sync, newFileDescriptor, isWalNew } = openSqlite(path, options, dependencies);
    this.sqlite = sqlite;
    this.#newFileDescriptor = newFileDescriptor;
    this.#statements = new StatementCache(this.sqlite, options.statementsMax ?? STATEMENTS_MAX);
    this.#reads = new ReadTransaction(this.sqlite, this.#statements);
    this.#counts = new RowCounts(this.sqlite, this.#statements);
    this.#closeSync = () => sync.close();
    const onFailure = (cause: unknown) => dependencies.onFailure(path, cause);
    this.#writer = new Writer({
      path,
      sqlite: this.sqlite,
      statements: this.#statements,
      counts: this.#counts,
      reads: this.#reads,
      sync,
      clock: dependencies.clock,
      onChange: options.onChange,
      onFailure,
      onFinal: () => this.#indexer.stopNow(),
      onPendingText: () => this.#indexer.wake(),
      afterCommit: () => this.#afterCommit(),
    });
    this.#isWalNew = isWalNew;
    const checkpointBytes = (options.checkpointPages ?? CHECKPOINT_PAGES) * PAGE_BYTES;
    this.#checkpoints = new Checkpoints({
      walBytes: () => sync.sizeBytes(),
      checkpointBytes,
      holdWriter: () => this.#writer.hold(),
      checkpoint: () => dependencies.checkpointer.checkpoint(path),
      restart: () => dependencies.checkpointer.restartWal(path, checkpointBytes),
      onFailure,
    });
    this.#indexer = new TextIndexer({
      clock: dependencies.clock,
      inTurn: dependencies.inIndexTurn,
      prepare: async () => {
        await dependencies.indexer.ready();
        // What a slice writes during a checkpoint is not moved by it, and keeps the WAL from starting over.
        await this.#checkpoints.settled();
      },
      holdWriter: () => this.#writer.hold(),
      indexSome: () => dependencies.indexer.indexTexts(path, checkpointBytes),
      afterSlice: () => {
        this.#checkpoints.watch();
        return this.#checkpoints.settled();
      },
      onFailure,
    });
    if (hasPendingTexts(this.sqlite)) this.#indexer.wake();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  #afterCommit(): void {
    if (this.#isWalNew) this.sqlite.run(SYNC_BETWEEN_WALS);
    this.#isWalNew = false;
    this.#checkpoints.watch();
  }

  get waitingWrites(): number {
    return this.#writer.waiting;
  }

  /** Nothing waits or runs on this file: it can be closed without anybody noticing. */
  get isIdle(): boolean {
    // A failed file stays as it is: to be closed and opened again is what a restart does.
    return (
      this.#writer.failure === null && this.#writer.isIdle && this.#readsUnderWay === 0 && !this.#checkpoints.isRunning
    );
  }

  assertReadable(): void {
    if (this.#writer.failure !== null) throw this.#writer.failure;
  }

  query<R = Row>(sql: string): Statement<R> {
    if (this.#isClosed) throw new Error(`query of the closed database ${this.path}`);
    this.#reads.begin();
    return this.#statements.query<R>(sql);
  }

  prepare<R = Row>(sql: string): PreparedRead<R> {
    const statement = this.#statements.prepare<R>(sql);
    const reads = this.#reads;
    return {
      get(...params) {
        reads.begin();
        return statement.get(...params);
      },
      all(...params) {
        reads.begin();
        return statement.all(...params);
      },
    };
  }

  write<T>(work: (tx: Transaction) => Sync<T>): Promise<T> {
    return this.#writer.write(work);
  }

  async read(sql: string, params: readonly SqlValue[], options: ReadOptions = {}): Promise<unknown[][]> {
    return (await this.#read(sql, params, { ...options, page: null, highlight: null, decode: (values) => values }))
      .rows;
  }

  readPage<R>(sql: string, params: readonly SqlValue[], options: ReadPageOptions<R>): Promise<ReadResult<R>> {
    return this.#read(sql, params, options);
  }

  async #read<R>(
    sql: string,
    params: readonly SqlValue[],
    options: ReadOptions & Pick<LongRead<R>, "page" | "decode"> & Pick<ReadPageOptions<R>, "highlight">,
  ): Promise<ReadResult<R>> {
    if (this.#closing !== null || this.#isClosed) throw new Error(`query of the closed database ${this.path}`);
    this.assertReadable();
    const { timeoutMs = READ_TIMEOUT_MS, caller = SERVER_CALLER, highlight = null, signal, page, decode } = options;
    this.#readsUnderWay += 1;
    try {
      const statement = { path: this.path, extensions: this.#extensions, sql, params, page, highlight };
      const result = await this.#dependencies.queries.query({ ...statement, timeoutMs, caller, signal, decode });
      // A sync that has failed meanwhile: what was read may not be on the disk.
      this.assertReadable();
      return result;
    } finally {
      this.#readsUnderWay -= 1;
      if (this.#readsUnderWay === 0) {
        for (const resolve of this.#whenReadsEnd) resolve();
        this.#whenReadsEnd = [];
      }
    }
  }

  rowCount(table: string): number {
    if (this.#isClosed) throw new Error(`query of the closed database ${this.path}`);
    this.assertReadable();
    return this.#counts.get(table);
  }

  tableBytes(table: string): number | null {
    if (this.#isClosed) throw new Error(`query of the closed database ${this.path}`);
    return this.#counts.bytes(table);
  }

  /** Moves the WAL, and closes the connections of others, beside the loop: a close has little left to do then. */
  async prepareClose(): Promise<void> {
    if (this.#writer.failure === null) await this.#checkpoints.runLast();
    await this.#dependencies.queries.forget(this.path);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#writer.close();
    await this.#indexer.stop();
    await this.#writer.idle();
    if (this.#readsUnderWay > 0) await new Promise<void>((resolve) => this.#whenReadsEnd.push(resolve));
    await this.prepareClose();
    this.closeNow();
  }

  /** Closes at once a file that is idle; SQLite moves what the WAL still holds. */
  closeNow(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#indexer.stopNow();
    this.#writer.close();
    this.#reads.end();
    this.#statements.close();
    this.#closeSync();
    if (this.#writer.failure === null) {
      // What migrations wrote may still be in the WAL: closing moves it, with its syncs.
      if (this.#isWalNew) this.sqlite.run(SYNC_BETWEEN_WALS);
      this.sqlite.close();
    } else {
      closeAsItIs(this.path, this.sqlite);
    }
    if (this.#newFileDescriptor !== null) closeSync(this.#newFileDescriptor);
    this.#dependencies.onClose();
  }
}
