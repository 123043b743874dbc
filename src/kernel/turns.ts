/** How long one piece of work may go on before the event loop has its turn. */
const TURN_MS = 4;

/** Long work in steps, over several turns of the event loop. */
export interface Turns {
  /** What `steps` returns; what it throws rejects. Several run one after the other, so that together they take no more of a turn than one. */
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
