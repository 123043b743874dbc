import { AppError } from "../kernel/errors.ts";
import type { Logger } from "../kernel/logger.ts";
import { SEARCH_QUEUE_MAX } from "./limits.ts";
import type { SearchJob } from "./types.ts";

/** Workers that search; started with the first search, one job each at a time. */
export interface SearchPool {
  /** The answer's JSON. Errors: 503 when too many wait or the server stops, 500 for what SQLite refuses (logged). */
  run(job: SearchJob): Promise<string>;
  stop(): void;
}

interface Waiting extends PromiseWithResolvers<string> {
  job: SearchJob;
}

interface PooledWorker {
  worker: Worker;
  current: Waiting | null;
}

type WorkerAnswer = { text: string } | { failure: string };

export function createSearchPool(options: { sizeMax: number; logger: Logger }): SearchPool {
  const { sizeMax, logger } = options;
  const workers: PooledWorker[] = [];
  const queue: Waiting[] = [];
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
      if (queue.length > 0) next(start());
    };
    return pooled;
  };
  const fail = (waiting: Waiting | null, message: string): void => {
    logger.error("a vector search failed", { message });
    waiting?.reject(new AppError(500, "Internal error"));
  };
  const next = (pooled: PooledWorker): void => {
    const waiting = queue.shift();
    if (waiting === undefined) return;
    pooled.current = waiting;
    pooled.worker.postMessage(waiting.job);
  };

  return {
    async run(job) {
      if (isStopped) throw new AppError(503, "The server is stopping");
      if (queue.length >= SEARCH_QUEUE_MAX) throw new AppError(503, "Too many searches are waiting");
      const waiting: Waiting = { job, ...Promise.withResolvers<string>() };
      queue.push(waiting);
      const free = workers.find(({ current }) => current === null) ?? (workers.length < sizeMax ? start() : null);
      if (free !== null) next(free);
      return waiting.promise;
    },
    stop() {
      isStopped = true;
      const reason = new AppError(503, "The server is stopping");
      for (const { reject } of queue.splice(0)) reject(reason);
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
