import type { Database } from "bun:sqlite";
import type { Statement } from "../types.ts";
import type { StatementCache } from "./statement-cache.ts";

/**
 * Shares one transaction among the quick reads of one turn of the event loop. It ends with the turn, or before a write begins. A
 * statement outside of a transaction acquires and releases the locks of the WAL with system calls that cost more than a read by id
 * itself. [DB33]
 */
export class ReadTransaction {
  readonly #sqlite: Database;
  readonly #statements: StatementCache;
  readonly #endOfTurn = () => this.end();
  #begin: Statement | null = null;
  #commit: Statement | null = null;
  #isOpen = false;
  #refusal: Error | null = null;

  constructor(sqlite: Database, statements: StatementCache) {
    this.#sqlite = sqlite;
    this.#statements = statements;
  }

  /** Whether a read now would see what a write has not committed yet. */
  get isInWrite(): boolean {
    return !this.#isOpen && this.#sqlite.inTransaction;
  }

  /** Begins the transaction; call it before each quick read. Inside a write, reads use the transaction of the write. */
  begin(): void {
    if (this.#isOpen) return;
    if (this.#refusal !== null) throw this.#refusal;
    if (this.#sqlite.inTransaction) return;
    this.#begin ??= this.#statements.prepare("BEGIN");
    this.#begin.run();
    this.#isOpen = true;
    setImmediate(this.#endOfTurn);
  }

  /** Makes every later read throw `reason`. */
  refuse(reason: Error): void {
    this.#refusal = reason;
    this.end();
  }

  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // SQLite may have ended it after a failed read.
    if (!this.#sqlite.inTransaction) return;
    this.#commit ??= this.#statements.prepare("COMMIT");
    this.#commit.run();
  }
}
