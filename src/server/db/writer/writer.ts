import type { Database } from "bun:sqlite";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import { AppError, serverStopping } from "../../../kernel/errors.ts";
import type { RequestTrace } from "../../../kernel/observing/request-trace.ts";
import { currentTrace, traced } from "../../../kernel/observing/request-trace.ts";
import type { TurnBudget } from "../../../kernel/time/turn-budget.ts";
import type { FileAudit } from "../audit/file-audit.ts";
import type { AuditText } from "../audit/types.ts";
import { WriteAudits } from "../audit/write-audits.ts";
import {
  SYNC_RETRIES_MAX,
  SYNC_RETRY_MS,
  TRANSACTION_TIME_MAX_MS,
  WAITING_WRITES_MAX,
  WRITES_PER_TRANSACTION_MAX,
} from "../limits.ts";
import type { Origin } from "../outbox/types.ts";
import { jobId, NO_ORIGIN } from "../outbox/types.ts";
import type { ReadTransaction } from "../reads/read-transaction.ts";
import type { StatementCache } from "../reads/statement-cache.ts";
import type { Change, ChangeListener, CommitListener, OutboxOptions, Sync, Transaction } from "../types.ts";
import type { CommitGate, CommitOrder } from "./commit-gate.ts";
import { type DurabilityErrors, DurabilityRefused } from "./durability.ts";
import type { RowCounts } from "./row-counts.ts";
import { asWriteError, durabilityFailure, isFailedSync, isFileError, shortage } from "./sqlite-errors.ts";
import type { WalSync } from "./wal-sync.ts";
import { assertSynchronous, WriteTransaction } from "./write-transaction.ts";

const FAILED_MESSAGE =
  "The disk failed to keep a write: this database answers nothing until the server has been restarted. " +
  "Check the disk first; writes that were answered with success before are on it";

export interface WriterOptions {
  sqlite: Database;
  statements: StatementCache;
  counts: RowCounts;
  gate: CommitGate;
  order: CommitOrder;
  /** Returns why no file takes writes; null: they do. */
  refusal: () => AppError | null;
  reads: ReadTransaction;
  sync: WalSync;
  clock: Clock;
  /** Bounds the time of all files' transactions in one turn of the event loop. */
  turns: TurnBudget;
  onChange: ChangeListener | undefined;
  /** Called with the changes of a transaction as soon as it is committed, and before its sync: readers can see them. */
  onCommit: CommitListener | undefined;
  outbox: OutboxOptions | undefined;
  /** Audit entries of the writes. Absent: the writes of this file are not audited. */
  audit?: { log: FileAudit; place: string; now: () => Millis } | undefined;
  /** Called for a lost transaction, a failed sync, or a listener that threw. */
  onFailure: (cause: unknown) => void;
  /** Called after each commit. */
  onWritten: () => void;
  /** Called when a write has texts to be indexed after its commit. */
  onPendingText: () => void;
  /** Called after each sync that succeeded. */
  onSync?: (durationMs: number) => void;
  /** Called once, when the file fails permanently: see `failure`. */
  onFinal: () => void;
  /** Whether a transaction may begin. Otherwise the writer is held until it may. */
  mayBegin: () => boolean;
  /** Called after each transaction that wrote, to check the length of the WAL. */
  afterCommit: () => void;
}

/**
 * The only writer of a file. Writes of one turn of the event loop share a transaction. Transactions can commit during a
 * sync; the next sync covers all of them. No promise resolves and no change is announced before its sync. [DB1]–[DB12]
 */
export class Writer {
  readonly #options: WriterOptions;
  #queue: PendingWrite[] = [];
  /** Index of the first entry of the queue that still waits. The entries before it are done. */
  #head = 0;
  #unsynced: Commit[] = [];
  #isScheduled = false;
  #isSyncing = false;
  #holds = 0;
  #failure: AppError | null = null;
  /** Why the running sync is slow; null: it is not. */
  #slowness: AppError | null = null;
  #isClosed = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** The error of a permanently failed file; null: the file works. [DB7] */
  get failure(): AppError | null {
    return this.#failure;
  }

  /** Whether no write waits, and every commit is on disk. */
  get isIdle(): boolean {
    return this.waiting === 0 && !this.#isSyncing && this.#unsynced.length === 0 && this.#holds === 0;
  }

  /** Number of writes that have not begun. */
  get waiting(): number {
    return this.#queue.length - this.#head;
  }

  write<T>(work: (tx: Transaction) => Sync<T>, { needsSync = true } = {}): Promise<T> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#isClosed) return Promise.reject(serverStopping());
    const refusal = this.#options.refusal();
    if (refusal !== null) return Promise.reject(refusal);
    if (this.#slowness !== null) return Promise.reject(this.#slowness);
    if (this.waiting >= WAITING_WRITES_MAX) {
      return Promise.reject(new AppError(503, `Too many writes are waiting (at most ${WAITING_WRITES_MAX})`));
    }
    return new Promise<T>((resolve, reject) => {
      // The queue has writes of every result type; `resolve` gets the result of its own `work`.
      const trace = currentTrace();
      // The audit log needs the address now: when the change is written, the client may have left, and its address is no longer
      // known.
      if (this.#options.audit !== undefined && trace !== undefined && trace.actor !== null) trace.requester.address();
      const origin = this.#options.outbox?.origin() ?? NO_ORIGIN;
      const settle = resolve as (result: unknown) => void;
      this.#queue.push({ work, resolve: settle, reject, origin, needsSync, trace });
      this.#schedule();
    });
  }

  /** Prevents transactions from starting until the returned function is called. Committed ones are still synced. */
  hold(): () => void {
    this.#holds += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      this.#schedule();
      this.#noticeIdle();
    };
  }

  idle(): Promise<void> {
    return this.isIdle ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Refuses new writes. Waiting ones are still completed: see `idle`. */
  close(): void {
    this.#isClosed = true;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#holds > 0 || this.waiting === 0) return;
    this.#isScheduled = true;
    // Runs after this turn's I/O callbacks, so that all writes of the turn share the transaction.
    setImmediate(this.#begin);
  }

  readonly #begin = (): void => {
    const { turns, mayBegin, afterCommit, onFailure } = this.#options;
    if (!turns.hasTime) {
      turns.wait(this.#begin);
      return;
    }
    this.#isScheduled = false;
    if (this.#holds > 0 || this.#failure !== null || !mayBegin()) return;
    const startedAt = turns.now();
    this.#transact();
    this.#schedule();
    this.#syncNext();
    try {
      afterCommit();
    } catch (error) {
      onFailure(error);
    }
    this.#noticeIdle();
    turns.charge(turns.now() - startedAt);
  };

  #transact(): void {
    const { sqlite, statements, counts, gate, order, reads } = this.#options;
    const done: DoneWrite[] = [];
    try {
      reads.end();
      statements.query("BEGIN IMMEDIATE").run();
      this.#runWrites(done);
      const groups = done.flatMap(({ outcome }) => (outcome.ok && outcome.changes.length > 0 ? [outcome.changes] : []));
      const successful = done.filter(({ outcome }) => outcome.ok);
      let auditSeq = 0;
      let seqs: readonly number[] = [];
      if (successful.length > 0) {
        auditSeq = this.#insertAudits(done);
        const deltas = counts.write(groups);
        const place = gate.commit(groups.reduce((count, changes) => count + changes.length, 0));
        if (place !== null) seqs = seqsOf(groups, place);
        order.committed(this, seqs[0] ?? null);
        counts.apply(deltas, gate.number);
        this.#options.onWritten();
      } else if (sqlite.inTransaction) {
        statements.query("ROLLBACK").run();
      }
      const needsSync = auditSeq > 0 || successful.some(({ write }) => write.needsSync);
      this.#unsynced.push({ writes: done, groups, seqs, auditSeq, needsSync });
      if (groups.length > 0) this.#noteCommit(groups);
    } catch (error) {
      this.#abandon(done, error);
    }
  }

  /** Inserts the audit entries of the writes. Returns the number of the last row; 0: nothing was audited. */
  #insertAudits(done: readonly DoneWrite[]): number {
    const { audit, clock } = this.#options;
    if (audit === undefined) return 0;
    const entries: AuditText[] = [];
    for (const { outcome } of done) if (outcome.ok && outcome.audits.length > 0) entries.push(...outcome.audits);
    return entries.length === 0 ? 0 : audit.log.insert(entries, clock.now());
  }

  #noteCommit(groups: readonly (readonly Change[])[]): void {
    try {
      this.#options.onCommit?.(groups);
    } catch (error) {
      this.#options.onFailure(error);
    }
  }

  #runWrites(done: DoneWrite[]): void {
    const { clock, sqlite } = this.#options;
    const startedAt = clock.now();
    // A write that is alone in its transaction needs no savepoint: if it fails, the whole transaction is rolled back.
    const isAlone = this.waiting === 1;
    while (done.length < WRITES_PER_TRANSACTION_MAX) {
      const write = this.#queue[this.#head];
      if (write === undefined) break;
      this.#head += 1;
      const isBare = isAlone && done.length === 0;
      // Added before it runs, so that `#abandon` finds the write here and rejects it, whichever statement throws.
      const entry: DoneWrite = { write, outcome: NOT_RUN };
      done.push(entry);
      const outcome = isBare ? this.#runBare(write) : this.#runInSavepoint(write);
      entry.outcome = outcome;
      if (!outcome.ok && (isBare || isFileError(outcome.error) || !sqlite.inTransaction)) {
        if (isBare && !isFileError(outcome.error)) break;
        throw outcome.error;
      }
      if (!sqlite.inTransaction) throw new Error("a write ended the transaction that it shares with others");
      if (clock.now() - startedAt >= TRANSACTION_TIME_MAX_MS) break;
    }
    this.#trimQueue();
  }

  #runBare(write: PendingWrite): Outcome {
    const outcome = this.#call(write);
    if (!outcome.ok && this.#options.sqlite.inTransaction) this.#options.statements.query("ROLLBACK").run();
    return outcome;
  }

  #runInSavepoint(write: PendingWrite): Outcome {
    const { sqlite, statements } = this.#options;
    statements.query(`SAVEPOINT "write"`).run();
    const outcome = this.#call(write);
    if (!sqlite.inTransaction) return outcome;
    if (!outcome.ok) statements.query(`ROLLBACK TO "write"`).run();
    statements.query(`RELEASE "write"`).run();
    return outcome;
  }

  #call(write: PendingWrite): Outcome {
    const { sqlite, statements, onPendingText, outbox, audit } = this.#options;
    const audits = new WriteAudits(write.trace, audit ?? null);
    const tx = new WriteTransaction(sqlite, statements, onPendingText, write.origin, audits);
    try {
      // Rules that the write evaluates count for its own request, whichever request has begun the transaction.
      const result = traced(write.trace, write.work, tx);
      assertSynchronous(result);
      if (tx.changes.length > 0) outbox?.onWritten?.(tx, tx.changes);
      tx.assertUndone();
      if (write.trace !== undefined) this.#noteSteps(write.trace, tx);
      audits.noteChanges(tx.cause.by, tx.changes);
      return { ok: true, result, changes: tx.changes, hasEnqueued: tx.enqueued.length > 0, audits: audits.entries() };
    } catch (error) {
      return { ok: false, error };
    } finally {
      tx.end();
    }
  }

  /** Adds what a write has changed and enqueued to the steps of its request. */
  #noteSteps(trace: RequestTrace, { changes, enqueued }: WriteTransaction): void {
    trace.rows += changes.length;
    if (changes.length > 0) trace.steps.write(this.#options.sqlite.filename, changes);
    for (const { id, names } of enqueued)
      for (const [index, name] of names.entries()) trace.steps.job(name, jobId(id, index));
  }

  #trimQueue(): void {
    // After each transaction, as the closures of finished writes keep their records in memory.
    this.#queue.splice(0, this.#head);
    this.#head = 0;
  }

  /** Handles a lost transaction: its writes fail. If it could not begin, the writes that were to be in it fail. */
  #abandon(done: readonly DoneWrite[], cause: unknown): void {
    const { sqlite, onFailure } = this.#options;
    onFailure(cause);
    try {
      if (sqlite.inTransaction) sqlite.run("ROLLBACK");
    } catch (rollbackError) {
      onFailure(rollbackError);
    }
    const outcome: Outcome = { ok: false, error: asWriteError(cause) };
    const writes = done.map((entry) => (hasOwnError(entry.outcome) ? entry : { ...entry, outcome }));
    if (done.length === 0) {
      for (const write of this.#queue.slice(this.#head, this.#head + WRITES_PER_TRANSACTION_MAX)) {
        writes.push({ write, outcome });
      }
      this.#head += writes.length;
    }
    this.#trimQueue();
    this.#unsynced.push({ writes, groups: [], seqs: [], auditSeq: 0, needsSync: false });
    // If the transaction cannot be undone, reads on this connection would see its changes.
    if (isFailedSync(cause) || sqlite.inTransaction) this.#fail(cause, []);
  }

  #syncNext(): void {
    if (this.#isSyncing || this.#unsynced.length === 0) return;
    const commits = this.#unsynced;
    this.#unsynced = [];
    if (!commits.some(({ needsSync }) => needsSync)) {
      this.#settle(commits);
      return;
    }
    this.#isSyncing = true;
    this.#sync(commits, SYNC_RETRIES_MAX);
  }

  #sync(commits: readonly Commit[], retriesLeft: number): void {
    const { sync, clock, onSync } = this.#options;
    const startedAt = clock.now();
    const done = (error: Error | null): void => {
      if (error !== null && retriesLeft > 0 && durabilityFailure(error) === "slow") {
        this.#slowness = shortage(error);
        clock.after(SYNC_RETRY_MS, () => this.#sync(commits, retriesLeft - 1));
        return;
      }
      this.#slowness = null;
      this.#isSyncing = false;
      if (error !== null) {
        this.#options.onFailure(error);
        this.#fail(error, commits);
      } else if (this.#failure !== null) {
        this.#fail(this.#failure, commits);
      } else {
        onSync?.(clock.now() - startedAt);
        this.#settle(commits);
      }
      this.#syncNext();
      this.#noticeIdle();
    };
    sync.run(done, (errors) => this.#doubt(commits, errors));
  }

  /** Answers what waits, and refuses what comes: what is committed may still become durable, and is announced then. [CLU41] */
  #doubt(commits: readonly Commit[], { committed, refused }: DurabilityErrors): void {
    this.#slowness = refused;
    for (const { writes } of [...commits, ...this.#unsynced]) {
      for (const { write, outcome } of writes) write.reject(outcome.ok ? committed : outcome.error);
    }
    for (const write of this.#queue.slice(this.#head)) write.reject(refused);
    this.#queue = [];
    this.#head = 0;
  }

  #settle(commits: readonly Commit[]): void {
    const groups = commits.flatMap((commit) => commit.groups);
    if (groups.length > 0) {
      const { order } = this.#options;
      order.announced(this, this.#unsynced.find(({ seqs }) => seqs.length > 0)?.seqs[0] ?? null);
      try {
        this.#options.onChange?.(
          groups,
          commits.flatMap((commit) => commit.seqs),
        );
      } catch (error) {
        this.#options.onFailure(error);
      }
    }
    for (const { writes } of commits) {
      for (const { write, outcome } of writes) {
        if (outcome.ok) write.resolve(outcome.result);
        else write.reject(outcome.error);
      }
    }
    const hasEnqueued = commits.some(({ writes }) => writes.some(({ outcome }) => outcome.ok && outcome.hasEnqueued));
    if (hasEnqueued) this.#options.outbox?.onWaiting();
    const auditSeq = Math.max(...commits.map((commit) => commit.auditSeq));
    if (auditSeq > 0) this.#options.audit?.log.settled(auditSeq);
  }

  /**
   * Fails the file permanently. After a failed sync, the kernel may have dropped the pages: a later successful sync would prove
   * nothing, and the content of the page cache may not be on the disk.
   */
  #fail(cause: unknown, commits: readonly Commit[]): void {
    const errors = cause instanceof DurabilityRefused ? cause.errors : null;
    if (this.#failure === null) {
      this.#failure = errors?.refused ?? new AppError(503, FAILED_MESSAGE, { cause });
      this.#options.reads.refuse(this.#failure);
      this.#options.onFinal();
    }
    const failure = this.#failure;
    const committed = errors?.committed ?? failure;
    for (const { writes } of [...commits, ...this.#unsynced]) {
      for (const { write, outcome } of writes) write.reject(hasOwnError(outcome) ? outcome.error : committed);
    }
    for (const write of this.#queue.slice(this.#head)) write.reject(failure);
    this.#unsynced = [];
    this.#queue = [];
    this.#head = 0;
  }

  #noticeIdle(): void {
    if (!this.isIdle) return;
    const waiting = this.#whenIdle;
    this.#whenIdle = [];
    for (const resolve of waiting) resolve();
  }
}

/** Returns the number of each group's first change: the changes of a commit take the places up to `place`, in their order. */
function seqsOf(groups: readonly (readonly Change[])[], place: number): number[] {
  const seqs: number[] = [];
  let next = place + 1;
  for (const changes of groups.toReversed()) {
    next -= changes.length;
    seqs.push(next);
  }
  return seqs.reverse();
}

/** Reports whether a write failed by its own error. It is rejected with that error and not with the transaction's. */
function hasOwnError(outcome: Outcome): outcome is { ok: false; error: unknown } {
  return !outcome.ok && !isFileError(outcome.error);
}

export interface PendingWrite {
  work: (tx: Transaction) => unknown;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
  origin: Origin;
  needsSync: boolean;
  /** The request that makes this write. */
  trace: RequestTrace | undefined;
}

export type Outcome =
  | { ok: true; result: unknown; changes: readonly Change[]; hasEnqueued: boolean; audits: readonly AuditText[] }
  | { ok: false; error: unknown };

export interface DoneWrite {
  write: PendingWrite;
  outcome: Outcome;
}

/** The outcome of a write that has not run yet. If the transaction fails, such a write fails with it, like a successful one. */
const NOT_RUN: Outcome = { ok: true, result: undefined, changes: [], hasEnqueued: false, audits: [] };

/** A committed transaction that waits for its sync. */
export interface Commit {
  writes: readonly DoneWrite[];
  groups: readonly (readonly Change[])[];
  /** The number of the first change of each group. */
  seqs: readonly number[];
  /** The number of the last row of audit entries; 0: it has none. */
  auditSeq: number;
  /** Whether the commit needs a sync. False: all writes failed, or none of them has to be on disk. */
  needsSync: boolean;
}
