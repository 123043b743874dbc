import { TURN_MS } from "../limits.ts";
import { nextTurn } from "./next-turn.ts";

/** Runs long work in steps, over several turns of the event loop. */
export interface Turns {
  /** The result of `steps`. Several run one after another, so that together they take no more of a turn than one does. */
  run<T>(steps: Generator<void, T>): Promise<T>;
}

/** `now`: milliseconds with fractions. */
export function createTurns(now: () => number = performance.now.bind(performance)): Turns {
  let last: Promise<unknown> = Promise.resolve();
  /** When work began in this turn of the event loop; null: none has. Work that ends leaves the rest of it to the next. */
  let startedAt: number | null = null;

  const inTurns = async <T>(steps: Generator<void, T>): Promise<T> => {
    for (;;) {
      if (startedAt === null) {
        startedAt = now();
        void nextTurn().then(() => {
          startedAt = null;
        });
      } else if (now() - startedAt >= TURN_MS) {
        await nextTurn();
        continue;
      }
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  };

  return {
    run(steps) {
      const work = last.then(() => inTurns(steps));
      last = work.catch(() => undefined);
      return work;
    },
  };
}
