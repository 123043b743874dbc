import type { Millis } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { BACKOFF_FIRST_MS, BACKOFF_MAX_MS, ERROR_LENGTH_MAX } from "../limits.ts";
import { FinalFailure, type JobDefinition } from "../types.ts";
import type { ClaimedJob, Outcome } from "./store.ts";
import type { TryResult } from "./trying.ts";

const INTERRUPTED = "The server ended while the job was running";

interface Moment {
  now: Millis;
  /** Random number, at least 0 and less than 1. */
  random: number;
}

/** Returns the outcome of a job after a try. */
export function outcomeOf(job: ClaimedJob, result: TryResult, definition: JobDefinition, moment: Moment): Outcome {
  switch (result.kind) {
    case "done":
      return { job, to: "done", at: moment.now };
    case "cancelled":
      return { job, to: "failed", at: moment.now, error: "Cancelled" };
    case "stopped":
      return interruptedOutcome(job, definition, { now: moment.now, dueAt: moment.now });
    case "timeout":
      return failedTry(job, `took longer than ${definition.timeout} seconds`, definition, moment);
    case "threw":
      if (!(result.cause instanceof FinalFailure)) {
        return failedTry(job, errorText(result.cause), definition, moment);
      }
      return { job, to: "failed", at: moment.now, error: errorText(result.cause) };
  }
}

function failedTry(job: ClaimedJob, error: string, definition: JobDefinition, { now, random }: Moment): Outcome {
  const { attempt, createdAt } = job;
  const delayMs =
    attempt > definition.retries
      ? null
      : definition.backoff === undefined
        ? backoffOf(attempt, random)
        : definition.backoff({ attempt, createdAt, random });
  return delayMs === null
    ? { job, to: "failed", at: now, error }
    : { job, to: "retry", dueAt: now + Math.max(0, delayMs), error };
}

/**
 * Returns the outcome of a try that the process did not survive. Such a try counts, but one is forgiven: the end of the process may
 * have nothing to do with the job, which would otherwise be lost if it has no retries. [JB6]
 */
export function interruptedOutcome(
  job: Pick<ClaimedJob, "seq" | "name" | "group" | "attempt">,
  definition: JobDefinition | null,
  { now, dueAt }: { now: Millis; dueAt: Millis },
): Outcome {
  const isUsedUp = definition !== null && job.attempt > definition.retries + 1;
  return isUsedUp
    ? { job, to: "failed", at: now, error: INTERRUPTED }
    : { job, to: "retry", dueAt, error: INTERRUPTED };
}

function errorText(cause: unknown): string {
  const text = reasonOf(cause);
  return text.length <= ERROR_LENGTH_MAX ? text : `${text.slice(0, ERROR_LENGTH_MAX - 1)}…`;
}

/**
 * Returns the backoff after the failed try number `attempt`: 1 to 2 s after the first, doubling up to 30 to 60 min, with jitter, so
 * that jobs that failed together are retried apart from each other. `random` is at least 0 and less than 1.
 */
export function backoffOf(attempt: number, random: number): Millis {
  const leastMs = Math.min(BACKOFF_FIRST_MS * 2 ** (attempt - 1), BACKOFF_MAX_MS / 2);
  return Math.floor(leastMs * (1 + random));
}
