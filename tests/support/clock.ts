import type { Clock, Millis } from "../../src/kernel/clock.ts";

/** A clock that stands still until it is told to go on. */
export interface TestClock extends Clock {
  /** Moves on by `ms`, running what falls due on the way, each at its own time and in order. */
  advance(ms: number): void;
  /** The same, letting promises settle after each piece of work: for work that goes on asynchronously. */
  advanceAsync(ms: number): Promise<void>;
  /** How many pieces of work wait. */
  readonly waiting: number;
}

interface Waiting {
  dueAt: Millis;
  order: number;
  work: () => void;
}

/** Starts at 2026-01-01T00:00:00Z unless told otherwise. */
export function testClock(startAt: Millis = Date.UTC(2026, 0, 1)): TestClock {
  let now = startAt;
  let order = 0;
  const queue = new Set<Waiting>();

  /** The first piece of work that falls due by then; null when there is none. */
  const take = (until: Millis): Waiting | null => {
    let first: Waiting | null = null;
    for (const entry of queue) {
      if (entry.dueAt > until) continue;
      const isEarlier = first === null || entry.dueAt < first.dueAt;
      if (isEarlier || (entry.dueAt === first?.dueAt && entry.order < first.order)) first = entry;
    }
    if (first !== null) {
      queue.delete(first);
      now = Math.max(now, first.dueAt);
    }
    return first;
  };

  return {
    now: () => now,
    after(delayMs, work) {
      const entry: Waiting = { dueAt: now + Math.max(0, delayMs), order: order++, work };
      queue.add(entry);
      return () => queue.delete(entry);
    },
    advance(ms) {
      const until = now + ms;
      for (let due = take(until); due !== null; due = take(until)) due.work();
      now = until;
    },
    async advanceAsync(ms) {
      const until = now + ms;
      for (let due = take(until); due !== null; due = take(until)) {
        due.work();
        await settle();
      }
      now = until;
      await settle();
    },
    get waiting() {
      return queue.size;
    },
  };
}

const SETTLE_TURNS = 5;

/** Lets promises that are ready run their continuations. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < SETTLE_TURNS; turn++) await new Promise((done) => setImmediate(done));
}
