import { Database } from "bun:sqlite";
import { closeSync, existsSync, readFileSync, rmSync } from "node:fs";
import type { Clock } from "../../../kernel/clock.ts";
import { type AppError, serverStopping } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { inPhase } from "../../../kernel/observing/request-trace.ts";
import type { TurnBudget } from "../../../kernel/time/turn-budget.ts";
import type { DirectorySync } from "../../disk/directory-sync.ts";
import { FileAudit } from "../audit/file-audit.ts";
import type { AuditSink } from "../audit/types.ts";
import { CapturedFile } from "../capture/captured-file.ts";
import type { CommitCapture, FileCapture } from "../capture/types.ts";
import {
  BUSY_TIMEOUT_MS,
  CACHE_KIB,
  CHECKPOINT_BYTES,
  PAGE_BYTES,
  READ_TIMEOUT_MS,
  STATEMENTS_MAX,
  WAL_BYTES_STOP,
} from "../limits.ts";
import { closeAsItIs } from "../open-unchanged.ts";
import { hasOutboxRows } from "../outbox/rows.ts";
import type { LongRead, LongReads } from "../reads/long-reads.ts";
import { ReadTransaction } from "../reads/read-transaction.ts";
import { StatementCache } from "../reads/statement-cache.ts";
import { SERVER_CALLER } from "../server-caller.ts";
import type {
  ChangeListener,
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
  TableStart,
  Transaction,
} from "../types.ts";
import { Checkpoints } from "../writer/checkpoints.ts";
import { CommitGate, type CommitOrder, type Commits, type GateAnswer } from "../writer/commit-gate.ts";
import { FileFailures } from "../writer/file-failures.ts";
import type { FileWork } from "../writer/file-work.ts";
import { RowCounts } from "../writer/row-counts.ts";
import { isFileError, openError } from "../writer/sqlite-errors.ts";
import { hasPendingTexts, TextIndexer } from "../writer/text-indexer.ts";
import { createWalState, createWalSync, type SyncFile, type WalSync } from "../writer/wal-sync.ts";
import { Writer, type WriterOptions } from "../writer/writer.ts";
import { assertCreatable, assertOpenable, EMPTY_FILE, isEmptyFile, markFile } from "./file-identity.ts";
import { moveLeftWal } from "./left-wal.ts";
import { createFile } from "./new-file.ts";
import { TablePlaces } from "./table-places.ts";

export interface FileDependencies {
  clock: Clock;
  ids: Ids;
  queries: LongReads;
  checkpointer: FileWork;
  indexer: FileWork;
  order: CommitOrder;
  /** Returns why no file takes writes; null: they do. */
  refusal: () => AppError | null;
  /** Bounds the time of all files' transactions in one turn of the event loop. */
  turns: TurnBudget;
  /** Runs indexing slices of all files one at a time. */
  inIndexTurn: <T>(work: () => Promise<T>) => Promise<T>;
  onFailure: (path: string, cause: unknown) => void;
  onClose: () => void;
  /** Called once, when the file fails permanently. */
  onFinal: () => void;
  directories: DirectorySync;
  syncFile: SyncFile | undefined;
  /** Takes the audit entries of all files; absent: nothing is audited. */
  audit: AuditSink | undefined;
  /** Called after each sync that succeeded. */
  onSync: (durationMs: number) => void;
  /** Takes every commit; null: nothing does. */
  capture: CommitCapture | null;
}

interface Opened {
  sqlite: Database;
  gate: CommitGate;
  sync: WalSync;
  /** The descriptor of a file just created from the caller's template; null for any other file. */
  newFileDescriptor: number | null;
  isWalNew: boolean;
  capture: FileCapture | null;
  /** The content with which the file was made, where commits are taken. */
  created: Uint8Array | null;
}

/** Opens `path`, applies all settings, and migrates it. Errors: one that names the path; a new file is removed then. */
function openSqlite(path: string, options: OpenOptions, dependencies: FileDependencies): Opened {
  const { ids, directories, syncFile } = dependencies;
  const isNew = !existsSync(path);
  const isWalNew = !existsSync(`${path}-wal`);
  if (isNew) assertCreatable(path);
  const capture = dependencies.capture?.opening(path) ?? null;
  let newFileDescriptor: number | null = null;
  let sqlite: Database | null = null;
  try {
    if (isNew) newFileDescriptor = createFile(path, options, { ids, migrate: (made) => migrate(made, options) });
    else {
      // A file from a template is not synced before it has its name: after a power cut it may be empty although nothing was lost.
      if (options.template === undefined && isEmptyFile(path)) throw new Error(EMPTY_FILE);
      assertOpenable(path);
    }
    // Read before SQLite opens it: closing a descriptor drops SQLite's locks.
    const created = isNew && capture !== null ? readFileSync(path) : null;
    sqlite = new Database(path, { create: true, readwrite: true });
    const isRewritten = configure(sqlite, options, ids);
    if (!isNew && !isWalNew) moveLeftWal(sqlite, path, { capture, onFailure: dependencies.onFailure });
    if (isWalNew) sqlite.run("PRAGMA synchronous = OFF");
    const opened = sqlite;
    const gate = new CommitGate(opened, { ...dependencies, isRewritten });
    gate.open(() => migrate(opened, options, gate));
    // Creates the WAL if nothing has been read yet.
    sqlite.query("PRAGMA schema_version").get();
    const sync = createWalSync({ databasePath: path, newFileDescriptor, directories, syncFile });
    return { sqlite, gate, sync, newFileDescriptor, isWalNew, capture, created };
  } catch (error) {
    sqlite?.close();
    if (newFileDescriptor !== null) closeSync(newFileDescriptor);
    if (isNew) for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    if (error instanceof MigrationFailure) throw isFileError(error.cause) ? openError(path, error.cause) : error.cause;
    throw openError(path, error);
  }
}

/** Wraps an error of a migration, which is rethrown unchanged. */
class MigrationFailure extends Error {}

function migrate(sqlite: Database, options: OpenOptions, commits?: Commits): void {
  try {
    options.migrate?.(sqlite, commits);
  } catch (cause) {
    throw new MigrationFailure("a migration failed", { cause });
  }
}

/**
 * The WAL is synced off the main thread: see wal-sync.ts. NORMAL keeps the one sync that cannot be done there: that of the
 * header when a WAL restarts, before old frames are overwritten. A new WAL has no old frames, so its first transaction
 * runs without this sync.
 */
const SYNC_BETWEEN_WALS = "PRAGMA synchronous = NORMAL";

/** Sets the connection's options. Returns whether the file has entered WAL mode, which changes its first page outside of a WAL. */
function configure(sqlite: Database, options: OpenOptions, ids: Ids): boolean {
  sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  sqlite.run(`PRAGMA page_size = ${PAGE_BYTES}`);
  markFile(sqlite, ids);
  const [before] = sqlite.query<{ journal_mode: string }, []>("PRAGMA journal_mode").all();
  sqlite.run("PRAGMA journal_mode = WAL");
  sqlite.run(SYNC_BETWEEN_WALS);
  sqlite.run("PRAGMA wal_autocheckpoint = 0");
  sqlite.run(`PRAGMA journal_size_limit = ${CHECKPOINT_BYTES}`);
  sqlite.run("PRAGMA foreign_keys = ON");
  sqlite.run("PRAGMA temp_store = MEMORY");
  sqlite.run(`PRAGMA cache_size = -${options.cacheKiB ?? CACHE_KIB}`);
  return before?.journal_mode !== "wal";
}

/** Begins to take the commits of a file; null: nobody wants them. */
function capturedFile(
  { capture, sync: { descriptor }, ...opened }: Opened,
  how: { frameCount: () => number; onFailure: (cause: unknown) => void },
): CapturedFile | null {
  return capture && new CapturedFile(capture, { ...opened, ...how, descriptor });
}

/** An open file: its connection, its writer, and the ways to read it. */
export class OpenFile implements OpenedFile {
  readonly path: string;
  readonly ready = (): undefined => undefined;
  readonly sqlite: Database;
  readonly #statements: StatementCache;
  readonly #reads: ReadTransaction;
  readonly #counts: RowCounts;
  readonly #gate: CommitGate;
  readonly #writer: Writer;
  readonly #checkpoints: Checkpoints;
  readonly #indexer: TextIndexer;
  readonly #audit: FileAudit | undefined;
  readonly #places: TablePlaces | null;
  readonly #captured: CapturedFile | null;
  readonly #closeSync: () => void;
  readonly #newFileDescriptor: number | null;
  readonly #dependencies: FileDependencies;
  #isWalNew: boolean;
  #readsUnderWay = 0;
  #whenReadsEnd: (() => void)[] = [];
  readonly #ended = new AbortController();
  closing: Promise<void> | null = null;
  #isClosed = false;

  constructor(path: string, options: OpenOptions, dependencies: FileDependencies) {
    this.path = path;
    this.#dependencies = dependencies;
    const opened = openSqlite(path, options, dependencies);
    const { sqlite, gate, newFileDescriptor, isWalNew } = opened;
    this.sqlite = sqlite;
    this.#newFileDescriptor = newFileDescriptor;
    this.#statements = new StatementCache(this.sqlite, options.statementsMax ?? STATEMENTS_MAX);
    this.#reads = new ReadTransaction(this.sqlite, this.#statements);
    this.#gate = gate;
    this.#counts = new RowCounts(this.sqlite, this.#statements, gate.number);
    const { places } = options;
    const { note: onFailure, written: onWritten } = new FileFailures((cause) => dependencies.onFailure(path, cause));
    const walState = createWalState(this.#statements, this.#reads);
    this.#captured = capturedFile(opened, { frameCount: () => walState().frames, onFailure });
    const sync = this.#captured?.noting(opened.sync, dependencies.capture?.durable) ?? opened.sync;
    this.#closeSync = () => sync.close();
    this.#places =
      places === undefined ? null : new TablePlaces(sqlite, { ...places, gate, order: dependencies.order });
    const { audit } = dependencies;
    if (audit !== undefined) {
      this.#audit = new FileAudit(this.sqlite, this.#statements, { sink: audit, ids: dependencies.ids, commits: gate });
    }
    this.#writer = new Writer({
      ...dependencies, // `clock`, `order`, `turns`, `refusal` and `onSync`
      audit: this.#auditOf(audit?.placeOf(path)),
      sqlite: this.sqlite,
      statements: this.#statements,
      counts: this.#counts,
      gate,
      reads: this.#reads,
      sync,
      onChange: this.#announcing(options),
      onCommit: options.onCommit,
      outbox: options.outbox,
      onFailure,
      onWritten,
      onFinal: () => {
        this.#indexer.stopNow();
        dependencies.onFinal();
      },
      onPendingText: () => this.#indexer.wake(),
      mayBegin: () => this.#checkpoints.mayBegin(),
      afterCommit: () => this.#afterCommit(),
    });
    this.#isWalNew = isWalNew;
    const endReads = () => this.#reads.end();
    this.#checkpoints = new Checkpoints({
      wal: () => (this.#isClosed ? { bytes: 0, isMoved: false } : walState()),
      holdWriter: () => this.#writer.hold(),
      checkpoint: (request) => dependencies.checkpointer.checkpoint(path, request),
      restart: (bytesKept) =>
        gate.elsewhere(async (answer) => {
          await gate.observed();
          await dependencies.checkpointer.restartWal(path, bytesKept, answer);
        }, endReads),
      onFailure,
    });
    this.#indexer = new TextIndexer({
      clock: dependencies.clock,
      inTurn: dependencies.inIndexTurn,
      prepare: async () => {
        await dependencies.indexer.ready();
        // A checkpoint leaves out what a slice writes during it, so the WAL could not restart.
        await this.#checkpoints.settled();
      },
      holdWriter: () => this.#writer.hold(),
      indexSome: () =>
        gate.elsewhere(async (answer) => {
          // A slice after a checkpoint of the whole WAL restarts it.
          await gate.observed();
          return dependencies.indexer.indexTexts(path, WAL_BYTES_STOP, answer);
        }, endReads),
      afterSlice: () => {
        this.#checkpoints.watch();
        return this.#checkpoints.settled();
      },
      onFailure,
    });
    if (hasPendingTexts(this.sqlite)) this.#indexer.wake();
    if (options.outbox !== undefined && hasOutboxRows(this.sqlite)) options.outbox.onWaiting();
  }

  #announcing({ onChange }: OpenOptions): ChangeListener {
    return (groups, seqs) => {
      this.#places?.announced(groups, seqs);
      onChange?.(groups, seqs);
    };
  }

  #auditOf(place: string | undefined): WriterOptions["audit"] {
    const { clock } = this.#dependencies;
    if (this.#audit === undefined || place === undefined) return undefined;
    return { log: this.#audit, place, now: () => clock.now() };
  }

  #afterCommit(): void {
    if (this.#isWalNew) this.sqlite.run(SYNC_BETWEEN_WALS);
    this.#isWalNew = false;
    this.#checkpoints.watch();
  }

  /** Whether a sync has failed, after which the file answers nothing until a restart. */
  get isFailed(): boolean {
    return this.#writer.failure !== null;
  }

  /** Whether commits that were taken are not on the disk yet. A closed file has them there. */
  get hasUnsyncedCommits(): boolean {
    return !this.#isClosed && this.#captured?.isSynced === false;
  }

  get waitingWrites(): number {
    return this.#writer.waiting;
  }

  /** Whether nothing waits or runs on this file, so that it can be closed without effect on any caller. */
  get isIdle(): boolean {
    // A failed file stays open until the server restarts.
    if (this.#writer.failure !== null || !this.#writer.isIdle) return false;
    // Entries left in a closed file would reach the audit log only when it is opened again.
    return this.#readsUnderWay === 0 && !this.#checkpoints.isRunning && this.#audit?.isWaiting !== true;
  }

  assertReadable(): void {
    if (this.#isClosed) throw serverStopping();
    if (this.#writer.failure !== null) throw this.#writer.failure;
  }

  query<R = Row>(sql: string): Statement<R> {
    this.#reads.begin();
    return this.#statements.watched<R>(sql);
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
    return inPhase("database", () => this.#writer.write(work));
  }

  commit<T>(work: (tx: Transaction) => Sync<T>): Promise<T> {
    return this.#writer.write(work, { needsSync: false });
  }

  async read(sql: string, params: readonly SqlValue[], options: ReadOptions = {}): Promise<unknown[][]> {
    return (await this.#read(sql, params, { ...options, page: null, decode: (values) => values })).rows;
  }

  readPage<R>(sql: string, params: readonly SqlValue[], options: ReadPageOptions<R>): Promise<ReadResult<R>> {
    return this.#read(sql, params, options);
  }

  async #read<R>(
    sql: string,
    params: readonly SqlValue[],
    options: ReadOptions & Pick<LongRead<R>, "page" | "decode"> & Pick<ReadPageOptions<R>, "highlight" | "rank">,
  ): Promise<ReadResult<R>> {
    const { timeoutMs = READ_TIMEOUT_MS, caller = SERVER_CALLER, signal, page, decode } = options;
    const { highlight = null, rank = null, library = null } = options;
    const statement = { path: this.path, library, sql, params, page, highlight, rank };
    const read = { ...statement, timeoutMs, caller, signal, decode, file: this.sqlite };
    return this.readElsewhere((ended) => this.#dependencies.queries.query({ ...read, ended }));
  }

  async readElsewhere<T>(work: (ended: AbortSignal) => Promise<T>): Promise<T> {
    if (this.closing !== null || this.#isClosed) throw serverStopping();
    this.assertReadable();
    this.#readsUnderWay += 1;
    try {
      const result = await work(this.#ended.signal);
      // If a sync has failed meanwhile, the rows read may not be on the disk.
      this.assertReadable();
      return result;
    } finally {
      this.#noteReadEnd();
    }
  }

  #noteReadEnd(): void {
    this.#readsUnderWay -= 1;
    if (this.#readsUnderWay > 0) return;
    for (const resolve of this.#whenReadsEnd) resolve();
    this.#whenReadsEnd = [];
  }

  rowCount(table: string): number {
    this.assertReadable();
    return this.#counts.get(table);
  }

  tableBytes(table: string): number | null {
    if (this.#isClosed) throw serverStopping();
    return this.#counts.bytes(table);
  }

  tableVersion(table: string): number | null {
    return this.#reads.isInWrite ? null : this.#counts.version(table);
  }

  startOf(...about: Parameters<TablePlaces["start"]>): TableStart | null {
    return this.#places?.start(...about) ?? null;
  }

  /** Checkpoints the WAL and closes the connections of other processes, off the main thread, so that the close itself is short. */
  async prepareClose(): Promise<void> {
    if (this.#writer.failure === null) {
      this.#reads.end();
      this.#audit?.forgetTaken();
      this.#places?.save();
      await this.#gate.observed();
      await this.#checkpoints.runLast();
    }
    await this.#dependencies.queries.forget(this.path);
  }

  async replace(source: string): Promise<void> {
    const { indexer, inIndexTurn } = this.#dependencies;
    // Keeps the file open until the writer is held.
    this.#readsUnderWay += 1;
    await this.#writer.idle();
    const release = this.#writer.hold();
    this.#noteReadEnd();
    try {
      await this.#checkpoints.settled();
      const endReads = () => this.#reads.end();
      const work = async (answer: GateAnswer) => {
        await this.#gate.observed();
        await indexer.replaceContent(this.path, source, answer);
        endReads();
        await this.#captured?.readInTurns();
      };
      await inIndexTurn(() => this.#gate.elsewhere(work, endReads));
    } finally {
      release();
    }
  }

  async end(reason: Error): Promise<void> {
    await this.#writer.idle();
    // Waiting entries would be lost with the file.
    await this.#audit?.requireTaken();
    this.#ended.abort(reason);
    return this.close();
  }

  close(): Promise<void> {
    this.closing ??= this.#close();
    return this.closing;
  }

  async #close(): Promise<void> {
    this.#writer.close();
    await this.#indexer.stop();
    await this.#writer.idle();
    if (this.#readsUnderWay > 0) await new Promise<void>((resolve) => this.#whenReadsEnd.push(resolve));
    await this.prepareClose();
    this.closeNow();
  }

  /** Closes an idle file at once. SQLite checkpoints what is left in the WAL. */
  closeNow(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#indexer.stopNow();
    this.#writer.close();
    this.#reads.refuse(serverStopping());
    // Not awaited: each process does this before its next read, when an instance of this name may be another file.
    void this.#dependencies.queries.forget(this.path);
    this.#audit?.close();
    this.#statements.close();
    this.#gate.close();
    this.#closeSync();
    if (this.#writer.failure === null) {
      // Changes of migrations may still be in the WAL. Closing checkpoints and syncs them.
      if (this.#isWalNew) this.sqlite.run(SYNC_BETWEEN_WALS);
      this.sqlite.close();
      this.#captured?.closed();
    } else {
      closeAsItIs(this.path, this.sqlite);
    }
    if (this.#newFileDescriptor !== null) closeSync(this.#newFileDescriptor);
    this.#dependencies.onClose();
  }
}
