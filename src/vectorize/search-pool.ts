import type { ReadCaller } from "../db/index.ts";
import { FairQueue, type Queued } from "../db/processes/fair-queue.ts";
import type { Clock } from "../kernel/clock.ts";
import { AppError, clientGone } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { SEARCH_QUEUE_MAX, SEARCH_QUEUE_TIMEOUT_MS } from "./limits.ts";
import type { SearchJob } from "./types.ts";

/** Workers that search; started with the first search, one job each at a time. Callers take turns. */
export interface SearchPool {
  /**
   * The answer's JSON. Errors: 503 when too many wait, or the search has waited too long, or the server stops; 499 when the
   * caller went away before it began; 500 for what SQLite refuses (logged).
   */
  run(job: SearchJob, caller: ReadCaller): Promise<string>;
  stop(): void;
}

interface Waiting extends Queued, PromiseWithResolvers<string> {
  job: SearchJob;
  /** Ends what watches over it while it waits. */
  unwatch: () => void;
}

interface PooledWorker {
  worker: Worker;
  current: Waiting | null;
}

type WorkerAnswer = { text: string } | { failure: string };

export function createSearchPool(options: { sizeMax: number; clock: Clock; logger: Logger }): SearchPool {
  const { sizeMax, clock, logger } = options;
  const workers: PooledWorker[] = [];
  const queue = new FairQueue<Waiting>(SEARCH_QUEUE_MAX);
  let isStopped = false;

  const start = (): PooledWorker => {
    const pooled: PooledWorker = { worker: new Worker(workerUrl(), { smol: true }), current: null };
    workers.push(pooled);
    // The worker is this program's own and answers nothing else.
    pooled.worker.onmessage = ({ data }: MessageEvent<WorkerAnswer>) => {
      const { current } = pooled;
      pooled.current = null;
      if ("text" in data) current?.resolve(data.text);
      else fail(current, data.failure);
      next(pooled);
    };
    pooled.worker.onerror = ({ message }) => {
      workers.splice(workers.indexOf(pooled), 1);
      pooled.worker.terminate();
      fail(pooled.current, message);
      if (queue.size > 0) next(start());
    };
    return pooled;
  };
  const fail = (waiting: Waiting | null, message: string): void => {
    logger.error("a vector search failed", { message });
    waiting?.reject(new AppError(500, "Internal error"));
  };
  const watch = (waiting: Waiting, signal: AbortSignal | undefined): void => {
    const refuse = (reason: AppError): void => {
      waiting.unwatch();
      queue.remove(waiting);
      waiting.reject(reason);
    };
    const abort = (): void => refuse(clientGone());
    const cancelTimeout = clock.after(SEARCH_QUEUE_TIMEOUT_MS, () =>
      refuse(new AppError(503, "Too many searches are waiting")),
    );
    signal?.addEventListener("abort", abort);
    waiting.unwatch = () => {
      cancelTimeout();
      signal?.removeEventListener("abort", abort);
    };
  };
  const next = (pooled: PooledWorker): void => {
    const running = (caller: string) => workers.filter(({ current }) => current?.caller === caller).length;
    const waiting = queue.take({ running, mayRun: () => true });
    if (waiting === null) return;
    waiting.unwatch();
    pooled.current = waiting;
    pooled.worker.postMessage(waiting.job);
  };

  return {
    async run(job, { callerName, signal }) {
      if (isStopped) throw new AppError(503, "The server is stopping");
      if (signal?.aborted === true) throw clientGone();
      const waiting: Waiting = { job, caller: callerName, places: 1, unwatch() {}, ...Promise.withResolvers<string>() };
      for (const refused of queue.add(waiting)) {
        refused.unwatch();
        refused.reject(new AppError(503, "Too many searches are waiting"));
      }
      watch(waiting, signal);
      const free = workers.find(({ current }) => current === null) ?? (workers.length < sizeMax ? start() : null);
      if (free !== null) next(free);
      return waiting.promise;
    },
    stop() {
      isStopped = true;
      const reason = new AppError(503, "The server is stopping");
      for (const waiting of queue.drain()) {
        waiting.unwatch();
        waiting.reject(reason);
      }
      for (const { worker, current } of workers.splice(0)) {
        worker.terminate();
        current?.reject(reason);
      }
    },
  };
}

/** The executable holds its modules by their path under src/, and all code of the server as one file at the top. */
function workerUrl(): string {
  const path = Bun.isStandaloneExecutable ? "./vectorize/search-worker.ts" : "./search-worker.ts";
  return new URL(path, import.meta.url).href;
}
