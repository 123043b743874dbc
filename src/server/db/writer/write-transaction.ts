import type { Database } from "bun:sqlite";
import type { AuditActor } from "../../../kernel/observing/request-trace.ts";
import type { AboutChange, AuditedChange } from "../audit/types.ts";
import { WriteAudits } from "../audit/write-audits.ts";
import { INDEXED_NOW_LENGTH_MAX } from "../limits.ts";
import { insertOutboxRow } from "../outbox/rows.ts";
import { type Actor, type Cause, NO_ORIGIN, type Origin, type OutboxRow, SERVER_ACTOR } from "../outbox/types.ts";
import type { StatementCache } from "../reads/statement-cache.ts";
import type { Change, Row, Statement, Sync, Transaction } from "../types.ts";
import { NOTE_PENDING_TEXT } from "./text-indexer.ts";

/** The view that one write has of the transaction that it shares with other writes. */
export class WriteTransaction implements Transaction {
  readonly changes: Change[] = [];
  readonly #sqlite: Database;
  readonly #statements: StatementCache;
  readonly #onPendingText: () => void;
  readonly #origin: Origin;
  readonly audits: WriteAudits;
  #causedBy: Actor = SERVER_ACTOR;
  readonly #enqueued: Pick<OutboxRow, "id" | "names">[] = [];
  #textLength = 0;
  #depth = 0;
  /** The error of a savepoint that could not be undone; null: none. */
  #undoError: { cause: unknown } | null = null;
  #isOver = false;

  constructor(
    sqlite: Database,
    statements: StatementCache,
    onPendingText: () => void,
    origin: Origin = NO_ORIGIN,
    audits: WriteAudits = new WriteAudits(undefined, null),
  ) {
    this.#sqlite = sqlite;
    this.#statements = statements;
    this.#onPendingText = onPendingText;
    this.#origin = origin;
    this.audits = audits;
  }

  query<R = Row>(sql: string): Statement<R> {
    this.#assertOpen();
    return this.#statements.watched<R>(sql);
  }

  indexText(table: string, id: string, length: number): void {
    this.#assertOpen();
    this.#textLength += length;
    if (this.#textLength <= INDEXED_NOW_LENGTH_MAX) return;
    this.#statements.query(NOTE_PENDING_TEXT).run(table, id);
    this.#onPendingText();
  }

  change(change: Change): void {
    this.#assertOpen();
    this.changes.push(change);
  }

  enqueue(row: OutboxRow): void {
    this.#assertOpen();
    insertOutboxRow(this.#sqlite, this.#statements, row);
    this.#enqueued.push({ id: row.id, names: row.names });
  }

  /** Rows that this write has enqueued. */
  get enqueued(): readonly Pick<OutboxRow, "id" | "names">[] {
    return this.#enqueued;
  }

  causedBy(actor: Actor): void {
    this.#causedBy = actor;
  }

  audit(about: AboutChange): void {
    this.#assertOpen();
    this.audits.note(this.#causedBy, about);
  }

  auditBy(actor: AuditActor, change: AuditedChange): void {
    this.#assertOpen();
    this.audits.noteBy(actor, change);
  }

  get cause(): Cause {
    return { by: this.#causedBy, ...this.#origin };
  }

  savepoint<T>(work: () => Sync<T>): T {
    this.#assertOpen();
    const changesBefore = this.changes.length;
    const enqueuedBefore = this.#enqueued.length;
    const auditsBefore = this.audits.count;
    const name = `"nested${this.#depth}"`;
    this.#statements.query(`SAVEPOINT ${name}`).run();
    this.#depth += 1;
    try {
      const result = work();
      assertSynchronous(result);
      this.#statements.query(`RELEASE ${name}`).run();
      // Sync<T> is T, or never for a promise. A promise was refused above.
      return result as T;
    } catch (error) {
      this.changes.length = changesBefore;
      this.#enqueued.length = enqueuedBefore;
      this.audits.cutTo(auditsBefore);
      // Some errors (no space, a failing disk) end the whole transaction. Then there is no savepoint to roll back to.
      if (this.#sqlite.inTransaction) this.#undo(name);
      throw error;
    } finally {
      this.#depth -= 1;
    }
  }

  #undo(name: string): void {
    try {
      this.#statements.query(`ROLLBACK TO ${name}`).run();
      this.#statements.query(`RELEASE ${name}`).run();
    } catch (cause) {
      this.#undoError ??= { cause };
      throw cause;
    }
  }

  /** Throws if a savepoint could not be undone. Otherwise a part of its work would be committed. */
  assertUndone(): void {
    if (this.#undoError !== null) throw this.#undoError.cause;
  }

  /** Makes every later use throw. Otherwise code that keeps the object after its write would change another write's transaction. */
  end(): void {
    this.#isOver = true;
  }

  #assertOpen(): void {
    if (this.#isOver) throw new Error("a transaction was used after its write() had returned");
  }
}

/** Refuses promises. The type already forbids them, but a cast can hide one, and its write would commit even if it rejects. */
export function assertSynchronous(result: unknown): void {
  if (typeof result === "object" && result !== null && typeof (result as { then?: unknown }).then === "function") {
    throw new TypeError("the function given to write() or savepoint() returned a promise; it must be synchronous");
  }
}
