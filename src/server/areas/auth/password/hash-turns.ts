import { AppError } from "../../../../kernel/errors.ts";

/**
 * Runs at most `atOnceMax` pieces of work at once. Sharers take turns, each with its own work in order of arrival: a sharer
 * with a thousand pieces delays only itself. `sharer`: a client's network, or the name of another source of work.
 * With `further`, so many more run at once from `waitingMin` waiting ones on, until none waits.
 * Errors: 503 when too much work of the sharer waits, or of all: then the sharer with the most waiting is refused.
 */
export type Turns = <T>(sharer: string, work: () => Promise<T>) => Promise<T>;

interface Waiting {
  begin(): void;
  refuse(cause: AppError): void;
}

const tooMany = (): AppError =>
  new AppError(503, "Too many passwords are being checked, try again later", { headers: { "retry-after": "5" } });

export function createTurns(limits: {
  atOnceMax: number;
  waitingMax: number;
  waitingPerSharerMax: number;
  further?: { atOnceMax: number; waitingMin: number };
}): Turns {
  const { further = { atOnceMax: 0, waitingMin: 1 } } = limits;
  /** In the order of their next turns. */
  const queues = new Map<string, Waiting[]>();
  let waitingCount = 0;
  let running = 0;

  const begin = (): void => {
    for (const [sharer, queue] of queues) {
      const next = queue.shift();
      queues.delete(sharer);
      if (queue.length > 0) queues.set(sharer, queue);
      if (next === undefined) continue;
      waitingCount--;
      next.begin();
      return;
    }
    running--;
  };
  /** Refuses the last piece of the longest queue, unless that queue is no longer than the sharer's own would be. */
  const makeRoom = (own: number): void => {
    let longest: Waiting[] = [];
    for (const queue of queues.values()) if (queue.length > longest.length) longest = queue;
    if (longest.length <= own + 1) throw tooMany();
    longest.pop()?.refuse(tooMany());
    waitingCount--;
  };
  const wait = (sharer: string): Promise<void> => {
    const queue = queues.get(sharer) ?? [];
    if (queue.length >= limits.waitingPerSharerMax) throw tooMany();
    if (waitingCount >= limits.waitingMax) makeRoom(queue.length);
    waitingCount++;
    queues.set(sharer, queue);
    const turn = new Promise<void>((resolve, reject) => queue.push({ begin: resolve, refuse: reject }));
    if (waitingCount >= further.waitingMin && running < limits.atOnceMax + further.atOnceMax) {
      running++;
      begin();
    }
    return turn;
  };

  return async (sharer, work) => {
    // Whoever ends hands its place on, so that `running` stays.
    if (running >= limits.atOnceMax) await wait(sharer);
    else running++;
    try {
      return await work();
    } finally {
      begin();
    }
  };
}
