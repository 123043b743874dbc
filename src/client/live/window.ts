import type { JsonObject } from "../../kernel/json/json.ts";
import { idOf, isSame } from "./plan.ts";

/** Page of a list: consecutive records in order. */
export interface Page {
  readonly records: readonly JsonObject[];
  /** Cursor of the next page; empty: there is a page, but no cursor; null: there is none. */
  readonly cursor: string | null;
}

interface Parts {
  /** Compares two records in a total order. */
  compare(left: JsonObject, right: JsonObject): number;
  /** Number of records shown. */
  limit: number;
  /** Number of further records kept, at least one, which determines `hasMore`. */
  spare: number;
}

/**
 * First records of an order, as far as they are known: every record up to `#end` is present, and records beyond it are unknown.
 * Changes applied in order maintain this invariant, so the records converge to the server's.
 */
export class RecordWindow {
  readonly #parts: Parts;
  #records: JsonObject[] = [];
  readonly #byId = new Map<string, JsonObject>();
  /** Record at the last known position; null: all records are known. */
  #end: JsonObject | null = null;
  #cursor: string | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** All known records in order, including the spare ones. Mutated by the next change. */
  get records(): readonly JsonObject[] {
    return this.#records;
  }

  get hasMore(): boolean {
    return this.#end !== null || this.#records.length > this.#parts.limit;
  }

  /** Whether more records must be loaded. */
  get isShort(): boolean {
    return this.#end !== null && this.#records.length <= this.#parts.limit;
  }

  /** Size and cursor of the page to load next. `after` null: the first page must be reloaded, as the end is not known. */
  get wanted(): { count: number; after: string | null } {
    const whole = this.#parts.limit + this.#parts.spare;
    if (!this.#cursor) return { count: whole, after: null };
    return { count: whole - this.#records.length, after: this.#cursor };
  }

  get(id: string): JsonObject | undefined {
    return this.#byId.get(id);
  }

  /** Returns whether a record at this position is within the known range. */
  covers(record: JsonObject): boolean {
    return this.#end === null || this.#parts.compare(record, this.#end) <= 0;
  }

  /** Takes the first page of a new list. Unchanged records keep their identity. */
  replace(page: Page): void {
    const known = new Map(this.#byId);
    this.#records = [];
    this.#byId.clear();
    this.#end = null;
    this.#extend(page, known);
  }

  /** Marks that more records may follow the present ones. */
  leaveOpen(): void {
    this.#end = this.#records.at(-1) ?? null;
    this.#cursor = null;
  }

  /** Takes the page after the cursor. */
  extend(page: Page): void {
    // A record that has moved past the end meanwhile is in both.
    for (const record of page.records) this.#delete(idOf(record));
    this.#extend(page, new Map());
  }

  #extend({ records, cursor }: Page, known: ReadonlyMap<string, JsonObject>): void {
    for (const record of records) {
      const id = idOf(record);
      const before = known.get(id);
      const kept = before !== undefined && isSame(before, record) ? before : record;
      this.#records.push(kept);
      this.#byId.set(id, kept);
    }
    this.#cursor = cursor;
    this.#end = cursor === null ? null : (records.at(-1) ?? this.#end);
  }

  /** Inserts or replaces a record. Returns false if nothing changed here. */
  put(record: JsonObject): boolean {
    const id = idOf(record);
    const before = this.#byId.get(id);
    if (isSame(before, record)) return false;
    const wasHere = this.#delete(id);
    if (!this.covers(record)) return wasHere;
    this.#records.splice(this.placeOf(record), 0, record);
    this.#byId.set(id, record);
    if (this.#records.length > this.#parts.limit + 2 * this.#parts.spare) this.#cut();
    return true;
  }

  /** Removes a record that no longer matches, or was deleted. Returns false if it was not here. */
  remove(id: string): boolean {
    return this.#delete(id);
  }

  clear(): void {
    this.replace({ records: [], cursor: null });
  }

  /** Returns the index of a record, or its insertion point. */
  placeOf(record: JsonObject, records: readonly JsonObject[] = this.#records): number {
    let low = 0;
    let high = records.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = records[middle];
      if (other !== undefined && this.#parts.compare(other, record) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #delete(id: string): boolean {
    const record = this.#byId.get(id);
    if (record === undefined) return false;
    this.#byId.delete(id);
    const place = this.placeOf(record);
    // They differ only for numbers beyond a double's precision.
    this.#records.splice(this.#records[place] === record ? place : this.#records.indexOf(record), 1);
    return true;
  }

  #cut(): void {
    for (const record of this.#records.splice(this.#parts.limit + this.#parts.spare)) this.#byId.delete(idOf(record));
    this.leaveOpen();
  }
}
