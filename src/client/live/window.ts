import type { JsonObject } from "../../kernel/json/json.ts";
import { idOf, isSame } from "./plan.ts";

/** What a list answered: consecutive records in order. */
export interface Page {
  readonly records: readonly JsonObject[];
  /** Where the next page begins; null: there is none. */
  readonly cursor: string | null;
}

interface Parts {
  /** A total order. */
  compare(left: JsonObject, right: JsonObject): number;
  /** Records that are shown. */
  limit: number;
  /** Further records that are kept, at least one: with it `hasMore` is known. */
  spare: number;
}

/**
 * The first records of an order, as far as they are known: every record up to `#end` is here, and what is behind it is not
 * known. Changes that are applied in order keep that true, so the records are those of the server in the end.
 */
export class RecordWindow {
  readonly #compare: Parts["compare"];
  readonly #limit: number;
  readonly #spare: number;
  #records: JsonObject[] = [];
  readonly #byId = new Map<string, JsonObject>();
  /** A record at the last known place; null: all records are known. */
  #end: JsonObject | null = null;
  #cursor: string | null = null;

  constructor({ compare, limit, spare }: Parts) {
    this.#compare = compare;
    this.#limit = limit;
    this.#spare = spare;
  }

  /** All that are known, in order: the spare ones too. Changed by the next change. */
  get records(): readonly JsonObject[] {
    return this.#records;
  }

  get hasMore(): boolean {
    return this.#end !== null || this.#records.length > this.#limit;
  }

  /** Whether more records are to be loaded. */
  get isShort(): boolean {
    return this.#end !== null && this.#records.length <= this.#limit;
  }

  /** What the next page has to have. null for `after`: it has to be the first page again, as the end was cut off. */
  get wanted(): { count: number; after: string | null } {
    const whole = this.#limit + this.#spare;
    if (this.#cursor === null) return { count: whole, after: null };
    return { count: whole - this.#records.length, after: this.#cursor };
  }

  get(id: string): JsonObject | undefined {
    return this.#byId.get(id);
  }

  /** Whether a record at this place would be among the known ones. */
  covers(record: JsonObject): boolean {
    return this.#end === null || this.#compare(record, this.#end) <= 0;
  }

  /** Takes the first page of a new list. Records that have not changed keep their identity. */
  replace(page: Page): void {
    const known = new Map(this.#byId);
    this.#records = [];
    this.#byId.clear();
    this.#end = null;
    this.#extend(page, known);
  }

  /** There may be more after the records of now. */
  leaveOpen(): void {
    this.#end = this.#records.at(-1) ?? null;
    this.#cursor = null;
  }

  /** Takes the page after the cursor. */
  extend(page: Page): void {
    // A record that has moved behind the end meanwhile is in both.
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

  /** The record is now this one. false: that changes nothing here. */
  put(record: JsonObject): boolean {
    const id = idOf(record);
    const before = this.#byId.get(id);
    if (isSame(before, record)) return false;
    const wasHere = this.#delete(id);
    if (!this.covers(record)) return wasHere;
    this.#records.splice(this.placeOf(record), 0, record);
    this.#byId.set(id, record);
    if (this.#records.length > this.#limit + 2 * this.#spare) this.#cut();
    return true;
  }

  /** The record does not match any more, or is gone. false: it was not here. */
  remove(id: string): boolean {
    return this.#delete(id);
  }

  clear(): void {
    this.replace({ records: [], cursor: null });
  }

  /** The index of a record, or that at which it would be. */
  placeOf(record: JsonObject, records: readonly JsonObject[] = this.#records): number {
    let low = 0;
    let high = records.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = records[middle];
      if (other !== undefined && this.#compare(other, record) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #delete(id: string): boolean {
    const record = this.#byId.get(id);
    if (record === undefined) return false;
    this.#byId.delete(id);
    const place = this.placeOf(record);
    // Elsewhere only where numbers are beyond what a double tells apart.
    this.#records.splice(this.#records[place] === record ? place : this.#records.indexOf(record), 1);
    return true;
  }

  #cut(): void {
    for (const record of this.#records.splice(this.#limit + this.#spare)) this.#byId.delete(idOf(record));
    this.leaveOpen();
  }
}
