import { TURN_MS } from "../limits.ts";
import { createTurnStart, nextTurn } from "./next-turn.ts";

/** Runs long work in steps, over several turns of the event loop. */
export interface Turns {
  /** The result of `steps`. Several run one after another, so that together they take no more of a turn than one does. */
  run<T>(steps: Generator<void, T>): Promise<T>;
}

/** `now`: milliseconds with fractions. */
export function createTurns(now: () => number = performance.now.bind(performance)): Turns {
  let last: Promise<void> = Promise.resolve();
  // Work that ends leaves the rest of the turn's time to the next.
  const startOfTurn = createTurnStart(now);

  const inTurns = async <T>(steps: Generator<void, T>): Promise<T> => {
    for (;;) {
      while (now() - startOfTurn() >= TURN_MS) await nextTurn();
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  };

  return {
    run(steps) {
      const work = last.then(() => inTurns(steps));
      // Without the result, which may be a large body.
      last = work.then(nothing, nothing);
      return work;
    },
  };
}

const nothing = (): void => {};
