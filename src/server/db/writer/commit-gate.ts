import type { Database, Statement } from "bun:sqlite";
import type { Clock, Millis } from "../../../kernel/clock.ts";
import type { Ids } from "../../../kernel/ids.ts";
import { isMissingTable } from "../missing-table.ts";

/**
 * The table with the commit row: one row in every database file that says which commit the file holds. Each transaction that
 * changes the file rewrites the row, so it is as durable as the change.
 *
 * - `number`: one more with each commit. The first commit of an opening has at least the time in microseconds, so that no number is
 *   used twice under one name: a file that is restored, copied or made again goes on above all numbers of its former history.
 * - `nonce`: random for each opening of the file. Two files with the same number and another nonce have different histories.
 *   0, with a `number` above 0: a change that no number describes, such as VACUUM, has begun and not ended.
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
/** Rewrites the commit row with `commitValues`. */
export const UPDATE_COMMIT = `UPDATE "${COMMIT_TABLE}" SET "number" = ?, "nonce" = ?, "at" = ?, "place" = ?, "file" = ?`;
const READ = `SELECT "number", "nonce", "place", "file" FROM "${COMMIT_TABLE}"`;

const MICROSECONDS_PER_MS = 1_000;
/** Length of a nonce: fewer bits than the 53 of an exact number. */
const NONCE_BYTES = 6;
/** The nonce while a change that no number describes is under way. */
export const OPEN_MARK = 0;

/** Adds the commit row to a file that has none. */
export function layOutCommitRow(sqlite: Database): void {
  sqlite.run(CREATE);
  sqlite.run(INSERT);
}

/** Values of the commit row that another process writes with its own commit. */
export interface CommitMark {
  number: number;
  nonce: number;
  at: Millis;
  place: number;
  file: string;
}

/** Names a commit of a file, and so the content behind it. */
export type CommitName = Pick<CommitMark, "number" | "nonce">;

/** Returns the values of `UPDATE_COMMIT`. */
export const commitValues = ({ number, nonce, at, place, file }: CommitMark) =>
  [number, nonce, at, place, file] as const;

/**
 * Orders the commits of all files of a server: each takes as many places as it has announced changes, one at least, before COMMIT.
 * Places follow the clock in microseconds and never go back, whatever the clock does and whichever process takes them: each opened
 * file raises them.
 */
export class CommitOrder {
  /**
   * Called with the path of a file when a commit of it has become visible to other processes, before anything else runs: see
   * `ReadCut`. Default: nobody asks.
   */
  onVisible: ((path: string) => void) | null = null;
  readonly #clock: Pick<Clock, "now">;
  #last: number;
  /** Places of commits that other processes make at present, by what waits for them. */
  readonly #underWay = new Map<object, number>();
  /** Resolves when no other process makes a commit; null: nobody waits for that. */
  #settled: PromiseWithResolvers<void> | null = null;
  /** The first place of each file's commits whose changes have not been announced. */
  readonly #unannounced = new Map<object, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#last = clock.now() * MICROSECONDS_PER_MS;
  }

  /** Takes `count` places. Returns the last of them. */
  take(count: number): number {
    this.#last = Math.max(this.#last + 1, this.#clock.now() * MICROSECONDS_PER_MS) + count - 1;
    return this.#last;
  }

  raise(place: number): void {
    this.#last = Math.max(this.#last, place);
  }

  /** Takes one place for a commit of another process, until `ended`. */
  begin(source: object): number {
    const place = this.take(1);
    this.#underWay.set(source, place);
    return place;
  }

  ended(source: object): void {
    this.#underWay.delete(source);
    if (this.#underWay.size > 0) return;
    this.#settled?.resolve();
    this.#settled = null;
  }

  /** Resolves when no other process makes a commit, which others may see before it is noticed here; null: none does. */
  settled(): Promise<void> | null {
    if (this.#underWay.size === 0) return null;
    this.#settled ??= Promise.withResolvers<void>();
    return this.#settled.promise;
  }

  /** The place up to which every commit has been made or given up. */
  get lastMade(): number {
    return Math.min(this.#last, ...this.#underWay.values().map((place) => place - 1));
  }

  /** Notes that `source` has committed changes from this place on; null: its commit announces none. */
  committed(source: object, first: number | null): void {
    if (first !== null && !this.#unannounced.has(source)) this.#unannounced.set(source, first);
  }

  /** Notes that `source` has announced its changes before this place; null: all of them. */
  announced(source: object, next: number | null): void {
    if (next === null) this.#unannounced.delete(source);
    else this.#unannounced.set(source, next);
  }

  /** The place up to which all changes have been announced; all others will have higher places. */
  get lastAnnounced(): number {
    let last = this.#last;
    for (const first of this.#unannounced.values()) last = Math.min(last, first - 1);
    return last;
  }
}

/** Runs the transactions of a migration. */
export interface Commits {
  transaction(work: () => void): void;
  /** Runs work that changes the file outside of its WAL, such as leaving WAL mode. */
  outsideWal(work: () => void): void;
}

/** Runs transactions without numbers, for databases in memory, and copies: nobody asks which commit they hold. */
export const unnumbered = (sqlite: Database): Commits => ({
  transaction: (work) => sqlite.transaction(work).immediate(),
  outsideWal: (work) => work(),
});

/**
 * Question of another process that changes the file for the server: for the mark of its commit, right before COMMIT; and for leave to
 * checkpoint the WAL so that it can restart.
 */
export type GateQuestion = "commit" | "checkpoint";
/** Answers a `GateQuestion`: with a `CommitMark`, or null. */
export type GateAnswer = (question: unknown) => Promise<CommitMark | null>;

/**
 * The one gate of a file: every commit passes it and so has a number, and no WAL restarts or ends without it. `commit` is for the
 * writer, `transaction` for migrations and last writes of a close, `elsewhere` for other processes. `tests/tidy.test.ts` lists the
 * files that may commit or end a WAL.
 *
 * An observer is called right after each commit, before anything else can commit, so that it can read the frames; and it is waited
 * for before frames may be overwritten or removed.
 */
export class CommitGate implements Commits {
  /** Called after each commit, whoever made it, and also after an attempt of another process that has failed. */
  onCommitted: (() => void) | null = null;
  /**
   * Waited for before another process gets the mark of its commit, the WAL restarts, or the file is closed. No transaction of the writer
   * begins meanwhile.
   */
  whenObserved: (() => Promise<void>) | null = null;
  /** Whether the file may have been changed outside of its WAL since the last numbered commit before this opening. */
  isRewritten: boolean;
  /** The commit that the file held when it was opened; number 0: none. */
  before: CommitName = { number: 0, nonce: 0 };
  readonly #sqlite: Database;
  readonly #order: CommitOrder;
  readonly #clock: Pick<Clock, "now">;
  readonly #nonce: number;
  #file: string;
  #number = 0;
  /** Least number of this opening's commits; null: it has made none. */
  #least: number | null = null;
  #lastNonce = 0;
  #row: Statement<Omit<CommitMark, "at">, []> | null = null;
  #update: Statement | null = null;
  #commit: Statement | null = null;
  #stateOf: Statement<ConnectionState, []> | null = null;
  /** Changes of the connection at the last check of a transaction. */
  #seen: ConnectionState = { changes: -1, schema: -1 };
  #isClosed = false;

  /** `isRewritten`: whether the file was changed outside of its WAL already, by entering WAL mode. */
  constructor(
    sqlite: Database,
    deps: { order: CommitOrder; clock: Pick<Clock, "now">; ids: Ids; isRewritten?: boolean },
  ) {
    this.#sqlite = sqlite;
    this.isRewritten = deps.isRewritten ?? false;
    this.#order = deps.order;
    this.#clock = deps.clock;
    this.#nonce = Buffer.from(deps.ids.secret(NONCE_BYTES), "base64url").readUIntBE(0, NONCE_BYTES);
    this.#file = deps.ids.uuid();
  }

  /** The id of the file. */
  get file(): string {
    return this.#file;
  }

  /** The number of the last commit. 0: nothing has been committed. */
  get number(): number {
    return this.#number;
  }

  /** Runs the migrations of a file that has been opened. Changes that they have not committed by `transaction` get a number too. */
  open(migrate: () => void): void {
    const hasRow = this.#read();
    if (this.#number > 0 && this.#lastNonce === OPEN_MARK) this.isRewritten = true;
    this.before = { number: this.#number, nonce: this.#lastNonce };
    const number = this.#number;
    const before = this.#state();
    migrate();
    if (!hasRow && !this.#read()) this.#sqlite.transaction(() => layOutCommitRow(this.#sqlite)).immediate();
    const after = this.#state();
    const hasChanged = after.changes !== before.changes || after.schema !== before.schema;
    if (hasRow && hasChanged && this.#number === number) this.transaction(() => {});
  }

  /**
   * Commits the open transaction, which announces `changeCount` changes. Returns the last of the places that it takes; null: it has
   * changed nothing.
   */
  commit(changeCount: number): number | null {
    const mark =
      changeCount > 0 || this.#mayHaveChanged() ? this.#next(() => this.#order.take(Math.max(1, changeCount))) : null;
    if (mark !== null) {
      this.#update ??= this.#sqlite.prepare(UPDATE_COMMIT);
      this.#update.run(...commitValues(mark));
    }
    this.#commit ??= this.#sqlite.prepare("COMMIT");
    this.#commit.run();
    if (mark === null) return null;
    this.#order.onVisible?.(this.#sqlite.filename);
    this.#number = mark.number;
    this.onCommitted?.();
    return mark.place;
  }

  /** Runs a transaction. `work` gets the number of its commit. */
  transaction(work: (number: number) => void): void {
    this.#sqlite
      .transaction(() => {
        const mark = this.#next(() => this.#order.take(1));
        work(mark.number);
        if (!this.#read()) layOutCommitRow(this.#sqlite);
        this.#sqlite.run(UPDATE_COMMIT, [...commitValues(mark)]);
      })
      .immediate();
    this.#order.onVisible?.(this.#sqlite.filename);
    this.#read();
    this.onCommitted?.();
  }

  outsideWal(work: () => void): void {
    this.isRewritten = true;
    work();
  }

  /**
   * Lets another process commit while the writer waits: `answer` is for its questions. Whether that failed or not, the row is read
   * again afterwards; `endReads` ends an older snapshot of it.
   */
  async elsewhere<T>(work: (answer: GateAnswer) => Promise<T>, endReads: () => void): Promise<T> {
    const source = {};
    let hasMark = false;
    const notice = (): void => {
      this.#order.onVisible?.(this.#sqlite.filename);
      if (!this.#isClosed) {
        endReads();
        this.#read();
        this.onCommitted?.();
      }
      this.#order.ended(source);
    };
    const answer: GateAnswer = async (question) => {
      // The commit of the former mark has been made.
      if (hasMark) notice();
      hasMark = question === "commit";
      await this.observed();
      return hasMark ? this.#next(() => this.#order.begin(source)) : null;
    };
    try {
      return await work(answer);
    } finally {
      notice();
    }
  }

  /** Waits for the observer, before the WAL restarts or ends, or another process commits. */
  async observed(): Promise<void> {
    await this.whenObserved?.();
  }

  close(): void {
    this.#isClosed = true;
    this.#row?.finalize();
    this.#update?.finalize();
    this.#commit?.finalize();
    this.#stateOf?.finalize();
  }

  /** Reads the commit row. false: the file has none. */
  #read(): boolean {
    try {
      this.#row ??= this.#sqlite.prepare<Omit<CommitMark, "at">, []>(READ);
      const row = this.#row.get();
      if (row === null) return false;
      this.#number = row.number;
      this.#lastNonce = row.nonce;
      if (row.file !== "") this.#file = row.file;
      this.#order.raise(row.place);
      return true;
    } catch (error) {
      if (isMissingTable(error)) return false;
      throw error;
    }
  }

  /** Takes the next number and places. */
  #next(takePlace: () => number): CommitMark {
    const at = this.#clock.now();
    this.#least ??= at * MICROSECONDS_PER_MS;
    return {
      number: Math.max(this.#number + 1, this.#least),
      nonce: this.#nonce,
      at,
      place: takePlace(),
      file: this.#file,
    };
  }

  /**
   * Reports whether the open transaction may have changed something: an empty commit has no number. Returns false only if the last
   * transaction was checked too. An insert that is ignored changes nothing for SQLite, though it moves the sequence of an AUTOINCREMENT:
   * the server's statements leave such rows out by a condition.
   */
  #mayHaveChanged(): boolean {
    const { changes, schema } = this.#state();
    const isSame = changes === this.#seen.changes && schema === this.#seen.schema;
    // The statement that writes the row counts as a change too.
    this.#seen = { changes: changes + (isSame ? 0 : 1), schema };
    return !isSame;
  }

  #state(): ConnectionState {
    this.#stateOf ??= this.#sqlite.prepare(
      'SELECT total_changes() AS "changes", (SELECT "schema_version" FROM pragma_schema_version) AS "schema"',
    );
    return this.#stateOf.get() ?? { changes: -1, schema: -1 };
  }
}

interface ConnectionState {
  /** Rows that the connection has changed since it was opened. */
  changes: number;
  schema: number;
}
