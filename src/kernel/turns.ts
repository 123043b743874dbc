import { TURN_MS } from "./limits.ts";

/** Runs long work in steps, over several turns of the event loop. */
export interface Turns {
  /** The result of `steps`. Several run one after another, so that together they take no more of a turn than one does. */
  run<T>(steps: Generator<void, T>): Promise<T>;
}

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(steps) {
      const work = last.then(() => inTurns(steps));
      last = work.catch(() => undefined);
      return work;
    },
  };
}

async function inTurns<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const startedAt = performance.now();
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (performance.now() - startedAt < TURN_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
