import type { Database } from "bun:sqlite";
import { readMeta, writeMeta } from "../meta.ts";
import type { Change, PlacesOptions, TableStart } from "../types.ts";
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
  /** Tables whose log was begun for who may come back: their number is the one of before. */
  readonly #untold = new Set<string>();

  /** `onKept` is called with the tables whose places are known from before. */
  constructor(
    sqlite: Database,
    { key, onKept, gate, order }: PlacesOptions & { gate: CommitGate; order: CommitOrder },
  ) {
    this.#sqlite = sqlite;
    this.#gate = gate;
    this.#order = order;
    this.#key = key;
    this.#openedNumber = gate.number;
    // Written by `save`.
    const saved = JSON.parse(readMeta(sqlite, META_KEY) ?? "null") as SavedPlaces | null;
    const isValid = saved !== null && saved.key === key && saved.number === gate.number;
    this.#former = new Map(isValid ? Object.entries(saved.places) : []);
    onKept?.([...this.#former.keys()]);
  }

  /** `isKept`: nobody is told of the log before it is begun again, without that. */
  start(table: string, { isKept = false }: { isKept?: boolean } = {}): TableStart {
    const begun = this.#untold.delete(table) ? this.#places.get(table) : undefined;
    const place = begun ?? this.#order.lastAnnounced;
    this.#places.set(table, place);
    if (isKept) this.#untold.add(table);
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
    const isSaved = this.#places.size === this.#untold.size && this.#gate.number === this.#openedNumber;
    const told = [...this.#places].filter(([table]) => !this.#untold.has(table));
    const places = Object.fromEntries([...this.#former, ...told]);
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
