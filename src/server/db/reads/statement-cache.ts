import type { Database } from "bun:sqlite";
import { BoundedMap } from "../../../kernel/bounded-map.ts";
import { currentSteps } from "../../../kernel/observing/request-trace.ts";
import type { PreparedStatement, Row, Statement } from "../types.ts";
import { watchedStatement } from "./watched-statement.ts";

/** LRU of the prepared statements of one connection, by SQL text. */
export class StatementCache {
  readonly #sqlite: Database;
  readonly #statements: BoundedMap<string, PreparedStatement<unknown>>;
  readonly #kept: PreparedStatement<unknown>[] = [];
  #evicted: PreparedStatement<unknown>[] = [];

  constructor(sqlite: Database, sizeMax: number) {
    this.#sqlite = sqlite;
    this.#statements = new BoundedMap(sizeMax, (_, statement) => this.#retire(statement));
  }

  query<R = Row>(sql: string): PreparedStatement<R> {
    // The caller states the row type of its SQL, as in bun:sqlite.
    const known = this.#statements.get(sql) as PreparedStatement<R> | undefined;
    if (known !== undefined && !known.isFinalized) return known;
    const statement = this.#sqlite.prepare(sql) as PreparedStatement<R>;
    this.#statements.set(sql, statement as PreparedStatement<unknown>);
    return statement;
  }

  /** Returns the statement of `query`, of which each run is a step of the current request. */
  watched<R = Row>(sql: string): Statement<R> {
    const statement = this.query<R>(sql);
    const steps = currentSteps();
    if (steps === null) return statement;
    const file = this.#sqlite;
    return watchedStatement(statement, steps, { sql, path: file.filename, file, isElsewhere: false });
  }

  /** Prepares a statement that is never evicted. */
  prepare<R = Row>(sql: string): PreparedStatement<R> {
    const statement = this.#sqlite.prepare(sql) as PreparedStatement<R>;
    this.#kept.push(statement as PreparedStatement<unknown>);
    return statement;
  }

  // Finalises an evicted statement in the next turn of the event loop: it may still be in use in this one.
  #retire(statement: PreparedStatement<unknown>): void {
    this.#evicted.push(statement);
    if (this.#evicted.length === 1) setImmediate(() => this.#finalizeEvicted());
  }

  #finalizeEvicted(): void {
    for (const statement of this.#evicted) statement.finalize();
    this.#evicted = [];
  }

  /** Finalises the statements that can be prepared again. None may be in use. */
  clear(): void {
    this.#finalizeEvicted();
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
  }

  close(): void {
    this.clear();
    // SQLite keeps a file open until all of its statements are finalised.
    for (const statement of this.#kept) statement.finalize();
  }
}
