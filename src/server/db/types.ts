import type { Database, Statement as SqliteStatement } from "bun:sqlite";
import type { Clock } from "../../kernel/clock.ts";
import type { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { AuditActor } from "../../kernel/observing/request-trace.ts";
import type { TurnBudget } from "../../kernel/time/turn-budget.ts";
import type { AboutChange, AuditedChange } from "./audit/types.ts";
import type { KeptCommits } from "./capture/types.ts";
import type { Actor, Cause, Origin, OutboxRow } from "./outbox/types.ts";
import type { Lending } from "./readers/lent-files.ts";
import type { HighlightRequest, PageBounds, RankRequest, SqlValue } from "./reads/requests.ts";
import type { FormerDatetimes } from "./schema/datetimes.ts";
import type { MigrationRequest } from "./schema/types.ts";
import type { CommitGate, Commits } from "./writer/commit-gate.ts";

/**
 * Type of a result that is no promise. A transaction that returns a promise does not compile, because it would commit before its
 * work is done.
 */
export type Sync<T> = T extends PromiseLike<unknown> ? never : T;

export type { SqlValue };

/** A row as SQLite returns it. Booleans are 0 and 1. */
export type Row = Record<string, string | number | bigint | null | Uint8Array>;

/** A prepared statement of bun:sqlite. */
export type PreparedStatement<R = Row> = SqliteStatement<R, SqlValue[]>;

/** The runs of a prepared statement. Use it before the next `await`, because a statement evicted from the cache is finalised. */
export type Statement<R = Row> = Pick<
  PreparedStatement<R>,
  "get" | "all" | "values" | "iterate" | "run" | "columnNames"
>;

/** A reading statement that is valid until its file is closed. `get` returns null if there is no row. */
export interface PreparedRead<R> {
  get(...params: SqlValue[]): R | null;
  all(...params: SqlValue[]): R[];
}

export interface Change {
  table: string;
  id: string;
  /** The record before the change; null: it is new. */
  before: JsonObject | null;
  /** The record after the change; null: it was deleted. */
  after: JsonObject | null;
}

/**
 * Receives the changes of each write(), in the order of commit. Called after the sync and before the promises resolve. `seqs` are
 * the numbers of each group's first change; each further change of a group has the next number. The numbers are part of the
 * file: they grow with each change of it, across restarts, and no other file of the server has the same ones.
 */
export type ChangeListener = (groups: readonly (readonly Change[])[], seqs: readonly number[]) => void;
/** Receives the changes of each write as soon as they are committed, and before they are on disk. */
export type CommitListener = (groups: readonly (readonly Change[])[]) => void;

export interface Transaction {
  /** Returns the prepared statement of an SQL text, from a bounded cache per file. */
  query<R = Row>(sql: string): Statement<R>;
  /**
   * Plans the indexing of a record whose indexed texts have `length` characters in total. Call before writing it. Texts beyond the
   * limit of one write are marked as pending, and another process indexes them after the commit.
   */
  indexText(table: string, id: string, length: number): void;
  /** The records announced so far by this write. */
  readonly changes: readonly Change[];
  /** Announces a changed record, for the row count and the change listener. Dropped if this write is undone. */
  change(change: Change): void;
  /**
   * Writes a job to the outbox: the queue gets it once this write is on disk, if and only if the write is committed. The file's
   * `OpenOptions.outbox` must be set.
   */
  enqueue(row: OutboxRow): void;
  /**
   * Adds a change to the audit log, in this transaction, where `causedBy` names the audited caller of the current request; `about`
   * is called only then, at once. Records that `change` announces are added automatically.
   */
  audit(about: AboutChange): void;
  /** Adds a change to the audit log whoever the caller is: for sign-ins and factors. */
  auditBy(actor: AuditActor, change: AuditedChange): void;
  /** Names the caller whose request makes this write. Default: the server. */
  causedBy(actor: Actor): void;
  readonly cause: Cause;
  /** Runs `work` in its own savepoint. If it throws, it and its announced changes are undone, and the error is rethrown. */
  savepoint<T>(work: () => Sync<T>): T;
}

/** The caller of a long read. Members are read only when a read leaves the main thread, so a request can compute them lazily. */
export interface ReadCaller {
  /** Callers with the same name share one queue share. */
  readonly callerName: string;
  /** Aborts when the client has disconnected. The query is ended, and the promise rejects with the signal's reason. */
  readonly signal: AbortSignal | undefined;
  /**
   * Takes over the place of a large page. The caller calls `release` when the answer has been sent or is abandoned. Absent:
   * the place ends with the read.
   */
  keepUntilSent?(release: () => void): void;
}

export interface ReadOptions {
  /** Maximum time of the query, and maximum time that it waits in the queue before that. Default READ_TIMEOUT_MS. */
  timeoutMs?: number | undefined;
  /** Caller of the read. Default SERVER_CALLER. */
  caller?: ReadCaller | undefined;
  /** Ends the query, like the caller's signal. */
  signal?: AbortSignal | undefined;
  /** Path of the library whose functions the statement needs. Absent: those of SQLite. */
  library?: string | undefined;
}

export interface ReadPageOptions<R> extends ReadOptions {
  /** Bounds of the result, which ends before the row that would exceed one. The first row is always included. */
  page: PageBounds;
  /** Appends the marked texts to the values of each row, null for a text without marks. Default null: no marks. */
  highlight?: HighlightRequest | null | undefined;
  /** Orders the rows by relevance. Default null: in the order of the statement. */
  rank?: RankRequest | null | undefined;
  /** Called for each row when it arrives, so that a large page is decoded over several turns of the event loop. */
  decode: (values: unknown[]) => R;
}

export interface ReadResult<R> {
  rows: R[];
  /** Size of all rows; as JSON if there are page bounds. */
  bytes: number;
  /** Whether the page ends before the last row. */
  isCut: boolean;
}

/** Start of a log of a table's changes. */
export interface TableStart {
  /** A place after all changes that have been announced, and before all others. */
  place: number;
  /** The place that the log of the last opening had reached, if nothing has changed the table since; null: that is not known. */
  former: number | null;
}

export interface DatabaseFile {
  readonly path: string;
  /**
   * Makes the file readable. Call it before quick reads, and again after each await: resolves when the file can be read, until the
   * end of that turn of the event loop; undefined: now. Only the file of an instance may have to be opened first. Errors: 404, 503.
   */
  ready(): Promise<void> | undefined;
  /** The connection of the main thread. Write only through `write()`. An unfinalised statement keeps the file open. */
  readonly sqlite: Database;
  /**
   * Prepares a quick read on the main thread. Reads share a snapshot within a turn of the event loop. Same cache as in a
   * transaction.
   */
  query<R = Row>(sql: string): Statement<R>;
  /**
   * Runs `work` in a transaction and resolves with its result when the transaction is on disk. Several writes may share one
   * transaction, each in a savepoint. If `work` throws, only this write is undone. Errors: 503 too many waiting, 507 no
   * space left, 503 a sync has failed.
   */
  write<T>(work: (tx: Transaction) => Sync<T>): Promise<T>;
  /**
   * Runs a long read in another process, on a read-only connection. The values of a row are in column order; integers beyond
   * 2^53 lose precision. Errors: 408 after `timeoutMs`, when the query has ended; 503 when too many wait; QueryError for
   * SQLite's errors, and for a result over READ_RESULT_BYTES_MAX.
   */
  read(sql: string, params: readonly SqlValue[], options?: ReadOptions): Promise<unknown[][]>;
  /** Runs a long read like `read`, within the bounds of a page and with each row decoded by `decode`. */
  readPage<R>(sql: string, params: readonly SqlValue[], options: ReadPageOptions<R>): Promise<ReadResult<R>>;
  /**
   * Runs `work`, which reads the file on connections of its own, and keeps the file open until then. `ended` aborts with the file,
   * which waits for `work`. Errors: those of `work`; 503 once a sync has failed, also when that was meanwhile.
   */
  readElsewhere<T>(work: (ended: AbortSignal) => Promise<T>): Promise<T>;
  /**
   * Refuses reads of a failed or closed file. For code that reads it on its own connections: call before and after such a read. Errors: 503
   * once a sync has failed, as for every other access to the file, and when the server stops.
   */
  assertReadable(): void;
  /** Row count of a table whose changes are announced by `change()`; 0 for an unknown table. */
  rowCount(table: string): number;
  /** Approximate size of the table's records in bytes; null for more than SIZED_ROWS_MAX records. */
  tableBytes(table: string): number | null;
  /**
   * Returns the number of a commit of the file since which no commit has changed the table by `change()`: reads at the same version
   * have the same result. null: inside a write, whose changes may be undone.
   */
  tableVersion(table: string): number | null;
  /**
   * Begins a log of the table's changes, and returns where; null: the file keeps no places, or is not open. `isKept`: for clients that may
   * come back; it is begun again, and goes on, before anybody is told of it.
   */
  startOf(table: string, about?: { isKept?: boolean }): TableStart | null;
  /** Waits for running writes, runs a checkpoint and closes. */
  close(): Promise<void>;
}

/** Conditions for places of tables to be the same as before a restart. */
export interface PlacesOptions {
  /** Stands for what else has to be equal. */
  key: string;
  /** Called at the opening with the tables whose places are kept. */
  onKept?(tables: readonly string[]): void;
}

/** Outbox of a file: passes jobs that its writes enqueue to the queue. */
export interface OutboxOptions {
  /** Returns the origin of writes that begin now. */
  origin(): Origin;
  /**
   * Called inside each write that announced changes, after its work, to enqueue the jobs that they trigger. An error that it throws
   * fails the write. Absent: changes of this file trigger nothing.
   */
  onWritten?(tx: Transaction, changes: readonly Change[]): void;
  /** Called when enqueued rows are on disk, and when a file with waiting rows is opened. */
  onWaiting(): void;
}

export interface OpenOptions {
  /**
   * Migrates the file before its first use. If it throws, the file is closed and the error is rethrown. A new file is made in
   * memory first, and `migrate` runs on it there and again when it is opened, so it must be idempotent. It runs its transactions by
   * `commits`, so that they have numbers; absent: the database is in memory, or a copy.
   */
  migrate?(sqlite: Database, commits?: Commits): void;
  /**
   * Returns the initial content of a new file, as from `serialize()`, instead of what `migrate` makes of an empty one. `migrate`
   * also runs on it.
   */
  template?(): Uint8Array;
  onChange?: ChangeListener;
  /** Receives the changes of `onChange` when they are committed: rules can see them, and they may not be on disk yet. */
  onCommit?: CommitListener;
  /** Outbox of the file. Absent: writes must not enqueue jobs. */
  outbox?: OutboxOptions | undefined;
  /** Page cache of the main thread's connection. Default CACHE_KIB. */
  cacheKiB?: number;
  /** Maximum number of cached prepared statements. Default STATEMENTS_MAX. */
  statementsMax?: number;
  /** Keeps the places of tables across restarts: see `DatabaseFile.startOf`. Needs metadata. */
  places?: PlacesOptions | undefined;
}

/** A file as returned to the code that opened it. Only that code may close it. */
export interface OpenedFile extends DatabaseFile {
  /**
   * Runs `work` like `write`, but resolves when the transaction is committed, and requests no sync: a kill of the process does not
   * undo it, but a power failure may, until a later write has been synced. For work that can be repeated.
   */
  commit<T>(work: (tx: Transaction) => Sync<T>): Promise<T>;
  /** Prepares a reading statement outside the cache, valid until the file is closed. For statements that every request runs. */
  prepare<R = Row>(sql: string): PreparedRead<R>;
  /** Whether nothing waits or runs on this file, so that it can be closed without effect on any caller. */
  readonly isIdle: boolean;
  /**
   * Closes the file like `close`, but reads in other processes end and reject with `reason`. The caller begins no writes meanwhile.
   * Errors: 503, and it stays open, while the audit log cannot take its entries. [AL14]
   */
  end(reason: Error): Promise<void>;
  /**
   * Replaces the content by that of the database `source`, in one commit that another process makes; no write begins meanwhile. The
   * caller closes the file then, since what is known of its tables is void. Errors: those of SQLite; the content is as it was.
   */
  replace(source: string): Promise<void>;
  /** Checkpoints the WAL and closes the connections of other processes, off the main thread, so that `closeNow` is short. */
  prepareClose(): Promise<void>;
  /** Closes an idle file at once. */
  closeNow(): void;
}

/** The current load of an engine. */
export interface EngineLoad {
  openFiles: number;
  /** Number of writes of all files that have not begun. */
  waitingWrites: number;
  /** Statements that run in other processes, and statements that wait for a process. */
  runningReads: number;
  waitingReads: number;
  /** Files that answer nothing until a restart, because a sync has failed. */
  failedFiles: number;
}

/** The last sync of any file. */
export interface LastSync {
  /** Milliseconds since 1970; null: there was none since the start. */
  at: number | null;
  durationMs: number | null;
}

export interface StorageEngine {
  readonly clock: Clock;
  /** Files that readers in other processes have open; null: there are no such readers. */
  readonly lending: Lending | null;
  /** Maximum number of open file descriptors of this process. */
  readonly descriptorLimit: number;
  /** Bounds the time that transactions of all files, and trials of first writes, take in one turn of the event loop. */
  readonly turns: TurnBudget;
  /** Opens or creates the file; its directory must exist. Errors name the path and the problem. */
  open(path: string, options: OpenOptions): OpenedFile;
  /**
   * Migrates a file that is not open, in another process, and settles when no process has it open any more. Returns the fields whose
   * datetimes could not all be rewritten. Errors: those of
   * `declaredMigration`, after which the file is unchanged; the reason of `signal`; 503 when too many wait.
   */
  migrate(request: Omit<MigrationRequest, "place">, signal: AbortSignal): Promise<readonly FormerDatetimes[]>;
  /** Migrates the file of a namespace, like `migrate`, in a process of its own. */
  upgrade(request: Omit<MigrationRequest, "place">): Promise<readonly FormerDatetimes[]>;
  /** Whether `stop` has begun, after which no file is opened. */
  readonly isStopped: boolean;
  /** Closes every file and ends the processes of the engine. */
  stop(): Promise<void>;
  readonly openFiles: number;
  readonly load: EngineLoad;
  readonly lastSync: LastSync;
  /**
   * The error with which all files refuse writes, and no file is opened; null: they accept them. Writes that have begun are
   * completed.
   */
  refusal: AppError | null;
  /** Number up to which all changes have been announced to `onChange`; others will have higher ones. */
  readonly lastSeq: number;
  /**
   * Creates the gate of a file that another component has opened in WAL mode, with `sqlite`, and whose transactions other processes
   * make. `isRewritten`: whether the file has just entered that mode.
   */
  gate(sqlite: Database, about: { isRewritten: boolean }): CommitGate;
  /** Begins to take the commits of such a file, before it is opened or made. */
  keep(path: string): KeptCommits;
  /** Resolves when no other process makes a commit, which readers may see before it is noticed here; null: none does. */
  settled(): Promise<void> | null;
  /** Returns the paths of the open files. */
  paths(): string[];
  /** Takes note, for continuous backup, that a closed file is about to be removed. */
  removing(path: string): void;
  /** Takes a place in the order of commits, behind all that have been made. */
  takePlace(): number;
  /**
   * Resolves when all commits made before the call are on the disk: to the paths of the files of which that is not so, since
   * they have failed permanently. Errors: a file refuses writes now.
   */
  syncCommits(): Promise<readonly string[]>;
}
