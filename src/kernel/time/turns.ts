import { AT_ONCE_MS, TURN_MS } from "../limits.ts";
import type { MaybePromise } from "../maybe-promise.ts";
import { createTurnStart, nextTurn } from "./next-turn.ts";

/** Runs long work in steps, over several turns of the event loop. */
export interface Turns {
  /** The result of `steps`. Several run one after another, so that together they take no more of a turn than one does. */
  run<T>(steps: Generator<void, T>): Promise<T>;
  /**
   * The result of `work`, which takes a moment: at once where this turn has time left and nothing waits, otherwise in its turn. What
   * it awaits itself delays nothing else.
   */
  soon<T>(work: () => MaybePromise<T>): MaybePromise<T>;
}

/** `now`: milliseconds with fractions. */
export function createTurns(now: () => number = performance.now.bind(performance)): Turns {
  let last: Promise<void> = Promise.resolve();
  let waiting = 0;
  // Work that ends leaves the rest of the turn's time to the next.
  const startOfTurn = createTurnStart(now);

  const inTurns = async <T>(steps: Generator<void, T>): Promise<T> => {
    for (;;) {
      while (now() - startOfTurn() >= TURN_MS) await nextTurn();
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  };

  const ended = (): void => {
    waiting -= 1;
  };

  const run: Turns["run"] = (steps) => {
    waiting += 1;
    const work = last.then(() => inTurns(steps));
    // Without the result, which may be a large body.
    last = work.then(ended, ended);
    return work;
  };

  return {
    run,
    soon(work) {
      if (waiting === 0 && now() - startOfTurn() < AT_ONCE_MS) return work();
      return run(begun(work)).then(({ result }) => result);
    },
  };
}

/** In an object, because the next work does not wait for a promise. */
function* begun<T>(work: () => T): Generator<void, { result: T }> {
  yield;
  return { result: work() };
}
