import type { Database } from "bun:sqlite";
import { readMeta, writeMeta } from "../meta.ts";
import type { Change, TableStart } from "../types.ts";
import type { CommitGate, CommitOrder } from "../writer/commit-gate.ts";

const META_KEY = "places";

/** The form in the file's metadata. It is true for the commit that wrote it only. */
interface SavedPlaces {
  key: string;
  number: number;
  places: Readonly<Record<string, number>>;
}

/**
 * Places that the logs of tables have reached, kept across restarts: who has all changes up to one misses none of those before the
 * restart. They are written when the file is closed, under a key that stands for what else has to be equal. After a kill, under
 * another key, and after a commit that was not announced, there are none. [DB364]
 */
export class TablePlaces {
  readonly #gate: CommitGate;
  readonly #order: CommitOrder;
  readonly #sqlite: Database;
  readonly #key: string;
  readonly #former: Map<string, number>;
  readonly #openedNumber: number;
  readonly #places = new Map<string, number>();

  constructor(sqlite: Database, { key, gate, order }: { key: string; gate: CommitGate; order: CommitOrder }) {
    this.#sqlite = sqlite;
    this.#gate = gate;
    this.#order = order;
    this.#key = key;
    this.#openedNumber = gate.number;
    // Written by `save`.
    const saved = JSON.parse(readMeta(sqlite, META_KEY) ?? "null") as SavedPlaces | null;
    const isValid = saved !== null && saved.key === key && saved.number === gate.number;
    this.#former = new Map(isValid ? Object.entries(saved.places) : []);
  }

  start(table: string): TableStart {
    const place = this.#order.lastAnnounced;
    this.#places.set(table, place);
    return { place, former: this.#former.get(table) ?? null };
  }

  /** Takes note of changes, before they are announced. `seqs`: the places of each group's first change. */
  announced(groups: readonly (readonly Change[])[], seqs: readonly number[]): void {
    if (this.#places.size === 0 && this.#former.size === 0) return;
    for (const [index, changes] of groups.entries()) {
      const first = seqs[index] ?? 0;
      for (const [offset, { table }] of changes.entries()) {
        this.#former.delete(table);
        if (this.#places.has(table)) this.#places.set(table, first + offset);
      }
    }
  }

  /** Writes the places, in the last commit before the file is closed. */
  save(): void {
    const isSaved = this.#places.size === 0 && this.#gate.number === this.#openedNumber;
    const places = Object.fromEntries([...this.#former, ...this.#places]);
    if (isSaved || Object.keys(places).length === 0) return;
    try {
      this.#gate.transaction((number) => {
        const saved: SavedPlaces = { key: this.#key, number, places };
        writeMeta(this.#sqlite, META_KEY, JSON.stringify(saved));
      });
    } catch {
      // On a full disk, for example: the tables get new places at the next opening.
    }
  }
}
