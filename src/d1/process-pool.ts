import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { AppError } from "../kernel/errors.ts";
import { PROCESS_IDLE_MS, QUERY_TIMEOUT_MS, QUEUE_MAX_QUERIES, QUEUE_TIMEOUT_MS, STOP_TIMEOUT_MS } from "./limits.ts";
import { type ProcessConnection, startQueryProcess } from "./process-connection.ts";
import type { ProcessRole, QueryAnswer, QueryRequest } from "./types.ts";

interface Waiting {
  start(process: Pooled): void;
  reject(cause: Error): void;
}

interface Pooled {
  connection: ProcessConnection;
  /** Cancels the end for want of work; null while it works. */
  cancelIdle: (() => void) | null;
}

/** The processes of one role for one database: started when wanted, one query each at a time, ended when idle. */
export interface ProcessPool {
  /** Errors: 408 after the time limit, when the query has really ended; 503 when too many wait or the process broke. */
  run(request: QueryRequest): Promise<QueryAnswer>;
  stop(): Promise<void>;
}

export function createProcessPool(options: {
  path: string;
  role: ProcessRole;
  sizeMax: number;
  clock: Clock;
}): ProcessPool {
  const { path, role, sizeMax, clock } = options;
  const all = new Set<Pooled>();
  const idle: Pooled[] = [];
  const queue: Waiting[] = [];
  let isStopped = false;

  const forget = (process: Pooled): void => {
    all.delete(process);
    process.cancelIdle?.();
    remove(idle, process);
    // Its place is free for those who wait.
    const next = isStopped ? undefined : queue.shift();
    next?.start(start());
  };
  const start = (): Pooled => {
    const process: Pooled = { connection: startQueryProcess(path, role, () => forget(process)), cancelIdle: null };
    all.add(process);
    return process;
  };
  const release = (process: Pooled): void => {
    if (!all.has(process)) return;
    const next = queue.shift();
    if (next !== undefined) {
      next.start(process);
      return;
    }
    idle.push(process);
    process.cancelIdle = clock.after(PROCESS_IDLE_MS, () => {
      remove(idle, process);
      all.delete(process);
      // It has no query: its end is only waited for by those who stop.
      process.connection.end().catch(() => {});
    });
  };
  const perform = async (process: Pooled, request: QueryRequest): Promise<QueryAnswer> => {
    process.cancelIdle?.();
    process.cancelIdle = null;
    const cancelTimeout = clock.after(QUERY_TIMEOUT_MS, () => {
      const reason = new AppError(408, `The query was ended after ${QUERY_TIMEOUT_MS / SECOND_MS} s`);
      process.connection.kill(reason).catch(() => {});
    });
    try {
      return await process.connection.run(request);
    } finally {
      cancelTimeout();
      release(process);
    }
  };
  const wait = (request: QueryRequest): Promise<QueryAnswer> => {
    if (queue.length >= QUEUE_MAX_QUERIES) throw new AppError(503, "Too many queries are waiting for this database");
    const { promise, resolve, reject } = Promise.withResolvers<QueryAnswer>();
    const cancelTimeout = clock.after(QUEUE_TIMEOUT_MS, () => {
      remove(queue, waiting);
      reject(new AppError(408, `The query waited ${QUEUE_TIMEOUT_MS / SECOND_MS} s for others and has not begun`));
    });
    const waiting: Waiting = {
      start(process) {
        cancelTimeout();
        resolve(perform(process, request));
      },
      reject(cause) {
        cancelTimeout();
        reject(cause);
      },
    };
    queue.push(waiting);
    return promise;
  };

  return {
    async run(request) {
      if (isStopped) throw new AppError(503, "The server is stopping");
      // The one used last is the warm one, and the others come to their idle end.
      const process = idle.pop() ?? (all.size < sizeMax ? start() : null);
      return process === null ? wait(request) : perform(process, request);
    },
    async stop() {
      isStopped = true;
      const reason = new AppError(503, "The server is stopping");
      for (const waiting of queue.splice(0)) waiting.reject(reason);
      await Promise.all([...all].map((process) => stopProcess(process, clock, reason)));
    },
  };
}

/** Time to end by itself (a checkpoint may be due), then by force. */
async function stopProcess({ connection, cancelIdle }: Pooled, clock: Clock, reason: Error): Promise<void> {
  cancelIdle?.();
  const cancel = clock.after(STOP_TIMEOUT_MS, () => {
    connection.kill(reason).catch(() => {});
  });
  await connection.end();
  cancel();
}

function remove<T>(list: T[], member: T): void {
  const index = list.indexOf(member);
  if (index !== -1) list.splice(index, 1);
}
