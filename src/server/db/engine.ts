import type { Database } from "bun:sqlite";
import { resolve } from "node:path";
import type { Clock } from "../../kernel/clock.ts";
import { type AppError, serverStopping } from "../../kernel/errors.ts";
import { type Ids, systemIds } from "../../kernel/ids.ts";
import { Scheduler } from "../../kernel/time/scheduler.ts";
import { TurnBudget } from "../../kernel/time/turn-budget.ts";
import { createDirectorySync } from "../disk/directory-sync.ts";
import type { AuditSink } from "./audit/types.ts";
import type { CommitCapture } from "./capture/types.ts";
import { OpenFile } from "./files/database-file.ts";
import { DescriptorReserve, descriptorLimit } from "./files/descriptors.ts";
import { KeptFile } from "./files/kept-file.ts";
import { QUERY_PROCESSES_MAX } from "./limits.ts";
import type { Lending } from "./readers/lent-files.ts";
import type { ReaderNotices } from "./readers/shared-page.ts";
import { LongReads } from "./reads/long-reads.ts";
import type { FormerDatetimes } from "./schema/datetimes.ts";
import { MigrationProcess } from "./schema/migration-process.ts";
import type { MigrationRequest } from "./schema/types.ts";
import type { EngineLoad, LastSync, OpenOptions, StorageEngine } from "./types.ts";
import { CommitGate, CommitOrder } from "./writer/commit-gate.ts";
import { FileWork } from "./writer/file-work.ts";
import type { SyncFile } from "./writer/wal-sync.ts";

export interface StorageEngineOptions {
  clock: Clock;
  /** Source of ids. Default systemIds. */
  ids?: Ids;
  /** Long statements that run at once. Default QUERY_PROCESSES_MAX. */
  readWorkers?: number;
  /** Called for errors that no caller gets in full: a failed sync, a full disk, a failed checkpoint or a listener that threw. */
  onFailure?(path: string, cause: unknown): void;
  /** Syncs the WAL. Default fs.fdatasync; tests delay it or make it fail. */
  syncFile?: SyncFile;
  /** Bounds the time of all files' transactions in one turn of the event loop. Tests simulate its clock. */
  turns?: TurnBudget;
  /** Limit of open descriptors. Default: the limit of the process. */
  descriptorLimit?: number;
  /** Takes the audit entries of writes. Absent: nothing is audited. */
  audit?: AuditSink;
  /** Takes every commit of every file. Absent: nothing does. */
  capture?: CommitCapture | undefined;
  /** Tells other processes that read. Absent: there are none. */
  readers?: ReaderNotices | undefined;
  /** Files that readers in other processes have open. Absent: they open none that is closed before a stop. */
  lending?: Lending | undefined;
}

/** Places in the commit order that are reserved for the transactions that migrate one file. */
const MIGRATION_PLACES = 8;

/** All open files of a server, and the processes that they share. No file is accessed before the first `open`. */
class Engine implements StorageEngine {
  readonly clock: Clock;
  readonly descriptorLimit: number;
  readonly turns: TurnBudget;
  readonly #reserve: DescriptorReserve;
  readonly #options: StorageEngineOptions;
  readonly #queries: LongReads;
  readonly #checkpointer: FileWork;
  readonly #migrations: MigrationProcess;
  /** A separate process, so that no instance waits for the file of a namespace. */
  readonly #upgrades: MigrationProcess;
  readonly #order: CommitOrder;
  readonly #directories = createDirectorySync();
  /** A separate process, because a file's writer waits for it. */
  readonly #indexer: FileWork;
  lastSync: LastSync = { at: null, durationMs: null };
  refusal: AppError | null = null;
  readonly lending: Lending | null;
  readonly #indexing = new Scheduler();
  readonly #files = new Map<string, OpenFile>();
  readonly #failedPaths = new Set<string>();
  isStopped = false;

  constructor(options: StorageEngineOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.descriptorLimit = options.descriptorLimit ?? descriptorLimit();
    this.#order = new CommitOrder(options.clock);
    this.lending = options.lending ?? null;
    this.turns = options.turns ?? new TurnBudget();
    this.#order.onVisible = options.readers?.onVisible ?? null;
    this.#reserve = new DescriptorReserve(this.descriptorLimit, options.clock);
    this.#queries = new LongReads({
      clock: options.clock,
      processesMax: options.readWorkers ?? QUERY_PROCESSES_MAX,
    });
    // A separate process, so that long reads never delay a checkpoint.
    this.#checkpointer = new FileWork(options.clock);
    this.#indexer = new FileWork(options.clock);
    this.#migrations = new MigrationProcess(options.clock);
    this.#upgrades = new MigrationProcess(options.clock);
  }

  get lastSeq(): number {
    return this.#order.lastAnnounced;
  }

  get openFiles(): number {
    return this.#files.size;
  }

  get load(): EngineLoad {
    let waitingWrites = 0;
    let failedFiles = 0;
    for (const file of this.#files.values()) {
      waitingWrites += file.waitingWrites;
      if (file.isFailed) failedFiles += 1;
    }
    const { running: runningReads, waiting: waitingReads } = this.#queries;
    return { openFiles: this.openFiles, waitingWrites, runningReads, waitingReads, failedFiles };
  }

  gate(sqlite: Database, { isRewritten }: { isRewritten: boolean }): CommitGate {
    const { clock, ids = systemIds } = this.#options;
    return new CommitGate(sqlite, { order: this.#order, clock, ids, isRewritten });
  }

  keep(path: string): KeptFile {
    const { capture = null, onFailure } = this.#options;
    return new KeptFile(resolve(path), { capture, onFailure: (failed, cause) => onFailure?.(failed, cause) });
  }

  settled(): Promise<void> | null {
    return this.#order.settled();
  }

  paths(): string[] {
    return [...this.#files.keys()];
  }

  open(path: string, options: OpenOptions): OpenFile {
    // Another process may own the directory by now.
    if (this.isStopped) throw serverStopping();
    if (this.refusal !== null) throw this.refusal;
    const absolute = resolve(path);
    // Two writers of one file in one process would block each other.
    if (this.#files.has(absolute)) throw new Error(`the database ${absolute} is open already`);
    const file = this.#reserve.lend(() => this.#openFile(absolute, options));
    this.#files.set(absolute, file);
    return file;
  }

  migrate(request: Omit<MigrationRequest, "place">, signal: AbortSignal): Promise<readonly FormerDatetimes[]> {
    const place = this.#order.take(MIGRATION_PLACES) - MIGRATION_PLACES;
    return this.#migrations.run({ ...request, place }, signal);
  }

  upgrade(request: Omit<MigrationRequest, "place">): Promise<readonly FormerDatetimes[]> {
    const place = this.#order.take(MIGRATION_PLACES) - MIGRATION_PLACES;
    return this.#upgrades.run({ ...request, place }, new AbortController().signal);
  }

  removing(path: string): void {
    this.#options.capture?.removing(resolve(path));
  }

  takePlace(): number {
    return this.#order.take(1);
  }

  async syncCommits(): Promise<readonly string[]> {
    const files = [...this.#files.values()].filter((file) => file.hasUnsyncedCommits);
    // An empty write is answered after a sync of everything before it.
    const outcomes = await Promise.allSettled(files.map((file) => file.write(() => undefined)));
    for (const [index, outcome] of outcomes.entries()) {
      const file = files[index];
      if (outcome.status === "fulfilled" || file === undefined) continue;
      // One that is closing takes no more writes, and has its commits on the disk when it is closed.
      if (file.closing !== null) await file.closing;
      if (file.hasUnsyncedCommits && !file.isFailed) throw outcome.reason;
    }
    return [...this.#failedPaths];
  }

  #openFile(absolute: string, options: OpenOptions): OpenFile {
    return new OpenFile(absolute, options, {
      clock: this.#options.clock,
      ids: this.#options.ids ?? systemIds,
      queries: this.#queries,
      checkpointer: this.#checkpointer,
      indexer: this.#indexer,
      order: this.#order,
      refusal: () => this.refusal,
      turns: this.turns,
      inIndexTurn: (work) => this.#indexing.inTurn(work),
      onFailure: (failedPath, cause) => this.#options.onFailure?.(failedPath, cause),
      onClose: () => this.#files.delete(absolute),
      onFinal: () => {
        this.#failedPaths.add(absolute);
        this.#options.readers?.onFailed();
      },
      capture: this.#options.capture ?? null,
      directories: this.#directories,
      syncFile: this.#options.syncFile,
      audit: this.#options.audit,
      onSync: (durationMs) => {
        this.lastSync = { at: this.#options.clock.now(), durationMs };
      },
    });
  }

  /** Aborts running long reads, so that files close without waiting for their statements. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all([this.#queries.stop(), this.#migrations.stop(), this.#upgrades.stop()]);
    const closed = await Promise.allSettled([...this.#files.values()].map((file) => file.close()));
    await Promise.all([this.#checkpointer.stop(), this.#indexer.stop()]);
    this.#reserve.close();
    const failures = closed.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} databases could not be closed`);
  }
}

export function createStorageEngine(options: StorageEngineOptions): StorageEngine {
  return new Engine(options);
}
