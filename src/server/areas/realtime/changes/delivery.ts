import type { Clock } from "../../../../kernel/clock.ts";
import { SLICE_MS } from "../limits.ts";
import type { Audience } from "./audience.ts";

export interface Delivery {
  /** It has changes for the next `run`. */
  add(audience: Audience): void;
  /** The same, and schedules a run. */
  wake(audience: Audience): void;
  run(): void;
  stop(): void;
}

/** Delivers in turns of the event loop: the changes of one request for each audience in turn. */
export function createDelivery(deps: {
  clock: Clock;
  /** Delivered changes are still to be sent: the others stay in the logs of their tables meanwhile. */
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
    const isOver = (): boolean => clock.now() > until;
    for (const audience of waiting) {
      if (deps.isBehind()) break;
      waiting.delete(audience);
      // Added again behind the others. A failure of one audience must not affect the others, or the writer.
      try {
        if (audience.deliverNext(isOver)) waiting.add(audience);
      } catch (cause) {
        deps.onFailure(audience, cause);
      }
      if (isOver()) break;
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
      // A run that was interrupted continues in its turn, so that many commits in a row take no more of the event loop.
      if (cancelNext === null) run();
    },
    stop() {
      isStopped = true;
      cancelNext?.();
    },
  };
}
