import { RETRIES_MAX, RETRY_AFTER_MAX_MS, RETRY_BACKOFF_MS } from "../limits.ts";
import { jittered, pause, type Runtime } from "../runtime.ts";
import { isPassing, PlatformError } from "./errors.ts";

/** Whether the same request may have another outcome soon. After a timeout it has not: the server was asked for long enough. */
const isRepeated = (error: PlatformError): boolean =>
  error.code !== "timeout" && error.status !== 504 && isPassing(error);

/** The wait before try `count` + 1, in milliseconds; null where it would be too long. */
function waitBefore(count: number, { retryAfter }: PlatformError, runtime: Runtime): number | null {
  const askedMs = (retryAfter ?? 0) * 1000;
  return askedMs > RETRY_AFTER_MAX_MS ? null : askedMs + jittered(runtime, RETRY_BACKOFF_MS * 2 ** count);
}

/** Runs `work` up to four times, while it fails by what passes. Errors: the last one; the signal's reason. */
export async function withRetries<T>(work: () => Promise<T>, runtime: Runtime, signal?: AbortSignal): Promise<T> {
  for (let count = 0; ; count++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PlatformError) || !isRepeated(error) || count === RETRIES_MAX) throw error;
      const waitMs = waitBefore(count, error, runtime);
      if (waitMs === null) throw error;
      await pause(runtime, waitMs, signal);
    }
  }
}
