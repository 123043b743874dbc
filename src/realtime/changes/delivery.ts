import type { Clock } from "../../kernel/clock.ts";
import { SLICE_MS } from "../limits.ts";
import type { Audience } from "./audience.ts";

export interface Delivery {
  /** Has something for the next `run`. */
  add(audience: Audience): void;
  /** The same, and a run follows by itself. */
  wake(audience: Audience): void;
  run(): void;
  stop(): void;
}

/** Delivers in turns, one request's changes for each audience, and lets others at the event loop in between. */
export function createDelivery(deps: {
  clock: Clock;
  /** What has been delivered is still to be sent: what is not stays in the tables' logs meanwhile. */
  isBehind: () => boolean;
  onFailure: (audience: Audience, cause: unknown) => void;
}): Delivery {
  const { clock } = deps;
  const waiting = new Set<Audience>();
  let cancelNext: (() => void) | null = null;
  let isStopped = false;

  const runSoon = (): void => {
    if (cancelNext !== null || isStopped) return;
    cancelNext = clock.after(0, () => {
      cancelNext = null;
      run();
    });
  };
  const run = (): void => {
    const until = clock.now() + SLICE_MS;
    for (const audience of waiting) {
      if (deps.isBehind()) break;
      waiting.delete(audience);
      // Added again at the end: the others come first.
      // What fails for one audience must not keep the others, or the writer, from going on.
      try {
        if (audience.deliverNext()) waiting.add(audience);
      } catch (cause) {
        deps.onFailure(audience, cause);
      }
      if (clock.now() > until) break;
    }
    if (waiting.size > 0) runSoon();
  };
  return {
    add(audience) {
      waiting.add(audience);
    },
    wake(audience) {
      waiting.add(audience);
      runSoon();
    },
    run() {
      // One that was broken off goes on in its turn: many commits in a row must not hold the loop any longer.
      if (cancelNext === null) run();
    },
    stop() {
      isStopped = true;
      cancelNext?.();
    },
  };
}
