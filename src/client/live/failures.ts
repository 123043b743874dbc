import { jittered, type Runtime } from "../runtime.ts";
import { isPassing, type PlatformError } from "../transport/errors.ts";
import type { LiveStatus } from "./types.ts";

/** Initial backoff after a failed list or subscription; it doubles each time. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** Effect of a failure on a live query. All but `error` are retried. */
export type Failure = { status: Extract<LiveStatus, "denied" | "offline" | "error">; error: PlatformError | null };

export function failureOf(error: PlatformError): Failure {
  if (error.status === 401 || error.status === 403) return { status: "denied", error };
  return isPassing(error) ? { status: "offline", error: null } : { status: "error", error };
}

/** Retries with exponential backoff. */
export interface Retries {
  /** Schedules a retry, in place of a waiting one. */
  later(work: () => void): void;
  /** Resets the backoff. */
  succeeded(): void;
  stop(): void;
}

export function createRetries(runtime: Runtime): Retries {
  let count = 0;
  let cancel: () => void = () => {};
  return {
    later(work) {
      cancel();
      const waitMs = Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** count++);
      cancel = runtime.after(jittered(runtime, waitMs), work);
    },
    succeeded() {
      cancel();
      count = 0;
    },
    stop: () => cancel(),
  };
}
