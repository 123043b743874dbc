import type { Random } from "../../support/random.ts";

interface Planned {
  at: number;
  order: number;
  run: () => void;
}

/** Simulated time: what happens when, in one order. */
export class World {
  now = 0;
  readonly random: Random;
  /** A heap by time, then by the order of planning. */
  readonly #planned: Planned[] = [];
  #order = 0;

  constructor(random: Random) {
    this.random = random;
  }

  after(delayMs: number, run: () => void): void {
    const heap = this.#planned;
    const planned = { at: this.now + delayMs, order: this.#order++, run };
    let at = heap.length;
    heap.push(planned);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, planned)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = planned;
  }

  runUntil(end: number): void {
    for (let next = this.#planned[0]; next !== undefined && next.at <= end; next = this.#planned[0]) {
      this.#shift();
      this.now = next.at;
      next.run();
    }
    this.now = end;
  }

  #shift(): void {
    const heap = this.#planned;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      let below = heap[child];
      if (below === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, below)) {
        below = right;
        child += 1;
      }
      if (isBefore(last, below)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (a: Planned, b: Planned): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
