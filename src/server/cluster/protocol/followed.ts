import type { GroupRow, LogEntry, Place } from "./statements.ts";

/** Comparison of a log with what a node has shown of it. */
export type Comparison = "agrees" | "shorter" | "differs";

/** A follower's view of the log: entries that were read wait until they are known to be durable. */
export class FollowedLog {
  /** The last place that was shown. */
  shown: Place;
  #read: LogEntry[] = [];

  constructor(shown: Place) {
    this.shown = shown;
  }

  get hasRead(): boolean {
    return this.#read.length > 0;
  }

  /** Whether the log begins behind what was shown of it, or with another content than that. */
  isBehind(base: Place): boolean {
    const { position } = this.shown;
    return position < base.position || (position === base.position && !isSamePlace(this.shown, base));
  }

  /** Takes the answer of a read that began at `shown`, which it contains unless the log is shorter. */
  read(group: GroupRow, entries: readonly LogEntry[]): Comparison {
    this.#read = [];
    if (group.position < this.shown.position) return "shorter";
    // The entry that was shown last was dropped from the log, which names it.
    const isAtBase = isSamePlace(this.shown, group.base) && entries[0]?.position !== this.shown.position;
    let previous: Place = isAtBase ? this.shown : { position: 0, nonce: "" };
    for (const entry of entries) {
      const isFirst = previous.position === 0;
      if (isFirst && this.shown.position > 0) {
        if (entry.position !== this.shown.position || entry.nonce !== this.shown.nonce) return "differs";
      } else if (entry.position !== previous.position + 1 || entry.previous !== previous.nonce) return "differs";
      if (entry.position > this.shown.position) this.#read.push(entry);
      previous = entry;
    }
    return this.shown.position > 0 && entries.length === 0 && !isAtBase ? "differs" : "agrees";
  }

  /** Shows what was read: a write of this node, begun after the read on the same connection, has returned normally. */
  showAll(): LogEntry[] {
    return this.#show(this.#read.length);
  }

  /** Shows what was read up to a place that the owner says is acknowledged, if it is the same content. */
  showUpTo({ position, nonce }: Place): LogEntry[] {
    const index = this.#read.findIndex((entry) => entry.position === position && entry.nonce === nonce);
    return this.#show(index + 1);
  }

  /** Forgets what was read: the next connection may lead to a server that does not have it. */
  forget(): void {
    this.#read = [];
  }

  restart(at: Place): void {
    this.shown = at;
    this.#read = [];
  }

  #show(count: number): LogEntry[] {
    const shown = this.#read.splice(0, count);
    const last = shown.at(-1);
    if (last !== undefined) this.shown = { position: last.position, nonce: last.nonce };
    return shown;
  }
}

const isSamePlace = (one: Place, other: Place): boolean => one.position === other.position && one.nonce === other.nonce;
