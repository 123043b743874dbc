import type { Database } from "bun:sqlite";
import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Row, Statement } from "../types.ts";

/** The prepared statements of one connection, by SQL text. */
export class StatementCache {
  readonly #sqlite: Database;
  readonly #statements: BoundedMap<string, Statement<unknown>>;
  readonly #kept: Statement<unknown>[] = [];
  #evicted: Statement<unknown>[] = [];

  constructor(sqlite: Database, sizeMax: number) {
    this.#sqlite = sqlite;
    this.#statements = new BoundedMap(sizeMax, (_, statement) => this.#retire(statement));
  }

  query<R = Row>(sql: string): Statement<R> {
    // The row type is the caller's word about its own SQL, as it is in bun:sqlite.
    const known = this.#statements.get(sql) as Statement<R> | undefined;
    if (known !== undefined && !known.isFinalized) return known;
    const statement = this.#sqlite.prepare(sql) as Statement<R>;
    this.#statements.set(sql, statement as Statement<unknown>);
    return statement;
  }

  /** One that nothing pushes out. */
  prepare<R = Row>(sql: string): Statement<R> {
    const statement = this.#sqlite.prepare(sql) as Statement<R>;
    this.#kept.push(statement as Statement<unknown>);
    return statement;
  }

  // Whoever took the statement a moment ago may still be using it in this turn: it is finalised in the next one.
  #retire(statement: Statement<unknown>): void {
    this.#evicted.push(statement);
    if (this.#evicted.length === 1) setImmediate(() => this.#finalizeEvicted());
  }

  #finalizeEvicted(): void {
    for (const statement of this.#evicted) statement.finalize();
    this.#evicted = [];
  }

  close(): void {
    this.#finalizeEvicted();
    // SQLite keeps a file open as long as there is a statement of it.
    for (const statement of [...this.#kept, ...this.#statements.values()]) statement.finalize();
    this.#statements.clear();
  }
}
