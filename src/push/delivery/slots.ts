/** Runs at most so many pieces of work at once; the others wait, first come, first served. */
export interface Slots {
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function createSlots(countMax: number): Slots {
  const waiting: (() => void)[] = [];
  let freeCount = countMax;

  return {
    async run(work) {
      if (freeCount > 0) freeCount -= 1;
      else await new Promise<void>((resume) => waiting.push(resume));
      try {
        return await work();
      } finally {
        // Handed on, not given back: nobody who comes in between goes first.
        const next = waiting.shift();
        if (next === undefined) freeCount += 1;
        else next();
      }
    },
  };
}
