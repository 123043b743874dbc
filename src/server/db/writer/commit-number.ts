import type { Database, Statement } from "bun:sqlite";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";

/**
 * Every database file has one row that says which commit it holds. Each transaction that changes the file rewrites the row,
 * so it is as durable as the change.
 *
 * - `number`: one more with each commit of the file. The first one is the time in microseconds, so that a file that is made
 *   again, under the same name, never repeats a number.
 * - `nonce`: random for each opening of the file. Two files with the same number and another nonce have different histories.
 * - `at`: the time of the commit, in milliseconds.
 * - `place`: the last of the places that the commit takes in the one order of the server's commits: see `CommitOrder`.
 * - `file`: identifies the file under whatever name it has.
 *
 * `number` 0: nothing has been committed yet.
 */
export const COMMIT_TABLE = "_platform_commit";

const CREATE = `CREATE TABLE IF NOT EXISTS "${COMMIT_TABLE}" ("id" INTEGER PRIMARY KEY CHECK ("id" = 0), "number" INTEGER NOT NULL,
  "nonce" INTEGER NOT NULL, "at" INTEGER NOT NULL, "place" INTEGER NOT NULL, "file" TEXT NOT NULL) STRICT`;
const INSERT = `INSERT OR IGNORE INTO "${COMMIT_TABLE}" VALUES (0, 0, 0, 0, 0, '')`;
const UPDATE = `UPDATE "${COMMIT_TABLE}" SET "number" = ?, "nonce" = ?, "at" = ?, "place" = ?, "file" = ?`;
const READ = `SELECT "number", "place", "file" FROM "${COMMIT_TABLE}"`;

const MICROSECONDS_PER_MS = 1_000;
/** Of a nonce: fewer than the 53 bits of an exact number. */
const NONCE_BYTES = 6;

/** Adds the row to a file that has none. */
export function layOutCommitNumber(sqlite: Database): void {
  sqlite.run(CREATE);
  sqlite.run(INSERT);
}

/** What a process beside the server writes into the row with its own commit. */
export interface CommitMark {
  number: number;
  nonce: number;
  at: Millis;
  place: number;
  file: string;
}

/** The statement and its values, for a connection of another library. */
export const commitStatement = ({ number, nonce, at, place, file }: CommitMark) => ({
  sql: UPDATE,
  values: [number, nonce, at, place, file] as const,
});

/**
 * Orders the commits of all files of a server: each takes as many places as it has announced changes, one at least, before
 * COMMIT. Places follow the clock in microseconds and never go back, whatever the clock does and whichever process takes them:
 * each opened file raises them.
 */
export class CommitOrder {
  readonly #clock: Pick<Clock, "now">;
  #last: number;
  /** The first place of each file's commits whose changes have not been announced. */
  readonly #unannounced = new Map<object, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#last = clock.now() * MICROSECONDS_PER_MS;
  }

  /** Returns the last of the places taken. */
  take(count: number): number {
    this.#last = Math.max(this.#last + 1, this.#clock.now() * MICROSECONDS_PER_MS) + count - 1;
    return this.#last;
  }

  raise(place: number): void {
    this.#last = Math.max(this.#last, place);
  }

  /** `source` has committed changes from this place on; null: its commit announces none. */
  committed(source: object, first: number | null): void {
    if (first !== null && !this.#unannounced.has(source)) this.#unannounced.set(source, first);
  }

  /** `source` has announced its changes before this place; null: all of them. */
  announced(source: object, next: number | null): void {
    if (next === null) this.#unannounced.delete(source);
    else this.#unannounced.set(source, next);
  }

  /** Changes at this place and before have been announced; all others will have higher places. */
  get lastAnnounced(): number {
    let last = this.#last;
    for (const first of this.#unannounced.values()) last = Math.min(last, first - 1);
    return last;
  }
}

/** The number of a file's last commit, and the writing of the next one. */
export class CommitNumber {
  readonly #sqlite: Database;
  readonly #order: CommitOrder;
  readonly #clock: Pick<Clock, "now">;
  readonly #nonce: number;
  #file = "";
  #number = 0;
  #update: Statement | null = null;
  #state: Statement<{ changes: number; schema: number }, []> | null = null;
  /** What the connection had changed after the last transaction that was asked about. */
  #seen = { changes: -1, schema: -1 };

  constructor(sqlite: Database, deps: { order: CommitOrder; clock: Pick<Clock, "now">; ids: Ids }) {
    this.#sqlite = sqlite;
    this.#order = deps.order;
    this.#clock = deps.clock;
    this.#nonce = Buffer.from(deps.ids.secret(NONCE_BYTES), "base64url").readUIntBE(0, NONCE_BYTES);
    this.#file = deps.ids.uuid();
  }

  /** 0: nothing has been committed. */
  get number(): number {
    return this.#number;
  }

  /** Adds the row where it is missing, and reads it. Also after another process has committed. */
  load(): void {
    if (this.#read()) return;
    this.#sqlite.transaction(() => layOutCommitNumber(this.#sqlite)).immediate();
  }

  /** false: the file has no row yet. */
  #read(): boolean {
    try {
      using read = this.#sqlite.prepare<{ number: number; place: number; file: string }, []>(READ);
      const row = read.get();
      if (row === null) return false;
      this.#number = row.number;
      if (row.file !== "") this.#file = row.file;
      this.#order.raise(row.place);
      return true;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("no such table")) return false;
      throw error;
    }
  }

  /** Takes the next number and places. */
  next(changeCount: number): CommitMark {
    const at = this.#clock.now();
    return {
      number: this.#number === 0 ? Math.max(1, at * MICROSECONDS_PER_MS) : this.#number + 1,
      nonce: this.#nonce,
      at,
      place: this.#order.take(Math.max(1, changeCount)),
      file: this.#file,
    };
  }

  /**
   * Whether the open transaction may have changed something: a commit of nothing has no number. Answers no only if the last
   * transaction was asked about too.
   */
  mayHaveChanged(): boolean {
    this.#state ??= this.#sqlite.prepare(
      'SELECT total_changes() AS "changes", (SELECT "schema_version" FROM pragma_schema_version) AS "schema"',
    );
    const state = this.#state.get();
    // The statement that writes the row is counted too.
    const isSame = state?.changes === this.#seen.changes && state.schema === this.#seen.schema;
    this.#seen = { changes: (state?.changes ?? 0) + (isSame ? 0 : 1), schema: state?.schema ?? 0 };
    return !isSame;
  }

  /** Writes the row, inside the transaction. `wrote` has to follow its COMMIT. */
  write(mark: CommitMark): void {
    this.#update ??= this.#sqlite.prepare(UPDATE);
    this.#update.run(mark.number, mark.nonce, mark.at, mark.place, mark.file);
  }

  wrote({ number }: CommitMark): void {
    this.#number = number;
  }

  /** Numbers the transaction of a migration, at its end. */
  readonly numberMigration = (): void => {
    if (!this.#read()) layOutCommitNumber(this.#sqlite);
    const mark = this.next(1);
    const { sql, values } = commitStatement(mark);
    this.#sqlite.run(sql, [...values]);
  };

  close(): void {
    this.#update?.finalize();
    this.#state?.finalize();
  }
}
