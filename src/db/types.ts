import type { Database, Statement as SqliteStatement } from "bun:sqlite";
import type { Clock } from "../kernel/clock.ts";
import type { JsonObject } from "../kernel/json/json.ts";
import type { HighlightRequest, PageBounds, SqlValue } from "./reads/requests.ts";

/** A transaction that returns a promise would commit before its work is done: it does not compile. */
export type Sync<T> = T extends PromiseLike<unknown> ? never : T;

export type { SqlValue };

/** What SQLite gives back: booleans come back as 0 and 1. */
export type Row = Record<string, string | number | bigint | null | Uint8Array>;

/** A prepared statement of bun:sqlite. Use it before the next `await`: one that falls out of the cache is finalised. */
export type Statement<R = Row> = SqliteStatement<R, SqlValue[]>;

/** A reading statement that is good until its file is closed. `get` is null where there is no row. */
export interface PreparedRead<R> {
  get(...params: SqlValue[]): R | null;
  all(...params: SqlValue[]): R[];
}

export interface Change {
  table: string;
  id: string;
  /** Null: the record is new. */
  before: JsonObject | null;
  /** Null: the record is gone. */
  after: JsonObject | null;
}

/** What each write() changed, in the order of commit; called after the sync and before the promises go on. */
export type ChangeListener = (groups: readonly (readonly Change[])[]) => void;

export interface Transaction {
  /** Prepared once per SQL text and kept, in a cache of bounded size per file. */
  query<R = Row>(sql: string): Statement<R>;
  /**
   * Before a record is written whose indexed texts have `length` characters: past what one write indexes itself they are
   * noted, and indexed after the commit, beside the event loop.
   */
  indexText(table: string, id: string, length: number): void;
  /** Says that a record changed, for the row count and the change listener; forgotten when this write is undone. */
  change(change: Change): void;
  /** Runs `work` in a savepoint of its own: a throw undoes it, its changes too, and is thrown on. */
  savepoint<T>(work: () => Sync<T>): T;
}

/** On whose behalf a long read runs. Asked only when a read leaves the main thread: a request need not work it out before. */
export interface ReadCaller {
  /** Callers of one name share their turns. */
  readonly callerName: string;
  /** Fires when nobody waits for the answer any more: that ends the query, and the promise rejects with its reason. */
  readonly signal: AbortSignal | undefined;
  /**
   * Takes over the place of a large page: `release` is called when its answer has been sent, or will not be. Absent: the place
   * ends with the read.
   */
  keepUntilSent?(release: () => void): void;
}

export interface ReadOptions {
  /** How long the query may run, and how long it may wait for its turn before that. Default READ_TIMEOUT_MS. */
  timeoutMs?: number | undefined;
  /** Default SERVER_CALLER. */
  caller?: ReadCaller | undefined;
  /** Ends the query as the caller's own signal does. */
  signal?: AbortSignal | undefined;
}

export interface ReadPageOptions<R> extends ReadOptions {
  /** Ends the result before the row that would make it too large; the first row is always in it. */
  page: PageBounds;
  /** The texts with marks, null where nothing is to be marked, stand behind the values of each row. Default null: none. */
  highlight?: HighlightRequest | null | undefined;
  /** Called for each row as it arrives, so that a large page is decoded over several turns of the event loop. */
  decode: (values: unknown[]) => R;
}

export interface ReadResult<R> {
  rows: R[];
  /** Of all rows; as JSON where there are page bounds. */
  bytes: number;
  /** The page ended before the last row. */
  isCut: boolean;
}

export interface DatabaseFile {
  readonly path: string;
  /** The connection of the main thread. Writes go through `write()` alone; a statement of it keeps the file open. */
  readonly sqlite: Database;
  /** For quick reads on the main thread, which share a snapshot within a turn of the event loop; same cache as in a transaction. */
  query<R = Row>(sql: string): Statement<R>;
  /**
   * Runs `work` in a transaction and resolves with its result when that is on disk; several writes may share one
   * transaction, each in a savepoint. What `work` throws undoes this write alone. Errors: 503 too many waiting, 507 no
   * space left, 503 a sync has failed.
   */
  write<T>(work: (tx: Transaction) => Sync<T>): Promise<T>;
  /**
   * A read that may take long, in another process and on a read-only connection: rows in column order; integers beyond
   * 2^53 lose precision. Errors: 408 after `timeoutMs`, when the query has really ended; 503 when too many wait;
   * QueryError for what SQLite says, and for a result over READ_RESULT_BYTES_MAX.
   */
  read(sql: string, params: readonly SqlValue[], options?: ReadOptions): Promise<unknown[][]>;
  /** The same within the bounds of a page, each row as `decode` gives it. */
  readPage<R>(sql: string, params: readonly SqlValue[], options: ReadPageOptions<R>): Promise<ReadResult<R>>;
  /**
   * For those who read the file on connections of their own, before such a read and after it. Errors: 503 once a sync has
   * failed, as every other way to the file.
   */
  assertReadable(): void;
  /** Rows of a table whose changes are announced by `change()`; 0 for an unknown table. */
  rowCount(table: string): number;
  /** About how many bytes its records have; null where there are more than SIZED_ROWS_MAX. */
  tableBytes(table: string): number | null;
  /** Waits for the writes under way, checkpoints and closes. */
  close(): Promise<void>;
}

export interface OpenOptions {
  /** Runs before the first use; what it throws closes the file again and is thrown on. */
  migrate?(sqlite: Database): void;
  /** The content of a file that does not exist yet, as `serialize()` gives it; `migrate` runs on it as on any. */
  template?(): Uint8Array;
  onChange?: ChangeListener;
  /** Page cache of the main thread's connection. Default CACHE_KIB. */
  cacheKiB?: number;
  /** WAL pages after which a checkpoint runs. Default CHECKPOINT_PAGES. */
  checkpointPages?: number;
  /** Prepared statements that are kept. Default STATEMENTS_MAX. */
  statementsMax?: number;
  /** Paths of loadable extensions, for this connection and for the reading ones. */
  extensions?: readonly string[];
}

/** A file as whoever opened it sees it: it alone may close it. */
export interface OpenedFile extends DatabaseFile {
  /** A reading statement of its own, outside the cache: good until the file is closed. For what every request runs. */
  prepare<R = Row>(sql: string): PreparedRead<R>;
  /** Nothing waits or runs on this file: it can be closed without anybody noticing. */
  readonly isIdle: boolean;
  /** Moves the WAL, and closes the connections of others, beside the loop: `closeNow` has little left to do then. */
  prepareClose(): Promise<void>;
  /** Closes at once a file that is idle. */
  closeNow(): void;
}

/** What an engine has to do at one moment. */
export interface EngineLoad {
  openFiles: number;
  /** Writes that have not begun, of all files. */
  waitingWrites: number;
  /** Statements that run in other processes, and those that wait for one. */
  runningReads: number;
  waitingReads: number;
}

export interface StorageEngine {
  readonly clock: Clock;
  /** File descriptors that this process may have open. */
  readonly descriptorLimit: number;
  /** Opens or makes the file; its directory must exist. Errors name the path and what is wrong. */
  open(path: string, options: OpenOptions): OpenedFile;
  /** Closes every file and ends the query processes. */
  stop(): Promise<void>;
  readonly openFiles: number;
  readonly load: EngineLoad;
}
