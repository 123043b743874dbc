import type { Millis } from "../../../../kernel/clock.ts";
import type { JsonObject } from "../../../../kernel/json/json.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { Change, TableStart } from "../../../db/index.ts";
import { EVENT_DATA_MAX_BYTES, LOG_AGE_MAX_MS, LOG_CHANGES_MAX, LOG_MAX_BYTES } from "../limits.ts";

/** One change in the log. */
export interface Entry {
  /** Sequence number, which grows with each change of the file, across restarts. */
  seq: number;
  /** Number of the request, equal for all entries of one. */
  group: number;
  at: Millis;
  timestamp: string;
  change: Change;
  /** Estimated bytes of the records before and after, as JSON. */
  bytes: number;
  /** The record after the change as JSON, serialised once; null: too large for an event. */
  readonly text: string | null;
}

type AboutEntry = Pick<Entry, "seq" | "group" | "at" | "timestamp">;

/** Log entry that serialises its record when the first event needs it. */
class LoggedChange implements Entry {
  readonly seq: number;
  readonly group: number;
  readonly at: Millis;
  readonly timestamp: string;
  readonly change: Change;
  readonly bytes: number;
  #isTooLarge: boolean;
  #text: string | null = null;

  constructor(change: Change, about: AboutEntry) {
    this.seq = about.seq;
    this.change = change;
    this.group = about.group;
    this.at = about.at;
    this.timestamp = about.timestamp;
    const afterBytes = recordBytes(change.after);
    this.#isTooLarge = afterBytes > EVENT_DATA_MAX_BYTES;
    // The record before is assumed as large as the one after; a removed one is measured.
    this.bytes = afterBytes + (change.after === null ? recordBytes(change.before) : afterBytes);
  }

  get text(): string | null {
    if (this.#text === null && !this.#isTooLarge) {
      const text = JSON.stringify(this.change.after);
      this.#isTooLarge = Buffer.byteLength(text) > EVENT_DATA_MAX_BYTES;
      if (!this.#isTooLarge) this.#text = text;
    }
    return this.#text;
  }
}

/** Evicted places at the front of the array before it is compacted. */
const COMPACT_AFTER = 1_024;

/** Kept changes of one table. */
export class TableLog {
  readonly address: TableAddress;
  /** Entries in order. Evicted places are empty, since their records would stay in memory otherwise. */
  #entries: (Entry | undefined)[] = [];
  #evicted = 0;
  #head: number;
  /** The `seq` of the last change that is not kept. */
  #floor: number;

  /** Place at which the log began anew. */
  #barrier = 0;

  readonly #start: TableStart;

  constructor(address: TableAddress, start: TableStart) {
    this.address = address;
    this.#start = start;
    this.#head = start.place;
    this.#floor = start.place;
  }

  /** Maps a client's number to this log. The last number of the log before a restart maps to the beginning of this one. */
  renewed(seq: number): number {
    return seq === this.#start.former ? this.#start.place : seq;
  }

  /** The `seq` of the latest change. */
  get head(): number {
    return this.#head;
  }

  /** Begins anew at this place: the content of the file was replaced, and nothing leads there from an earlier change. */
  restart(place: number): void {
    this.#barrier = place;
    this.#head = place;
  }

  append(change: Change, about: AboutEntry): Entry {
    this.#head = about.seq;
    const entry = new LoggedChange(change, about);
    this.#entries.push(entry);
    return entry;
  }

  /**
   * Whether `seq` is the number of a change or of the log's beginning, and all changes after it are kept. Other numbers belong to
   * another history of the file, as before a backup was restored.
   */
  reaches(seq: number): boolean {
    if (seq <= this.#barrier) return seq === this.#barrier;
    return seq === this.#floor || this.#entries[this.#indexAfter(seq) - 1]?.seq === seq;
  }

  /** Returns the number of the change before an entry. */
  before(seq: number): number {
    return Math.max(this.#barrier, this.#entries[this.#indexAfter(seq - 1) - 1]?.seq ?? this.#floor);
  }

  /** Returns the index of the first entry after `seq`. */
  #indexAfter(seq: number): number {
    let [low, high] = [this.#evicted, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.seq ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the changes of the next request after `seq`; empty when there are none. `reaches(seq)` must hold. */
  groupAfter(seq: number): Entry[] {
    const first = this.#indexAfter(seq);
    const group: Entry[] = [];
    for (let index = first; index < this.#entries.length; index++) {
      const entry = this.#entries[index];
      if (entry === undefined || entry.group !== (group[0] ?? entry).group) break;
      group.push(entry);
    }
    return group;
  }

  get oldest(): Entry | undefined {
    return this.#entries[this.#evicted];
  }

  evict(): Entry | undefined {
    const entry = this.#entries[this.#evicted];
    if (entry === undefined) return undefined;
    this.#floor = entry.seq;
    this.#entries[this.#evicted++] = undefined;
    if (this.#evicted >= COMPACT_AFTER || this.#evicted === this.#entries.length) {
      this.#entries = this.#entries.slice(this.#evicted);
      this.#evicted = 0;
    }
    return entry;
  }
}

/** Bounds the kept changes of all tables of one namespace together, by number, bytes and age. */
export class NamespaceLog {
  /** Table of each entry, oldest entry first. */
  #order: TableLog[] = [];
  #evicted = 0;
  #bytes = 0;

  append(table: TableLog, change: Change, about: AboutEntry): Entry {
    const entry = table.append(change, about);
    this.#order.push(table);
    this.#bytes += entry.bytes;
    return entry;
  }

  trim(now: Millis): void {
    for (;;) {
      const table = this.#order[this.#evicted];
      const entry = table?.oldest;
      if (table === undefined || entry === undefined) break;
      const isOver = this.size > LOG_CHANGES_MAX || this.#bytes > LOG_MAX_BYTES || entry.at < now - LOG_AGE_MAX_MS;
      if (!isOver) break;
      table.evict();
      this.#bytes -= entry.bytes;
      this.#evicted++;
    }
    if (this.#evicted < COMPACT_AFTER && this.#evicted < this.#order.length) return;
    this.#order = this.#order.slice(this.#evicted);
    this.#evicted = 0;
  }

  get size(): number {
    return this.#order.length - this.#evicted;
  }
}

/** Values counted to estimate the size of a record; one with more counts with the assumed size. */
const RECORD_NODES_MAX = 131_072;
const RECORD_ASSUMED_BYTES = 5 * 1024 * 1024;
/** Estimated bytes of a number, `true`, or a pair of brackets. */
const SMALL_BYTES = 8;

/** Estimates the bytes of a record as JSON without serialising it. Counting stops after RECORD_NODES_MAX values. */
function recordBytes(record: JsonObject | null): number {
  if (record === null) return SMALL_BYTES;
  let bytes = 0;
  let nodes = 0;
  const waiting: unknown[] = [record];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (++nodes > RECORD_NODES_MAX) return RECORD_ASSUMED_BYTES;
    if (typeof value === "string") bytes += value.length + 2;
    else bytes += SMALL_BYTES;
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      for (const item of value) waiting.push(item);
      continue;
    }
    for (const key in value) {
      bytes += key.length + 2;
      waiting.push((value as JsonObject)[key]); // Own keys only: a record's prototype has none.
    }
  }
  return bytes;
}
