import type { Clock } from "../kernel/clock.ts";
import { SECOND_MS } from "../kernel/duration.ts";
import { AppError, clientGone } from "../kernel/errors.ts";
import type { AnswerRoom } from "./large-answers.ts";
import { PROCESS_IDLE_MS, QUERY_TIMEOUT_MS, STOP_TIMEOUT_MS } from "./limits.ts";
import { type ProcessConnection, sizeOfBytes, startQueryProcess } from "./process-connection.ts";
import { createTurns } from "./turns.ts";
import type { ProcessRole, QueryAnswer, SentQuery } from "./types.ts";

interface Pooled {
  connection: ProcessConnection;
  /** Whose query it runs; null while it runs none. */
  caller: string | null;
  /** Cancels the end for want of work; null while it works. */
  cancelIdle: (() => void) | null;
}

/** Who asks: callers share the processes fairly. */
export interface QueryCaller {
  callerName: string;
  /** Fires when nobody waits for the answer any more; undefined for what runs to its end. */
  signal: AbortSignal | undefined;
}

/** The processes of one role for one database: started when wanted, one query each at a time, ended when idle. */
export interface ProcessPool {
  /**
   * Errors: 408 after the time limit, when the query has really ended; 503 when too many wait, or the process broke or could not
   * be started. An abort of the caller's signal ends the query, waiting or under way.
   */
  run(query: SentQuery, caller: QueryCaller): Promise<QueryAnswer>;
  stop(): Promise<void>;
}

export function createProcessPool(options: {
  path: string;
  role: ProcessRole;
  sizeMax: number;
  room: AnswerRoom;
  clock: Clock;
}): ProcessPool {
  const { path, role, sizeMax, room, clock } = options;
  const all = new Set<Pooled>();
  const idle: Pooled[] = [];
  const turns = createTurns<Pooled>(clock);
  let isStopped = false;

  const forget = (process: Pooled): void => {
    all.delete(process);
    process.cancelIdle?.();
    remove(idle, process);
    if (isStopped || turns.isEmpty) return;
    // Its place is free for those who wait.
    try {
      turns.give(start(), runningOf);
    } catch (cause) {
      turns.refuseAll(cause instanceof AppError ? cause : noProcess(cause));
    }
  };
  const runningOf = (caller: string): number => [...all].filter((process) => process.caller === caller).length;
  const start = (): Pooled => {
    let connection: ProcessConnection;
    try {
      connection = startQueryProcess({ path, role, room, onExit: () => forget(process) });
    } catch (cause) {
      throw noProcess(cause);
    }
    const process: Pooled = { connection, caller: null, cancelIdle: null };
    all.add(process);
    return process;
  };
  const release = (process: Pooled): void => {
    process.caller = null;
    if (!all.has(process)) return;
    if (!turns.isEmpty) {
      turns.give(process, runningOf);
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
  const perform = async (process: Pooled, query: SentQuery, caller: QueryCaller): Promise<QueryAnswer> => {
    const { callerName, signal } = caller;
    process.caller = callerName;
    process.cancelIdle?.();
    process.cancelIdle = null;
    const end = (reason: Error): void => {
      process.connection.kill(reason).catch(() => {});
    };
    const abort = (): void => end(clientGone());
    signal?.addEventListener("abort", abort);
    const cancelTimeout = clock.after(QUERY_TIMEOUT_MS, () => {
      end(new AppError(408, `The query was ended after ${QUERY_TIMEOUT_MS / SECOND_MS} s`));
    });
    try {
      return await process.connection.run(query, callerName);
    } finally {
      cancelTimeout();
      signal?.removeEventListener("abort", abort);
      release(process);
    }
  };

  return {
    async run(query, caller) {
      const { callerName, signal } = caller;
      if (hasAborted(signal)) throw clientGone();
      if (isStopped) throw new AppError(503, "The server is stopping");
      // The one used last is the warm one, and the others come to their idle end.
      const process =
        idle.pop() ??
        (all.size < sizeMax ? start() : await turns.wait({ caller: callerName, sizeBytes: sizeOf(query), signal }));
      if (hasAborted(signal)) {
        release(process);
        throw clientGone();
      }
      return perform(process, query, caller);
    },
    async stop() {
      isStopped = true;
      const reason = new AppError(503, "The server is stopping");
      turns.refuseAll(reason);
      await Promise.all([...all].map((process) => stopProcess(process, clock, reason)));
    },
  };
}

const noProcess = (cause: unknown): AppError =>
  new AppError(503, "No process could be started for the query", { cause });

/** Memory that a waiting query takes, roughly. */
function sizeOf(query: SentQuery): number {
  if (query.kind === "body") return sizeOfBytes(query.chunks);
  const { sql, params } = query.request;
  return params.reduce((sum: number, value) => sum + (typeof value === "string" ? value.length : 8), sql.length);
}

const hasAborted = (signal: AbortSignal | undefined): boolean => signal?.aborted === true;

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
