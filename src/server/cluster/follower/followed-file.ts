import { Database, type Statement } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import { closeAsItIs } from "../../db/open-unchanged.ts";
import { COMMIT_TABLE } from "../../db/writer/commit-gate.ts";
import type { CommitContent, FileState, PartContent } from "../entries/content.ts";
import { LOCK_WAIT_MS } from "./limits.ts";
import type { WriteAt } from "./wal-index.ts";
import { WalWriter } from "./wal-writer.ts";

/** A file that does not hold what it should: it is set aside, and fetched anew. */
export class UnusableFile extends Error {}

export interface FollowedFileDeps {
  write: WriteAt;
  randomSalts: (count: number) => Uint8Array;
}

/**
 * A file of a follower: entries of the log become frames of its WAL, in one transaction of the lock of SQLite's writer. Readers of
 * this process and of others see it as they see any other commit.
 *
 * Close it after all other connections of this process to the file: that drops SQLite's locks.
 */
export class FollowedFile {
  readonly path: string;
  readonly #sqlite: Database;
  readonly #descriptors: readonly number[];
  readonly #wal: WalWriter;
  readonly #row: Statement<FileState & { file: string }, []>;
  readonly #begin: Statement;
  readonly #commit: Statement;
  #state: FileState;
  /** Id in the commit row; "": nothing was committed yet. */
  readonly id: string;
  /** Number of parts of the transaction that is not complete. */
  #parts = 0;

  /** Errors: those of SQLite and of the disk; the file has no commit row. */
  constructor(path: string, { write, randomSalts }: FollowedFileDeps) {
    this.path = path;
    this.#sqlite = new Database(path, { readwrite: true, create: false });
    const descriptors: number[] = [];
    try {
      this.#sqlite.run(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`);
      this.#sqlite.run("PRAGMA wal_autocheckpoint = 0");
      // Nothing is committed by SQLite itself, and checkpoints are another process's.
      this.#sqlite.run("PRAGMA synchronous = OFF");
      this.#row = this.#sqlite.prepare(`SELECT "number", "nonce", "file" FROM "${COMMIT_TABLE}"`);
      this.#begin = this.#sqlite.prepare("BEGIN IMMEDIATE");
      this.#commit = this.#sqlite.prepare("COMMIT");
      const { number, nonce, file } = this.#read();
      [this.#state, this.id] = [{ number, nonce }, file];
      for (const ending of ["-wal", "-shm"]) descriptors.push(openSync(path + ending, "r+"));
    } catch (cause) {
      closeAsItIs(path, this.#sqlite);
      for (const descriptor of descriptors) closeSync(descriptor);
      throw cause;
    }
    const [wal = -1, index = -1] = descriptors;
    this.#descriptors = descriptors;
    this.#wal = new WalWriter({ wal, index }, { write, randomSalts });
  }

  /** The state that readers see. */
  get state(): FileState {
    return this.#state;
  }

  /** Frames in the WAL. */
  get frames(): number {
    return this.#wal.frames;
  }

  /** Whether a transaction is not complete, so that its WAL must not be ended. */
  get isOpen(): boolean {
    return this.#parts > 0;
  }

  /**
   * Applies consecutive entries of the file; those that it holds already are left out. Errors: UnusableFile, it holds something
   * else, or an entry is missing; those of SQLite, UnknownIndex and of the disk.
   */
  apply(entries: readonly (CommitContent | PartContent)[]): void {
    this.#begin.run();
    try {
      for (const entry of entries) {
        if (entry.kind === "part") this.#part(entry);
        else this.#apply(entry);
      }
    } finally {
      // It has changed nothing that SQLite would know of.
      this.#commit.run();
    }
    const { number, nonce } = this.#read();
    if (number !== this.#state.number || nonce !== this.#state.nonce)
      throw new UnusableFile(`${this.path} holds commit ${number} after ${this.#state.number} was applied`);
  }

  /** Ends the WAL if all of it is in the file and nobody reads it. Returns whether it has. */
  endWal(): boolean {
    if (this.isOpen) return false;
    // Without a wait: a long read of another process would hold everything.
    this.#sqlite.run("PRAGMA busy_timeout = 0");
    try {
      const noop = this.#sqlite.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)").get();
      if (noop === null || noop.log !== noop.checkpointed) return false;
      return this.#sqlite.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
    } finally {
      this.#sqlite.run(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}`);
    }
  }

  /** Closes the file, and leaves its WAL as it is. */
  close(): void {
    for (const statement of [this.#row, this.#begin, this.#commit]) statement.finalize();
    closeAsItIs(this.path, this.#sqlite);
    for (const descriptor of this.#descriptors) closeSync(descriptor);
  }

  #apply(entry: CommitContent): void {
    const { number, nonce, previous, pages, parts } = entry;
    const held = this.#state;
    const isComplete = parts === this.#parts;
    if (number <= held.number) {
      if (number === held.number && nonce !== held.nonce)
        throw new UnusableFile(`${this.path} holds another commit ${number} than the log`);
      this.#forgetParts();
      return;
    }
    if (previous.number !== held.number || previous.nonce !== held.nonce || !isComplete)
      throw new UnusableFile(`${this.path} holds commit ${held.number}, and the log goes on from ${previous.number}`);
    this.#wal.commit(entry, pages);
    this.#parts = 0;
    this.#state = { number, nonce };
  }

  #part(entry: PartContent): void {
    const { index, previous } = entry;
    if (index === 0) this.#forgetParts();
    const held = this.#state;
    if (previous.number < held.number) return;
    if (previous.number !== held.number || previous.nonce !== held.nonce || index !== this.#parts)
      throw new UnusableFile(
        `${this.path} holds commit ${held.number}, and a part of the log follows ${previous.number}`,
      );
    this.#wal.part(entry);
    this.#parts += 1;
  }

  #forgetParts(): void {
    this.#parts = 0;
    this.#wal.forgetParts();
  }

  #read(): FileState & { file: string } {
    const row = this.#row.get();
    if (row === null) throw new UnusableFile(`${this.path} has no commit row`);
    return row;
  }
}

/** Reads the commit row of a file that no connection of this process has open. */
export function rowOf(path: string): FileState & { file: string } {
  const sqlite = new Database(path, { readonly: true });
  try {
    const row = sqlite
      .query<FileState & { file: string }, []>(`SELECT "number", "nonce", "file" FROM "${COMMIT_TABLE}"`)
      .get();
    if (row === null) throw new UnusableFile(`${path} has no commit row`);
    return row;
  } finally {
    sqlite.close();
  }
}
