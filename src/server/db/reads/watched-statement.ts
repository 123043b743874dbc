import type { QueryStep, RequestSteps } from "../../../kernel/observing/request-steps.ts";
import type { PreparedStatement, SqlValue, Statement } from "../types.ts";

/** A statement of a request: each run is one of the request's steps. */
class WatchedStatement<R> implements Statement<R> {
  readonly #statement: PreparedStatement<R>;
  readonly #steps: RequestSteps;
  readonly #about: Pick<QueryStep, "sql" | "path" | "file" | "isElsewhere">;

  constructor(
    statement: PreparedStatement<R>,
    steps: RequestSteps,
    about: Pick<QueryStep, "sql" | "path" | "file" | "isElsewhere">,
  ) {
    this.#statement = statement;
    this.#steps = steps;
    this.#about = about;
  }

  get(...params: SqlValue[]): R | null {
    const startedAt = performance.now();
    const row = this.#statement.get(...params);
    this.#steps.query(startedAt, this.#about);
    return row;
  }

  all(...params: SqlValue[]): R[] {
    const startedAt = performance.now();
    const rows = this.#statement.all(...params);
    this.#steps.query(startedAt, this.#about);
    return rows;
  }

  values(...params: SqlValue[]) {
    const startedAt = performance.now();
    const rows = this.#statement.values(...params);
    this.#steps.query(startedAt, this.#about);
    return rows;
  }

  /** Is one step, which ends with the last row, or when the caller reads no further. */
  iterate(...params: SqlValue[]): IterableIterator<R> {
    const startedAt = performance.now();
    const rows = this.#statement.iterate(...params);
    const end = (): void => this.#steps.query(startedAt, this.#about);
    const watched: IterableIterator<R> = {
      next() {
        const next = rows.next();
        if (next.done === true) end();
        return next;
      },
      return(value) {
        end();
        return rows.return?.(value) ?? { done: true, value };
      },
      [Symbol.iterator]: () => watched,
    };
    return watched;
  }

  get columnNames(): string[] {
    return this.#statement.columnNames;
  }

  run(...params: SqlValue[]) {
    const startedAt = performance.now();
    const result = this.#statement.run(...params);
    this.#steps.query(startedAt, this.#about);
    return result;
  }
}

export const watchedStatement = <R>(
  statement: PreparedStatement<R>,
  steps: RequestSteps,
  about: Pick<QueryStep, "sql" | "path" | "file" | "isElsewhere">,
): Statement<R> => new WatchedStatement(statement, steps, about);
