import { Database, type Statement } from "bun:sqlite";
import type { FileState } from "../entries/content.ts";
import type { Place } from "../protocol/statements.ts";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS "place" ("id" INTEGER PRIMARY KEY CHECK ("id" = 0), "position" INTEGER NOT NULL, "nonce" TEXT NOT NULL) STRICT;
  INSERT OR IGNORE INTO "place" VALUES (0, 0, '');
  CREATE TABLE IF NOT EXISTS "files" ("id" TEXT PRIMARY KEY, "path" TEXT NOT NULL UNIQUE, "number" INTEGER NOT NULL,
    "nonce" INTEGER NOT NULL, "open" INTEGER NOT NULL) STRICT;`;

/** A file of a follower, as it was when this was written. */
export interface FollowedFacts extends FileState {
  /** Id in its commit row. */
  id: string;
  /** Path in the data directory. */
  path: string;
}

interface FactsRow extends FollowedFacts {
  /** 1: the file may be ahead of this, because entries were about to be applied. */
  open: number;
}

/**
 * State of a follower on its disk: the place of the log that its files are at, and the state of each. Files are changed first, so they
 * may be ahead of it after a kill; behind it they are only after a power cut. Which files are missing is in memory alone: while there
 * are any, the place is held.
 */
export class FollowerState {
  readonly #sqlite: Database;
  readonly #put: Statement;
  readonly #remove: Statement;
  readonly #move: Statement;
  readonly #files = new Map<string, FactsRow>();
  readonly #byPath = new Map<string, FactsRow>();
  #place: Place;
  /** Whether the disk has the start of the log in place of the place. */
  #isHeld = false;

  /** Opens the file, or makes it. Its directory must exist. */
  constructor(path: string) {
    this.#sqlite = new Database(path, { create: true, readwrite: true });
    this.#sqlite.run("PRAGMA journal_mode = WAL");
    this.#sqlite.run("PRAGMA synchronous = NORMAL");
    this.#sqlite.run(SCHEMA);
    this.#put = this.#sqlite.prepare(`INSERT OR REPLACE INTO "files" VALUES (?, ?, ?, ?, ?)`);
    this.#remove = this.#sqlite.prepare(`DELETE FROM "files" WHERE "id" = ?`);
    this.#move = this.#sqlite.prepare(`UPDATE "place" SET "position" = ?, "nonce" = ?`);
    this.#place = this.#sqlite.query<Place, []>(`SELECT "position", "nonce" FROM "place"`).get() ?? START;
    for (const row of this.#sqlite.query<FactsRow, []>(`SELECT * FROM "files"`).all()) this.#know(row);
  }

  get place(): Place {
    return this.#place;
  }

  get files(): Iterable<Readonly<FactsRow>> {
    return this.#files.values();
  }

  byId(id: string): Readonly<FactsRow> | null {
    return this.#files.get(id) ?? null;
  }

  byPath(path: string): Readonly<FactsRow> | null {
    return this.#byPath.get(path) ?? null;
  }

  /** Notes that entries of these files are about to be applied. */
  opening(ids: readonly string[]): void {
    const closed = ids.flatMap((id) => this.#files.get(id) ?? []).filter(({ open }) => open === 0);
    if (closed.length === 0) return;
    this.transaction(() => {
      for (const row of closed) this.#write({ ...row, open: 1 });
    });
  }

  put(facts: FollowedFacts, { isOpen }: { isOpen: boolean }): void {
    const former = this.#byPath.get(facts.path);
    if (former !== undefined && former.id !== facts.id) this.remove(former.id);
    this.#write({ ...facts, open: isOpen ? 1 : 0 });
  }

  remove(id: string): void {
    this.#remove.run(id);
    const row = this.#files.get(id);
    this.#files.delete(id);
    if (row !== undefined && this.#byPath.get(row.path) === row) this.#byPath.delete(row.path);
  }

  move(place: Place): void {
    if (!this.#isHeld) this.#move.run(place.position, place.nonce);
    this.#place = place;
  }

  /** Moves, and has the start of the log on the disk until `release`: a process after this one compares every file anew. */
  hold(place: Place): void {
    if (!this.#isHeld) this.move(START);
    this.#isHeld = true;
    this.#place = place;
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.move(this.#place);
  }

  transaction(work: () => void): void {
    this.#sqlite.transaction(work).immediate();
  }

  close(): void {
    for (const statement of [this.#put, this.#remove, this.#move]) statement.finalize();
    this.#sqlite.close();
  }

  #write(row: FactsRow): void {
    this.#put.run(row.id, row.path, row.number, row.nonce, row.open);
    this.#know(row);
  }

  #know(row: FactsRow): void {
    this.#files.set(row.id, row);
    this.#byPath.set(row.path, row);
  }
}

/** The start of the log. */
export const START: Place = { position: 0, nonce: "" };
