import { LEASE_MS, TRUST_MS } from "./limits.ts";
import type { Instant, NodeRow, Seen } from "./statements.ts";

/** A node's trust in its own lease, by both of its clocks: a suspended machine stops one, and somebody may set the other. */
export class OwnLease {
  #began: Instant | null = null;

  /** Takes a renewal that was begun at this moment, and has returned normally. */
  renewed(began: Instant): void {
    this.#began = began;
  }

  isTrusted(now: Instant): boolean {
    if (this.#began === null) return false;
    const monotonicMs = now.monotonicMs - this.#began.monotonicMs;
    const wallMs = now.wallMs - this.#began.wallMs;
    // A wall clock that was set back says nothing about how long the machine was suspended.
    return monotonicMs < TRUST_MS && wallMs >= 0 && wallMs < TRUST_MS;
  }
}

/**
 * Leases of all nodes, as one of them sees them. Over is one whose counter was seen to stand still for a lease by the clock of the
 * observer: from the arrival of the first answer that shows it to the begin of the last one. Time without looking does not count.
 */
export class LeaseWatch {
  readonly #seen = new Map<string, Seen & { fromMs: number; untilMs: number }>();

  /** Takes the rows of an answer, whose statement began then, and which arrived now. */
  observe(rows: readonly NodeRow[], began: Instant, now: Instant): void {
    for (const { node, incarnation, counter } of rows) {
      const known = this.#seen.get(node);
      if (known !== undefined && known.incarnation === incarnation && known.counter === counter)
        known.untilMs = began.monotonicMs;
      else this.#seen.set(node, { node, incarnation, counter, fromMs: now.monotonicMs, untilMs: began.monotonicMs });
    }
    if (this.#seen.size > rows.length) this.#forget(rows);
  }

  isOver(row: NodeRow): boolean {
    const seen = this.#seen.get(row.node);
    if (seen === undefined || seen.incarnation !== row.incarnation || seen.counter !== row.counter) return false;
    return seen.untilMs - seen.fromMs >= LEASE_MS;
  }

  #forget(rows: readonly NodeRow[]): void {
    const present = new Set(rows.map(({ node }) => node));
    for (const node of this.#seen.keys()) if (!present.has(node)) this.#seen.delete(node);
  }
}

/** Ends of the log that renewals have returned: a node that has not applied what is a lease old renews no more. */
export class EndsSeen {
  #ends: { position: number; atMs: number }[] = [];

  add(position: number, now: Instant): void {
    const old = this.#ends.findLastIndex(({ atMs }) => now.monotonicMs - atMs >= LEASE_MS);
    if (old > 0) this.#ends.splice(0, old);
    this.#ends.push({ position, atMs: now.monotonicMs });
  }

  clear(): void {
    this.#ends = [];
  }

  /** Returns the newest end that is at least a lease old; 0: there is none. */
  required(now: Instant): number {
    return this.#ends.findLast(({ atMs }) => now.monotonicMs - atMs >= LEASE_MS)?.position ?? 0;
  }
}
