import { Database } from "bun:sqlite";
import { INSTANCE_STATEMENTS_MAX } from "../limits.ts";
import type { Sync, Transaction } from "../types.ts";
import { StatementCache } from "./statement-cache.ts";
import { assertSynchronous, WriteTransaction } from "./write-transaction.ts";

/** An empty database in memory, on which the first write to a file is tried before that file is created. */
export class Rehearsal {
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
      return { result: result as T, isChange: tx.changes.length > 0 || tx.enqueuedCount > 0 };
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
