import type { Millis } from "../../../../kernel/clock.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { Change } from "../../../db/index.ts";
import { EVENT_DATA_MAX_BYTES, LOG_AGE_MAX_MS, LOG_CHANGES_MAX, LOG_MAX_BYTES } from "../limits.ts";
import { recordBytes } from "./record-bytes.ts";

/** One change in the log. */
export interface Entry {
  /** Increases by one with each change of its table. */
  seq: number;
  /** Equal for the entries of one request. */
  group: number;
  at: Millis;
  timestamp: string;
  change: Change;
  /** Estimated bytes of the records before and after, as JSON. */
  bytes: number;
  /** The record after the change as JSON, serialised once; null: too large for an event. */
  readonly text: string | null;
}

/** Serialises its record when the first event needs it. */
class LoggedChange implements Entry {
  readonly seq: number;
  readonly group: number;
  readonly at: Millis;
  readonly timestamp: string;
  readonly change: Change;
  readonly bytes: number;
  #isTooLarge: boolean;
  #text: string | null = null;

  constructor(seq: number, change: Change, about: { group: number; at: Millis; timestamp: string }) {
    this.seq = seq;
    this.change = change;
    this.group = about.group;
    this.at = about.at;
    this.timestamp = about.timestamp;
    const afterBytes = recordBytes(change.after);
    this.#isTooLarge = afterBytes > EVENT_DATA_MAX_BYTES;
    // The record before counts as large as the one after; a removed one is measured.
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

const MICROSECONDS_PER_MS = 1_000;
/** Places of evicted entries at the front of an array before it is copied without them. */
const COMPACT_AFTER = 1_024;

/** The changes of one table that are kept. */
export class TableLog {
  readonly address: TableAddress;
  /** Empty at the places of evicted entries, whose records would stay in memory otherwise. */
  #entries: (Entry | undefined)[] = [];
  #evicted = 0;
  #head: number;

  /**
   * Numbers start at the time in microseconds: they increase from one process to the next, so that a number of an earlier
   * process is never taken for one of this.
   */
  constructor(address: TableAddress, now: Millis) {
    this.address = address;
    this.#head = now * MICROSECONDS_PER_MS;
  }

  /** The number of the latest change. */
  get head(): number {
    return this.#head;
  }

  append(change: Change, about: { group: number; at: Millis; timestamp: string }): Entry {
    this.#head++;
    const entry = new LoggedChange(this.#head, change, about);
    this.#entries.push(entry);
    return entry;
  }

  /** Whether all changes after `seq` are kept. */
  reaches(seq: number): boolean {
    return seq <= this.#head && seq >= this.#head - (this.#entries.length - this.#evicted);
  }

  /** The next changes of one request after `seq`; empty when there are none. `reaches(seq)` must hold. */
  groupAfter(seq: number): Entry[] {
    const first = this.#entries.length - (this.#head - seq);
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
    this.#entries[this.#evicted++] = undefined;
    if (this.#evicted >= COMPACT_AFTER || this.#evicted === this.#entries.length) {
      this.#entries = this.#entries.slice(this.#evicted);
      this.#evicted = 0;
    }
    return entry;
  }
}

/** Bounds the changes that the tables of one namespace keep together, by number, bytes and age. */
export class NamespaceLog {
  /** The table of each entry, oldest first. */
  #order: TableLog[] = [];
  #evicted = 0;
  #bytes = 0;

  append(table: TableLog, change: Change, about: { group: number; at: Millis; timestamp: string }): Entry {
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
