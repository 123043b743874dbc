import type { Clock, Millis } from "../../src/kernel/clock.ts";

/** Clock that stands still until it is advanced. */
export interface TestClock extends Clock {
  /** Advances by `ms`, running due work on the way, each at its own time and in order. */
  advance(ms: number): void;
  /** Advances like `advance`, and lets promises settle after each piece of work. */
  advanceAsync(ms: number): Promise<void>;
  /** Number of waiting pieces of work. */
  readonly waiting: number;
}

interface Waiting {
  dueAt: Millis;
  order: number;
  work: () => void;
}

/** Creates a clock. It starts at 2026-01-01T00:00:00Z by default. */
export function testClock(startAt: Millis = Date.UTC(2026, 0, 1)): TestClock {
  let now = startAt;
  let order = 0;
  const queue = new Set<Waiting>();

  /** Takes the first piece of work due by then; null if there is none. */
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
