import type { Clock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import type { JobDefinition, JobRun } from "../types.ts";

/** Reason for which a try was ended from outside. */
type Ended = "timeout" | "cancelled" | "stopped";

/** A try that is under way. */
export type Try = ReturnType<typeof startTry>;

export type TryResult = { kind: "done" } | { kind: "threw"; cause: unknown } | { kind: Ended };

/** Starts one try. Whatever `run` does after the try was ended is ignored. */
export function startTry(
  { run, timeout }: Pick<JobDefinition, "run" | "timeout">,
  job: Omit<JobRun, "signal">,
  clock: Clock,
) {
  const controller = new AbortController();
  const { promise: result, resolve } = Promise.withResolvers<TryResult>();
  let isStopped = false;
  const end = (reason: Ended): void => {
    if (reason === "stopped") isStopped = true;
    else resolve({ kind: reason });
    controller.abort(new Error(REASONS[reason]));
  };
  const cancelTimer = timeout === null ? () => {} : clock.after(timeout * SECOND_MS, () => end("timeout"));
  // An async function catches a synchronous throw as well.
  const ran = (async () => run(Object.assign(job, { signal: controller.signal })))();
  const settled = ran.then(
    () => resolve({ kind: "done" }),
    (cause: unknown) => resolve(isStopped ? { kind: "stopped" } : { kind: "threw", cause }),
  );
  void result.then(cancelTimer);
  return {
    /** Resolves when `run` has ended, or the try was ended, whichever comes first. Never rejects. */
    result /** Resolves when `run` has ended, also where the try was ended before. Never rejects. */,
    ran: settled /** Aborts the signal. With `stopped`, `run` may still end by itself. */,
    end,
  };
}

const REASONS: Readonly<Record<Ended, string>> = {
  timeout: "The job has reached its timeout",
  cancelled: "The job was cancelled",
  stopped: "The server is stopping",
};

type Facts = Record<string, unknown>;

/** Creates a logger that adds the job's name and id to each entry. It never throws, whatever a job logs. */
export function jobLogger(logger: Logger, { name, id }: { name: string; id: string }): Logger {
  const withJob = (facts: Facts | undefined): Facts => {
    const own = { job: name, id };
    try {
      return { ...own, ...facts };
    } catch {
      return { ...own, facts: "cannot be read" };
    }
  };
  return {
    info: (message, facts) => logger.info(message, withJob(facts)),
    warn: (message, facts) => logger.warn(message, withJob(facts)),
    error: (message, facts) => logger.error(message, withJob(facts)),
  };
}
